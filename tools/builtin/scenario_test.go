package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"golang.org/x/tools/txtar"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
)

var update = flag.Bool("update", false, "rewrite the want parts of testdata/*.txtar")

// A scenario is a txtar file: what it shows as its comment, then
//
//	call            lines "tool {json}", in one session; or an action of somebody else: "! write a.txt "text"",
//	                "! remove a.txt"
//	setup           lines before the calls: symlink TARGET NAME, hardlink OLD NEW, chmod MODE NAME, fifo NAME, size NAME BYTES, mkdir NAME
//	rules           lines "permission pattern action" after the test's own (everything allowed, edit and outside asked)
//	answers         lines for the questions in turn: once, always, reject WORDS, {decisions as JSON}; once when used up
//	problems        lines "introduced|fixed severity path line:column text" that the language servers would answer; or a state
//	buffer/NAME     the unsaved text of an open document
//	outside/NAME    a file outside the project
//	NAME            a file of the project
//	want/output want/error want/asks want/attachments want/NAME   what comes of it: go test -update writes it
//
// "quoted" behind a name means: the text is a Go string, for line endings and bytes that txtar cannot hold. $WORK is
// the project's folder, $OUT the one outside.
func TestScenarios(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			ar, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			s := newScenario(t, ar)
			got := s.run()
			var in, want []txtar.File
			for _, f := range ar.Files {
				if strings.HasPrefix(f.Name, "want/") {
					want = append(want, f)
				} else {
					in = append(in, f)
				}
			}
			if *update {
				out := txtar.Format(&txtar.Archive{Comment: ar.Comment, Files: append(in, got...)})
				if err := os.WriteFile(path, out, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			compare(t, want, got)
		})
	}
}

func compare(t *testing.T, want, got []txtar.File) {
	t.Helper()
	byName := map[string]string{}
	for _, f := range want {
		byName[f.Name] = string(f.Data)
	}
	for _, f := range got {
		if w, ok := byName[f.Name]; !ok {
			t.Errorf("unexpected %s:\n%s", f.Name, f.Data)
		} else if w != string(f.Data) {
			t.Errorf("%s is\n%s\nwant\n%s", f.Name, f.Data, w)
		}
		delete(byName, f.Name)
	}
	for name, w := range byName {
		t.Errorf("missing %s:\n%s", name, w)
	}
}

type scenario struct {
	t         *testing.T
	work, out string
	special   map[string]string // call, setup, rules, answers, problems
	before    map[string]string
	env       Env
	gate      *permission.Gate
	answers   []string

	mu   sync.Mutex
	asks []string // guarded by mu
}

func newScenario(t *testing.T, ar *txtar.Archive) *scenario {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := &scenario{t: t, work: filepath.Join(dir, "work"), out: filepath.Join(dir, "out"), special: map[string]string{}, before: map[string]string{}}
	for _, d := range []string{s.work, s.out} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	bufs := buffers{}
	for _, f := range ar.Files {
		name, quoted := strings.CutSuffix(f.Name, " quoted")
		text := string(f.Data)
		if quoted {
			if text, err = strconv.Unquote(strings.TrimSpace(text)); err != nil {
				t.Fatalf("%s: %v", f.Name, err)
			}
		}
		switch {
		case strings.HasPrefix(name, "want/"):
		case name == "call" || name == "setup" || name == "rules" || name == "answers" || name == "problems":
			s.special[name] = s.expand(text)
		case strings.HasPrefix(name, "buffer/"):
			p := filepath.Join(s.work, strings.TrimPrefix(name, "buffer/"))
			bufs[p] = files.Buffer{Path: p, Text: text, Version: 1, Dirty: true}
		case strings.HasPrefix(name, "outside/"):
			put(t, filepath.Join(s.out, strings.TrimPrefix(name, "outside/")), text)
		default:
			put(t, filepath.Join(s.work, name), text)
		}
	}
	s.setup()
	s.env = Env{Cwd: s.work, Root: s.work, StateDir: filepath.Join(dir, "state"), Home: filepath.Join(dir, "home"),
		Tracker: &files.Tracker{}, Locks: &files.Locks{}, Journal: &files.DirJournal{Dir: filepath.Join(dir, "journal")}}
	if len(bufs) > 0 {
		s.env.Buffers, s.env.Applier = bufs, editor{bufs, &s.env}
	}
	if p := s.special["problems"]; p != "" {
		s.env.Bridge = parseProblems(t, s.work, p)
	}
	rules := permission.Ruleset{{Permission: "*", Pattern: "*", Action: permission.Allow}, {Permission: "edit", Pattern: "*", Action: permission.Ask}, {Permission: "external_directory", Pattern: "*", Action: permission.Ask}}
	for _, l := range lines(s.special["rules"]) {
		f := strings.Fields(l)
		rules = append(rules, permission.Rule{Permission: f[0], Pattern: f[1], Action: permission.Action(f[2]), Origin: "scenario"})
	}
	s.gate = permission.NewGate(permission.GateOptions{Rules: func() permission.Ruleset { return rules }, Asker: s})
	s.answers = lines(s.special["answers"])
	s.before = s.snapshot()
	return s
}

