package shell

import (
	"path"
	"slices"
	"strings"
)

// spec says which arguments of a program are paths. It is written as "options | words": an option with a value is
// -o=k, words are a list of kinds whose last may be repeated with *. Kinds: r read, w write, x not a path, g a path
// when it looks like one, l the same for programs that only read. An option marked ^ replaces the first x among the words (grep -e); one marked ? takes a value
// after = only (--color).
//
//	"grep": "-e=x^ -f=r^ -A=x | x r*"
type spec struct {
	options []option
	words   []kind
	repeat  bool
	single  bool // long options have one dash: go, openssl, java
	driver  bool // options are whole words or glued to their value, never clusters of letters: compilers
	fold    bool // options are spelled with any letters, small or capital: tsc
	unknown bool // the program is not in the table
}

type option struct {
	name  string
	kind  kind
	first bool // stands for the first word
	glued bool // takes a value after "=" only: the next word is none
}

type kind byte

const (
	kindRead    kind = 'r'
	kindWrite   kind = 'w'
	kindText    kind = 'x'
	kindGeneric kind = 'g'
	kindLook    kind = 'l' // as g, but what looks like a path is only read
)

// generic looks at every argument that looks like a path.
var generic = spec{words: []kind{kindGeneric}, repeat: true, unknown: true}

// specOf parses the table's line for a program. It is done at each use: the lines are short and most are never used.
func specOf(name string) spec {
	name = family(name)
	line, ok := specs[name]
	if !ok {
		if _, ok := arity[name]; ok || textOnly[name] {
			return spec{words: []kind{kindGeneric}, repeat: true}
		}
		return generic
	}
	return parseSpec(line)
}

func (s *spec) option(name string) (option, bool) {
	for _, o := range s.options {
		if o.name == name || s.fold && strings.EqualFold(o.name, name) {
			return o, true
		}
		if end, ok := strings.CutPrefix(o.name, "--*"); ok && strings.HasPrefix(name, "--") && strings.HasSuffix(name, end) {
			return o, true // --go_out, --java_out
		}
	}
	if strings.HasPrefix(name, "--") && len(name) > 3 {
		for _, o := range s.options {
			if strings.HasPrefix(o.name, name) {
				return o, true // GNU programs take abbreviations
			}
		}
	}
	return option{}, false
}

// word is the kind of the i-th word of n.
func (s *spec) word(i, n int) kind {
	k := len(s.words)
	switch {
	case k == 0:
		return kindText
	case s.repeat && i >= k-1:
		return s.words[k-1]
	case !s.repeat && k > 1 && n >= k && i == n-1 && strings.ContainsRune("w", rune(s.words[k-1])):
		return s.words[k-1] // the last word is the target: cp a b c dir
	case !s.repeat && i >= k-1 && k > 1:
		return s.words[k-2]
	case i < k:
		return s.words[i]
	}
	return s.words[k-1]
}

// pathArgs notes the paths among a call's arguments.
func (w *walker) pathArgs(c *call, s spec) {
	name := path.Base(c.args[0].text)
	if onlyReads(name, c.args[1:]) {
		s.words = readKinds(s.words)
	}
	switch name {
	case "rm", "rmdir", "mv", "chmod", "chown", "chgrp":
		w.removes = true
		w.paths.deep, w.paths.nofollow = true, name == "rm"
		defer func() { w.paths.deep, w.paths.nofollow = false, false }()
	case "dd":
		w.dd(c)
		return
	case "test", "[":
		w.testCall(c)
		return
	case "tar", "gtar", "bsdtar":
		w.tar(c)
		return
	case "ln":
		w.ln(c)
		return
	case "jq":
		c = w.jqArgs(c)
	case "mktemp":
		named := false
		for _, a := range c.args[1:] {
			named = named || !strings.HasPrefix(a.text, "-") && !strings.Contains(" "+textOf(c.args), " -t") || strings.HasPrefix(a.text, "-p") || strings.HasPrefix(a.text, "--tmpdir=")
		}
		if !named {
			w.record(literal(w.tempDir()), Write, c.st)
		}
	case "scp", "sftp", "rsync":
		w.remote(c, s)
		return
	case "curl":
		w.curl(c)
	case "cmake":
		if len(c.args) > 1 && c.args[1].text == "-E" {
			s = parseSpec("| g*")
		}
	}
	w.applySpec(c, s)
}

