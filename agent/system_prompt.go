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

// briefing is what a model is told before the conversation. Only the session's runner uses it.
type briefing struct {
	project  ProjectContext
	head     *Head
	masker   *masker
	root     string // worktree root, or the directory without git
	sketched bool   // tree was made
	tree     string // the listing of the directory at the first turn
}

// systemPrompt returns the system prompt's blocks, the ones that never change first, so that prompt caches hold: Pillion's and the
// agent's text, the environment, the project's instructions, notes of servers.
func (b *briefing) systemPrompt(ctx context.Context, a Agent, model provider.Model) []string {
	task := a.Prompt
	if task == "" {
		task = promptText(a.Name)
	}
	if task == "" {
		// An agent without a text of its own works like build, or like general when it runs tasks.
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

// sketch is the listing of the directory, made once for a session: one that changed with every file would cost the provider's prompt
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

// environment is the <env> block: directories, platform and date. There is no time in it, so that the block is equal all day and the
// prompt cache holds.
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

// exists is true for any kind of file: in a linked worktree .git is a regular file and not a folder.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
