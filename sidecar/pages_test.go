package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
	"github.com/spf13/cobra"
)

// pagesOf are what people read; sidecar/PROTOCOL.md and docs/extending.md have tests of their own besides.
func pagesOf(t *testing.T) []string {
	t.Helper()
	out := []string{"../README.md", "../CONTRIBUTING.md", "../extension/vscode/README.md", "../extension/nvim/README.md"}
	docs, err := filepath.Glob("../docs/*.md")
	if err != nil || len(docs) < 5 {
		t.Fatalf("%v %v", docs, err)
	}
	return append(out, docs...)
}

// pageBlock is what is between fences.
type pageBlock struct{ page, language, text string }

func pageBlocks(t *testing.T) (out []pageBlock) {
	for _, page := range pagesOf(t) {
		for _, m := range regexp.MustCompile("(?ms)^```(\\w*)[^\\n]*\\n(.*?)^```").FindAllStringSubmatch(read(t, page), -1) {
			out = append(out, pageBlock{page, m[1], m[2]})
		}
	}
	return out
}

// elsewhere are lines that cannot run here, with the reason.
var elsewhere = map[string]string{
	"git clone https://github.com/pillion-dev/pillion && cd pillion": "network",
	"make run": "asks a person; make's target is looked up", "make vscode": "opens a browser; make's target is looked up",
}

// inNewDraft leaves a draft that nobody has answered for, and its id in $draft.
const inNewDraft = `cd "$(mktemp -d)" && printf '{"tool":"write","input":{"filePath":"%s.txt","content":"x"}}' $$ | pillion tool call --jsonl --review draft --approve none >/dev/null && draft=$(pillion drafts list | tail -1 | cut -d' ' -f1) && `

// instead are lines that ask a person, as scripts write them.
var instead = map[string]string{
	"pillion auth login anthropic": "echo sk-ant-test-key | pillion auth login anthropic --stdin",
	"pillion drafts show ID":       inNewDraft + "pillion drafts show $draft",
	"pillion drafts land ID":       inNewDraft + "pillion drafts land $draft --approve all",
	"pillion drafts drop ID":       inNewDraft + "pillion drafts drop $draft",
}

// TestCommandsOfThePagesRun runs every command of every page's blocks, each in a project with a session.
func TestCommandsOfThePagesRun(t *testing.T) {
	w := newPageWorld(t)
	ran := 0
	for _, b := range pageBlocks(t) {
		if b.language != "sh" {
			continue
		}
		for line := range strings.Lines(b.text) {
			command, _, _ := strings.Cut(line, " #")
			if command = strings.TrimSpace(command); command == "" || elsewhere[command] != "" {
				continue
			}
			if other := instead[command]; other != "" {
				command = other
			}
			if !strings.Contains(command, "pillion ") {
				t.Errorf("%s: %q neither runs nor stands among those that cannot", b.page, command)
				continue
			}
			ran++
			w.run(t, b.page, command)
		}
	}
	if ran < 9 {
		t.Errorf("only %d commands were found", ran)
	}
}

type pageWorld struct {
	dir, session, checkpoint string
	env                      []string
}

func newPageWorld(t *testing.T) *pageWorld {
	t.Helper()
	dir := t.TempDir()
	w := &pageWorld{dir: filepath.Join(dir, "project")}
	srv := wiretest.New(t)
	put := func(path, text string, mode os.FileMode) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	put(filepath.Join(dir, "bin", "pillion"), "#!/bin/sh\nPILLION_TEST_MAIN=1 exec '"+self+"' \"$@\"\n", 0o755)
	put(filepath.Join(w.dir, "src", "a.go"), "package a\n", 0o644)
	put(filepath.Join(dir, "config", "pillion", "pillion.jsonc"), `{"lsp": false}`, 0o644)
	w.env = []string{
		"PATH=" + filepath.Join(dir, "bin") + ":" + os.Getenv("PATH"), "HOME=" + dir, "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"),
		"XDG_STATE_HOME=" + filepath.Join(dir, "state"), "XDG_CACHE_HOME=" + filepath.Join(dir, "cache"), "NO_PROXY=*",
		"GORACE=" + os.Getenv("GORACE"), // without it every command waits a second for the race detector
		"ANTHROPIC_API_KEY=sk-ant-of-the-test", "ANTHROPIC_BASE_URL=" + srv.AnthropicURL(),
	}
	srv.Repeat = true
	srv.Add(wiretest.Step{Calls: []wiretest.Call{{Name: "write", Input: json.RawMessage(`{"filePath":"b.txt","content":"two\n"}`)}}}, wiretest.Step{Text: "Done."})
	w.run(t, "the session", `pillion run --model anthropic/claude-sonnet-5-5 --approve all "write b.txt"`)
	w.session = firstMatch(t, `[a-z]+_[0-9A-HJKMNP-TV-Z]{26}`, w.run(t, "the session", "pillion sessions list"))
	w.checkpoint = firstMatch(t, `[a-z]+_[0-9A-HJKMNP-TV-Z]{26}`, strings.ReplaceAll(w.run(t, "the checkpoint", "pillion sessions checkpoints ID"), w.session, ""))
	return w
}

