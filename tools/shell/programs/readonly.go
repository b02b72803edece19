package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// harmful lists the programs that change nothing, each with the options with which it does after all. A program that
// is not here is never read-only. Options are judged strictly: a letter counts anywhere in a cluster, a long option
// from its first letters on.
var harmful = map[string]string{
	"ls": "", "cat": "", "head": "", "tail": "", "wc": "--files0-from", "tac": "", "nl": "", "rev": "", "stat": "", "du": "--files0-from", "df": "", "pwd": "", "echo": "", "true": "", "false": "", "test": "", "[": "", "basename": "", "dirname": "", "realpath": "", "readlink": "",
	"file": "-f --files-from -C -z -Z -S --compile --uncompress --uncompress-noreport --no-sandbox", "tree": "-o -R", "printf": "-v", "date": "-s --set", "sort": "--files0-from -o -T --output --compress-program --temporary-directory", "whoami": "", "id": "", "uname": "", "nproc": "", "uptime": "", "free": "", "which": "", "arch": "", "groups": "", "tty": "", "seq": "", "sleep": "", "expr": "", "cal": "",
	"grep": "", "egrep": "", "fgrep": "", "rg": "-z --pre --search-zip --hostname-bin", "diff": "-l --paginate", "cmp": "", "comm": "", "join": "", "paste": "", "cut": "", "tr": "", "fold": "", "fmt": "", "expand": "", "unexpand": "", "column": "", "od": "", "hexdump": "", "strings": "", "md5sum": "", "sha1sum": "", "sha224sum": "", "sha256sum": "", "sha384sum": "", "sha512sum": "", "shasum": "", "cksum": "", "b2sum": "", "base64": "-o --output", "fd": "-x -X --exec --exec-batch", "fdfind": "-x -X --exec --exec-batch", "uniq": "", "xxd": "-r -revert", "numfmt": "", "tsort": "", "hostname": "-F -b --file --boot", "ps": "", "jq": "", "sed": "", "awk": "", "gawk": "", "mawk": "", "nawk": "", "gsed": "", "go": "", "pathchk": "", "locale": "",
}

// readOnly reports a call that changes nothing and runs nothing else, with the options it has.
func readOnly(name string, c *scan.Visit) bool {
	bad, ok := harmful[name]
	args := c.Args[1:]
	if !ok {
		return len(args) == 1 && (args[0].Text == "--version" || args[0].Text == "--help" || hasField(shortVersion[name], args[0].Text)) && versioned[name]
	}
	words := 0
	for _, a := range args {
		if scan.NamesSecret(a.Source) {
			return false // what it prints would be sent to a model
		}
		if !a.Known() {
			// An unknown word may be an option, unless it cannot: quoted text for echo changes nothing.
			if bad != "" || name == "sed" || name == "go" || strings.HasSuffix(name, "awk") || name == "uniq" || name == "hostname" || name == "xxd" {
				return false
			}
			continue
		}
		s := a.Text
		if v, ok := a.One(); ok {
			s = v
		}
		if len(s) < 2 || s[0] != '-' {
			words++
			continue
		}
		if optionIn(s, bad) {
			return false
		}
	}
	switch name {
	case "uniq", "xxd":
		return words <= 1
	case "hostname":
		return words == 0
	case "date":
		return words == 0 || words == 1 && strings.HasPrefix(args[len(args)-1].Text, "+")
	case "ps":
		return len(args) == 0 || len(args) == 1 && (args[0].Text == "aux" || args[0].Text == "-ef" || args[0].Text == "-e" || args[0].Text == "-A" || args[0].Text == "ax")
	case "jq":
		for _, a := range args {
			if strings.Contains(a.Text, "env") || strings.Contains(a.Text, "ENV") || strings.Contains(a.Text, "include") || strings.Contains(a.Text, "import") || strings.HasPrefix(a.Text, "-L") {
				return false // prints the environment, keys included
			}
		}
	case "sed", "gsed":
		return sedReads(args)
	case "awk", "gawk", "mawk", "nawk":
		return awkReads(args)
	case "go":
		return len(args) > 0 && (args[0].Text == "version" && len(args) == 1 || args[0].Text == "env" && !strings.Contains(scan.TextOf(args), "-w") && !strings.Contains(scan.TextOf(args), "-u"))
	case "sleep":
		return words == 1
	}
	return true
}