// applySpec goes through the arguments as getopt would.
func (w *walker) applySpec(c *call, s spec) {
	args := c.args[1:]
	var words []arg
	words0 := s.words
	behind := "" // an option that nobody knows, directly before
	take := func(o option, a arg) {
		if o.first && len(words0) > 0 && words0[0] == kindText {
			words0 = words0[1:]
		}
		w.ofKind(o.kind, a, c)
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		t := a.text
		if v, ok := a.one(); ok {
			t = v
		}
		switch {
		case t == "--":
			words = append(words, args[i+1:]...)
			i = len(args)
			continue
		case len(t) < 2 || t[0] != '-' || w.negative(t):
			if behind != "" && writesBehind(behind) {
				w.genericArg(a, Write, c.st)
			}
			behind = ""
			words = append(words, a)
			continue
		}
		behind = ""
		if s.driver {
			i += w.driverOption(&s, a, t, args[i+1:], take, c)
			continue
		}
		if key, _, has := strings.Cut(t, "="); strings.HasPrefix(t, "--") || s.single || len(key) > 2 && s.exact(key) {
			if s.single && strings.HasPrefix(key, "--") {
				key = key[1:]
			}
			o, ok := s.option(key)
			switch {
			case ok && has:
				take(o, a.cut("="))
			case ok && o.glued:
				if o.first {
					take(o, plainArg(""))
				}
			case ok && i+1 < len(args):
				i++
				take(o, args[i])
			case !ok && has:
				w.genericArg(a.cut("="), Write, c.st)
			case !ok && !a.known():
				w.ofKind(kindGeneric, a, c)
			case !ok:
				behind = key
			}
			continue
		}
		// A cluster of letters: the first that takes a value takes the rest, or the next word.
		matched := false
		for j := 1; j < len(t); j++ {
			o, ok := s.option("-" + t[j:j+1])
			if !ok {
				continue
			}
			matched = true
			if j+1 < len(t) {
				rest := a
				rest.vals = nil
				for _, v := range a.vals {
					if len(v.s) > j {
						rest.vals = append(rest.vals, literal(strings.TrimPrefix(v.s[min(j+1, len(v.s)):], "=")))
					}
				}
				rest.text = t[j+1:]
				take(o, rest)
			} else if i+1 < len(args) {
				i++
				take(o, args[i])
			}
			break
		}
		if !matched {
			w.genericArg(a, Write, c.st)
		}
	}
	s.words = words0
	for i, a := range words {
		w.ofKind(s.word(i, len(words)), a, c)
	}
	if s.unknown {
		for _, a := range args {
			if !a.known() {
				w.opaque("it cannot be said which paths " + c.args[0].text + " is given")
				break
			}
		}
	}
}

// negative numbers are words: head -5 is an option, seq -1 is not; neither is a path.
func (w *walker) negative(t string) bool { return strings.Trim(t[1:], "0123456789") == "" }

// cut is the argument's value behind a separator.
func (a arg) cut(sep string) arg {
	out := a
	out.vals = nil
	for _, v := range a.vals {
		if _, s, ok := strings.Cut(v.s, sep); ok {
			_, p, _ := strings.Cut(v.pat, sep)
			out.vals = append(out.vals, value{s: s, pat: p, glob: v.glob})
		}
	}
	_, out.text, _ = strings.Cut(a.text, sep)
	return out
}

func (w *walker) ofKind(k kind, a arg, c *call) {
	switch k {
	case kindRead:
		w.recordArg(a, Read, c.st)
	case kindWrite:
		w.recordArg(a, Write, c.st)
	case kindLook:
		w.genericArg(a, Read, c.st)
	case kindGeneric:
		if noPath(path.Base(c.args[0].text), a.text) {
			if _, val, ok := strings.Cut(a.text, "="); ok && a.text[1] != '/' { // /p:OutDir=../x
				w.genericArg(plainArg(val), Write, c.st)
			}
			return
		}
		w.genericArg(a, Write, c.st)
	}
}

func (w *walker) recordArg(a arg, access Access, st *state) {
	for _, v := range a.vals {
		if v.s == "-" && !v.glob {
			continue
		}
		if strings.HasPrefix(v.s, "~/") || v.s == "~" { // programs expand it themselves, or it was quoted: both are looked at
			w.record(literal(w.req.Home+v.s[1:]), access, st)
		}
		w.record(v, access, st)
	}
}

