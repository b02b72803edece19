package lspbridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
	"golang.org/x/tools/txtar"
)

// work is what a person and an agent do to a project, one step after the other. After each step the compiler says what the verdicts should have
// said. The archive has the project's files first; a file named "step: NAME" begins a step, whose files follow: their texts after it, where the
// text "(deleted)" means that the file is gone. The words before the name are "check" for a proposal that is then written, of which
// the person accepts only the files after "accepted:" where there are any, "other" for what another program writes, and "within TIME" for a
// proposal and a write whose verdicts are waited for no longer, so that the first of them meet a server that still loads. The files in the folder
// outside are in no project.
type work struct {
	name, server string
	slow         bool   // the watcher hears of a write before Changed is called
	folder       string // of the project; "": it is the whole archive
	archive      string
}

// compilers return the errors of a project by file and message.
var compilers = map[string]func(t *testing.T, root string) map[string][]string{
	"gopls": func(t *testing.T, root string) map[string][]string {
		out := compile(t, root, []string{"GOFLAGS=-mod=mod", "GOTOOLCHAIN=local"}, "go", "vet", "-framepointer", "./...")
		if _, err := os.Stat(filepath.Join(root, "go.work")); err == nil {
			out = nil
			for _, dir := range []string{"app", "lib"} {
				out = append(out, compile(t, filepath.Join(root, dir), []string{"GOFLAGS=", "GOTOOLCHAIN=local"}, "go", "vet", "-framepointer", "./...")...)
			}
			return found(root, filepath.Join(root, "app"), out, goPlace)
		}
		all := found(root, root, out, goPlace)
		if nested := filepath.Join(root, "tools"); exists(nested) {
			maps.Copy(all, found(root, nested, compile(t, nested, []string{"GOFLAGS=-mod=mod", "GOTOOLCHAIN=local"}, "go", "vet", "-framepointer", "./..."), goPlace))
		}
		return all
	},
	"typescript": func(t *testing.T, root string) map[string][]string {
		argv := []string{filepath.Join(testBins(t)[0], "tsc"), "--noEmit", "--pretty", "false", "-p", "."}
		if _, err := os.Stat(filepath.Join(root, "packages")); err == nil {
			argv = []string{argv[0], "-b", "--pretty", "false", "packages/app"}
			defer func() {
				for _, dir := range []string{"app", "lib"} { // what the build wrote
					_ = os.RemoveAll(filepath.Join(root, "packages", dir, "dist"))
					_ = os.Remove(filepath.Join(root, "packages", dir, "tsconfig.tsbuildinfo"))
				}
			}()
		}
		return found(root, root, compile(t, root, nil, argv...), tscPlace)
	},
	"pyright": func(t *testing.T, root string) map[string][]string {
		return pyrightErrors(t, root, compile(t, root, nil, filepath.Join(testBins(t)[0], "pyright"), "--outputjson"))
	},
	"clangd": func(t *testing.T, root string) map[string][]string {
		var rows []struct{ Arguments []string }
		b, err := os.ReadFile(filepath.Join(root, "compile_commands.json"))
		if err != nil || json.Unmarshal(b, &rows) != nil {
			t.Fatal(err)
		}
		var out []byte
		for _, r := range rows {
			out = append(out, compile(t, root, nil, append(r.Arguments, "-fsyntax-only")...)...)
		}
		return found(root, root, out, gccPlace)
	},
}

// pyrightErrors reads what pyright prints.
func pyrightErrors(t *testing.T, root string, printed []byte) map[string][]string {
	var r struct {
		GeneralDiagnostics []struct{ File, Severity, Message string }
	}
	if err := json.Unmarshal(printed, &r); err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for _, d := range r.GeneralDiagnostics {
		if d.Severity == "error" {
			rel, _ := filepath.Rel(root, d.File)
			out[filepath.ToSlash(rel)] = append(out[filepath.ToSlash(rel)], d.Message)
		}
	}
	return out
}

var (
	tscPlace = regexp.MustCompile(`(?m)^([^\s(]+)\((\d+),\d+\): error (.*)$`)
	gccPlace = regexp.MustCompile(`(?m)^([^\s:]+):(\d+):\d+: (?:fatal )?error: (.*)$`)
)

var goPlace = regexp.MustCompile(`(?m)^(?:vet: |# )?(?:\./)?([^\s:]+):(\d+):(?:\d+:)? (.*)$`)