func (s *scenario) expand(text string) string {
	return strings.NewReplacer("$WORK", s.work, "$OUT", s.out).Replace(text)
}

func lines(text string) (out []string) {
	for _, l := range strings.Split(text, "\n") {
		if strings.TrimSpace(l) != "" {
			out = append(out, l)
		}
	}
	return out
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (s *scenario) setup() {
	for _, l := range lines(s.special["setup"]) {
		f := strings.Fields(l)
		at := func(n string) string {
			if filepath.IsAbs(n) {
				return n
			}
			return filepath.Join(s.work, n)
		}
		var err error
		switch f[0] {
		case "symlink":
			os.MkdirAll(filepath.Dir(at(f[2])), 0o755)
			err = os.Symlink(f[1], at(f[2]))
		case "hardlink":
			err = os.Link(at(f[1]), at(f[2]))
		case "chmod":
			m, _ := strconv.ParseUint(f[1], 8, 32)
			err = os.Chmod(at(f[2]), fs.FileMode(m))
		case "fifo":
			err = mkfifo(at(f[1]))
		case "mkdir":
			err = os.MkdirAll(at(f[1]), 0o755)
		case "size":
			n, _ := strconv.ParseInt(f[2], 10, 64)
			err = os.Truncate(at(f[1]), n)
		default:
			err = fmt.Errorf("unknown set-up %q", l)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// AskPermission is the person.
func (s *scenario) AskPermission(_ context.Context, r permission.Request) (permission.Reply, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := r.Permission + " " + strings.Join(r.Patterns, " ")
	if r.MustAsk {
		line += " (" + r.Why + ")"
	}
	s.asks = append(s.asks, s.plain(line))
	if set := r.Change; set != nil && set.Verdict != nil {
		d := set.Verdict
		s.asks = append(s.asks, fmt.Sprintf("  %s: introduces %d, fixes %d", d.Certainty, len(d.Introduced), len(d.Fixed)))
	}
	if text := r.Change.EvidenceText(); text != "" {
		s.asks = append(s.asks, "  "+s.plain(strings.ReplaceAll(text, "\n", "\n  ")))
	}
	answer := "once"
	if len(s.answers) > 0 {
		answer, s.answers = s.answers[0], s.answers[1:]
	}
	if strings.HasPrefix(answer, "{") {
		var d change.Decisions
		if err := json.Unmarshal([]byte(answer), &d); err != nil {
			return permission.Reply{}, err
		}
		return permission.Reply{Kind: permission.Once, Decisions: &d}, nil
	}
	kind, words, _ := strings.Cut(answer, " ")
	return permission.Reply{Kind: permission.ReplyKind(kind), Message: words}, nil
}

// plain takes what differs from run to run out of a text.
func (s *scenario) plain(text string) string {
	return strings.NewReplacer(s.work, "$WORK", s.out, "$OUT", s.env.Home, "$HOME").Replace(text)
}

func (s *scenario) run() []txtar.File {
	all := map[string]tools.Tool{}
	for _, t := range All(s.env) {
		all[t.ID] = t
	}
	var out, errs, attached strings.Builder
	for i, l := range lines(s.special["call"]) {
		if l, ok := strings.CutPrefix(l, "! "); ok {
			s.somebody(l)
			continue
		}
		name, input, _ := strings.Cut(l, " ")
		tool, ok := all[name]
		if !ok {
			s.t.Fatalf("no tool %q", name)
		}
		call := &tools.Call{SessionID: "s", CallID: fmt.Sprint("c", i+1), Tool: name, Host: tools.Host{Gate: s.gate}}
		r, err := tools.Invoke(context.Background(), tool, json.RawMessage(input), call, tools.CapOptions{})
		if err != nil {
			kind := ""
			var e *tools.Error
			if errors.As(err, &e) {
				kind = e.Kind
			}
			errs.WriteString(fmt.Sprintf("[%s] %s\n", kind, s.plain(err.Error())))
			continue
		}
		out.WriteString(s.plain(r.Output) + "\n")
		for _, a := range r.Attachments {
			fmt.Fprintf(&attached, "%s %s %d bytes\n", a.Name, a.Mime, len(a.Data))
		}
	}
	var got []txtar.File
	add := func(name, text string) {
		if text == "" {
			return
		}
		if !utf8.ValidString(text) || !strings.HasSuffix(text, "\n") || strings.ContainsAny(text, "\r\ufeff\x00") {
			name, text = name+" quoted", strconv.QuoteToASCII(text)+"\n"
		}
		got = append(got, txtar.File{Name: "want/" + name, Data: []byte(text)})
	}
	add("output", out.String())
	add("error", errs.String())
	add("attachments", attached.String())
	if len(s.asks) > 0 {
		add("asks", strings.Join(s.asks, "\n")+"\n")
	}
	after := s.snapshot()
	var names []string
	for n := range after {
		names = append(names, n)
	}
	for n := range s.before {
		if _, ok := after[n]; !ok {
			names = append(names, n)
		}
	}
	sort.Strings(names)
	for _, n := range names {
		a, is := after[n]
		if b, was := s.before[n]; was && is && a == b {
			continue
		}
		switch {
		case !is:
			got = append(got, txtar.File{Name: "want/" + n + " deleted"})
		case a == "":
			got = append(got, txtar.File{Name: "want/" + n + " empty"})
		default:
			add(n, a)
		}
	}
	return got
}

// somebody changes a file behind the session's back.
func (s *scenario) somebody(action string) {
	f := strings.SplitN(action, " ", 3)
	path := filepath.Join(s.work, f[1])
	var err error
	switch f[0] {
	case "write":
		var text string
		if text, err = strconv.Unquote(f[2]); err == nil {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
	case "remove":
		err = os.Remove(path)
	default:
		err = fmt.Errorf("unknown action %q", action)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// snapshot is every file and link by name; modes that are not usual and links are part of it.
func (s *scenario) snapshot() map[string]string {
	out := map[string]string{}
	for prefix, dir := range map[string]string{"": s.work, "outside/": s.out} {
		filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			rel, _ := filepath.Rel(dir, p)
			name := prefix + filepath.ToSlash(rel)
			switch {
			case d.Type()&fs.ModeSymlink != 0:
				to, _ := os.Readlink(p)
				out[name+" link"] = s.plain(to) + "\n"
			case d.Type().IsRegular():
				fi, _ := d.Info()
				if fi.Size() > 1<<20 {
					return nil
				}
				b, _ := os.ReadFile(p)
				out[name] = string(b)
				if fi.Mode().Perm() != 0o644 {
					out[name+" mode"] = fmt.Sprintf("%04o\n", fi.Mode().Perm())
				}
			}
			return nil
		})
	}
	if bufs, ok := s.env.Buffers.(buffers); ok {
		for p, b := range bufs {
			rel, _ := filepath.Rel(s.work, p)
			out["buffer/"+filepath.ToSlash(rel)] = b.Text
		}
	}
	return out
}

// buffers are an editor's open documents.
type buffers map[string]files.Buffer

func (b buffers) Buffer(p string) (files.Buffer, bool) { x, ok := b[p]; return x, ok }
func (b buffers) Dirty() (out []files.Buffer) {
	for _, x := range b {
		out = append(out, x)
	}
	return out
}

// editor applies what is open to its buffers, which stay unsaved, and the rest to the disk.
type editor struct {
	bufs buffers
	env  *Env
}

func (ed editor) Apply(ctx context.Context, set *change.Set) error {
	rest := *set
	rest.Files = nil
	for _, f := range set.Files {
		b, open := ed.bufs[f.Path]
		if !open || f.Kind != change.Edit {
			rest.Files = append(rest.Files, f)
			continue
		}
		if f.BaseBuffer == nil || *f.BaseBuffer != b.Version || b.Text != f.Old {
			return &files.BaseError{Path: f.Path}
		}
		b.Text, b.Version = f.New, b.Version+1
		ed.bufs[f.Path] = b
	}
	return NewWriter(*ed.env).WriteDisk(ctx, &rest)
}

// fakeBridge answers every check with one delta.
type fakeBridge struct{ delta lspbridge.Delta }

func (b fakeBridge) Check(context.Context, []lspbridge.Proposal) lspbridge.Delta   { return b.delta }
func (b fakeBridge) Changed(context.Context, []lspbridge.Proposal) lspbridge.Delta { return b.delta }
func (b fakeBridge) Diagnostics(_ context.Context, p string) lspbridge.FileReport {
	return lspbridge.FileReport{Path: p, Certainty: change.Fresh}
}
func (b fakeBridge) Warm(string) {}

func parseProblems(t *testing.T, work, text string) fakeBridge {
	d := lspbridge.Delta{Verdict: change.Verdict{Certainty: change.Fresh}}
	for _, l := range lines(text) {
		f := strings.SplitN(l, " ", 5)
		if f[0] != "introduced" && f[0] != "fixed" {
			state, reason, _ := strings.Cut(l, " ")
			d.Certainty, d.Reason = change.Certainty(state), reason
			continue
		}
		var line, col int
		if _, err := fmt.Sscanf(f[3], "%d:%d", &line, &col); err != nil {
			t.Fatal(l, err)
		}
		x := change.Problem{Path: filepath.Join(work, f[2]), Message: f[4], Severity: change.SeverityError}
		if f[1] == "warning" {
			x.Severity = change.SeverityWarning
		}
		x.Line, x.Column = line, col
		if f[0] == "fixed" {
			d.Fixed = append(d.Fixed, x)
		} else {
			d.Introduced = append(d.Introduced, x)
		}
	}
	return fakeBridge{d}
}