// noPath reports an argument that only looks like a path to this program: a label of a build, a Windows option.
func noPath(name, s string) bool {
	switch name {
	case "bazel", "bazelisk", "buck", "buck2", "pants", "plz", "please":
		return strings.HasPrefix(strings.TrimPrefix(s, "-"), "//") || strings.HasPrefix(s, "@")
	case "dotnet", "msbuild":
		return len(s) > 2 && s[0] == '/' && strings.Contains(s, ":") && !strings.Contains(s[1:strings.IndexByte(s, ':')], "/")
	}
	return false
}

// genericArg notes an argument that looks like a path, whatever the program does with it.
func (w *walker) genericArg(a arg, access Access, st *state) {
	for _, v := range a.vals {
		for _, p := range pathish(v.s) {
			switch {
			case p == v.s:
				w.record(v, access, st)
			case strings.HasPrefix(v.s, "file://"):
				w.record(literal(p), Read, st)
			case strings.HasPrefix(p, "~"):
				w.record(literal(w.req.Home+p[1:]), access, st)
			default:
				w.record(literal(p), access, st)
			}
		}
		if v.exact() && len(v.s) < 256 && !strings.HasPrefix(v.s, "-") && !strings.ContainsAny(v.s, "\n ") && !st.unknown {
			// A plain word may be a link that leads outside.
			for _, d := range st.dirs {
				if strings.HasPrefix(v.s, "/") {
					continue
				}
				if l := w.paths.stat(w.paths.real(d) + "/" + v.s); l.exists {
					w.paths.addLinked(d+"/"+v.s, access)
				} else if strings.ContainsAny(v.s, "./") && !strings.Contains(v.s, "://") {
					w.paths.guard(w.paths.real(d+"/"+v.s), access) // it may come into being
				}
			}
		} else if v.glob && v.known() && strings.Contains(v.pat, "*") && !strings.HasPrefix(v.s, "-") && !st.unknown {
			w.record(v, access, st)
		}
	}
}

// addLinked notes a word of a program nobody knows: it counts only where it leads outside or is protected.
func (p *paths) addLinked(abs string, access Access) {
	real := p.real(abs)
	if !p.inside(real, access) {
		if p.inside(p.real(abs[:strings.LastIndexByte(abs, '/')]), access) {
			p.add(abs, access)
		}
		return
	}
	p.guard(real, access)
}

// pathish finds what looks like a path in an argument.
func pathish(s string) []string {
	if s == "" || strings.Contains(s, "://") && !strings.HasPrefix(s, "file://") || strings.ContainsRune(s, '\n') {
		return nil
	}
	if rest, ok := strings.CutPrefix(s, "file://"); ok {
		return []string{rest}
	}
	var out []string
	switch {
	case strings.HasPrefix(s, "--"):
		if _, val, ok := strings.Cut(s, "="); ok {
			return pathish(val)
		}
		return nil
	case strings.HasPrefix(s, "-"):
		if _, val, ok := strings.Cut(s, "="); ok {
			return pathish(val)
		}
		if len(s) > 3 && (s[2] == '/' || s[2] == '~' || strings.HasPrefix(s[2:], "../")) {
			return pathish(s[2:])
		}
		return nil
	case s == "..", s == "~", strings.HasPrefix(s, "/"), strings.HasPrefix(s, "~/"), strings.HasPrefix(s, "../"), strings.HasPrefix(s, "./"), strings.Contains(s, "/../"), strings.HasSuffix(s, "/.."):
		out = append(out, s)
	case strings.Contains(s, wild) && !strings.Contains(s, " "):
		out = append(out, s)
	}
	if name, val, ok := strings.Cut(s, "="); ok && !strings.ContainsAny(name, "/ ") {
		out = append(out, pathish(val)...)
	}
	if strings.HasPrefix(s, "@") {
		out = append(out, pathish(s[1:])...)
	}
	if strings.Contains(s, ":") && !strings.Contains(s, " ") {
		for part := range strings.SplitSeq(s, ":") {
			if part != s && (strings.HasPrefix(part, "/") || strings.HasPrefix(part, "~/") || strings.HasPrefix(part, "../")) && !slices.Contains(out, part) {
				out = append(out, part)
			}
		}
	}
	return out
}
