package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/search"
)

// searchWorld is a project with a person who notes what is asked and says yes.
type searchWorld struct {
	env       Env
	work, out string
	gate      tools.Gate
	todos     *todoList

	mu   sync.Mutex
	asks []string // guarded by mu
}

type todoList struct {
	list []tools.Todo
	err  error
}

func (l *todoList) Get() []tools.Todo { return l.list }
func (l *todoList) Set(_ context.Context, todos []tools.Todo) error {
	if l.err == nil {
		l.list = todos
	}
	return l.err
}

func (w *searchWorld) AskPermission(_ context.Context, r permission.Request) (permission.Reply, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asks = append(w.asks, w.plain(r.Permission+" "+strings.Join(r.Patterns, " ")))
	return permission.Reply{Kind: permission.Once}, nil
}

func (w *searchWorld) plain(s string) string {
	return strings.NewReplacer(w.work, "$WORK", w.out, "$OUT").Replace(s)
}

// newWorld writes name, text pairs, oldest first; names with ../out/ are outside the project.
func newWorld(t *testing.T, rules permission.Ruleset, pairs ...string) *searchWorld {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", filepath.Join(dir, "home"))
	t.Setenv("XDG_CONFIG_HOME", "")
	w := &searchWorld{work: filepath.Join(dir, "work"), out: filepath.Join(dir, "out"), todos: &todoList{}}
	if err := errors.Join(os.Mkdir(w.work, 0o755), os.Mkdir(w.out, 0o755)); err != nil {
		t.Fatal(err)
	}
	begin := time.Now().Add(-time.Hour)
	for i := 0; i+1 < len(pairs); i += 2 {
		path := filepath.Join(w.work, pairs[i])
		if to, ok := strings.CutPrefix(pairs[i+1], "-> "); ok {
			if err := os.Symlink(to, path); err != nil {
				t.Skip("no symbolic links here:", err)
			}
			continue
		}
		put(t, path, pairs[i+1])
		at := begin.Add(time.Duration(i) * time.Second)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	w.env = Env{Cwd: w.work, Root: w.work, StateDir: filepath.Join(dir, "state"), Search: search.New(search.Options{Ripgrep: "off"})}
	all := append(permission.Default(), rules...)
	w.gate = permission.NewGate(permission.GateOptions{Rules: func() permission.Ruleset { return all }, Asker: w})
	return w
}

// run makes one call and returns its output or "[kind] error".
func (w *searchWorld) run(t *testing.T, name, input string) string {
	t.Helper()
	out, _ := w.call(t, name, input)
	return out
}

func (w *searchWorld) call(t *testing.T, name, input string) (string, tools.Result) {
	t.Helper()
	all := append(All(w.env), Invalid())
	tool, ok := tools.Repair(name, all)
	if !ok {
		t.Fatal("no tool", name)
	}
	call := &tools.Call{SessionID: "s", CallID: "c", Host: tools.Host{Gate: w.gate}}
	if w.todos != nil {
		call.Host.Todos = w.todos
	}
	r, err := tools.Invoke(t.Context(), tool, json.RawMessage(input), call, tools.CapOptions{Dir: filepath.Join(w.env.StateDir, "tool-output")})
	if err != nil {
		kind := ""
		var e *tools.Error
		if errors.As(err, &e) {
			kind = e.Kind
		}
		return "[" + kind + "] " + w.plain(err.Error()), r
	}
	return w.plain(r.Output), r
}

func (w *searchWorld) check(t *testing.T, name, input, want string) {
	t.Helper()
	if got := w.run(t, name, input); got != want {
		t.Errorf("%s %s\n got %s\nwant %s", name, input, got, want)
	}
}

func (w *searchWorld) checkAsks(t *testing.T, want ...string) {
	t.Helper()
	if strings.Join(w.asks, "; ") != strings.Join(want, "; ") {
		t.Errorf("asked %q, want %q", w.asks, want)
	}
	w.asks = nil
}

func rule(name, pattern string, a permission.Action) permission.Rule {
	return permission.Rule{Permission: name, Pattern: pattern, Action: a, Origin: "test"}
}

func TestGrepOutput(t *testing.T) {
	w := newWorld(t, nil, "a.go", "x := 1\ny\nx++\n", "b/c.go", "\tx\n", "d.ts", "x\n", "one.md", "word")
	w.check(t, "grep", `{"pattern":"x"}`, "Found 4 matches\n$WORK/d.ts:\n  Line 1: x\n\n$WORK/b/c.go:\n  Line 1: \tx\n\n$WORK/a.go:\n  Line 1: x := 1\n  Line 3: x++")
	w.check(t, "grep", `{"pattern":"x","include":"*.go","path":"b"}`, "Found 1 matches\n$WORK/b/c.go:\n  Line 1: \tx")
	w.check(t, "grep", `{"pattern":"x","path":"a.go"}`, "Found 2 matches\n$WORK/a.go:\n  Line 1: x := 1\n  Line 3: x++")
	w.check(t, "grep", `{"pattern":"nowhere"}`, "No files found")
	w.check(t, "grep", `{"pattern":"x","path":"a.goo"}`, "[file_missing] Search path not found: $WORK/a.goo\n\nDid you mean one of these?\n$WORK/a.go")
	if got := w.run(t, "grep", `{"pattern":"(x"}`); !strings.HasPrefix(got, "[bad_pattern] regex parse error") {
		t.Error(got)
	}
	w.check(t, "grep", `{"pattern":""}`, "[bad_pattern] pattern is required")
	w.checkAsks(t)
	if _, r := w.call(t, "grep", `{"pattern":"x"}`); r.Metadata["matches"] != 4 || r.Metadata["truncated"] != false || r.Title != "x" || len(r.Locations) != 3 || r.Locations[2].Line != 1 {
		t.Errorf("%+v", r)
	}
}

func TestGrepSaysWhenThereIsMore(t *testing.T) {
	w := newWorld(t, nil, "old", strings.Repeat("x\n", 60), "new", strings.Repeat("x\n", 40))
	got, r := w.call(t, "grep", `{"pattern":"x"}`)
	if !strings.HasPrefix(got, "Found 100 matches\n") || r.Metadata["truncated"] != false || strings.Contains(got, "truncated") {
		t.Errorf("exactly 100: %.80s %v", got, r.Metadata)
	}
	put(t, filepath.Join(w.work, "more"), "x\n")
	got, r = w.call(t, "grep", `{"pattern":"x"}`)
	if !strings.HasPrefix(got, "Found 100 matches (more matches available)\n$WORK/more:") || !strings.HasSuffix(got, "\n\n(Results truncated. Consider using a more specific path or pattern.)") || r.Metadata["truncated"] != true {
		t.Errorf("101: %.80s %v", got, r.Metadata)
	}
}

func TestALongGrepPassesTheCap(t *testing.T) {
	w := newWorld(t, nil, "wide", strings.Repeat("x"+strings.Repeat("y", 1990)+"\n", 90))
	got, r := w.call(t, "grep", `{"pattern":"x"}`)
	path, _ := r.Metadata["outputPath"].(string)
	if len(got) > 52000 || r.Metadata["truncated"] != true || path == "" {
		t.Fatalf("%d bytes, %v", len(got), r.Metadata)
	}
	if got = w.run(t, "grep", `{"pattern":"Line 90","path":"`+path+`"}`); !strings.HasPrefix(got, "Found 1 matches\n"+path+":\n  Line 92:   Line 90: xyyy") {
		t.Errorf("%.200s", got)
	}
	w.checkAsks(t) // what the model is pointed to is not outside
}

func TestSearchesShowOnlyWhatMayBeRead(t *testing.T) {
	w := newWorld(t, permission.Ruleset{rule("read", "secret/*", permission.Deny)},
		"secret/key", "x\n", ".env", "x=1\n", "sub/.env.local", "x\n", ".env.example", "x\n", "a", "x\n")
	w.check(t, "grep", `{"pattern":"x"}`, "Found 2 matches\n$WORK/a:\n  Line 1: x\n\n$WORK/.env.example:\n  Line 1: x")
	w.check(t, "glob", `{"pattern":"**"}`, "$WORK/a\n$WORK/.env.example\n$WORK/sub/.env.local\n$WORK/.env")
	w.check(t, "list", `{}`, "$WORK/\n  secret/\n  sub/\n    .env.local\n  .env\n  .env.example\n  a")
	w.checkAsks(t)
	w.check(t, "grep", `{"pattern":"x","path":".env"}`, "Found 1 matches\n$WORK/.env:\n  Line 1: x=1")
	w.checkAsks(t, "read .env")
	if got := w.run(t, "grep", `{"pattern":"x","path":"secret/key"}`); !strings.HasPrefix(got, "[denied] ") {
		t.Error(got)
	}
	w.check(t, "grep", `{"pattern":"x","path":"secret"}`, "No files found")
	w.gate = blindGate{w.gate} // cannot foretell: the defaults count
	if got := w.run(t, "grep", `{"pattern":"x="}`); got != "No files found" {
		t.Error("without a foretelling gate:", got)
	}
}

// A hard link is the file itself: what may not be read as .env may not be read under another name either.
func TestAHardLinkOfAFileThatIsAskedAboutIsAskedAbout(t *testing.T) {
	w := newWorld(t, permission.Ruleset{rule("read", "secret/*", permission.Deny)}, "sub/.env", "x=1\n", "secret/key", "x=2\n", "a", "x=3\n", "b/c", "x=4\n")
	for name, of := range map[string]string{"notes.txt": "sub/.env", "b/key.txt": "secret/key", "plain": "a"} {
		if err := os.Link(filepath.Join(w.work, of), filepath.Join(w.work, name)); err != nil {
			t.Skip("no hard links here:", err)
		}
	}
	found := w.run(t, "grep", `{"pattern":"x="}`)
	if strings.Contains(found, "x=1") || strings.Contains(found, "x=2") || !strings.Contains(found, "plain") || !strings.Contains(found, "x=4") {
		t.Errorf("grep: %s", found)
	}
	w.checkAsks(t)
	w.run(t, "read", `{"filePath":"notes.txt"}`)
	w.checkAsks(t, "read notes.txt sub/.env")
	w.run(t, "grep", `{"pattern":"x=","path":"notes.txt"}`)
	w.checkAsks(t, "read notes.txt sub/.env")
	if got := w.run(t, "read", `{"filePath":"b/key.txt"}`); !strings.HasPrefix(got, "[denied] ") {
		t.Error(got)
	}
	w.gate = blindGate{w.gate}
	if found := w.run(t, "grep", `{"pattern":"x="}`); strings.Contains(found, "x=1") {
		t.Errorf("without a foretelling gate: %s", found)
	}
	w.run(t, "read", `{"filePath":"plain"}`)
}

type blindGate struct{ tools.Gate }

func (b blindGate) Ask(ctx context.Context, r permission.Request) (permission.Reply, error) {
	return b.Gate.Ask(ctx, r)
}

func TestSearchesAskBeforeTheyLeaveTheProject(t *testing.T) {
	w := newWorld(t, nil, "a", "x\n", "../out/b.go", "x\n", "../out/sub/c.go", "x\n", "link", "-> ../out")
	w.check(t, "grep", `{"pattern":"x","path":"../out"}`, "Found 2 matches\n$OUT/sub/c.go:\n  Line 1: x\n\n$OUT/b.go:\n  Line 1: x")
	w.checkAsks(t, "external_directory $OUT/*")
	w.check(t, "grep", `{"pattern":"x","path":"link/b.go"}`, "Found 1 matches\n$WORK/link/b.go:\n  Line 1: x")
	w.checkAsks(t, "external_directory $OUT/*")
	w.check(t, "grep", `{"pattern":"x"}`, "Found 1 matches\n$WORK/a:\n  Line 1: x")
	w.checkAsks(t)
	for _, pattern := range []string{"../out/*.go", "link/*.go", w.out + "/*.go", "./../out/./*.go"} {
		w.run(t, "glob", `{"pattern":"`+pattern+`"}`)
		w.checkAsks(t, "external_directory $OUT/*")
	}
	w.check(t, "glob", `{"pattern":"../out/sub/*.go"}`, "$OUT/sub/c.go")
	w.checkAsks(t, "external_directory $OUT/sub/*")
	w.check(t, "list", `{"path":"link"}`, "$WORK/link/\n  sub/\n    c.go\n  b.go")
	w.checkAsks(t, "external_directory $OUT/*")
	w.check(t, "glob", `{"pattern":"*/../../out/*"}`, "No files found")
	w.checkAsks(t)
}

func TestADeniedSearchDoesNothing(t *testing.T) {
	w := newWorld(t, permission.Ruleset{rule("glob", "*.key", permission.Deny), rule("grep", "*", permission.Ask), rule("external_directory", "*", permission.Deny)}, "a", "x\n")
	if got := w.run(t, "glob", `{"pattern":"*.key"}`); !strings.HasPrefix(got, "[denied]") {
		t.Error(got)
	}
	if got := w.run(t, "list", `{"path":".."}`); !strings.HasPrefix(got, "[denied]") {
		t.Error(got)
	}
	w.run(t, "grep", `{"pattern":"x"}`)
	w.checkAsks(t, "grep x")
}

func TestGlobOutput(t *testing.T) {
	w := newWorld(t, nil, ".gitignore", "dist/\n", "a.go", "", "src/b.go", "", "dist/c.go", "")
	w.check(t, "glob", `{"pattern":"**/*.go"}`, "$WORK/src/b.go\n$WORK/a.go")
	w.check(t, "glob", `{"pattern":"*.go","path":"src"}`, "$WORK/src/b.go")
	w.check(t, "glob", `{"pattern":"dist/*.go"}`, "$WORK/dist/c.go")
	w.check(t, "glob", `{"pattern":"*.rs"}`, "No files found")
	w.check(t, "glob", `{"pattern":"*","path":"sr"}`, "[file_missing] Search path not found: $WORK/sr\n\nDid you mean one of these?\n$WORK/src")
	w.check(t, "glob", `{"pattern":"*","path":"a.go"}`, "[bad_path] glob path must be a directory: $WORK/a.go")
	if got := w.run(t, "glob", `{"pattern":"{a"}`); !strings.HasPrefix(got, "[bad_pattern] error parsing glob") {
		t.Error(got)
	}
	for i := range 101 {
		put(t, filepath.Join(w.work, "many", strings.Repeat("i", i+1)), "")
	}
	got, r := w.call(t, "glob", `{"pattern":"many/*"}`)
	if r.Metadata["count"] != 100 || r.Metadata["truncated"] != true || !strings.HasSuffix(got, "\n\n(Results are truncated: showing first 100 results. Consider using a more specific path or pattern.)") {
		t.Errorf("%v", r.Metadata)
	}
	if err := os.Remove(filepath.Join(w.work, "many", "i")); err != nil {
		t.Fatal(err)
	}
	if got, r = w.call(t, "glob", `{"pattern":"many/*"}`); r.Metadata["truncated"] != false || strings.Contains(got, "truncated") {
		t.Errorf("exactly 100: %v", r.Metadata)
	}
}

func TestListOutput(t *testing.T) {
	w := newWorld(t, nil, "src/a.go", "", "b.md", "", "node_modules/x", "", "skip/y", "")
	w.check(t, "ls", `{"ignore":["skip/"]}`, "$WORK/\n  src/\n    a.go\n  b.md")
	w.check(t, "list", `{"path":"src"}`, "$WORK/src/\n  a.go")
	w.check(t, "list", `{"path":"b.md"}`, "[bad_path] list path must be a directory: $WORK/b.md")
	w.check(t, "list", `{"path":"scr"}`, "[file_missing] Search path not found: $WORK/scr\n\nDid you mean one of these?\n$WORK/src")
}

func TestGrepSeesUnsavedText(t *testing.T) {
	w := newWorld(t, nil, "a", "on disk\n", "b", "on disk\n")
	w.env.Buffers = buffers{filepath.Join(w.work, "a"): files.Buffer{Path: filepath.Join(w.work, "a"), Text: "typed\n", Dirty: true}}
	w.check(t, "grep", `{"pattern":"on disk|typed"}`, "Found 2 matches\n$WORK/a:\n  Line 1: typed\n\n$WORK/b:\n  Line 1: on disk")
	w.check(t, "grep", `{"pattern":"on disk","path":"a"}`, "No files found")
}

func TestTodos(t *testing.T) {
	w := newWorld(t, nil)
	w.check(t, "todoread", `{}`, "[]")
	want := "[\n  {\n    \"content\": \"a\",\n    \"status\": \"in_progress\",\n    \"priority\": \"high\"\n  },\n  {\n    \"content\": \"b\",\n    \"status\": \"completed\",\n    \"priority\": \"medium\"\n  }\n]"
	got, r := w.call(t, "todowrite", `{"todos":[{"content":"a","status":"in_progress","priority":"high"},{"content":"b","status":"completed"}]}`)
	if got != want || r.Title != "1 todos" {
		t.Errorf("%s\n%s", r.Title, got)
	}
	w.check(t, "todoread", `{}`, want)
	w.checkAsks(t)
	got = w.run(t, "todowrite", `{"todos":[{"content":"","status":"doing","priority":"weird"},{"status":"pending"}]}`)
	for _, s := range []string{`Expected at least 1 characters, got 0 at ["todos"][0]["content"]`, `"cancelled", got "doing" at ["todos"][0]["status"]`, `got "weird"`, `Missing key at ["todos"][1]["content"]`} {
		if !strings.Contains(got, s) {
			t.Errorf("no %q in %s", s, got)
		}
	}
	if len(w.todos.list) != 2 {
		t.Error("an invalid list was saved")
	}
	w.todos.err = errors.New("disk full")
	w.check(t, "todowrite", `{"todos":[]}`, "[] the list was not saved: disk full")
	w.todos = nil
	w.check(t, "todoread", `{}`, "[unavailable] this session keeps no todo list; continue without one")
}

func TestInvalidExplains(t *testing.T) {
	w := newWorld(t, nil)
	got, r := w.call(t, "invalid", `{"tool":"reed","error":"Model tried to call unavailable tool 'reed'. Did you mean read?"}`)
	if got != "The arguments provided to the tool are invalid: Model tried to call unavailable tool 'reed'. Did you mean read?" || r.Title != "Invalid Tool" {
		t.Error(got)
	}
	w.check(t, "invalid", `{}`, "The arguments provided to the tool are invalid: ")
}