func firstMatch(t *testing.T, pattern, in string) string {
	t.Helper()
	s := regexp.MustCompile(pattern).FindString(in)
	if s == "" {
		t.Fatalf("there is no %s in\n%s", pattern, in)
	}
	return s
}

func (w *pageWorld) run(t *testing.T, page, command string) string {
	t.Helper()
	line := regexp.MustCompile(`\bCHECKPOINT\b`).ReplaceAllString(regexp.MustCompile(`\bID\b`).ReplaceAllString(command, w.session), w.checkpoint)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
	cmd.Env, cmd.Dir = w.env, w.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %s: %v\n%s", page, command, err, out)
	}
	return string(out)
}

// TestConfigurationOfThePagesIsValid reads every block of configuration as the person's own.
func TestConfigurationOfThePagesIsValid(t *testing.T) {
	n := 0
	for _, b := range pageBlocks(t) {
		switch b.language {
		case "json":
			if !json.Valid([]byte(b.text)) {
				t.Errorf("%s: no JSON: %s", b.page, b.text)
			}
		case "jsonc":
			n++
			dir := t.TempDir()
			folder := filepath.Join(dir, "config", "pillion")
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, "pillion.jsonc"), []byte(b.text), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "config", "check")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "PILLION_TEST_MAIN=1", "HOME="+dir, "XDG_CONFIG_HOME="+filepath.Join(dir, "config"), "XDG_STATE_HOME="+dir,
				"OPENROUTER_API_KEY=x", "DOCS_TOKEN=x", "BRAVE_KEY=x")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s\n%s", b.page, err, out, b.text)
			}
		}
	}
	if n < 3 {
		t.Errorf("only %d blocks of configuration were found", n)
	}
}

// TestLuaOfThePagesCompiles; that it works is tested in extension/nvim.
func TestLuaOfThePagesCompiles(t *testing.T) {
	nvim, err := exec.LookPath("nvim")
	if err != nil {
		t.Skip("nvim is not installed")
	}
	for _, b := range pageBlocks(t) {
		if b.language != "lua" {
			continue
		}
		text := b.text
		if strings.HasPrefix(text, "{") { // the specification of a plugin manager is a value
			text = "return " + text
		}
		file := filepath.Join(t.TempDir(), "block.lua")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), nvim, "--headless", "-u", "NONE", "-i", "NONE", "-c", "lua assert(loadfile([["+file+"]]))", "-c", "qa!").CombinedOutput()
		if err != nil || strings.Contains(string(out), "Error") {
			t.Errorf("%s: %v %s\n%s", b.page, err, out, b.text)
		}
	}
}

// TestEveryCommandThatIsNamedExists looks up what is in a page's `pillion …` and `make …`: the command, and its flags.
func TestEveryCommandThatIsNamedExists(t *testing.T) {
	makefile := read(t, "../Makefile")
	n := 0
	for _, page := range pagesOf(t) {
		for _, m := range regexp.MustCompile("(?m)`((?:pillion|make) [^`]*)`|^((?:pillion|make) .*)$").FindAllStringSubmatch(read(t, page), -1) {
			line, _, _ := strings.Cut(m[1]+m[2], " #")
			words := strings.Fields(line)
			n++
			if words[0] == "make" {
				if !regexp.MustCompile(`(?m)^(?:[\w-]+ )*` + regexp.QuoteMeta(words[1]) + `(?: [\w-]+)*:`).MatchString(makefile) {
					t.Errorf("%s: %s: make has no such target", page, line)
				}
				continue
			}
			// alternatives: `pillion sessions list | show ID | export ID`
			root := rootCommand()
			new(profile).flag(root)
			base, _, _ := strings.Cut(line, " | ")
			namedCommand(t, page, root, strings.Fields(base)[1:])
			for _, other := range strings.Split(line, " | ")[1:] {
				namedCommand(t, page, root, append([]string{words[1]}, strings.Fields(other)...))
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d commands were found", n)
	}
}

func namedCommand(t *testing.T, page string, root *cobra.Command, words []string) {
	t.Helper()
	c, rest, err := root.Find(words)
	if err != nil || c == root && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		t.Errorf("%s: pillion %s: there is no such command (%v)", page, strings.Join(words, " "), err)
		return
	}
	if c.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && !c.Runnable() {
		t.Errorf("%s: pillion %s: %s has no such subcommand", page, strings.Join(words, " "), c.CommandPath())
	}
	for _, word := range words {
		if word == "--" { // another program's words follow
			break
		}
		name, _, _ := strings.Cut(strings.TrimLeft(word, "-"), "=")
		if !strings.HasPrefix(word, "-") || name == "help" || name == "version" {
			continue
		}
		if name = strings.Trim(name, ".,;)"); strings.HasPrefix(word, "--") && c.Flags().Lookup(name) == nil && c.InheritedFlags().Lookup(name) == nil ||
			!strings.HasPrefix(word, "--") && len(name) == 1 && c.Flags().ShorthandLookup(name) == nil {
			t.Errorf("%s: pillion %s: %s has no %s", page, strings.Join(words, " "), c.CommandPath(), word)
		}
	}
}
