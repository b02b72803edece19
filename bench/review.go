package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

const howReview = `A change set of 50 files of 400 lines with 10 hunks each. Built: package tools/change alone, texts in, hunks out. Sent: from the last
bytes of the model's apply_patch leaving the scripted server to the permission request, with every file's whole diff, having arrived at
the editor whole: parsing, matching, reading 50 files, rules, hunks, JSON.`

func (b *bench) review() {
	const files, hunks, lines = 50, 10, 400
	text := func(file, state int) string {
		var s strings.Builder
		s.WriteString("package p\n\nfunc f() {\n") // a program: each change of one is parsed
		for i := range lines {
			if i%(lines/hunks) == 5 {
				fmt.Fprintf(&s, "\tchanged(%d, %d, %d)\n", file, i, state)
			} else {
				fmt.Fprintf(&s, "\tstay(%d, %d) // a line that is as it was\n", file, i)
			}
		}
		return s.String() + "}\n"
	}
	var built Samples
	for range b.rounds(40) {
		list := make([]change.File, files)
		for i := range list {
			list[i] = change.File{Path: fmt.Sprint("/p/", i), Kind: change.Edit, Old: text(i, 0), New: text(i, 1)}
		}
		built = append(built, timed(func() {
			n := 0
			for _, f := range change.New("c", list).Files {
				n += len(f.Hunks)
			}
			if n != files*hunks {
				failf("%d hunks", n)
			}
		}))
	}
	b.add(Row{What: "preview of 50 files, 500 hunks: built", Unit: "ms", Ours: built, Target: Target{AtMost: 50}})

	m := newModel()
	defer m.close()
	config := m.config()
	config["tools"] = map[string]any{"apply_patch": true}
	r := &rig{m: m, cwd: b.project("project"), ours: b.agent(b.home("review", config), b.bin, "acp")}
	defer r.ours.close()
	r.ours.initialize()
	for i := range files {
		b.write(filepath.Join(r.cwd, fmt.Sprintf("r%d.go", i)), text(i, 0))
	}
	patch := func(state int) string {
		var s strings.Builder
		s.WriteString("*** Begin Patch\n")
		for i := range files {
			fmt.Fprintf(&s, "*** Update File: r%d.go\n", i)
			for k := range hunks {
				line := k*(lines/hunks) + 5
				fmt.Fprintf(&s, "@@\n \tstay(%d, %d) // a line that is as it was\n-\tchanged(%d, %d, %d)\n+\tchanged(%d, %d, %d)\n", i, line-1, i, line, state, i, line, state+1)
			}
		}
		return s.String() + "*** End Patch"
	}
	session := r.ours.newSession(r.cwd)
	for i := range files {
		r.m.Add(calls("read", map[string]any{"filePath": fmt.Sprintf("r%d.go", i)}))
	}
	r.m.Add(says)
	_, err := r.ours.prompt(session, "read them")
	check(err)
	r.m.take()
	var sent Samples
	for state := range b.rounds(20) {
		r.m.Add(calls("apply_patch", map[string]any{"patchText": patch(state)}))
		r.m.Add(says)
		_, err := r.ours.prompt(session, "change them")
		check(err)
		turns := r.m.take()
		r.ours.mu.Lock()
		at := r.ours.askedAt
		r.ours.mu.Unlock()
		if at.IsZero() || len(turns) < 1 || at.Before(turns[0].ended) {
			failf("nothing was asked: %v %v", at, time.Now())
		}
		sent = append(sent, ms(at.Sub(turns[0].ended)))
	}
	b.add(Row{What: "preview of 50 files, 500 hunks: sent", Unit: "ms", Ours: sent, Target: Target{AtMost: 100}})
}
