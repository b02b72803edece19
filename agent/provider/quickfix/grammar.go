package quickfix

import (
	"regexp"
	"strings"
)

// verb is the kind of work that a prompt asks for.
type verb string

// The verbs that parsePrompt knows. verbNone is answered with the help text.
const (
	verbFix      verb = "fix"
	verbRename   verb = "rename"
	verbOrganize verb = "organize"
	verbFormat   verb = "format"
	verbExplain  verb = "explain"
	verbUses     verb = "uses"
	verbNone     verb = ""
)

// request is a parsed prompt. Fields that its verb does not use are empty.
type request struct {
	verb  verb
	name  string // the symbol to rename or find
	to    string // its new name
	where string // a file or folder; empty: the whole project
}

// words reports that a place is a description and not a path: several words without anything that paths have. "format my code nicely"
// must not format a file of that name.
func words(where string) bool {
	return strings.ContainsAny(where, " \t") && !strings.ContainsAny(where, `/\.`)
}

// parsePrompt reads the first line of a prompt. Quotes and backticks around names and paths, a leading "please" and a trailing full stop
// do not matter. The order of the patterns does: "fix imports" must not be read as "fix FILE". What fits no pattern is verbNone, which is
// answered with the help text: a guess would change files that nobody asked about.
func parsePrompt(prompt string) request {
	s := strings.TrimSpace(prompt)
	if i := strings.IndexByte(s, '\n'); i >= 0 && !strings.HasPrefix(s, "@") {
		s = strings.TrimSpace(s[:i])
	}
	s = strings.TrimRight(s, ".!? ")
	s = strings.TrimSpace(regexp.MustCompile(`(?i)^(please|pls|can you|could you|would you|kindly)\s+`).ReplaceAllString(s, ""))
	// A pattern must match the whole line: words that are left over would be a part of the request that is not done.
	find := func(pattern string) []string {
		return regexp.MustCompile(`(?i)^` + pattern + `$`).FindStringSubmatch(s)
	}

	if m := find(`rename\s+(?:the\s+)?(?:(?:function|method|type|variable|var|const|constant|field|symbol|class|struct|package|interface)\s+)?(\S+)\s+(?:to|into|as|->|=>)\s+(\S+)(?:\s+(?:in|of|from)\s+(.+))?`); m != nil {
		return request{verb: verbRename, name: bare(m[1]), to: bare(m[2]), where: place(m[3])}
	}
	if m := find(`(?:organi[sz]e|sort|tidy|clean up|fix)\s+(?:the\s+)?imports(?:\s+(?:in|of|for)\s+(.+))?`); m != nil {
		return request{verb: verbOrganize, where: place(m[1])}
	}
	if m := find(`(?:re)?format(?:\s+(?:the\s+)?(?:code|files?))?(?:\s+(?:in|of)?\s*(.+))?`); m != nil && !words(place(m[1])) {
		return request{verb: verbFormat, where: place(m[1])}
	}
	if m := find(`(?:find|show|list)\s+(?:me\s+)?(?:all\s+)?(?:the\s+)?(?:uses|usages?|references|callers)\s+(?:of|to)\s+(\S+)(?:\s+in\s+(.+))?`); m != nil {
		return request{verb: verbUses, name: bare(m[1]), where: place(m[2])}
	}
	if m := find(`(?:who|what)\s+(?:uses|calls|references)\s+(\S+)(?:\s+in\s+(.+))?`); m != nil {
		return request{verb: verbUses, name: bare(m[1]), where: place(m[2])}
	}
	if m := find(`where\s+is\s+(\S+)\s+used(?:\s+in\s+(.+))?`); m != nil {
		return request{verb: verbUses, name: bare(m[1]), where: place(m[2])}
	}
	const things = `(?:(?:compile|compiler|compilation|build|type|lint|syntax)\s+)?(?:errors?|problems?|diagnostics|warnings?|issues?|mistakes?|bugs?)`
	if m := find(`(?:explain|describe|list|show|what are|why are there)\s*(?:me\s+)?(?:all\s+)?(?:the\s+|these\s+|those\s+|my\s+)?` + things + `(?:\s+(?:in|of)\s+(.+))?`); m != nil {
		return request{verb: verbExplain, where: place(m[1])}
	}
	if m := find(`(?:what\s+is|what's)\s+(?:wrong|broken)(?:\s+(?:in|with)\s+(.+))?`); m != nil {
		return request{verb: verbExplain, where: place(m[1])}
	}
	if m := find(`(?:fix|repair|mend|solve|resolve|correct|remove|clear)\s+(?:all\s+)?(?:of\s+)?(?:the\s+|these\s+|those\s+|my\s+)?` + things + `(?:\s+(?:in|of|from)\s+(.+))?`); m != nil {
		return request{verb: verbFix, where: place(m[1])}
	}
	if m := find(`(?:make\s+(?:it|this|the project|(.+))\s+(?:compile|build))`); m != nil && !words(place(m[1])) {
		return request{verb: verbFix, where: place(m[1])}
	}
	if m := find(`(?:fix|repair|mend)(?:\s+(?:everything|all|it|this|that|(?:the\s+)?(?:build|project|code|compilation)|(.+)))?`); m != nil && !words(place(m[1])) {
		return request{verb: verbFix, where: place(m[1])}
	}
	if m := find(`explain(?:\s+(.+))?`); m != nil && !words(place(m[1])) {
		return request{verb: verbExplain, where: place(m[1])}
	}
	return request{}
}

// bare removes quotes and call parentheses from a name: Total() means the function Total.
func bare(s string) string { return strings.TrimSuffix(strings.Trim(s, "`'\",;:"), "()") }

// place reads the end of a prompt as a path, without words such as "package" before it. Words for "everywhere" become "", the whole
// project.
func place(s string) string {
	s = strings.TrimSpace(s)
	for _, word := range []string{"the file ", "file ", "the folder ", "folder ", "the directory ", "directory ", "the package ", "package "} {
		if len(s) > len(word) && strings.EqualFold(s[:len(word)], word) {
			s = s[len(word):]
		}
	}
	s = strings.TrimPrefix(bare(s), "@")
	switch strings.ToLower(s) {
	case "", ".", "./", "here", "everywhere", "everything", "all files", "this project", "the project", "project", "the workspace", "this workspace", "the whole project", "the code", "this", "it", "me":
		return ""
	}
	return s
}
