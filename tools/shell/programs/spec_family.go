package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// families are the programs that come under many names: gcc-12, arm-none-eabi-gcc, clang++-17.
var families = map[string]string{
	"gcc": "gcc", "g++": "gcc", "cc": "gcc", "c++": "gcc", "clang": "gcc", "clang++": "gcc", "cpp": "gcc", "gfortran": "gcc", "tcc": "gcc", "emcc": "gcc", "em++": "gcc", "icx": "gcc", "icpx": "gcc", "nvcc": "gcc", "hipcc": "gcc", "musl-gcc": "gcc", "c89": "gcc", "c99": "gcc",
	"ld": "ld", "ld.lld": "ld", "ld.gold": "ld", "ld.bfd": "ld", "lld": "ld", "mold": "ld", "as": "as", "ar": "ar", "gcc-ar": "ar", "llvm-ar": "ar", "nm": "nm", "objcopy": "objcopy", "llvm-objcopy": "objcopy", "strip": "strip", "llvm-strip": "strip", "objdump": "objdump", "clang-format": "clang-format", "pip": "pip", "pip3": "pip3",
}

// family is the name under which a program stands in the tables.
func family(name string) string {
	if f, ok := families[name]; ok {
		return f
	}
	bare := strings.TrimRight(name, "0123456789.")
	if bare != name {
		if f, ok := families[strings.TrimSuffix(bare, "-")]; ok {
			return f
		}
	}
	bare = strings.TrimSuffix(bare, "-")
	if i := strings.LastIndexByte(bare, '-'); i > 0 { // the machine it compiles for
		if f, ok := families[bare[i+1:]]; ok && f != "pip" && f != "pip3" {
			return f
		}
	}
	return name
}

// exact reports a word of one dash and several letters that is an option of the table: -include, -maxdepth.
func (s *spec) exact(key string) bool {
	for _, o := range s.options {
		if o.name == key && len(key) > 2 && key[1] != '-' {
			return true
		}
	}
	return false
}

// driverOption looks at an option of a compiler: a whole word with its value behind it, behind "=" or glued to it;
// -Wl, -Wp and -Wa hand theirs on to another program. skip is how many of the next arguments it took.
func driverOption(s *spec, a scan.Word, t string, next []scan.Word, take func(option, scan.Word), c *scan.Visit) (skip int) {
	for _, on := range [...][2]string{{"-Wl,", "ld"}, {"-Wp,", "-Wp"}, {"-Wa,", "as"}} {
		if rest, ok := strings.CutPrefix(t, on[0]); ok {
			inner := c.With([]scan.Word{c.Args[0]})
			for part := range strings.SplitSeq(rest, ",") {
				inner.Args = append(inner.Args, scan.Plain(part))
			}
			applySpec(inner, specOf(on[1]))
			return 0
		}
	}
	key, _, has := strings.Cut(t, "=")
	o, ok := s.option(key)
	if !ok && strings.HasPrefix(key, "--") {
		o, ok = s.option(key[1:]) // linkers take both
	}
	switch {
	case ok && has:
		take(o, a.Cut("="))
		return 0
	case ok && o.glued:
		return 0
	case ok && len(next) > 0:
		take(o, next[0])
		return 1
	case ok:
		return 0
	}
	var glued option
	for _, o := range s.options {
		if len(o.name) > len(glued.name) && strings.HasPrefix(t, o.name) && o.name[1] != '-' && !o.glued {
			glued = o
		}
	}
	if glued.name != "" {
		take(glued, a.From(len(glued.name)))
		return 0
	}
	if !a.Known() {
		ofKind(kindGeneric, a, c)
	}
	for part := range strings.FieldsFuncSeq(t, func(r rune) bool { return r == '=' || r == ',' }) {
		c.TouchIfPath(scan.Plain(part), scan.Write)
	}
	if writesBehind(key) && !has && len(next) > 0 && !strings.HasPrefix(next[0].Text, "-") {
		c.TouchIfPath(next[0], scan.Write)
	}
	return 0
}

