package acp

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/editors"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/permission"
)

// A rendering is what some client makes of a request: the parts that it draws, and nothing else.
type rendering struct {
	name string
	draw func(message string, call protocol.ToolCallUpdate, options []protocol.PermissionOption) string
}

func titleOf(_ string, u protocol.ToolCallUpdate, _ []protocol.PermissionOption) string {
	return u.Title
}

func firstDiff(_ string, u protocol.ToolCallUpdate, _ []protocol.PermissionOption) string {
	for _, c := range u.Content {
		if d, ok := c.Value.(*protocol.Diff); ok {
			return *d.OldText + d.NewText
		}
	}
	return ""
}

func textsOf(_ string, u protocol.ToolCallUpdate, _ []protocol.PermissionOption) string {
	var b strings.Builder
	for _, c := range u.Content {
		if t, ok := c.Value.(*protocol.Content); ok {
			b.WriteString(t.Content.Value.(*protocol.TextContent).Text + "\n")
		}
	}
	return b.String()
}

func allDiffs(_ string, u protocol.ToolCallUpdate, _ []protocol.PermissionOption) string {
	var b strings.Builder
	for _, c := range u.Content {
		if d, ok := c.Value.(*protocol.Diff); ok {
			b.WriteString(d.Path + "\n")
			if d.OldText != nil {
				b.WriteString(*d.OldText)
			}
			b.WriteString(d.NewText)
		}
	}
	return b.String()
}

func optionNames(_ string, _ protocol.ToolCallUpdate, options []protocol.PermissionOption) string {
	var b strings.Builder
	for _, o := range options {
		b.WriteString(o.Name + "\n")
	}
	return b.String()
}

func messageOf(message string, _ protocol.ToolCallUpdate, _ []protocol.PermissionOption) string {
	return message
}

func together(parts ...func(string, protocol.ToolCallUpdate, []protocol.PermissionOption) string) func(string, protocol.ToolCallUpdate, []protocol.PermissionOption) string {
	return func(m string, u protocol.ToolCallUpdate, o []protocol.PermissionOption) string {
		var b strings.Builder
		for _, part := range parts {
			b.WriteString(part(m, u, o) + "\n")
		}
		return b.String()
	}
}

// randomSet is a change of one to six files of every kind, with words that can be looked for on a screen.
func randomSet(rng *rand.Rand, cwd string) (set *change.Set, words []string) {
	var list []change.File
	n := 1 + rng.IntN(6)
	for i := range n {
		f := change.File{Path: filepath.Join(cwd, fmt.Sprintf("dir%d/file%d.go", rng.IntN(3), i)), Kind: []change.Kind{change.Edit, change.Create, change.Delete, change.Rename}[rng.IntN(4)]}
		old, now := fmt.Sprintf("gone_%d\nsame\n", i), fmt.Sprintf("same\nfresh_%d\n", i)
		if rng.IntN(2) == 0 {
			now = strings.TrimSuffix(now, "\n")
		}
		switch f.Kind {
		case change.Create:
			f.New = now
			words = append(words, fmt.Sprintf("fresh_%d", i))
		case change.Delete:
			f.Old = old
			words = append(words, fmt.Sprintf("gone_%d", i))
		default:
			f.Old, f.New = old, now
			words = append(words, fmt.Sprintf("gone_%d", i), fmt.Sprintf("fresh_%d", i))
		}
		if f.Kind == change.Rename {
			f.NewPath = filepath.Join(cwd, fmt.Sprintf("moved%d.go", i))
			words = append(words, fmt.Sprintf("moved%d.go", i))
		}
		words = append(words, fmt.Sprintf("file%d.go", i))
		list = append(list, f)
	}
	set = change.New("chg_1", list)
	if rng.IntN(4) > 0 {
		set = set.WithVerdict(&change.Verdict{Certainty: change.Fresh, Introduced: []change.Problem{{Path: list[0].Path, Line: 1, Column: 1, Severity: "error", Message: "undefined: fresh"}}})
		words = append(words, "introduces 1")
	}
	return set, words
}

