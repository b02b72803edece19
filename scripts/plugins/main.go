// Command plugins loads OpenCode's published plugins in Pillion and in OpenCode, gives both the same prompt with a scripted model, and
// prints what each plugin adds to the request as a table.
//
//	go run ./scripts/plugins install DIR            # npm, without install scripts
//	go run ./scripts/plugins run DIR PILLION [BUN]  # PILLION is the binary, BUN one of Bun 1.4
//
// The plugins are strangers' programs: run gives them homes of their own in DIR and no keys, and is best started on a machine for such things.
// OpenCode is taken from PATH, and needs a network, as it installs what plugins import; its column is missing without it. VERBOSE=1 writes to
// standard error what the programs wrote; ONLY=Pillion or ONLY=OpenCode leaves the other out.
package main

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

//go:embed list.txt
var listed string

// limit is how long one program may take until its request. For OpenCode with a large plugin that is half a minute, and more on a busy
// machine. grace is what the program has after it.
const (
	limit = 5 * time.Minute
	grace = 3 * time.Second
)

// plugin is a line of list.txt.
type plugin struct{ name, version string }

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "plugins:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("install DIR, or run DIR PILLION [BUN]")
	}
	dir, err := filepath.Abs(args[1])
	if err != nil {
		return err
	}
	var all []plugin
	for _, line := range strings.Split(listed, "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			at := strings.LastIndexByte(line, '@')
			all = append(all, plugin{line[:at], line[at+1:]})
		}
	}
	switch {
	case args[0] == "install":
		for _, p := range all {
			if err := p.install(dir); err != nil {
				fmt.Fprintf(os.Stderr, "plugins: %s: %v\n", p.name, err)
			}
		}
		return nil
	case args[0] == "run" && len(args) > 2:
		return table(all, dir, args[2], append(args[3:], "")[0])
	}
	return fmt.Errorf("unknown arguments %q", args)
}

// home is a plugin's folder in dir.
func (p plugin) home(dir string) string {
	return filepath.Join(dir, strings.ReplaceAll(p.name, "/", "+"))
}

// root is the installed package.
func (p plugin) root(dir string) string {
	return filepath.Join(p.home(dir), "node_modules", filepath.FromSlash(p.name))
}

func (p plugin) install(dir string) error {
	if _, err := os.Stat(filepath.Join(p.root(dir), "package.json")); err == nil {
		return nil
	}
	if err := os.MkdirAll(p.home(dir), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(p.home(dir), "package.json"), []byte("{\"private\": true}\n"), 0o644); err != nil {
		return err
	}
	cmd := exec.Command("npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", "--", p.name+"@"+p.version)
	cmd.Dir = p.home(dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// program is one of those that are compared.
type program struct {
	name string
	// command is its arguments for one prompt, and the environment above the common one, with a plugin; "" is none.
	command func(model, plugin string) (args, env []string)
	bare    sent // its request without a plugin
}

// sent is what a program did with a prompt.
type sent struct {
	tools, system []string
	said          string // what it wrote for the person
	err           error
}

// table prints a row for each plugin.
func table(all []plugin, dir, pillion, bun string) error {
	pillion, err := filepath.Abs(pillion)
	if err != nil {
		return err
	}
	ours := func(runtime string) func(string, string) ([]string, []string) {
		return func(model, plugin string) ([]string, []string) {
			config := map[string]any{"lsp": false, "js_runtime": runtime}
			if plugin != "" {
				config["plugin"] = []string{plugin}
			}
			raw, _ := json.Marshal(config)
			return []string{pillion, "run", "--approve", "none", "Say hello."}, []string{"OPENAI_BASE_URL=" + model, "OPENAI_API_KEY=k", "PILLION_MODEL=openai/scripted", "PILLION_CONFIG_CONTENT=" + string(raw)}
		}
	}
	programs := []*program{{name: "Pillion, Node", command: ours("node")}}
	if bun != "" {
		programs = append(programs, &program{name: "Pillion, Bun", command: ours(bun)})
	}
	if theirs, err := exec.LookPath("opencode"); err == nil {
		programs = append(programs, &program{name: "OpenCode", command: func(model, plugin string) ([]string, []string) {
			config := map[string]any{"model": "scripted/m", "small_model": "scripted/m", "autoupdate": false, "share": "disabled", "lsp": false,
				"provider": map[string]any{"scripted": map[string]any{"npm": "@ai-sdk/openai-compatible", "options": map[string]any{"baseURL": model, "apiKey": "none"}, "models": map[string]any{"m": map[string]any{"name": "m", "tool_call": true}}}}}
			if plugin != "" {
				config["plugin"] = []string{"file://" + plugin}
			}
			raw, _ := json.Marshal(config)
			env := []string{"OPENCODE_CONFIG_CONTENT=" + string(raw)}
			for _, off := range []string{"AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD", "DEFAULT_PLUGINS"} {
				env = append(env, "OPENCODE_DISABLE_"+off+"=1")
			}
			return []string{theirs, "run", "--print-logs", "Say hello."}, env
		}})
	}
	programs = slices.DeleteFunc(programs, func(p *program) bool { return !strings.HasPrefix(p.name, os.Getenv("ONLY")) })
	head, rule := "| plugin |", "|---|"
	for _, p := range programs {
		head, rule = head+" "+p.name+" |", rule+"---|"
		p.bare = p.prompt(dir, "")
		if p.bare.err != nil || len(p.bare.tools) == 0 {
			return fmt.Errorf("%s without a plugin: %v\n%s", p.name, p.bare.err, p.bare.said)
		}
	}
	fmt.Println(head + "\n" + rule)
	for _, pl := range all {
		if _, err := os.Stat(pl.root(dir)); err != nil {
			fmt.Printf("| %s %s | not installed |\n", pl.name, pl.version)
			continue
		}
		row := "| `" + pl.name + "` " + pl.version + " |"
		for _, p := range programs {
			got := p.prompt(dir, pl.root(dir))
			row += " " + p.words(got) + " |"
			if os.Getenv("VERBOSE") != "" {
				fmt.Fprintf(os.Stderr, "--- %s %s\n%s\n", pl.name, p.name, got.said)
			}
		}
		fmt.Println(row)
	}
	return nil
}

// prompt gives the program one prompt in a home and a project of its own.
func (p *program) prompt(dir, plugin string) (got sent) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	// What is compared has been sent with the first request that has tools; the program gets a moment to end by itself.
	asked := func(r wiretest.Request) {
		if len(r.ToolNames()) > 0 {
			time.AfterFunc(grace, cancel)
		}
	}
	model, err := wiretest.Start(wiretest.Step{Text: "Hello.", Do: asked})
	if err != nil {
		return sent{err: err}
	}
	defer model.Close()
	model.Repeat = true
	home, err := os.MkdirTemp(dir, "home-")
	if err != nil {
		return sent{err: err}
	}
	defer os.RemoveAll(home)
	project := filepath.Join(home, "project")
	if err := os.MkdirAll(project, 0o755); err != nil {
		return sent{err: err}
	}
	args, env := p.command(model.OpenAIURL(), plugin)
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir, cmd.Env = project, append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "NO_PROXY=127.0.0.1", "TERM=dumb"}, env...)
	// OpenCode installs what its plugins import.
	for _, name := range []string{"HTTPS_PROXY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"} {
		if v := os.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	// What a plugin has started ends with the program that it was started from.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	got.said = string(out)
	if plugin != "" {
		got.said = strings.ReplaceAll(got.said, plugin+"/", "")
	}
	for _, r := range model.Requests() {
		if names := r.ToolNames(); len(names) > len(got.tools) { // the request for a title has no tools
			got.tools, got.system = names, systemOf(r.Body)
		}
	}
	if len(got.tools) == 0 {
		got.err = cmp.Or(err, fmt.Errorf("no request"))
	}
	return got
}

