package lspbridge

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Restraint says how a server is kept from running code of an untrusted project. A row without one is not started there, so a server added
// to the table is refused until its Restraint has been written.
type Restraint struct {
	// Why explains in one sentence why no code of the project runs; docs/SECURITY.md prints it.
	Why string
	// Programs, if not empty, are the only programs of the row's Commands for which this is known.
	Programs []string
	// NotWith are base names (globs allowed) of files in which a project can name programs to run. If one exists anywhere in the project,
	// the server is not started.
	NotWith []string
	Env     []string // KEY=value, added to the row's Env
	// Init and Settings are merged over everything else, including the person's own settings.
	Init, Settings string

	// prepare adds what depends on the machine; may be nil.
	prepare func(p *programs, row Server, argv []string, root string) (Server, error)
}

// restrain returns the row as it is started in an untrusted project. The error says why it is not started. Servers that the person has
// configured run as configured, because Pillion cannot know what they need.
func (p *programs) restrain(row Server, argv []string, root string) (Server, error) {
	if row.Added {
		return row, nil
	}
	r := row.Untrusted
	if r == nil {
		return row, untrusted(row.ID, "it runs code of the project (build scripts, plugins or configuration)")
	}
	name := strings.TrimSuffix(filepath.Base(argv[0]), ".exe")
	if len(r.Programs) > 0 && !slices.Contains(r.Programs, name) {
		return row, untrusted(row.ID, name+" may run code of the project; of its programs only "+strings.Join(r.Programs, " and ")+" is started")
	}
	if at := p.fileNamed(r.NotWith); at != "" {
		return row, untrusted(row.ID, at+" can make it run programs of the project")
	}
	row.Init = overlaid(row.Init, r.Init)
	row.Settings = overlaid(row.Settings, r.Settings)
	row.Env = slices.Concat(row.Env, r.Env, gitWithoutHooks())
	if r.prepare != nil {
		return r.prepare(p, row, argv, root)
	}
	return row, nil
}

// untrusted returns the error of a server that is not started until the folder is trusted.
func untrusted(id, why string) error {
	return fmt.Errorf("%s is not started because this folder is not trusted: %s; run pillion trust to start it", id, why)
}

// overlaid merges over into base; "" changes nothing.
func overlaid(base, over string) string {
	if over == "" {
		return base
	}
	return mergeJSON(base, json.RawMessage(over))
}

// fileNamed returns a file of the project whose base name matches one of the globs; "" when there is none. Ignored and hidden folders are
// searched too, because the server reads them. A project with too many files to search counts as having such a file.
func (p *programs) fileNamed(globs []string) (found string) {
	if len(globs) == 0 {
		return ""
	}
	left := maxProjectFiles
	_ = filepath.WalkDir(p.root, func(at string, d fs.DirEntry, err error) error {
		if left--; left < 0 && found == "" {
			found = "a file among the more than " + strconv.Itoa(maxProjectFiles) + " of this project"
		}
		if found != "" {
			return filepath.SkipAll
		}
		// The server runs as the same user, so it cannot read this either.
		if err != nil {
			return nil
		}
		for _, g := range globs {
			if ok, _ := filepath.Match(g, d.Name()); ok {
				found, _ = filepath.Rel(p.root, at)
			}
		}
		return nil
	})
	return found
}

// gitWithoutHooks returns an environment in which Git runs no programs that the repository's configuration names. Several servers run git
// in the project, and an unpacked archive may contain a .git folder. The variables are added after the person's own (GIT_CONFIG_COUNT, see
// git-config(1)).
func gitWithoutHooks() []string {
	n, _ := strconv.Atoi(os.Getenv("GIT_CONFIG_COUNT"))
	var env []string
	for _, kv := range [][2]string{{"core.fsmonitor", "false"}, {"core.hooksPath", os.DevNull}} {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, kv[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, kv[1]))
		n++
	}
	return append(append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(n)), "GIT_NO_LAZY_FETCH=1")
}
