// Package programs says what programs do with their words: which paths they read and write, what they run in turn, and
// what cannot be determined. Together with package scan, which knows bash, it judges a command before it runs.
//
// What it knows is data: one record per program in records/*.yaml, with one for each subcommand that does something of its own, see
// Record. Code remains where words have a grammar of their own: find, tar, xargs, env, git's options before a command and git
// config, make's NAME=value, scripts of sed and awk. A program without a record is unknown: all its
// words that look like paths count as written. An option that a complete record does not list makes the call opaque.
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

// Analyze looks at a command. It never fails: what it cannot understand is opaque.
func Analyze(r scan.Request) *scan.Analysis { return (&Set{}).Analyze(r) }

// Set is what is known of programs: the records that come with Pillion, and a person's own. The zero value and nil have
// none of those. It is safe for concurrent use.
// A nil Set serves as an empty one.
type Set struct {
	own map[string]*Record // by name and other name
}

// NewSet adds a person's own records, JSON or YAML by name. One of a program that has a record corrects it: what it
// says counts, the rest stays. The records that are right come back beside an error.
// The error joins one for each record that was left out; its program is then known as before.
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

// Analyze looks at a command. It never fails: what it cannot understand is opaque.
func (s *Set) Analyze(r scan.Request) *scan.Analysis { return scan.Analyze(r, s) }

// Call looks at one call of a program.
// The receiver is not used: the records come through c.Programs(), which is the same set.
func (*Set) Call(c *scan.Visit) {
	name, r := c.Name, recordOf(c, c.Name)
	c.Record = r.title(c.Args[1:])
	// Afterwards, because the code for the program decides about ReadOnly, and may have set a class of its own.
	defer func() {
		c.Complete = c.ReadOnly && r.Complete
		if !c.ReadOnly {
			c.Class = strongest(c.Class, class(r, c.Args[1:]))
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
			c.NoGrant = true // echo * must not come to print keys
		}
		if r.Always != never && !c.NoGrant {
			remember(c, r, c.Args[1:])
		}
	}
}

// plainAnswers are commands whose output holds no slash: what they print cannot lead out of a folder.
var plainAnswers = map[string]bool{
	"nproc": true, "whoami": true, "date": true, "id -u": true, "id -g": true, "id -un": true, "uname": true,
	"uname -s": true, "uname -m": true, "uname -r": true, "hostname": true, "arch": true, "git rev-parse HEAD": true,
	"git rev-parse --short HEAD": true, "sw_vers -productVersion": true, "getconf _NPROCESSORS_ONLN": true,
	"go env GOOS": true, "go env GOARCH": true, "go env GOVERSION": true,
}

// PlainAnswer reports a command whose output holds no slash.
// date +%D prints slashes.
func (*Set) PlainAnswer(words []string) bool {
	text := strings.Join(words, " ")
	dated := strings.HasPrefix(text, "date +") || strings.HasPrefix(text, "date -u +")
	return plainAnswers[text] || dated && !strings.ContainsAny(text, "/D")
}
