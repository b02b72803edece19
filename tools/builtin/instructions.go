package builtin

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/rules"
)

// maxInstructions is how many bytes of one instruction file are shown, since they stay in the context for the rest of the session.
const maxInstructions = 32 << 10

// instructions appends the instruction files of the folders between the session's and a file that is
// read, each once a session: rules of a subfolder count when the agent works there. Those of the
// session's own folder and above are in the system prompt already.
type instructions struct {
	workspace
	mu    sync.Mutex
	given map[string]bool // by real path; guarded by mu
}

// above returns the instructions for a file that were not shown yet, and their paths for the metadata (never null). The outermost folder
// comes first, so that the model reads the rules of the nearest folder last. Real paths are compared: a link must not bring in the
// instructions of another place.
func (in *instructions) above(at place) (text string, loaded []string) {
	loaded = []string{}
	root, err := files.Real(in.root())
	if err != nil || !paths.Within(root, at.real) {
		return "", loaded
	}
	cwd, err := files.Real(in.Cwd)
	if err != nil {
		return "", loaded
	}
	var dirs []string
	// From the file's folder up, and not those that hold the session's folder: they are in the system prompt.
	for d := filepath.Dir(at.real); paths.Within(root, d) && !paths.Within(d, cwd); d = filepath.Dir(d) {
		dirs = append(dirs, d)
	}
	slices.Reverse(dirs)
	var sb strings.Builder
	for _, d := range dirs {
		for _, name := range tools.InstructionFiles {
			path := filepath.Join(d, name)
			body, ok := in.load(path, root, at.real)
			if !ok {
				continue
			}
			if body != "" {
				fmt.Fprintf(&sb, "\n\n<system-reminder>\nInstructions from: %s\n%s\n</system-reminder>", path, body)
				loaded = append(loaded, path)
			}
			// A folder has one instruction file: the names after the first that exists are ignored, even when that one was shown
			// before.
			break
		}
	}
	for _, r := range in.rules(root, at.real) {
		fmt.Fprintf(&sb, "\n\n<system-reminder>\nInstructions from: %s\n%s\n</system-reminder>", r.Path, r.Text)
		loaded = append(loaded, r.Path)
	}
	return sb.String(), loaded
}

// rules are the rule files of other agents (package rules) that apply to the file that is read, each once in a session. Those that apply
// to every file are in the system prompt.
func (in *instructions) rules(root, reading string) (out []rules.Rule) {
	rel, err := filepath.Rel(root, reading)
	if err != nil {
		return nil
	}
	for _, r := range rules.Find(root) {
		// A rule file that is being read is shown anyway.
		if r.Always() || r.Path == reading || !r.Matches(filepath.ToSlash(rel)) {
			continue
		}
		in.mu.Lock()
		seen := in.given[r.Path]
		if in.given == nil {
			in.given = map[string]bool{}
		}
		in.given[r.Path] = true
		in.mu.Unlock()
		if !seen {
			out = append(out, r)
		}
	}
	return out
}

// load reads an instruction file; ok says that the folder has it, and body is empty when it was shown before. It does not follow a link
// to anything but another instruction file of the project: its text goes to the model without an approval.
func (in *instructions) load(path, root, reading string) (body string, ok bool) {
	real, err := files.Real(path)
	if err != nil || !paths.Within(root, real) || !slices.Contains(tools.InstructionFiles, filepath.Base(real)) {
		return "", false
	}
	f, err := files.OpenExact(real)
	if err != nil {
		return "", false
	}
	defer f.Close()
	in.mu.Lock()
	seen := in.given[real]
	if in.given == nil {
		in.given = map[string]bool{}
	}
	in.given[real] = true
	in.mu.Unlock()
	// true, because the folder has its file: the next name must not stand in for it.
	if seen || real == reading {
		return "", true
	}
	b, err := io.ReadAll(io.LimitReader(f, maxInstructions+1))
	if err != nil {
		return "", true
	}
	text, _ := files.Decode(b)
	if len(text) > maxInstructions {
		text = strings.ToValidUTF8(text[:maxInstructions], "") + "\n… (cut; read the file for the rest)"
	}
	return strings.TrimSpace(text), true
}
