package main

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/protocol"
)

// examples are the worlds the page's examples play in.
var examples = map[string]struct {
	model string
	tree  map[string]string
}{
	"plain": {model: "text Hello."},
	"task": {
		model: "call task {\"description\":\"read it\",\"prompt\":\"read a.txt\",\"subagent_type\":\"general\"}\n---\ncall read {\"filePath\":\"a.txt\"}\n---\ntext It says one.\n---\ntext Done.",
		tree:  map[string]string{"a.txt": "one\n"},
	},
	"compact": {model: "text Hello.\n---\ntext The person said hello."},
	"edit": {
		model: "call read {\"filePath\":\"a.txt\"}\n---\ncall multiedit {\"filePath\":\"a.txt\",\"edits\":[{\"oldString\":\"one\",\"newString\":\"ONE\"},{\"oldString\":\"two\",\"newString\":\"TWO\"}]}\n---\ntext Done.",
		tree:  map[string]string{"a.txt": "one\n-\ntwo\n"},
	},
	"review": {
		model: "text - a.txt:2: error: this is a dash",
		tree:  map[string]string{"a.txt": "one\n-\ntwo\n"},
	},
	"live": {
		model: "call read {\"filePath\":\"a.txt\"}\n---\ncall edit {\"filePath\":\"a.txt\",\"oldString\":\"one\",\"newString\":\"ONE\"}\n---\ntext Done.",
		tree:  map[string]string{"a.txt": "one\n"},
	},
}

func TestThePageTellsTheTruth(t *testing.T) {
	b, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	n := 0
	for rest := page; ; {
		_, after, ok := strings.Cut(rest, "\n```acp ")
		if !ok {
			break
		}
		block, tail, _ := strings.Cut(after, "\n```")
		name, script, _ := strings.Cut(block, "\n")
		x, ok := examples[name]
		if !ok {
			t.Fatalf("unknown example %q", name)
		}
		t.Run(fmt.Sprint(name, n), func(t *testing.T) { runScript(t, script, x.model, x.tree) })
		rest = tail
		n++
	}
	if n < 8 {
		t.Errorf("only %d examples", n)
	}
	for _, m := range protocol.Methods {
		if strings.HasPrefix(m.Name, "terminal/") || m.Name == "elicitation/complete" {
			continue // most are never called: we run commands ourselves, and ask no question by URL
		}
		if !strings.Contains(page, m.Name) {
			t.Errorf("%s is not on the page", m.Name)
		}
	}
}

func TestEveryAnnouncedMethodIsOurs(t *testing.T) {
	r := newRig(t, testStore(t), t.TempDir())
	for _, name := range r.server.Announced() {
		if m, ok := findMethod(name); !ok || m.Side != "agent" {
			t.Errorf("%s is announced but not in the schema", name)
		}
	}
}
