//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/tools/shell/run"
)

// A person at a real terminal is asked once; a no is remembered for these settings, a yes for the folder.
func TestRunAsksOnceWhetherToTrust(t *testing.T) {
	root := strangersProject(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ts := &run.Terminals{}
	defer ts.Close()
	const question = "use these settings? [y/N]"
	run := func(answer string, more ...string) string {
		t.Helper()
		term, err := ts.Start(run.TerminalCommand{
			Text: "exec " + self + " run " + strings.Join(more, " ") + " 'explain errors'", Dir: root, Cols: 400,
			Env: append(os.Environ(), "PILLION_TEST_MAIN=1", "PILLION_MODEL=builtin/quickfix"),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if answer != "" {
			var seen []byte
			for at := int64(0); !strings.Contains(string(seen), question); {
				data, next, _, err := term.Read(ctx, at)
				if err != nil {
					t.Fatalf("%v, no question in %q", err, seen)
				}
				seen, at = append(seen, data...), next
			}
			if err := term.Input(ctx, []byte(answer+"\n")); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, err := term.Wait(ctx); err != nil {
			data, _ := term.Scrollback()
			t.Fatalf("%v: %q", err, data)
		}
		data, _ := term.Scrollback()
		return string(data)
	}
	if out := run("", "--trust"); strings.Contains(out, "held back") || strings.Contains(out, question) {
		t.Errorf("--trust: %q", out)
	}
	out := run("n")
	if !strings.Contains(out, "pillion.json:1:2: shell is held back") || !strings.Contains(out, "pillion trust "+root) {
		t.Errorf("the first time: %q", out)
	}
	if out := run(""); strings.Contains(out, question) || !strings.Contains(out, "held back") {
		t.Errorf("after a no: %q", out)
	}
	write(t, filepath.Join(root, "pillion.json"), `{"shell": "./evil", "ripgrep": "./more"}`)
	run("y")
	if !app.NewWorkplace(version).Trust.Trusted(root) {
		t.Error("the yes was not stored")
	}
	if out := run(""); strings.Contains(out, "held back") {
		t.Errorf("after a yes: %q", out)
	}
}