// systemOf is the text of a request's system messages, in both of OpenAI's formats.
func systemOf(body []byte) (out []string) {
	var r struct {
		Instructions    string
		Messages, Input []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if json.Unmarshal(body, &r) != nil {
		return nil
	}
	if r.Instructions != "" {
		out = append(out, r.Instructions)
	}
	for _, m := range append(r.Messages, r.Input...) {
		if m.Role == "system" || m.Role == "developer" {
			out = append(out, string(m.Content))
		}
	}
	return out
}

var notice = regexp.MustCompile(`(?m)^! (.*)$`)

// words are a cell of the table: the tools and the words that a plugin adds to a request, and what the person is told.
func (p *program) words(got sent) string {
	if got.err != nil {
		return "no request: " + cell(got.said)
	}
	var words []string
	var added []string
	for _, t := range got.tools {
		if !slices.Contains(p.bare.tools, t) {
			added = append(added, t)
		}
	}
	slices.Sort(added)
	if n := len(added); n > 0 {
		words = append(words, fmt.Sprintf("%d tools (%s)", n, strings.Join(added, ", ")))
	}
	var gone []string
	for _, t := range p.bare.tools {
		if !slices.Contains(got.tools, t) {
			gone = append(gone, t)
		}
	}
	if len(gone) > 0 {
		words = append(words, "without "+strings.Join(gone, ", "))
	}
	if grown := len(strings.Join(got.system, "")) - len(strings.Join(p.bare.system, "")); grown > 100 {
		words = append(words, fmt.Sprintf("%d bytes of instructions", grown))
	}
	for _, m := range notice.FindAllStringSubmatch(got.said, -1) {
		words = append(words, "told: "+cell(m[1]))
	}
	for _, line := range strings.Split(got.said, "\n") {
		if strings.Contains(line, "failed to load plugin") || strings.Contains(line, "service=plugin") && strings.Contains(line, "ERROR") {
			words = append(words, "told: "+cell(line))
		}
	}
	if len(words) == 0 {
		return "loads"
	}
	return strings.Join(words, "; ")
}

// cell is a text that fits in a table.
func cell(s string) string {
	s = strings.Join(strings.Fields(strings.ReplaceAll(s, "|", "\\|")), " ")
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + " …"
	}
	return s
}
