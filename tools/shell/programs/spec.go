package programs

import (
	"github.com/pillion-dev/pillion/tools/shell/scan"
	"path"
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
func pathArgs(c *scan.Visit, s spec) {
	name := path.Base(c.Args[0].Text)
	if onlyReads(name, c.Args[1:]) {
		s.words = readKinds(s.words)
	}
	switch name {
	case "rm", "rmdir", "mv", "chmod", "chown", "chgrp":
		c.Removes()
		c.Manner.Deep, c.Manner.NoFollow = true, name == "rm"
		defer func() { c.Manner.Deep, c.Manner.NoFollow = false, false }()
	case "dd":
		dd(c)
		return
	case "test", "[":
		testCall(c)
		return
	case "tar", "gtar", "bsdtar":
		tar(c)
		return
	case "ln":
		ln(c)
		return
	case "jq":
		c = jqArgs(c)
	case "mktemp":
		named := false
		for _, a := range c.Args[1:] {
			named = named || !strings.HasPrefix(a.Text, "-") && !strings.Contains(" "+scan.TextOf(c.Args), " -t") || strings.HasPrefix(a.Text, "-p") || strings.HasPrefix(a.Text, "--tmpdir=")
		}
		if !named {
			c.TouchValue(scan.Literal(c.TempDir()), scan.Write)
		}
	case "scp", "sftp", "rsync":
		remote(c, s)
		return
	case "curl":
		curl(c)
	case "cmake":
		if len(c.Args) > 1 && c.Args[1].Text == "-E" {
			s = parseSpec("| g*")
		}
	}
	applySpec(c, s)
}

// applySpec goes through the arguments as getopt would.
func applySpec(c *scan.Visit, s spec) {
	args := c.Args[1:]
	var words []scan.Word
	words0 := s.words
	behind := "" // an option that nobody knows, directly before
	take := func(o option, a scan.Word) {
		if o.first && len(words0) > 0 && words0[0] == kindText {
			words0 = words0[1:]
		}
		ofKind(o.kind, a, c)
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		t := a.Text
		if v, ok := a.One(); ok {
			t = v
		}
		switch {
		case t == "--":
			words = append(words, args[i+1:]...)
			i = len(args)
			continue
		case len(t) < 2 || t[0] != '-' || negative(t):
			if behind != "" && writesBehind(behind) {
				c.TouchIfPath(a, scan.Write)
			}
			behind = ""
			words = append(words, a)
			continue
		}
		behind = ""
		if s.driver {
			i += driverOption(&s, a, t, args[i+1:], take, c)
			continue
		}
		if key, _, has := strings.Cut(t, "="); strings.HasPrefix(t, "--") || s.single || len(key) > 2 && s.exact(key) {
			if s.single && strings.HasPrefix(key, "--") {
				key = key[1:]
			}
			o, ok := s.option(key)
			switch {
			case ok && has:
				take(o, a.Cut("="))
			case ok && o.glued:
				if o.first {
					take(o, scan.Plain(""))
				}
			case ok && i+1 < len(args):
				i++
				take(o, args[i])
			case !ok && has:
				c.TouchIfPath(a.Cut("="), scan.Write)
			case !ok && !a.Known():
				ofKind(kindGeneric, a, c)
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
				rest.Values = nil
				for _, v := range a.Values {
					if len(v.Text) > j {
						rest.Values = append(rest.Values, scan.Literal(strings.TrimPrefix(v.Text[min(j+1, len(v.Text)):], "=")))
					}
				}
				rest.Text = t[j+1:]
				take(o, rest)
			} else if i+1 < len(args) {
				i++
				take(o, args[i])
			}
			break
		}
		if !matched {
			c.TouchIfPath(a, scan.Write)
		}
	}
	s.words = words0
	for i, a := range words {
		ofKind(s.word(i, len(words)), a, c)
	}
	if s.unknown {
		for _, a := range args {
			if !a.Known() {
				c.Opaque("it cannot be said which paths " + c.Args[0].Text + " is given")
				break
			}
		}
	}
}

// negative numbers are words: head -5 is an option, seq -1 is not; neither is a path.
func negative(t string) bool { return strings.Trim(t[1:], "0123456789") == "" }

func ofKind(k kind, a scan.Word, c *scan.Visit) {
	switch k {
	case kindRead:
		c.Touch(a, scan.Read)
	case kindWrite:
		c.Touch(a, scan.Write)
	case kindLook:
		c.TouchIfPath(a, scan.Read)
	case kindGeneric:
		if noPath(path.Base(c.Args[0].Text), a.Text) {
			if _, val, ok := strings.Cut(a.Text, "="); ok && a.Text[1] != '/' { // /p:OutDir=../x
				c.TouchIfPath(scan.Plain(val), scan.Write)
			}
			return
		}
		c.TouchIfPath(a, scan.Write)
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
