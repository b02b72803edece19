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

// Restraint is how a server is kept from running what a project brings along while the person does not trust the project's
// folder. A row without one is not started there: a new server is safe until somebody has looked at what it runs.
type Restraint struct {
	// Why says in one sentence why nothing of the project runs; docs/SECURITY.md prints it.
	Why string
	// Programs, when not empty, are the only ones of the row's Commands that are looked at well enough to be started.
	Programs []string
	// NotWith are names of files by which a project names programs. Where one lies anywhere in the project the server is
	// not started; globs allowed, matched against the path in the project.
	NotWith []string
	Env     []string // KEY=value, beside the row's
	// Init and Settings are laid over everything else, the person's own settings included.
	Init, Settings string

	// prepare pins what depends on the machine.
	prepare func(p *programs, row Server, argv []string, root string) (Server, error)
}

// restrain is a row as it is started in a project that is not trusted. An error says why it is not started. What the person
// added to the table runs as they configured it: nobody but them knows what it needs.
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
	if at := p.names(r.NotWith); at != "" {
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

// untrusted is the error of a server that is not started before the folder is trusted.
func untrusted(id, why string) error {
	return fmt.Errorf("%s is not started because this folder is not trusted: %s; run pillion trust to start it", id, why)
}

func overlaid(base, over string) string {
	if over == "" {
		return base
	}
	return mergeJSON(base, json.RawMessage(over))
}

// names is a file of the project that matches one of the globs; "" when there is none. Everything is looked at, ignored and
// hidden folders too: the server does not ask git either.
func (p *programs) names(globs []string) (found string) {
	if len(globs) == 0 {
		return ""
	}
	left := maxProjectFiles
	_ = filepath.WalkDir(p.root, func(at string, d fs.DirEntry, err error) error {
		if left--; left < 0 && found == "" {
			found = "the project has too many files to look at, and one of them"
		}
		if found != "" {
			return filepath.SkipAll
		}
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

// gitWithoutHooks keeps git, which several servers run in the project, from running what a repository's own configuration
// names: an unpacked archive may bring a .git along.
func gitWithoutHooks() []string {
	n, _ := strconv.Atoi(os.Getenv("GIT_CONFIG_COUNT"))
	var env []string
	for _, kv := range [][2]string{{"core.fsmonitor", "false"}, {"core.hooksPath", os.DevNull}} {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", n, kv[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", n, kv[1]))
		n++
	}
	return append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(n))
}
