package agent

import (
	"context"
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent/provider"
)

//go:embed prompts/*.txt
var prompts embed.FS

// promptText is a prompt by its name (prompts/NAME.txt), trimmed; empty when there is none.
func promptText(name string) string {
	b, err := prompts.ReadFile("prompts/" + name + ".txt")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func stepsPrompt() string { return promptText("steps") }

// briefing is what a model is told before the conversation. The session's runner owns it.
type briefing struct {
	project  ProjectContext
	head     *Head
	masker   *masker
	root     string // worktree root, or the directory without git
	sketched bool   // tree has been made
	tree     string // the directory, as it was at the first turn
}

// systemPrompt is made once a turn: the words that never change first, so that prompt caches hold, then the
// agent's, the environment, and the project's own instructions.
func (b *briefing) systemPrompt(ctx context.Context, a Agent, model provider.Model) []string {
	task := a.Prompt
	if task == "" {
		task = promptText(a.Name)
	}
	if task == "" {
		task = promptText("build")
		if a.Mode == ModeSubagent {
			task = promptText("general")
		}
	}
	blocks := []string{promptText("core") + "\n\n" + strings.TrimSpace(task), b.environment(b.sketch(ctx, model))}
	blocks = append(blocks, b.project.Instructions(b.head.Info().Cwd)...)
	blocks = append(blocks, b.project.Notes(b.head.Info().Cwd)...)
	return b.masker.maskAll(blocks)
}

// sketch is the directory's tree, made once per session: one that changed with every new file would cost the provider's prompt
// cache at each turn. The built-in model does not read it.
func (b *briefing) sketch(ctx context.Context, model provider.Model) string {
	if model.Provider == builtinProvider {
		return ""
	}
	if !b.sketched {
		b.sketched, b.tree = true, b.project.Tree(ctx, b.head.Info().Cwd)
	}
	return b.tree
}

// environment is the <env> block: directories, platform and date. The date has no time, so that the block stays equal all day and
// the prompt cache holds.
func (b *briefing) environment(sketch string) string {
	info := b.head.Info()
	git := "no"
	if exists(filepath.Join(b.root, ".git")) {
		git = "yes"
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "<env>\nWorking directory: %s\nProject root: %s\nGit repository: %s\nPlatform: %s/%s\nDate: %s\n",
		info.Cwd, b.root, git, runtime.GOOS, runtime.GOARCH, time.Now().Format("Monday, 2 January 2006"))
	for _, dir := range info.Extra {
		fmt.Fprintf(&sb, "Also open: %s\n", dir)
	}
	sb.WriteString("</env>")
	if sketch != "" {
		sb.WriteString("\n<tree>\n" + sketch + "</tree>")
	}
	return sb.String()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
