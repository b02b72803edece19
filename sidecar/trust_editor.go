package main

// An editor with workspace trust says in _meta.pillion.trusted of initialize or of session/new, load and resume
// whether the person trusts the folder. It counts for that folder, in this process, and is not stored.

func joinNotes(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}
