package quickfix

import (
	"sort"
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// run plays the script that the person's words ask for.
func run(w *walk) {
	r := parsePrompt(w.prompt)
	switch r.verb {
	case verbFix:
		fix(w, r.where)
	case verbRename:
		rename(w, r)
	case verbOrganize:
		eachFile(w, r.where, "organizeImports", "Imports organised in")
	case verbFormat:
		eachFile(w, r.where, "format", "Formatted")
	case verbExplain:
		explain(w, r.where)
	case verbUses:
		uses(w, r)
	default:
		w.say("%s", help)
		// "help" is a word that the grammar does not know and that is answered all the same.
		w.undone = !strings.EqualFold(strings.Trim(w.prompt, " \n.!?"), "help")
	}
}

// help is the answer to a request that the grammar does not know. It must name all verbs, because it is the only manual that people see.
const help = `I am Pillion's built-in model. I need no key and no network, and I know only what your language servers know:

- fix [errors] [in FILE]
- rename A to B
- organise imports [in FILE]
- format [FILE]
- explain errors [in FILE]
- find uses of A

For everything else add a model: ` + "`pillion auth login anthropic`" + ` (openai, google) or its variable (ANTHROPIC_API_KEY …), or name any
OpenAI-compatible server in pillion.jsonc: {"provider": {"local": {"baseURL": "http://127.0.0.1:11434/v1", "models": ["…"]}}}.
` + "`pillion models` lists what can be used here."

// symbol is the place where a name is declared. Lines and columns count from 1, columns in UTF-16 units.
type symbol struct {
	path         string
	line, column int
	// rest is the kind, name, detail and container, as shown to the user and compared by declares.
	rest string
}

// location is a place in the lsp tool's metadata; numbers count from 1.
type location struct {
	Path   string `json:"path"`
	Line   int    `json:"line"`
	Column int    `json:"column"`
	Text   string `json:"text"` // the line there
}

// wireSymbol is a symbol in the lsp tool's metadata.
type wireSymbol struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	Detail    string   `json:"detail"`
	Container string   `json:"container"`
	Selection location `json:"selection"`
}

// locate finds the declaration of a name. Where there is none, or several, it tells the user and returns false: renaming the wrong one
// would be worse than asking.
func locate(w *walk, name, where string) (symbol, bool) {
	if !w.canAsk() {
		return symbol{}, false
	}
	// Only the last element is asked for, because languages write qualified names in different ways.
	short := name[strings.LastIndexAny(name, ".#")+1:]
	r := w.call("lsp", map[string]any{"operation": "workspaceSymbol", "query": short})
	if r.failed {
		w.sayUndone("The language servers could not look for %s: %s", name, r.text)
		return symbol{}, false
	}
	var said struct {
		Symbols []wireSymbol `json:"symbols"`
	}
	r.read(&said)
	var found []symbol
	for _, s := range said.Symbols {
		rest := strings.TrimSpace(s.Kind + " " + s.Name + " " + s.Detail)
		if s.Container != "" {
			rest += " in " + s.Container
		}
		if !declares(rest, name, short) || where != "" && !within(s.Selection.Path, where) {
			continue
		}
		found = append(found, symbol{path: s.Selection.Path, line: s.Selection.Line, column: s.Selection.Column, rest: rest})
	}
	switch len(found) {
	case 1:
		return found[0], true
	case 0:
		w.sayUndone("I found no declaration of %s%s. Names are case-sensitive.", name, in(where))
	default:
		w.sayUndone("%s is declared in %s:\n\n", name, textutil.Plural(len(found), "place"))
		for _, s := range found {
			w.say("- %s:%d:%d %s\n", w.show(s.path), s.line, s.column, s.rest)
		}
		w.say("\nSay which one, for example: … in %s", w.show(found[0].path))
	}
	return symbol{}, false
}

// declares reports whether a symbol's text ("function Total in Basket") is about exactly the name that was asked for.
func declares(rest, name, short string) bool {
	hit := false
	for _, word := range strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(" \t()*,[]`\"", r) }) {
		if word == name || word == short || strings.HasSuffix(word, "."+short) {
			hit = true
		}
	}
	// "Basket.Total" also needs its owner to be named.
	if owner, _, qualified := strings.Cut(name, "."); hit && qualified {
		return strings.Contains(rest, owner)
	}
	return hit
}

// within reports whether a path is the file or folder that the person named, in full or by its last elements.
func within(path, where string) bool {
	where = strings.TrimSuffix(where, "/")
	return path == where || strings.HasSuffix(path, "/"+where) || strings.HasPrefix(path, where+"/") || strings.Contains(path, "/"+where+"/")
}

// rename renames a symbol through the language server, which knows all its uses.
func rename(w *walk, q request) {
	if q.name == "" || q.to == "" {
		w.sayUndone("Say both names: rename OLD to NEW.")
		return
	}
	s, ok := locate(w, q.name, q.where)
	if !ok {
		return
	}
	// A qualified new name would move the symbol, which a rename cannot do.
	to := q.to[strings.LastIndexAny(q.to, ".#")+1:]
	r := w.call("lsp", map[string]any{"operation": "rename", "filePath": s.path, "line": s.line, "character": s.column, "newName": to})
	switch {
	case r.refused():
		// A refusal is an answer of the user, so the turn does not count as undone.
		w.say("Not renamed: the change was not accepted.")
	case r.failed:
		w.sayUndone("%s could not be renamed: %s", q.name, r.text)
	default:
		w.say("Renamed %s to %s.", q.name, to)
	}
}

