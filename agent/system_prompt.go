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

// promptText returns a prompt by its name (prompts/NAME.txt), trimmed; "" when there is none.
func promptText(name string) string {
	b, err := prompts.ReadFile("prompts/" + name + ".txt")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// stepsPrompt is the format of the message that asks the model to sum up; its argument is the step limit.
func stepsPrompt() string { return promptText("steps") }

// briefing makes the system prompt. Only the session's runner uses it.
type briefing struct {
	project  ProjectContext
	head     *Head
	masker   *masker
	root     string // root of the Git worktree; the directory itself where there is none
	sketched bool   // tree was made
	tree     string // the listing of the directory at the first turn
}

// systemPrompt returns the system prompt's blocks, the most stable first, so that prompt caches stay valid: Pillion's and the agent's text,
// the environment, the project's instructions, the servers' notes.
func (b *briefing) systemPrompt(ctx context.Context, a Agent, model provider.Model) []string {
	task := a.Prompt
	if task == "" {
		task = promptText(a.Name)
	}
	if task == "" {
		// An agent without a prompt of its own uses that of build, or of general when it runs tasks.
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

// sketch returns the listing of the directory. It is made once for a session: a listing that changes with every file would invalidate the
// provider's prompt cache at each turn. The built-in model does not read it.
func (b *briefing) sketch(ctx context.Context, model provider.Model) string {
	if model.Provider == builtinProvider {
		return ""
	}
	if !b.sketched {
		b.sketched, b.tree = true, b.project.Tree(ctx, b.head.Info().Cwd)
	}
	return b.tree
}

// environment returns the <env> block: directories, platform and date. It has no time of day, so that the block is the same all day and
// prompt caches stay valid.
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

// exists reports whether path exists, whatever it is: in a linked worktree .git is a regular file, not a folder.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
