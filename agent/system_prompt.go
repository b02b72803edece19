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

func promptText(name string) string {
	b, err := prompts.ReadFile("prompts/" + name + ".txt")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func stepsPrompt() string { return promptText("steps") }

// systemPrompt is made once a turn: the words that never change first, so that prompt caches hold, then the
// agent's, the environment, and the project's own instructions.
func (s *Session) systemPrompt(ctx context.Context, a Agent, model provider.Model) []string {
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
	blocks := []string{promptText("core") + "\n\n" + strings.TrimSpace(task), s.environment(s.sketch(ctx, model))}
	blocks = append(blocks, s.rt.o.Project.Instructions(s.Info().Cwd)...)
	blocks = append(blocks, s.rt.o.Project.Notes(s.Info().Cwd)...)
	return s.maskAll(blocks)
}

// sketch is made once: a tree that changed with every file would cost the prompt cache each time.
func (s *Session) sketch(ctx context.Context, model provider.Model) string {
	if model.Provider == builtinProvider {
		return ""
	}
	if !s.sketched {
		s.sketched, s.tree = true, s.rt.o.Project.Tree(ctx, s.Info().Cwd)
	}
	return s.tree
}

// environment says where the agent is.
func (s *Session) environment(sketch string) string {
	info := s.Info()
	git := "no"
	if exists(filepath.Join(s.root, ".git")) {
		git = "yes"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "<env>\nWorking directory: %s\nProject root: %s\nGit repository: %s\nPlatform: %s/%s\nDate: %s\n",
		info.Cwd, s.root, git, runtime.GOOS, runtime.GOARCH, time.Now().Format("Monday, 2 January 2006"))
	for _, dir := range info.Extra {
		fmt.Fprintf(&b, "Also open: %s\n", dir)
	}
	b.WriteString("</env>")
	if sketch != "" {
		b.WriteString("\n<tree>\n" + sketch + "</tree>")
	}
	return b.String()
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