// uses lists where a symbol is used, grouped by file.
func uses(w *walk, q request) {
	s, ok := locate(w, q.name, q.where)
	if !ok {
		return
	}
	r := w.call("lsp", map[string]any{"operation": "findReferences", "filePath": s.path, "line": s.line, "character": s.column})
	if r.failed {
		w.sayUndone("The uses of %s could not be found: %s", q.name, r.text)
		return
	}
	files := map[string][]string{}
	n := 0
	var said struct {
		Locations []location `json:"locations"`
	}
	r.read(&said)
	for _, l := range said.Locations {
		// Servers may list the declaration as well.
		if l.Path == s.path && l.Line == s.line && l.Column == s.column {
			continue // the declaration itself
		}
		files[l.Path] = append(files[l.Path], strings.TrimSpace(strconv.Itoa(l.Line)+"  "+l.Text))
		n++
	}
	if n == 0 {
		w.say("%s (%s:%d) is not used.", q.name, w.show(s.path), s.line)
		return
	}
	w.say("%s, declared at %s:%d, has %s in %s:\n\n", q.name, w.show(s.path), s.line, textutil.Plural(n, "use"), textutil.Plural(len(files), "file"))
	for _, path := range sorted(files) {
		w.say("%s\n", w.show(path))
		for _, l := range files[path] {
			w.say("  %s\n", l)
		}
	}
}

// eachFile runs one operation over a file, or over the source files of a folder or the project.
func eachFile(w *walk, where, operation, done string) {
	if !w.canAsk() {
		return
	}
	paths, more := []string{where}, false
	// A name with a dot is a file, any other a folder.
	if where == "" || !strings.Contains(where[strings.LastIndexByte(where, '/')+1:], ".") {
		if paths, more = sources(w, where); len(paths) == 0 {
			return
		}
	}
	// A file that is refused or fails does not stop the others; the summary names each outcome.
	var changedFiles, failures []string
	refusals := 0
	for _, p := range paths {
		r := w.call("lsp", map[string]any{"operation": operation, "filePath": p})
		switch {
		case r.refused():
			refusals++
		case r.failed:
			failures = append(failures, p+": "+textutil.FirstLine(r.text))
		case r.changed():
			changedFiles = append(changedFiles, p)
		}
	}
	switch {
	case len(changedFiles) > 0:
		w.say("%s %s: %s.\n", done, textutil.Plural(len(changedFiles), "file"), strings.Join(changedFiles, ", "))
	case refusals == 0 && len(failures) == 0:
		w.say("Nothing to do: %s already in order.\n", textutil.Plural(len(paths), "file"))
	}
	// Without this sentence "in order" would be read as being about every file.
	if more {
		w.say("There are more files than the %d that one search lists: name a folder to reach the others.\n", len(paths))
	}
	if refusals > 0 {
		w.say("%s not accepted.\n", textutil.Plural(refusals, "change"))
	}
	for _, f := range failures {
		w.say("- %s\n", f)
	}
	// A refusal is the decision of the user, so the request does not count as undone.
	w.undone = len(failures) > 0 && len(changedFiles) == 0 && refusals == 0
}

// sources lists the files for which people have language servers, by their extensions. more reports that the search has left files out.
func sources(w *walk, where string) (paths []string, more bool) {
	input := map[string]any{"pattern": "**/*.{go,ts,tsx,js,jsx,mjs,cjs,py,rs,c,cc,cpp,h,hpp,json,css,html,yaml,yml,lua,zig,dart}"}
	if where != "" {
		input["path"] = where
	}
	r := w.call("glob", input)
	if r.failed {
		w.sayUndone("The files%s could not be listed: %s", in(where), r.text)
		return nil, false
	}
	var said struct {
		Paths     []string `json:"paths"`
		Truncated bool     `json:"truncated"`
	}
	r.read(&said)
	sort.Strings(said.Paths)
	if len(said.Paths) == 0 {
		w.sayUndone("There are no source files%s that I know.", in(where))
	}
	return said.Paths, said.Truncated
}

// explain shows each problem with its line and the quick fixes that the language server offers.
func explain(w *walk, where string) {
	d := diagnose(w, where)
	if !d.ok {
		return
	}
	list := d.problems
	if len(list) == 0 {
		w.say("There are no problems%s%s.", in(where), d.asFarAs())
		return
	}
	// Problems that are explained; each takes two tool calls.
	const most = 20
	shown := list
	if len(shown) > most {
		shown = shown[:most]
	}
	var asks []call
	for _, p := range shown {
		asks = append(asks,
			call{"read", encode(map[string]any{"filePath": p.Path, "offset": p.Line, "limit": 1})},
			call{"lsp", encode(map[string]any{"operation": "codeActions", "filePath": p.Path, "line": p.Line, "character": p.Column})})
	}
	// Two answers for each problem: its line, then its actions.
	answers := w.calls(asks...)
	w.say("%s in %s:\n", textutil.Plural(len(list), "problem"), textutil.Plural(len(byFile(list)), "file"))
	for i, p := range shown {
		w.say("\n**%s:%d** %s: %s\n", w.show(p.Path), p.Line, p.Severity, p.Message)
		var line struct {
			Preview string `json:"preview"` // the lines that were read, here one; empty where the file cannot be read
		}
		if answers[2*i].read(&line); line.Preview != "" {
			w.say("    %s\n", strings.TrimSpace(line.Preview))
		}
		var offers []string
		for _, a := range answers[2*i+1].actions() {
			if a.quickfix() {
				offers = append(offers, a.Title)
			}
		}
		if len(offers) > 0 {
			w.say("  A quick fix would be: %s.\n", strings.Join(offers, "; "))
		} else {
			w.say("  There is no quick fix.\n")
		}
	}
	if len(list) > most {
		w.say("\n… and %d more.\n", len(list)-most)
	}
	w.say("\n`fix errors` tries the quick fixes.")
}

// sorted returns the keys of a map in order: Go visits maps in random order, and every replay must say the same.
func sorted[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}
