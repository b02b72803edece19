// Package programs says what programs do with their words: which paths they read and write, what they run in turn, and
// what cannot be determined. Together with package scan, which knows bash, it judges a command before it runs.
//
// Programs are described by data: one record for each in records/*.yaml, with records for its subcommands; see Record. Go code
// analyzes only words with a grammar of their own: find, tar, xargs, env, the options of git before a command, git config, NAME=value
// of make, scripts of sed and awk. For a program without a record, all words that look like paths count as written. An option that is
// missing from a complete record makes the command opaque.
//
//	a := programs.Analyze(scan.Request{Command: "cd web && npm test > /tmp/log", Dir: dir, Root: dir})
//	a.Calls[1].Text // "npm test"
//	a.External      // [{/tmp/log write}]
package programs

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// Analyze analyzes a command with the built-in records. It never fails: a command that it does not understand is opaque.
func Analyze(r scan.Request) *scan.Analysis { return (&Set{}).Analyze(r) }

// Set is the records of programs: those that come with Pillion, and the user's own. The zero value and nil have only the former.
// A Set is safe for concurrent use.
type Set struct {
	own map[string]*Record // by name and other name
}

// NewSet returns a Set with the user's own records, as JSON or YAML by the name of the program. A record of a program that has a
// built-in one changes only the fields that it sets. The error joins an error for each invalid record. The Set is valid even then,
// without the invalid records.
func NewSet(own map[string]string) (*Set, error) {
	s := &Set{own: map[string]*Record{}}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(own)) {
		r, err := s.correct(name, own[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("programs.%s: %w", name, err))
			continue
		}
		s.own[name] = r
		for other := range strings.FieldsSeq(r.Names) {
			s.own[other] = r
		}
	}
	return s, errors.Join(errs...)
}

// Analyze analyzes a command with the records of s. It never fails: a command that it does not understand is opaque.
func (s *Set) Analyze(r scan.Request) *scan.Analysis { return scan.Analyze(r, s) }

// Call analyzes one call of a program, for package scan. It does not use its receiver: recordOf finds the same Set through
// c.Programs().
func (*Set) Call(c *scan.Visit) {
	name, r := c.Name, recordOf(c, c.Name)
	if r.known {
		last := reach(c, r).last()
		c.Record = last.file + ": " + last.name
	}
	// Deferred, because the code below sets ReadOnly and may set a class (find -delete).
	defer func() {
		c.Complete = c.ReadOnly && r.Complete
		if !c.ReadOnly {
			c.Class = strongest(c.Class, class(r, c.Args[1:]))
			if (name == "yarn" || name == "bundle") && len(c.Args) == 1 {
				c.Class = effectElsewhere // they install
			}
			// python -m pip install is pip install.
			if args := c.Args[1:]; r.Code != "" && len(args) > 1 && args[0].Text == "-m" {
				if module, ok := args[1].One(); ok {
					c.Class = strongest(c.Class, class(recordOf(c, module), args[2:]))
				}
			}
		}
		if r.Base == effectElsewhere && r.Runs != "" && isInstalled(c) {
			c.Class = ""
		}
	}()
	switch {
	case r.Shell:
		shell(name, c)
	case strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") || name == "ld.so":
		loader(c)
	case r.Runs != "" || name == "env" || name == "xargs":
		wrapper(name, r, c)
	case name == "find" || name == "gfind":
		find(c)
	case name == "git":
		git(c)
	case r.Code != "":
		interpreter(name, c)
	default:
		ordinary(name, c, nil)
		folders, files := c.ReadFolders()
		c.ReadOnly = readOnly(name, c) && followed(name, c, folders, files)
		if r.Reads && slices.ContainsFunc(c.Args[1:], func(a scan.Word) bool { return scan.NamesSecret(a.Source) }) {
			c.NoGrant = true // a grant for echo * would print keys
		}
		if r.Always != never && !c.NoGrant {
			remember(c, r, c.Args[1:])
		}
	}
}

// plainAnswers are commands whose output has no slash. A path that contains such output, as in out-$(date +%s), stays in its folder.
var plainAnswers = map[string]bool{
	"nproc": true, "whoami": true, "date": true, "id -u": true, "id -g": true, "id -un": true, "uname": true,
	"uname -s": true, "uname -m": true, "uname -r": true, "hostname": true, "arch": true, "git rev-parse HEAD": true,
	"git rev-parse --short HEAD": true, "sw_vers -productVersion": true, "getconf _NPROCESSORS_ONLN": true,
	"go env GOOS": true, "go env GOARCH": true, "go env GOVERSION": true,
}

// PlainAnswer reports a command whose output has no slash. date with a format counts too, unless the format has a slash or a "D",
// since %D prints slashes.
func (*Set) PlainAnswer(words []string) bool {
	text := strings.Join(words, " ")
	dated := strings.HasPrefix(text, "date +") || strings.HasPrefix(text, "date -u +")
	return plainAnswers[text] || dated && !strings.ContainsAny(text, "/D")
}
