package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// A rename changes files that its call does not name. The hooks that guard files see each of them before anything is asked or written.
func TestHooksSeeTheOtherFilesOfAChange(t *testing.T) {
	home, dir := t.TempDir(), t.TempDir()
	for name, value := range map[string]string{"HOME": home, "XDG_CONFIG_HOME": home, "XDG_STATE_HOME": home, "XDG_DATA_HOME": home, "PILLION_TRUST": "1"} {
		t.Setenv(name, value)
	}
	// One line a call: the name of the tool and of the file. It allows a.go by itself and blocks whatever is called guarded.
	log := filepath.Join(home, "log")
	script := `p=$(cat); f=$(printf %s "$p" | sed -n 's/.*"file_path":"\([^"]*\)".*/\1/p'); echo "$(printf %s "$p" | sed -n 's/.*"tool_name":"\([^"]*\)".*/\1/p') ${f##*/}" >>` + log + `
case $f in */guarded*) echo "leave that alone" >&2; exit 2;; */a.go) echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}';; */ask.go) echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask"}}';; esac`
	settings, err := json.Marshal(map[string]any{"hooks": map[string]any{"PreToolUse": []any{map[string]any{"matcher": "Edit|Write", "hooks": []any{map[string]any{"type": "command", "command": script}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, ".claude"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".claude/settings.json"), settings, 0o644); err != nil {
		t.Fatal(err)
	}
	a := New(Options{Place: NewWorkplace("test"), NoLSP: true, Ephemeral: true})
	defer a.Close()
	for i, c := range []struct {
		files   []change.File
		blocked bool
		insists bool
		left    string // the hooks' decision about the whole call
		seen    string
	}{
		{files: []change.File{{Path: "a.go", Kind: change.Edit}}, left: "allow", seen: "Edit a.go"},
		{files: []change.File{{Path: "a.go", Kind: change.Edit}, {Path: "b.go", Kind: change.Edit}}, left: "", seen: "Edit a.go,Edit b.go"},
		{files: []change.File{{Path: "a.go", Kind: change.Edit}, {Path: "ask.go", Kind: change.Create}}, insists: true, left: "ask", seen: "Edit a.go,Write ask.go"},
		{files: []change.File{{Path: "a.go", Kind: change.Edit}, {Path: "guarded.go", Kind: change.Edit}}, blocked: true, seen: "Edit a.go,Edit guarded.go"},
		{files: []change.File{{Path: "a.go", NewPath: "guarded/a.go", Kind: change.Rename}}, blocked: true, seen: "Edit a.go,Edit a.go"},
	} {
		_ = os.Remove(log)
		for j := range c.files {
			c.files[j].Path = filepath.Join(dir, c.files[j].Path)
			if c.files[j].NewPath != "" {
				c.files[j].NewPath = filepath.Join(dir, c.files[j].NewPath)
			}
		}
		h := &settingsHooks{app: a, cwd: dir, calls: map[string]*hookedCall{}, shown: map[string]bool{}}
		id := fmt.Sprint("call", i)
		call := &tools.Call{SessionID: "s", CallID: id, Tool: "symbol_rename"}
		if _, err := h.before(t.Context(), call, json.RawMessage(`{"filePath": "a.go", "symbol": "x", "newName": "y"}`)); err != nil {
			t.Fatal(err)
		}
		r := permission.Request{SessionID: "s", CallID: id, Tool: "symbol_rename", Permission: "edit", Change: change.New("chg", c.files)}
		insists, err := h.insist(t.Context(), r)
		var refused *tools.Error
		if blocked := errors.As(err, &refused) && strings.Contains(refused.Message, "leave that alone"); blocked != c.blocked || insists != c.insists {
			t.Errorf("%d: %v, insists %v", i, err, insists)
		}
		if c.blocked {
			continue
		}
		if got := h.call(r).decision; got != c.left {
			t.Errorf("%d: the decision is %q, not %q", i, got, c.left)
		}
		// A second question about the same change runs nothing again.
		if _, err := h.insist(t.Context(), r); err != nil {
			t.Error(err)
		}
		b, _ := os.ReadFile(log)
		if got := strings.Join(strings.Split(strings.TrimSpace(string(b)), "\n"), ","); got != c.seen {
			t.Errorf("%d: the hooks saw %q, not %q", i, got, c.seen)
		}
	}
}
