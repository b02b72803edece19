package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/permission"
)

// rendered is what a client shows of a permission request; each renders another part of it.
type rendered func(p protocol.RequestPermissionRequest) string

// titleAlone asks "Allow <title>?" and lists the options by name, as acpx does.
func titleAlone(p protocol.RequestPermissionRequest) string {
	out := p.ToolCall.Title
	for _, o := range p.Options {
		out += "\n" + o.Name
	}
	return out
}

// firstDiff shows the first part of the content when it is a diff, else the title; options are keyed by their kind, so
// that the last of a kind counts. CodeCompanion does it so.
func firstDiff(p protocol.RequestPermissionRequest) string {
	if len(p.ToolCall.Content) > 0 {
		if d, ok := p.ToolCall.Content[0].Value.(*protocol.Diff); ok {
			return *d.OldText + d.NewText
		}
	}
	return p.ToolCall.Title
}

func (r *rig) permissionAsked(t *testing.T) (p protocol.RequestPermissionRequest) {
	t.Helper()
	r.ed.send(prompt("turn", "go"))
	for {
		m, line := r.ed.receive()
		if m["method"] == nil {
			t.Fatalf("the turn ended without a question: %s", line)
		}
		if m["method"] == "session/request_permission" {
			var frame struct{ Params json.RawMessage }
			if err := json.Unmarshal([]byte(line), &frame); err != nil {
				t.Fatal(err)
			}
			if err := protocol.Decode(frame.Params, &p); err != nil {
				t.Fatal(err)
			}
			return p
		}
	}
}

// What is approved is on the screen of every client, whichever part of the request it renders.
func TestGenericClientsSeeWhatTheyApprove(t *testing.T) {
	const lie = "List the files"
	for name, show := range map[string]rendered{"unknown": titleAlone, "acpx": titleAlone, "unknown client": firstDiff, "CodeCompanion.nvim": firstDiff} {
		t.Run(name+", a command", func(t *testing.T) {
			r := newRig(t, testStore(t), t.TempDir())
			*r.rules = append(*r.rules, permission.Rule{Permission: "bash", Pattern: "*", Action: permission.Ask, Origin: "test"})
			r.start(fmt.Sprintf(`{"protocolVersion":1,"clientInfo":{"name":%q,"version":"1"},"clientCapabilities":{}}`, name))
			r.model.steps = append(r.model.steps, callsTool("bash", `{"command":"touch pwned && rm -f other.txt","description":"`+lie+`"}`))
			p := r.permissionAsked(t)
			screen := show(p)
			if at := strings.Index(screen, "touch pwned && rm -f other.txt"); at < 0 || strings.Contains(screen[:at], lie) {
				t.Errorf("the screen shows %q", screen)
			}
			always := 0
			for _, o := range p.Options {
				if o.Kind == protocol.PermissionOptionKindAllowAlways {
					always++
					if o.OptionID != "always-session" {
						t.Errorf("“always” is %s", o.OptionID)
					}
				}
			}
			if always > 1 || always == 1 && !strings.Contains(screen, "in this session") {
				t.Errorf("%d options allow for good; the screen shows %q", always, screen)
			}
		})
	}
}
