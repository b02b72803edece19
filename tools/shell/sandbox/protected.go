package sandbox

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The whole project is searched for protected files before a command and after it. Those that only the second search finds
// go to the quarantine, whatever folder they are in. Folders of dependencies are not searched: editors and shells do not use
// files there, and most files of a project are in them.

// protectedEntries is how many files and folders one search visits, which takes about 40 ms with a warm cache. Beyond it whole is
// false, and Settle tells the person that the search was incomplete.
const protectedEntries = 150_000

// protectedPlaces are the protected files and folders of a project.
type protectedPlaces struct {
	found []string
	whole bool // the search was complete
}

// findProtected searches the folders below roots for protected files. It skips gitDirs, the repositories of the project itself,
// whose protected files gitPlaces lists.
func findProtected(roots, gitDirs []string, protected func(string) (string, bool)) protectedPlaces {
	out := protectedPlaces{whole: true}
	left := protectedEntries
	var look func(dir string)
	look = func(dir string) {
		f, err := os.Open(dir)
		if err != nil {
			return
		}
		entries, _ := f.ReadDir(-1) // unlike os.ReadDir it does not sort; after an error, what was read is used
		_ = f.Close()
		for _, e := range entries {
			// Every entry counts, protected or not, since most of the time is spent on reading folders.
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
				continue // a protected folder stands for everything in it
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

// programsOfGit lists the files of a nested repository that make git run programs: hooks other than the samples, and a
// configuration that names programs. dot is its .git, which is a folder or a file that names one. core.fsmonitor, for
// one, runs as soon as a shell prompt or an editor asks git for the status of that folder.
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

// gitPrograms are the names, without section and in lower case, of git's settings whose value is a program, a folder of programs
// or a file with more settings (git-config(1)).
var gitPrograms = []string{
	"fsmonitor", "hookspath", "sshcommand", "gitproxy", "pager", "editor", "askpass", "helper", "textconv", "command", "driver", "clean", "smudge", "process", "program", "cmd", "path", "proxy", "uploadpack", "receivepack", "vcs", "browser", "external",
	"packobjectshook", "templatedir", "alternaterefscommand", "defaultcommand",
}

// configNamesPrograms reports whether a git configuration may name a program. It does not look at values: one of the keys in
// gitPrograms is enough, and so is a section alias, include or pager. submodule.NAME.path does not count, since it is a folder
// of the project.
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