// Whatever a client announces and whichever part of a request it draws, that part alone names all paths, the verdict and
// how far "always" reaches. Where it can hold them it has the changed lines as well. One "always" is offered, the
// narrowest.
func TestARequestIsShownWholeInEveryPartAClientMayDraw(t *testing.T) {
	cwd := t.TempDir()
	rng := rand.New(rand.NewPCG(19, 1))
	names := []string{"Some Editor of next year", "", "CodeCompanion.nvim", "agentic.nvim", "acpx", "vscode-acp-client", "Zed"}
	for range 400 {
		name := names[rng.IntN(len(names))]
		caps := protocol.ClientCapabilities{}
		if rng.IntN(2) == 0 {
			caps.Fs = &protocol.FileSystemCapabilities{ReadTextFile: rng.IntN(2) == 0, WriteTextFile: rng.IntN(2) == 0}
		}
		client := editors.NewClient(protocol.InitializeRequest{ClientInfo: &protocol.Implementation{Name: name}, ClientCapabilities: &caps})
		set, words := randomSet(rng, cwd)
		r := permission.Request{Permission: "edit", Always: []string{"*"}, Change: set, Title: "Tidy up", Patterns: set.Paths()}
		u := protocol.ToolCallUpdate{}
		genericCall(&u, r, set, cwd, client.Profile)
		options := genericOptions(r)
		message := ""
		if client.Profile.TitleOnly {
			message = proposalMessage(set, cwd)
		}
		scope := "any edit in this session"
		head := slices.DeleteFunc(slices.Clone(words), func(w string) bool { return strings.HasPrefix(w, "fresh") || strings.HasPrefix(w, "gone") })

		screens := map[string][]string{} // what is on the screen, and the words that must
		switch name {
		case "Some Editor of next year", "", "CodeCompanion.nvim":
			screens[titleOf(message, u, options)] = head
			screens[firstDiff(message, u, options)] = append(words, scope)
			screens[textsOf(message, u, options)] = append(words, scope)
		case "agentic.nvim":
			screens[together(textsOf, optionNames)(message, u, options)] = append(words, scope)
		case "Zed":
			screens[together(titleOf, allDiffs, optionNames)(message, u, options)] = append(words, scope)
		default:
			screens[together(messageOf, titleOf, optionNames)(message, u, options)] = append(words, scope)
		}
		for screen, words := range screens {
			for _, want := range words {
				if !strings.Contains(screen, want) {
					t.Fatalf("%q: the screen does not show %q:\n%s", name, want, screen)
				}
			}
		}
		oneAlways(t, options)
	}
}

// A command is whole in every part, before the words with which the model describes it.
func TestACommandIsShownWholeInEveryPartAClientMayDraw(t *testing.T) {
	for _, name := range []string{"Some Editor of next year", "", "CodeCompanion.nvim", "agentic.nvim", "acpx", "vscode-acp-client", "Zed"} {
		for _, command := range []string{"touch pwned && rm -f other.txt", "cat <<'EOF'\none\ntwo\nEOF", "printf '```\\n# harmless\\n```'", "rm x \u202e# txt.eton"} {
			r := permission.Request{Permission: "bash", Title: "List the files", Always: []string{"rm *"}, Metadata: map[string]any{"command": command}}
			who := &person{sessions: newSessionTable()}
			u := who.permissionCall("s", nil, r, nil)
			genericCall(&u, r, nil, "/", editors.NewClient(protocol.InitializeRequest{ClientInfo: &protocol.Implementation{Name: name}}).Profile)
			shown := commandOf(r)
			for _, part := range []rendering{{"title", titleOf}, {"texts", textsOf}} {
				screen := part.draw("", u, nil)
				at := strings.Index(screen, shown)
				if at < 0 || strings.ContainsRune(screen, '\u202e') {
					t.Errorf("%q: the %s does not show the command %q: %s", name, part.name, shown, screen)
				}
				if said := strings.Index(screen, "List the files"); said >= 0 && said < at {
					t.Errorf("%q: the model's words stand before the command: %s", name, screen)
				}
			}
			oneAlways(t, genericOptions(r))
			if o := optionNames("", u, genericOptions(r)); !strings.Contains(o, "rm *") || !strings.Contains(o, "in this session") {
				t.Errorf("options %s", o)
			}
		}
	}
}

// A change of a whole turn: the title stays one that can be read, the diff and the text name every file.
func TestATitleOfManyFilesNamesTheFirstAndTheirNumber(t *testing.T) {
	var list []change.File
	for i := range 100 {
		list = append(list, change.File{Path: fmt.Sprintf("/p/file%03d.go", i), Kind: change.Create, New: "x\n"})
	}
	set := change.New("chg_1", list)
	u := protocol.ToolCallUpdate{}
	genericCall(&u, permission.Request{Permission: "edit", Change: set}, set, "/p", editors.Profile{})
	if want := "file019.go, … (80 more files)"; !strings.HasSuffix(u.Title, want) {
		t.Errorf("title %q, want …%q", u.Title, want)
	}
	for _, part := range []string{firstDiff("", u, nil), textsOf("", u, nil)} {
		if !strings.Contains(part, "create file099.go") {
			t.Error("a part does not name the last file")
		}
	}
}

func oneAlways(t *testing.T, options []protocol.PermissionOption) {
	t.Helper()
	n := 0
	for _, o := range options {
		if o.Kind == protocol.PermissionOptionKindAllowAlways {
			n++
			if o.OptionID != optionSession {
				t.Errorf("the one \"always\" is %s", o.OptionID)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d options are \"always\"", n)
	}
}
