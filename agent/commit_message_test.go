package agent

import "testing"

func TestACommitMessageIsCleanedOfWhatModelsAdd(t *testing.T) {
	for answer, want := range map[string]string{
		"fix: close the file\n":                         "fix: close the file",
		"```\nfix: close the file  \n\nIt leaked.\n```": "fix: close the file\n\nIt leaked.",
		"```text\r\nfix\r\n```\r\n":                     "fix",
		`"fix: close the file"`:                         "fix: close the file",
		`"a" and "b"`:                                   `"a" and "b"`,
		"`x` is closed":                                 "`x` is closed",
		"docs: show code\n\n```\nx\n```":                "docs: show code\n\n```\nx\n```",
		"":                                              "",
	} {
		if got := cleanMessage(answer); got != want {
			t.Errorf("%q: %q, want %q", answer, got, want)
		}
	}
}