func compile(t *testing.T, dir string, env []string, argv ...string) []byte {
	if _, err := exec.LookPath(argv[0]); err != nil {
		t.Skipf("the compiler %s is not installed", argv[0])
	}
	cmd := exec.CommandContext(longer(t), argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // it fails where it finds errors
	return append(out.Bytes(), errs.Bytes()...)
}

// outside has a compiler look at the files in the folder outside, which belong to no project.
var outside = map[string][]string{
	"gopls":      {"go", "vet", "-framepointer"},
	"typescript": {"tsc", "--noEmit", "--pretty", "false", "--target", "es2020", "--module", "esnext", "--moduleResolution", "bundler"},
	"pyright":    {"pyright", "--outputjson"},
	"clangd":     {"gcc", "-fsyntax-only"},
}

// errorsOf are the compiler's errors in the project and outside of it.
func (w work) errorsOf(t *testing.T, root string) map[string][]string {
	all := map[string][]string{}
	for file, list := range compilers[w.server](t, filepath.Join(root, w.folder)) {
		all[filepath.ToSlash(filepath.Join(w.folder, file))] = list
	}
	dir := filepath.Join(root, "outside")
	files, _ := filepath.Glob(filepath.Join(dir, "*.[gtpc]*"))
	if len(files) == 0 {
		return all
	}
	argv := slices.Concat(outside[w.server], files)
	if bin := filepath.Join(testBins(t)[0], argv[0]); exists(bin) {
		argv[0] = bin
	}
	out := compile(t, dir, []string{"GOFLAGS=", "GOTOOLCHAIN=local"}, argv...)
	switch w.server {
	case "pyright":
		maps.Copy(all, pyrightErrors(t, root, out))
	case "gopls":
		maps.Copy(all, found(root, dir, out, goPlace))
	case "typescript":
		maps.Copy(all, found(root, dir, out, tscPlace))
	default:
		maps.Copy(all, found(root, dir, out, gccPlace))
	}
	return all
}

// found reads a compiler's output.
func found(root, dir string, out []byte, place *regexp.Regexp) map[string][]string {
	all := map[string][]string{}
	for _, m := range place.FindAllSubmatch(out, -1) {
		file := string(m[1])
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		rel, _ := filepath.Rel(root, file)
		all[filepath.ToSlash(rel)] = append(all[filepath.ToSlash(rel)], string(m[3]))
	}
	return all
}

// added are the errors that there were not before.
func added(before, after map[string][]string) (out []string) {
	for file, list := range after {
		had := slices.Clone(before[file])
		for _, m := range list {
			if i := slices.Index(had, m); i >= 0 {
				had = slices.Delete(had, i, i+1)
			} else {
				out = append(out, file+": "+m)
			}
		}
	}
	return out
}

func (w work) run(t *testing.T) {
	a := txtar.Parse([]byte(strings.NewReplacer("<CR>", "\r", "<BOM>", "\ufeff").Replace(w.archive)))
	first := slices.IndexFunc(a.Files, func(f txtar.File) bool { return strings.HasPrefix(f.Name, "step: ") })
	files := map[string]string{}
	for _, f := range a.Files[:first] {
		files[f.Name] = string(f.Data)
	}
	m, root := projectIn(t, w.server, w.folder, nil)
	mirror, err := filepath.EvalSymlinks(t.TempDir()) // for the compiler: the servers must not see what is only tried
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		write(t, filepath.Join(root, name), strings.ReplaceAll(text, "<ROOT>", root))
		write(t, filepath.Join(mirror, name), text)
	}
	before := w.errorsOf(t, mirror)
	if w.server == "clangd" {
		for name := range files {
			m.Diagnostics(longer(t), filepath.Join(root, name)) // its index of what nobody opened comes when it likes
		}
	}
	for at := first; at < len(a.Files); {
		name := strings.TrimPrefix(a.Files[at].Name, "step: ")
		var whole, accepted []txtar.File
		list := &whole
		for at++; at < len(a.Files) && !strings.HasPrefix(a.Files[at].Name, "step: "); at++ {
			if a.Files[at].Name == "accepted:" {
				list = &accepted
				continue
			}
			*list = append(*list, a.Files[at])
		}
		kind, name, _ := strings.Cut(name, " ")
		ctx := longer(t)
		limit := time.Duration(0)
		if kind == "within" {
			var text string
			text, name, _ = strings.Cut(name, " ")
			if limit, err = time.ParseDuration(text); err != nil {
				t.Fatal(err)
			}
		}
		old := files
		check := func(what string, files []txtar.File, ask func(context.Context, []Proposal) Delta, after map[string][]string) {
			ctx := ctx
			if limit > 0 {
				short, cancel := context.WithTimeout(ctx, limit)
				defer cancel()
				ctx = short
			}
			d := ask(ctx, w.proposals(root, files, old))
			breaks := added(before, after)
			var errs []change.Problem
			for _, p := range d.Introduced {
				if p.IsError() {
					errs = append(errs, p)
				}
			}
			switch {
			case d.Certainty == change.Pending && limit == 0:
				t.Errorf("%s, %s: pending %q", name, what, d.Reason)
			case len(breaks) > 0 && len(errs) == 0 && d.Certainty == change.Fresh:
				t.Errorf("%s, %s: FALSE FRESH: %q", name, what, breaks)
			case len(breaks) == 0 && len(errs) > 0:
				t.Errorf("%s, %s: FALSE ALARM (%s %q): %q", name, what, d.Certainty, d.Reason, messages(errs))
			default:
				t.Logf("%s, %s: %s %q, verdict %q, compiler %q", name, what, d.Certainty, d.Reason, messages(errs), breaks)
			}
		}
		switch kind {
		case "check", "within":
			w.write(t, mirror, whole)
			check("proposed", whole, m.Check, w.errorsOf(t, mirror))
			if accepted != nil {
				w.restore(t, mirror, whole, files)
				whole = accepted
				w.write(t, mirror, whole)
			}
			after := w.errorsOf(t, mirror)
			w.write(t, root, whole)
			if w.slow {
				m.Flush(ctx)
			}
			check("written", whole, m.Changed, after)
		case "other":
			w.write(t, mirror, whole)
			w.write(t, root, whole)
			m.Flush(ctx)
		default:
			t.Fatalf("%s: no such step", kind)
		}
		for _, f := range whole {
			if files[f.Name] = string(f.Data); files[f.Name] == "(deleted)\n" {
				delete(files, f.Name)
			}
		}
		before = w.errorsOf(t, mirror)
		if limit > 0 {
			continue // the next step shall meet a server that still loads
		}
		// What is reported of each file afterwards must be right as well.
		for name2 := range files {
			path := filepath.Join(root, name2)
			if !slices.ContainsFunc(m.rows(), func(s Server) bool { return s.ID == w.server && slices.Contains(s.Extensions, filepath.Ext(path)) }) || strings.Contains(name2, "node_modules/") {
				continue
			}
			r := m.Diagnostics(ctx, path)
			has := slices.ContainsFunc(r.Items, change.Problem.IsError)
			if bad := len(before[name2]) > 0; r.Certainty == change.Fresh && has != bad && (bad || len(before) == 0 || w.server != "gopls") {
				t.Errorf("%s: afterwards %s has %q, the compiler says %q", name, name2, messages(r.Items), before[name2])
			} else if r.Certainty != change.Fresh {
				t.Logf("%s: afterwards %s is %s %q", name, name2, r.Certainty, r.Reason)
			}
		}
	}
}