// writesBehind reports an option that nobody knows but whose name says that the next word is written.
func writesBehind(option string) bool {
	low := strings.ToLower(option)
	for _, word := range [...]string{"out", "dest", "target-dir", "log-file", "logfile", "trace", "dump", "report", "save", "write", "export", "cache", "tmp", "temp", "prefix", "record", "snapshot", "artifact"} {
		if strings.Contains(low, word) {
			return true
		}
	}
	return false
}

// writesWith are programs that change the files they are given only with one of these options, readsWith those that do
// not with one of these. A subcommand is part of the name.
var writesWith = map[string]string{
	"gofmt": "-w", "goimports": "-w", "gofumpt": "-w", "golines": "-w", "clang-format": "-i", "shfmt": "-w --write", "prettier": "-w --write", "eslint": "--fix --init", "stylelint": "--fix", "standard": "--fix", "yapf": "-i --in-place", "autopep8": "-i --in-place", "yq": "-i --inplace --in-place -s --split-exp", "markdownlint": "-f --fix", "markdownlint-cli2": "--fix", "ktlint": "-F --format", "swiftlint": "--fix --autocorrect", "rubocop": "-a -A -x --autocorrect --auto-correct --fix", "biome lint": "--write --apply --fix --unsafe", "biome check": "--write --apply --fix --unsafe", "ruff check": "--fix --fix-only --add-noqa --unsafe-fixes",
	"shellcheck": "", "hadolint": "", "yamllint": "", "actionlint": "", "flake8": "", "pylint": "", "pyflakes": "", "pycodestyle": "", "pyright": "", "clang-tidy": "-fix --fix", "cppcheck": "", "staticcheck": "", "luacheck": "", "checkmake": "", "jsonlint": "-i --in-place",
}

var readsWith = map[string]string{
	"black": "--check --diff", "isort": "--check --check-only --diff", "rustfmt": "--check", "ruff format": "--check --diff", "gpg": "-d --decrypt --verify --list-packets",
	"gzip": "-c --stdout --to-stdout -l --list -t --test", "gunzip": "-c --stdout --to-stdout -l --list -t --test", "bzip2": "-c --stdout -t --test", "bunzip2": "-c --stdout -t --test", "xz": "-c --stdout --to-stdout -l --list -t --test", "unxz": "-c --stdout --to-stdout -l --list -t --test", "zstd": "-c --stdout -l --list -t --test", "lz4": "-c --stdout -t --test",
}

// onlyReads reports a call of a program that may change files and does not with these options.
func onlyReads(name string, args []scan.Word) bool {
	for i := 0; i < 2; i++ {
		if i == 1 {
			if len(args) == 0 || strings.HasPrefix(args[0].Text, "-") {
				return false
			}
			name += " " + args[0].Text
		}
		if bad, ok := writesWith[name]; ok {
			return !anyOption(args, bad, bad != "")
		}
		if good, ok := readsWith[name]; ok {
			return anyOption(args, good, false)
		}
	}
	return false
}

// anyOption reports one of the options among the arguments. unknown: what cannot be read off the command may be one.
func anyOption(args []scan.Word, options string, unknown bool) bool {
	for _, a := range args {
		if s, ok := a.One(); ok && len(s) > 1 && s[0] == '-' && optionIn(s, options) || !a.Known() && unknown {
			return true
		}
	}
	return false
}

// readKinds are the kinds of a program's words when it changes nothing.
func readKinds(words []kind) []kind {
	out := make([]kind, len(words))
	for i, k := range words {
		switch k {
		case kindWrite:
			k = kindRead
		case kindGeneric:
			k = kindLook
		}
		out[i] = k
	}
	return out
}

func parseSpec(line string) spec {
	opts, words, _ := strings.Cut(line, "|")
	var s spec
	for f := range strings.FieldsSeq(opts) {
		switch f {
		case "@single":
			s.single = true
			continue
		case "@driver":
			s.driver = true
			continue
		case "@fold":
			s.fold = true
			continue
		}
		name, k, _ := strings.Cut(f, "=")
		s.options = append(s.options, option{name, kind(k[0]), strings.Contains(k, "^"), strings.Contains(k, "?")})
	}
	for f := range strings.FieldsSeq(words) {
		s.words = append(s.words, kind(f[0]))
		s.repeat = strings.HasSuffix(f, "*")
	}
	return s
}