// versioned are programs whose --version and --help surely only print.
var versioned = map[string]bool{
	"git": true, "npm": true, "cargo": true, "rustc": true, "gcc": true, "clang": true, "make": true, "cmake": true, "docker": true, "kubectl": true, "pip": true, "pip3": true, "tsc": true, "yarn": true, "pnpm": true, "java": true, "javac": true, "gopls": true, "rg": true, "jq": true,
	"rustup": true, "cargo-clippy": true, "golangci-lint": true, "eslint": true, "prettier": true, "pytest": true, "mvn": true, "gradle": true, "composer": true, "bundle": true, "gem": true, "dotnet": true, "clang++": true, "g++": true, "gh": true, "helm": true, "terraform": true, "poetry": true, "uv": true, "ninja": true,
}

// shortVersion are their short spellings.
var shortVersion = map[string]string{"npm": "-v", "pnpm": "-v", "yarn": "-v", "docker": "-v", "tsc": "-v", "cargo": "-V", "rustc": "-V -vV", "pip": "-V", "pip3": "-V", "java": "-version", "javac": "-version", "make": "-v", "gcc": "-v", "clang": "-v", "mvn": "-v", "gradle": "-v", "uv": "-V"}

// optionIn reports whether an argument is, or may be short for, one of the options.
func optionIn(s, bad string) bool {
	for f := range strings.FieldsSeq(bad) {
		if strings.HasPrefix(f, "--") || len(f) > 2 {
			key, _, _ := strings.Cut(s, "=")
			if key == f || strings.HasPrefix(key, "--") && len(key) > 2 && strings.HasPrefix(f, key) {
				return true
			}
			continue
		}
		if !strings.HasPrefix(s, "--") && strings.Contains(s, f[1:]) {
			return true
		}
	}
	return false
}

// sedReads reports a sed call without -i whose script only prints, deletes and substitutes.
func sedReads(args []scan.Word) bool {
	var scripts []string
	quiet := 0
	for i := 0; i < len(args); i++ {
		s, ok := args[i].One()
		if !ok {
			if len(scripts) > 0 || quiet > 0 {
				continue // a file
			}
			return false
		}
		switch {
		case s == "-n" || s == "-E" || s == "-r" || s == "--quiet" || s == "-s" || s == "-u" || s == "-z" || s == "--posix" || s == "-nE" || s == "-nr" || s == "-En" || s == "-rn":
		case s == "-e" && i+1 < len(args):
			i++
			script, ok := args[i].One()
			if !ok {
				return false
			}
			scripts = append(scripts, script)
			quiet++
		case s == "-ne" && i+1 < len(args):
			i++
			script, ok := args[i].One()
			if !ok {
				return false
			}
			scripts = append(scripts, script)
		case strings.HasPrefix(s, "-") && len(s) > 1:
			return false
		case len(scripts) == 0:
			scripts = append(scripts, s)
		}
	}
	for _, s := range scripts {
		if !sedScript(s) {
			return false
		}
	}
	return len(scripts) > 0
}

// sedUnderstood reports a sed call that changes at most the files it is given.
func sedUnderstood(args []scan.Word) bool {
	var rest []scan.Word
	for i, a := range args {
		s := a.Text
		switch {
		case i > 0 && (args[i-1].Text == "-i" && s == ""):
		case strings.HasPrefix(s, "--in-place"), s == "-i", strings.HasPrefix(s, "-i"):
		case len(s) > 1 && s[0] == '-' && s[1] != '-' && strings.Contains(s, "i"):
			if letters := strings.ReplaceAll(s, "i", ""); len(letters) > 1 {
				rest = append(rest, scan.Plain(letters)) // -Ei, -ni, -ie …
			}
		default:
			rest = append(rest, a)
		}
	}
	return sedReads(rest)
}

