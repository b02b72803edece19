package sandbox

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Protected files are looked for in the whole project, before a command and after it: what has come into being between
// the two goes to the quarantine, in whatever folder. Only folders of dependencies are left out: no editor or shell acts on
// files there, and they hold most of a project's files.

// protectedEntries bounds the look, in files and folders: 40 ms on a warm disk.
// Beyond it whole is false, and Settle tells the person that part of the project was not looked at.
const protectedEntries = 150_000

// protectedPlaces are the protected files and folders of a project.
type protectedPlaces struct {
	found []string
	whole bool // all of the project was looked at
}

// findProtected looks for protected files below roots. gitDirs are those of the project itself, which are not looked into:
// they have rules of their own.
func findProtected(roots, gitDirs []string, protected func(string) (string, bool)) protectedPlaces {
	out := protectedPlaces{whole: true}
	left := protectedEntries
	var look func(dir string)
	look = func(dir string) {
		f, err := os.Open(dir)
		if err != nil {
			return
		}
		entries, _ := f.ReadDir(-1) // unsorted; what could be read counts
		_ = f.Close()
		for _, e := range entries {
			// Every entry counts, protected or not: the time goes into reading folders.
			if left--; left < 0 {
				out.whole = false
				return
			}
			path := filepath.Join(dir, e.Name())
			switch {
			case e.Name() == ".git":
				if !slices.Contains(gitDirs, path) && !slices.Contains(roots, dir) {
					out.found = append(out.found, programsOfGit(path, e)...)
				}
				continue
			case e.IsDir():
				switch e.Name() {
				case "node_modules", "vendor", "target", ".venv", "__pycache__":
					continue
				}
				if slices.Contains(gitDirs, path) {
					continue
				}
			}
			if _, is := protected(path); is {
				out.found = append(out.found, path)
				continue // of a folder all that is in it
			}
			if e.IsDir() {
				look(path)
			}
		}
	}
	for _, root := range roots {
		look(root)
	}
	slices.Sort(out.found)
	out.found = slices.Compact(out.found)
	return out
}

// programsOfGit are the files of a repository inside the project by which git runs programs: hooks that git did not put
// there as samples, and a configuration that names programs. dot is its .git, a folder or a file that names one.
// core.fsmonitor, for one, runs as soon as a shell prompt or an editor asks git for the status of that folder.
func programsOfGit(dot string, e fs.DirEntry) (found []string) {
	dir := dot
	if !e.IsDir() {
		text, err := os.ReadFile(dot)
		to, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
		if err != nil || !ok {
			return nil
		}
		if dir = to; !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(dot), to)
		}
	}
	hooks, _ := os.ReadDir(filepath.Join(dir, "hooks"))
	for _, h := range hooks {
		if !strings.HasSuffix(h.Name(), ".sample") && h.Name() != "README" {
			found = append(found, filepath.Join(dir, "hooks", h.Name()))
		}
	}
	for _, name := range []string{"config", "config.worktree"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil && configNamesPrograms(text) {
			found = append(found, filepath.Join(dir, name))
		}
	}
	return found
}

// gitPrograms are the last words of git's settings whose value is a program, a folder of programs, or a further file of
// settings; in lower case.
var gitPrograms = []string{
	"fsmonitor", "hookspath", "sshcommand", "gitproxy", "pager", "editor", "askpass", "helper", "textconv", "command", "driver", "clean", "smudge", "process", "program", "cmd", "path", "proxy", "uploadpack", "receivepack", "vcs", "browser", "external",
	"packobjectshook", "templatedir", "alternaterefscommand", "defaultcommand",
}

// configNamesPrograms reports a configuration of git that names a program. It knows no values: that a key is there is
// enough, and so is a section of aliases or of further files.
// "path" in a submodule section is a folder of the project, so it alone is not a reason.
func configNamesPrograms(text []byte) bool {
	section := ""
	for line := range bytes.Lines(bytes.ToLower(text)) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] == '[' {
			head, rest, _ := bytes.Cut(line[1:], []byte("]"))
			name, _, _ := bytes.Cut(head, []byte(" "))
			section, line = string(name), bytes.TrimSpace(rest) // a key may follow in the same line
			if strings.HasPrefix(section, "alias") || strings.HasPrefix(section, "include") || strings.HasPrefix(section, "pager") {
				return true
			}
		}
		key, _, _ := bytes.Cut(line, []byte("="))
		if slices.Contains(gitPrograms, string(bytes.TrimSpace(key))) && !(section == "submodule" && string(bytes.TrimSpace(key)) == "path") {
			return true
		}
	}
	return false
}