func (w work) proposals(root string, files []txtar.File, old map[string]string) (out []Proposal) {
	for _, f := range files {
		p := Proposal{Path: filepath.Join(root, f.Name), Text: strings.ReplaceAll(string(f.Data), "<ROOT>", root), Old: strings.ReplaceAll(old[f.Name], "<ROOT>", root)}
		if p.Text == "(deleted)\n" {
			p.Text, p.Delete = "", true
		}
		out = append(out, p)
	}
	return out
}

func (w work) write(t *testing.T, root string, files []txtar.File) {
	for _, p := range w.proposals(root, files, nil) {
		if p.Delete {
			if err := os.RemoveAll(p.Path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		write(t, p.Path, p.Text)
	}
}

// restore takes written files back to the texts in old. Folders that were made are removed.
func (w work) restore(t *testing.T, root string, files []txtar.File, old map[string]string) {
	for _, f := range files {
		path := filepath.Join(root, f.Name)
		if text, had := old[f.Name]; had {
			write(t, path, text)
			continue
		}
		_ = os.Remove(path)
		for dir := filepath.Dir(path); dir != root && os.Remove(dir) == nil; dir = filepath.Dir(dir) {
		}
	}
}

// Steps in the order in which people work: a change repairs the one before, a change of configuration breaks files that it does not touch, a part
// of a proposal is accepted, another program writes. The compiler says what is right.
func TestTheOrderOfWork(t *testing.T) {
	for _, w := range works {
		t.Run(w.server+" "+w.name, func(t *testing.T) {
			t.Parallel()
			w.run(t)
		})
	}
}

const goBase = `
-- go.mod --
module x

go 1.22
-- lib/lib.go --
package lib

// Twice doubles.
func Twice(n int) int { return 2 * n }
-- main.go --
package main

import "x/lib"

func main() { println(lib.Twice(2)) }
`

const tsBase = `
-- tsconfig.json --
{"compilerOptions":{"target":"es2020","module":"esnext","moduleResolution":"bundler","types":[],"lib":["es2020"],"resolveJsonModule":true},"include":["src"]}
-- package.json --
{"private":true,"type":"module"}
-- src/lib.ts --
export function twice(n: number): number { return 2 * n }
-- src/user.ts --
import { twice } from './lib'
export function f(n) { return twice(n) }
export const four: number = twice(2)
`

const pyBase = `
-- pyproject.toml --
[tool.pyright]
typeCheckingMode = "basic"
-- src/pkg/lib.py --
def twice(n: int) -> int:
    return 2 * n
-- src/pkg/user.py --
from pkg.lib import twice

def f(n):
    return twice(n)
`

var works = []work{
	{name: "break and repair", server: "gopls", archive: goBase + `
-- step: check rename --
-- lib/lib.go --
package lib

// Double doubles.
func Double(n int) int { return 2 * n }
-- step: check follow --
-- main.go --
package main

import "x/lib"

func main() { println(lib.Double(2)) }
-- step: check both back --
-- lib/lib.go --
package lib

// Twice doubles.
func Twice(n int) int { return 2 * n }
-- main.go --
package main

import "x/lib"

func main() { println(lib.Twice(2)) }
`},
	{name: "an older language", slow: true, server: "gopls", archive: goBase + `
-- min.go --
package main

func smaller(a, b int) int { return min(a, b) }
-- step: check lower --
-- go.mod --
module x

go 1.20
-- step: check edit after it --
-- lib/lib.go --
package lib

// Twice doubles.
func Twice(n int) int { return n + n }
-- step: check back --
-- go.mod --
module x

go 1.22
`},
	{name: "a dependency is removed", server: "gopls", archive: `
-- go.mod --
module x

go 1.22

require dep v0.0.0

replace dep => ./dep
-- dep/go.mod --
module dep

go 1.22
-- dep/dep.go --
package dep

const N = 1
-- main.go --
package main

import "dep"

func main() { println(dep.N) }
-- step: check remove --
-- go.mod --
module x

go 1.22
-- step: check and again --
-- go.mod --
module x

go 1.22

require dep v0.0.0

replace dep => ./dep
`},
	{name: "a module leaves the workspace", slow: true, server: "gopls", archive: `
-- go.work --
go 1.22

use ./app
use ./lib
-- app/go.mod --
module app

go 1.22
-- app/main.go --
package main

import "lib"

func main() { println(lib.N) }
-- lib/go.mod --
module lib

go 1.22
-- lib/lib.go --
package lib

const N = 1
-- step: check break over modules --
-- lib/lib.go --
package lib

const M = 1
-- step: check repair --
-- lib/lib.go --
package lib

const N = 2
-- step: check leave --
-- go.work --
go 1.22

use ./app
-- step: check enter --
-- go.work --
go 1.22

use ./app
use ./lib
`},
	{name: "a part is accepted", server: "gopls", archive: goBase + `
-- step: check rename --
-- lib/lib.go --
package lib

// Double doubles.
func Double(n int) int { return 2 * n }
-- main.go --
package main

import "x/lib"

func main() { println(lib.Double(2)) }
-- accepted: --
-- lib/lib.go --
package lib

// Double doubles.
func Double(n int) int { return 2 * n }
-- step: check the rest --
-- main.go --
package main

import "x/lib"

func main() { println(lib.Double(2)) }
`},
	{name: "shadowed, marked, other line ends", server: "gopls", archive: goBase + `
-- use.go --
package main

func size(s string) int { return len(s) }
-- step: check shadow --
-- shadow.go --
package main

func len(s string) string { return s }
-- step: check remove it --
-- shadow.go --
(deleted)
-- step: check conflict --
-- use.go --
package main

<<<<<<< HEAD
func size(s string) int { return len(s) }
=======
func size(s string) int { return len(s) + 1 }
>>>>>>> other
-- step: check resolve with CRLF --
-- use.go --
package main<CR>
<CR>
func size(s string) int { return len(s) }<CR>
-- step: check break with CRLF --
-- use.go --
package main<CR>
<CR>
func size(s string) int { return len(t) }<CR>
-- step: check BOM --
-- use.go --
<BOM>package main

func size(s string) int { return len(s) }
-- step: check break behind BOM --
-- use.go --
<BOM>package main

func size(s string) int { return lem(s) }
-- step: check delete behind BOM --
-- use.go --
(deleted)
`},
	{name: "tags, embedded files, cgo", slow: true, server: "gopls", archive: goBase + `
-- tagged.go --
//go:build linux

package main

const system = "linux"
-- use.go --
package main

var _ = system
-- embed.go --
package main

import _ "embed"

//go:embed a.txt
var text string
-- a.txt --
a
-- c/c.h --
static int twice(int n) { return 2 * n; }
-- c/c.go --
package c

// #include "c.h"
import "C"

// Twice doubles.
func Twice(n int) int { return int(C.twice(C.int(n))) }
-- step: check drop the tag --
-- tagged.go --
//go:build windows

package main

const system = "linux"
-- step: check tag again --
-- tagged.go --
//go:build linux

package main

const system = "linux"
-- step: check delete the embedded file --
-- a.txt --
(deleted)
-- step: check make it again --
-- a.txt --
a
-- step: check delete it with another edit --
-- a.txt --
(deleted)
-- use.go --
package main

var _ = system + ""
-- step: check and again --
-- a.txt --
a
-- step: check change the header --
-- c/c.h --
static int thrice(int n) { return 3 * n; }
-- step: check follow it --
-- c/c.go --
package c

// #include "c.h"
import "C"

// Thrice is three times n.
func Thrice(n int) int { return int(C.thrice(C.int(n))) }
-- step: check the preamble --
-- c/c.go --
package c

// static int four(void) { return 4; }
import "C"

// Four is four.
func Four() int { return int(C.four()) }
-- step: check a function of the preamble goes --
-- c/c.go --
package c

// static int five(void) { return 5; }
import "C"

// Four is four.
func Four() int { return int(C.four()) }
-- step: other repair it --
-- c/c.go --
package c

// static int four(void) { return 5; }
import "C"

// Four is four.
func Four() int { return int(C.four()) }
`},
	{name: "a module that replaces this one", server: "gopls", archive: `
-- go.mod --
module x

go 1.22
-- x.go --
package x

const N = 1
-- tools/go.mod --
module x/tools

go 1.22

require x v0.0.0

replace x => ../
-- tools/main.go --
package main

import "x"

func main() { println(x.N) }
-- step: check rename --
-- x.go --
package x

const M = 1
-- step: check follow --
-- tools/main.go --
package main

import "x"

func main() { println(x.M) }
-- step: check back in part --
-- x.go --
package x

const N = 1
-- tools/main.go --
package main

import "x"

func main() { println(x.N) }
-- accepted: --
-- x.go --
package x

const N = 1
`},
	{name: "another program writes", server: "gopls", archive: goBase + `
-- step: check nothing --
-- lib/lib.go --
package lib

// Twice doubles.
func Twice(n int) int { return n + n }
-- step: other generate --
-- lib/lib.go --
package lib

// Thrice is three times n.
func Thrice(n int) int { return 3 * n }
-- step: check edit beside it --
-- lib/more.go --
package lib

// More is more.
const More = 1
-- step: check repair --
-- main.go --
package main

import "x/lib"

func main() { println(lib.Thrice(2)) }
-- step: other checkout --
-- lib/more.go --
(deleted)
-- lib/lib.go --
package lib

// Twice doubles.
func Twice(n int) int { return 2 * n }
`},
	{name: "strict", server: "typescript", archive: tsBase + `
-- step: check turn on --
-- tsconfig.json --
{"compilerOptions":{"target":"es2020","module":"esnext","moduleResolution":"bundler","types":[],"lib":["es2020"],"resolveJsonModule":true,"strict":true},"include":["src"]}
-- step: check edit after it --
-- src/user.ts --
import { twice } from './lib'
export function f(n) { return twice(n) }
export const four: number = twice(3)
-- step: check repair --
-- src/user.ts --
import { twice } from './lib'
export function f(n: number) { return twice(n) }
export const four: number = twice(3)
-- step: other off and on --
-- tsconfig.json --
{"compilerOptions":{"target":"es2020","module":"esnext","moduleResolution":"bundler","types":[],"lib":["es2020"],"resolveJsonModule":true,"strict":true,"noUnusedParameters":true},"include":["src"]}
-- src/lib.ts --
export function twice(n: number, unused?: string): number { return 2 * n }
-- step: check edit user --
-- src/user.ts --
import { twice } from './lib'
export function f(n: number) { return twice(n, 'a') }
export const four: number = twice(3)
`},
	{name: "break and repair", server: "typescript", archive: tsBase + `
-- step: check rename --
-- src/lib.ts --
export function double(n: number): number { return 2 * n }
-- step: check follow --
-- src/user.ts --
import { double } from './lib'
export function f(n) { return double(n) }
export const four: number = double(2)
-- step: check in part --
-- src/lib.ts --
export function twice(n: number): number { return 2 * n }
-- src/user.ts --
import { twice } from './lib'
export function f(n) { return twice(n) }
export const four: number = twice(2)
-- accepted: --
-- src/lib.ts --
export function twice(n: number): number { return 2 * n }
-- step: check the rest --
-- src/user.ts --
import { twice } from './lib'
export function f(n) { return twice(n) }
export const four: number = twice(2)
`},
	{name: "aliases and base files", slow: true, server: "typescript", archive: `
-- config/base.json --
{"compilerOptions":{"target":"es2020","module":"esnext","moduleResolution":"bundler","types":[],"lib":["es2020"],"strict":false}}
-- tsconfig.json --
{"extends":"./config/base.json","compilerOptions":{"paths":{"@/*":["./src/*"]}},"include":["src"]}
-- src/lib.ts --
export function twice(n: number): number { return 2 * n }
-- src/deep/user.ts --
import { twice } from '@/lib'
export function f(n) { return twice(n) }
-- step: check strict in the base --
-- config/base.json --
{"compilerOptions":{"target":"es2020","module":"esnext","moduleResolution":"bundler","types":[],"lib":["es2020"],"strict":true}}
-- step: check edit after it --
-- src/deep/user.ts --
import { twice } from '@/lib'
export function f(n) { return twice(n) + 1 }
-- step: check the alias goes --
-- tsconfig.json --
{"extends":"./config/base.json","compilerOptions":{"paths":{"~/*":["./src/*"]}},"include":["src"]}
-- step: check repair --
-- src/deep/user.ts --
import { twice } from '~/lib'
export function f(n: number) { return twice(n) + 1 }
`},
	{name: "data and packages", slow: true, server: "typescript", archive: tsBase + `
-- src/data.json --
{"size":1}
-- src/data.ts --
import data from './data.json'
import { one } from 'dep'
export const size: number = data.size + one
-- node_modules/dep/package.json --
{"name":"dep","version":"1.0.0","types":"index.d.ts"}
-- node_modules/dep/index.d.ts --
export declare const one: number
-- step: check other data --
-- src/data.json --
{"size":"1"}
-- step: check data again --
-- src/data.json --
{"size":1}
-- step: check look at the user --
-- src/data.ts --
import data from './data.json'
import { one } from 'dep'
export const size: number = data.size + one + 1
-- step: other uninstall --
-- node_modules/dep --
(deleted)
-- step: check edit after it --
-- src/data.ts --
import data from './data.json'
import { one } from 'dep'
export const size: number = data.size + one + 2
-- step: other install another version --
-- node_modules/dep/package.json --
{"name":"dep","version":"2.0.0","types":"index.d.ts"}
-- node_modules/dep/index.d.ts --
export declare const two: number
-- step: check use it --
-- src/data.ts --
import data from './data.json'
import { two } from 'dep'
export const size: number = data.size + two
`},
	{name: "shadows, declarations, line ends", server: "typescript", archive: tsBase + `
-- src/dir/index.ts --
export const inner: number = 1
-- src/index-user.ts --
import { inner } from './dir'
export const n: number = inner
-- src/globals.d.ts --
declare const VERSION: string
-- src/view.tsx --
export const version: string = VERSION
-- step: check shadow the folder --
-- src/dir.ts --
export const outer: number = 1
-- step: check remove it --
-- src/dir.ts --
(deleted)
-- step: check the declaration changes --
-- src/globals.d.ts --
declare const VERSION: number
-- step: check the declaration goes --
-- src/globals.d.ts --
(deleted)
-- step: check it comes again --
-- src/globals.d.ts --
declare const VERSION: string
-- step: check conflict --
-- src/lib.ts --
<<<<<<< HEAD
export function twice(n: number): number { return 2 * n }
=======
export function twice(n: number): number { return n + n }
>>>>>>> other
-- step: check CRLF --
-- src/lib.ts --
<CR>
export function twice(n: number): number { return n + n }<CR>
-- step: check BOM and break --
-- src/lib.ts --
<BOM>export function twice(n: string): number { return 2 }
-- step: check BOM --
-- src/lib.ts --
<BOM>export function twice(n: number): number { return 2 }
`},
	{name: "JavaScript that is checked", server: "typescript", archive: `
-- jsconfig.json --
{"compilerOptions":{"checkJs":true,"target":"es2020","module":"esnext","moduleResolution":"bundler","types":[],"lib":["es2020"],"noEmit":true},"include":["src"]}
-- tsconfig.json --
{"extends":"./jsconfig.json","compilerOptions":{"allowJs":true}}
-- package.json --
{"private":true,"type":"module"}
-- src/lib.js --
/** @param {number} n */
export function twice(n) { return 2 * n }
-- src/user.js --
import { twice } from './lib.js'
export const four = twice(2)
-- step: check another type --
-- src/lib.js --
/** @param {string} n */
export function twice(n) { return 2 + n }
-- step: check follow --
-- src/user.js --
import { twice } from './lib.js'
export const four = twice('2')
-- step: check off --
-- tsconfig.json --
{"extends":"./jsconfig.json","compilerOptions":{"allowJs":true,"checkJs":false}}
-- step: check an error that nobody looks for --
-- src/user.js --
import { twice } from './lib.js'
export const four = twice(2)
`},
	{name: "references", server: "typescript", archive: `
-- package.json --
{"private":true,"workspaces":["packages/*"]}
-- package-lock.json --
{}
-- packages/lib/package.json --
{"name":"lib","version":"1.0.0","types":"./src/index.ts"}
-- packages/lib/tsconfig.json --
{"compilerOptions":{"composite":true,"strict":true,"module":"esnext","moduleResolution":"bundler","types":[],"target":"es2020","outDir":"dist","rootDir":"src"},"include":["src"]}
-- packages/lib/src/index.ts --
export interface Shape { size: number }
export function area(s: Shape): number { return s.size * s.size }
-- packages/app/package.json --
{"name":"app","version":"1.0.0"}
-- packages/app/tsconfig.json --
{"compilerOptions":{"composite":true,"strict":true,"module":"esnext","moduleResolution":"bundler","types":[],"target":"es2020","outDir":"dist","rootDir":"src"},"include":["src"],"references":[{"path":"../lib"}]}
-- packages/app/src/app.ts --
import { area } from '../../lib/src'
export const a: number = area({ size: 2 })
-- step: check another member --
-- packages/lib/src/index.ts --
export interface Shape { size: number; colour: string }
export function area(s: Shape): number { return s.size * s.size }
-- step: check follow --
-- packages/app/src/app.ts --
import { area } from '../../lib/src'
export const a: number = area({ size: 2, colour: '' })
-- step: check back in part --
-- packages/lib/src/index.ts --
export interface Shape { size: number }
export function area(s: Shape): number { return s.size * s.size }
-- packages/app/src/app.ts --
import { area } from '../../lib/src'
export const a: number = area({ size: 2 })
-- accepted: --
-- packages/lib/src/index.ts --
export interface Shape { size: number }
export function area(s: Shape): number { return s.size * s.size }
`},
	{name: "stricter", server: "pyright", archive: pyBase + `
-- step: check turn on --
-- pyproject.toml --
[tool.pyright]
typeCheckingMode = "strict"
-- step: check edit after it --
-- src/pkg/user.py --
from pkg.lib import twice

def f(n):
    return twice(n) + 1
-- step: check repair --
-- src/pkg/user.py --
from pkg.lib import twice

def f(n: int) -> int:
    return twice(n)
`},
	{name: "break, repair, shadow", server: "pyright", archive: pyBase + `
-- src/pkg/pick.py --
import random

def pick(n: int) -> int:
    return random.randint(0, n)
-- src/space/part/deep.py --
from pkg.lib import twice

n: int = twice(1)
-- step: check rename --
-- src/pkg/lib.py --
def double(n: int) -> int:
    return 2 * n
-- step: check follow in part --
-- src/pkg/user.py --
from pkg.lib import double

def f(n):
    return double(n)
-- src/space/part/deep.py --
from pkg.lib import double

n: int = double(1)
-- accepted: --
-- src/pkg/user.py --
from pkg.lib import double

def f(n):
    return double(n)
-- step: check the rest --
-- src/space/part/deep.py --
from pkg.lib import double

n: int = double(1)
-- step: check shadow the library --
-- src/random.py --
qx = 1
-- step: check remove it --
-- src/random.py --
(deleted)
-- step: check conflict --
-- src/pkg/user.py --
<<<<<<< HEAD
from pkg.lib import double
=======
from pkg.lib import twice
>>>>>>> other
-- step: check CRLF and BOM --
-- src/pkg/user.py --
<BOM>from pkg.lib import double<CR>
<CR>
x: int = double(1)<CR>
-- step: other another program renames --
-- src/pkg/lib.py --
def twice(n: int) -> int:
    return 2 * n
-- step: check edit beside it --
-- src/pkg/pick.py --
import random

def pick(n: int) -> int:
    return random.randint(1, n)
`},
	{name: "options of the compiler", server: "clangd", archive: `
-- compile_commands.json --
[{"directory":"<ROOT>","file":"a.cpp","arguments":["g++","-DSIZE=4","-Iinclude","-c","a.cpp"]},{"directory":"<ROOT>","file":"b.cpp","arguments":["g++","-DSIZE=4","-Iinclude","-c","b.cpp"]}]
-- include/box.h --
#pragma once
template <typename T> struct Box { T value; T get() const { return value; } };
-- a.cpp --
#include "box.h"
int a() { return Box<int>{SIZE}.get(); }
-- b.cpp --
#include "box.h"
int b() { return Box<int>{1}.value; }
-- step: check rename a member --
-- include/box.h --
#pragma once
template <typename T> struct Box { T item; T get() const { return item; } };
-- step: check follow --
-- b.cpp --
#include "box.h"
int b() { return Box<int>{1}.item; }
-- step: check a macro goes --
-- compile_commands.json --
[{"directory":"<ROOT>","file":"a.cpp","arguments":["g++","-Iinclude","-c","a.cpp"]},{"directory":"<ROOT>","file":"b.cpp","arguments":["g++","-Iinclude","-c","b.cpp"]}]
-- step: check edit after it --
-- a.cpp --
#include "box.h"
int a() { return Box<int>{SIZE}.get() + 1; }
-- step: check repair --
-- a.cpp --
#include "box.h"
int a() { return Box<int>{4}.get() + 1; }
-- step: check another header of that name --
-- box.h --
#pragma once
struct Other {};
-- step: other the header goes --
-- include/box.h --
#pragma once
struct Nothing {};
-- step: check edit beside it --
-- b.cpp --
#include "box.h"
int b() { return 1; }
`},
	{name: "a header", slow: true, server: "clangd", archive: `
-- compile_commands.json --
[{"directory":"<ROOT>","file":"a.cpp","arguments":["g++","-c","a.cpp"]},{"directory":"<ROOT>","file":"b.cpp","arguments":["g++","-c","b.cpp"]}]
-- box.h --
#pragma once
struct Box { int value; };
-- a.cpp --
#include "box.h"
int a() { return Box{1}.value; }
-- b.cpp --
#include "box.h"
int b() { return sizeof(Box); }
-- step: check rename a member --
-- box.h --
#pragma once
struct Box { int item; };
-- step: check follow --
-- a.cpp --
#include "box.h"
int a() { return Box{1}.item; }
-- step: check rename it in part --
-- box.h --
#pragma once
struct Box { int thing; };
-- a.cpp --
#include "box.h"
int a() { return Box{1}.thing; }
-- accepted: --
-- box.h --
#pragma once
struct Box { int thing; };
-- step: check the rest --
-- a.cpp --
#include "box.h"
int a() { return Box{1}.thing; }
-- step: other back --
-- box.h --
#pragma once
struct Box { int value; };
-- step: check repair --
-- a.cpp --
#include "box.h"
int a() { return Box{1}.value; }
`},
	{name: "while it loads", server: "gopls", archive: goBase + `
-- step: within 1ms rename --
-- lib/lib.go --
package lib

// Double doubles.
func Double(n int) int { return 2 * n }
-- step: within 200ms follow --
-- main.go --
package main

import "x/lib"

func main() { println(lib.Double(2)) }
-- step: within 1s a new file --
-- lib/more.go --
package lib

// More is more.
const More = 1
-- step: within 1s break it --
-- lib/more.go --
package lib

// More is more.
const More int = "1"
-- step: check use it --
-- main.go --
package main

import "x/lib"

func main() { println(lib.Double(lib.More)) }
-- step: check repair --
-- lib/more.go --
package lib

// More is more.
const More = 1
`},
	{name: "while it loads", server: "typescript", archive: tsBase + `
-- step: within 1ms rename --
-- src/lib.ts --
export function double(n: number): number { return 2 * n }
-- step: within 200ms follow --
-- src/user.ts --
import { double } from './lib'
export function f(n) { return double(n) }
export const four: number = double(2)
-- step: within 1s a new file --
-- src/more.ts --
export const more: number = 1
-- step: within 1s break it --
-- src/more.ts --
export const more: number = '1'
-- step: check use it --
-- src/user.ts --
import { double } from './lib'
import { more } from './more'
export function f(n) { return double(n) }
export const four: number = double(more)
-- step: check repair --
-- src/more.ts --
export const more: number = 1
`},
	{name: "while it loads", server: "pyright", archive: pyBase + `
-- step: within 1ms rename --
-- src/pkg/lib.py --
def double(n: int) -> int:
    return 2 * n
-- step: within 200ms follow --
-- src/pkg/user.py --
from pkg.lib import double

def f(n):
    return double(n)
-- step: within 1s a new file --
-- src/pkg/more.py --
more: int = 1
-- step: within 1s break it --
-- src/pkg/more.py --
more: int = '1'
-- step: check use it --
-- src/pkg/user.py --
from pkg.lib import double
from pkg.more import more

def f(n):
    return double(more)
-- step: check repair --
-- src/pkg/more.py --
more: int = 1
`},
	{name: "while it loads", server: "clangd", archive: `
-- compile_commands.json --
[{"directory":"<ROOT>","file":"a.c","arguments":["gcc","-c","a.c"]},{"directory":"<ROOT>","file":"b.c","arguments":["gcc","-c","b.c"]}]
-- lib.h --
static inline int twice(int n) { return 2 * n; }
-- a.c --
#include "lib.h"
int a(void) { return twice(1); }
-- b.c --
#include "lib.h"
int b(void) { return twice(2); }
-- step: within 1ms another argument --
-- lib.h --
static inline int twice(int n, int m) { return 2 * n + m; }
-- step: within 200ms follow --
-- a.c --
#include "lib.h"
int a(void) { return twice(1, 0); }
-- step: within 1s break it --
-- a.c --
#include "lib.h"
int a(void) { return twice(1, 0) + missing; }
-- step: check repair --
-- a.c --
#include "lib.h"
int a(void) { return twice(1, 1); }
-- step: check the rest --
-- b.c --
#include "lib.h"
int b(void) { return twice(2, 0); }
`},
	{name: "a dependency leaves package.json", slow: true, server: "typescript", archive: `
-- tsconfig.json --
{"compilerOptions":{"target":"es2022","module":"nodenext","moduleResolution":"nodenext","types":[],"lib":["es2022"],"strict":true,"noEmit":true},"include":["src"]}
-- package.json --
{"private":true,"type":"module","imports":{"#lib":"./src/lib.ts"},"dependencies":{"dep":"1.0.0"}}
-- src/lib.ts --
export function twice(n: number): number { return 2 * n }
-- src/user.ts --
import { twice } from '#lib'
import { one } from 'dep'
export const two: number = twice(one)
-- node_modules/dep/package.json --
{"name":"dep","version":"1.0.0","types":"index.d.ts"}
-- node_modules/dep/index.d.ts --
export declare const one: number
-- step: check it is still installed --
-- package.json --
{"private":true,"type":"module","imports":{"#lib":"./src/lib.ts"}}
-- step: check edit after it --
-- src/user.ts --
import { twice } from '#lib'
import { one } from 'dep'
export const two: number = twice(one) + 1
-- step: check the alias goes --
-- package.json --
{"private":true,"type":"module"}
-- step: check edit without the alias --
-- src/user.ts --
import { twice } from '#lib'
import { one } from 'dep'
export const two: number = twice(one) + 2
-- step: check without it --
-- src/user.ts --
import { twice } from './lib.js'
import { one } from 'dep'
export const two: number = twice(one)
-- step: other prune --
-- node_modules/dep --
(deleted)
-- step: check edit after prune --
-- src/user.ts --
import { twice } from './lib.js'
import { one } from 'dep'
export const two: number = twice(one) + 3
-- step: check do without --
-- src/user.ts --
import { twice } from './lib.js'
export const two: number = twice(1)
-- step: check ask for it again --
-- src/user.ts --
import { twice } from './lib.js'
import { one } from 'dep'
export const two: number = twice(one)
-- step: other install --
-- node_modules/dep/package.json --
{"name":"dep","version":"1.0.0","types":"index.d.ts"}
-- node_modules/dep/index.d.ts --
export declare const one: number
-- step: check edit after install --
-- src/user.ts --
import { twice } from './lib.js'
import { one } from 'dep'
export const two: number = twice(one) + 1
-- step: check another kind of module --
-- package.json --
{"private":true,"type":"commonjs"}
-- step: check edit as another kind --
-- src/user.ts --
import { twice } from './lib.js'
import { one } from 'dep'
export const two: number = twice(one) + 2
export const four: number = await Promise.resolve(4)
`},
	{name: "outside every workspace", folder: "app", server: "gopls", archive: `
-- app/go.mod --
module x

go 1.22
-- app/main.go --
package main

func main() {}
-- outside/a.go --
package main

func twice(n int) int { return 2 * n }
-- outside/b.go --
package main

func main() { println(twice(2)) }
` + outsideSteps("go", "package main\n\nfunc twice(n int) int { return %s }\n", "package main\n\nfunc main() { println(%s(2)) }\n")},
	{name: "outside every workspace", folder: "app", server: "typescript", archive: `
-- app/tsconfig.json --
{"compilerOptions":{"types":[]},"include":["*.ts"]}
-- app/package.json --
{}
-- app/main.ts --
export const main = 1
-- outside/a.ts --
export function twice(n: number): number { return 2 * n }
-- outside/b.ts --
import { twice } from './a'
export const four = twice(2)
` + outsideSteps("ts", "export function twice(n: number): number { return %s }\n", "import { %[1]s } from './a'\nexport const four = %[1]s(2)\n")},
	{name: "outside every workspace", folder: "app", server: "pyright", archive: `
-- app/pyproject.toml --
[tool.pyright]
-- app/main.py --
main = 1
-- outside/a.py --
def twice(n: int) -> int:
    return 2 * n
-- outside/b.py --
from a import twice

four = twice(2)
` + outsideSteps("py", "def twice(n: int) -> int:\n    return %s\n", "from a import %[1]s\n\nfour = %[1]s(2)\n")},
	{name: "outside every workspace", folder: "app", server: "clangd", archive: `
-- app/compile_commands.json --
[{"directory":"<ROOT>/app","file":"main.c","arguments":["gcc","-c","main.c"]}]
-- app/main.c --
int main(void) { return 0; }
-- outside/a.h --
static inline int twice(int n) { return 2 * n; }
-- outside/b.c --
#include "a.h"
int four(void) { return twice(2); }
-- step: check break it --
-- outside/b.c --
#include "a.h"
int four(void) { return thrice(2) + missing; }
-- step: check repair --
-- outside/b.c --
#include "a.h"
int four(void) { return twice(2) + 1; }
-- step: check another argument --
-- outside/a.h --
static inline int twice(int n, int m) { return 2 * n + m; }
-- step: check follow --
-- outside/b.c --
#include "a.h"
int four(void) { return twice(2, 0); }
`},
}

// outsideSteps are the steps for two files outside of the project, a and b, of which b uses a function of a.
func outsideSteps(ext, a, b string) string {
	one := func(name, file, text string) string {
		return fmt.Sprintf("-- step: %s --\n-- outside/%s.%s --\n%s", name, file, ext, text)
	}
	return one("check break it", "a", fmt.Sprintf(a, "missing")) + one("check repair", "a", fmt.Sprintf(a, "n + n")) +
		one("check rename", "a", strings.ReplaceAll(fmt.Sprintf(a, "n"), "twice", "double")) + one("check follow", "b", fmt.Sprintf(b, "double")) +
		one("check not there", "b", fmt.Sprintf(b, "twice")) + one("other back", "a", fmt.Sprintf(a, "2 * n")) + one("check edit after it", "b", fmt.Sprintf(b, "twice")+"\n")
}