// awkFile reports awk -f: a program in a file, like any script.
func awkFile(args []scan.Word) bool {
	for _, a := range args {
		switch {
		case !strings.HasPrefix(a.Text, "-"):
			return false
		case strings.HasPrefix(a.Text, "-f"):
			return true
		}
	}
	return false
}

// sedScript understands the part of sed that touches nothing but its input: no r, w, e, F.
func sedScript(s string) bool {
	i := 0
	skipRegex := func(delim byte) bool {
		for ; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case delim:
				i++
				return true
			case '\n':
				return false
			}
		}
		return false
	}
	for i < len(s) {
		switch c := s[i]; {
		case strings.IndexByte(" \t\n;,!$0123456789+~{}", c) >= 0:
			i++
		case c == '/':
			i++
			if !skipRegex('/') {
				return false
			}
			for i < len(s) && (s[i] == 'I' || s[i] == 'M') {
				i++
			}
		case c == 'p' || c == 'd' || c == '=' || c == 'q' || c == 'P' || c == 'D' || c == 'n' || c == 'N' || c == 'g' || c == 'G' || c == 'h' || c == 'H' || c == 'x' || c == 'l':
			i++
		case c == 'a' || c == 'i' || c == 'c': // text up to the end of the line
			for i < len(s) && s[i] != '\n' {
				if s[i] == '\\' {
					i++
				}
				i++
			}
		case c == ':' || c == 'b' || c == 't' || c == 'T': // labels
			for i++; i < len(s) && strings.IndexByte(";\n}", s[i]) < 0; i++ {
			}
		case c == 's' || c == 'y':
			if i+1 >= len(s) {
				return false
			}
			delim := s[i+1]
			if delim == '\n' || delim == '\\' || delim == '[' {
				return false
			}
			i += 2
			if strings.IndexByte(s[i:], '[') >= 0 && delim != '/' && delim != '|' && delim != '#' && delim != ',' && delim != '@' {
				return false
			}
			if !skipRegex(delim) { // what is looked for
				return false
			}
			if !skipRegex(delim) { // what comes instead
				return false
			}
			for i < len(s) && strings.IndexByte("gpIi0123456789", s[i]) >= 0 {
				i++
			}
			if i < len(s) && strings.IndexByte(" \t\n;}", s[i]) < 0 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// awkCompares reports a program in which every > compares: none stands behind print, which would write a file. Programs
// with regular expressions or backslashes are not looked at so closely: where their strings end is hard to say.
func awkCompares(s string) bool {
	if s = strings.ReplaceAll(s, ">=", ""); !strings.Contains(s, ">") {
		return true
	}
	if strings.ContainsAny(s, `/\#`) || strings.Count(s, `"`)%2 != 0 {
		return false
	}
	var code strings.Builder
	for i, part := range strings.Split(s, `"`) {
		if i%2 == 0 {
			code.WriteString(part + " ")
		}
	}
	for _, statement := range strings.FieldsFunc(code.String(), func(r rune) bool { return strings.ContainsRune("{};\n", r) }) {
		if at := strings.Index(statement, "print"); at >= 0 && strings.Contains(statement[at:], ">") {
			return false
		}
	}
	return true
}

// awkReads reports an awk call whose program is given as text and neither runs nor writes anything.
func awkReads(args []scan.Word) bool {
	for i := 0; i < len(args); i++ {
		s, ok := args[i].One()
		if !ok {
			return false
		}
		switch {
		case (s == "-F" || s == "-v") && i+1 < len(args):
			i++
			continue
		case strings.HasPrefix(s, "-F") || strings.HasPrefix(s, "-v"):
			continue
		case strings.HasPrefix(s, "-") && len(s) > 1:
			return false
		}
		s = strings.ReplaceAll(s, "||", "")
		for _, word := range [...]string{"system", "getline", "|", ">", "@", "close", "fflush", "ENVIRON", "PROCINFO", "ARGV", "ARGC"} {
			if word == ">" && awkCompares(s) {
				continue
			}
			if strings.Contains(s, word) {
				return false
			}
		}
		// What follows the program are files; assignments among them are harmless.
		return true
	}
	return false
}
