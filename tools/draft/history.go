package draft

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"strings"
)

// History reports that commands in the draft changed the repository's history: commits, branches, stashes, a checkout. None of it is
// landed. Only HEAD and refs are compared: even `git status` rewrites the index, and objects that no ref reaches are not part of history.
func (d *Draft) History() bool {
	h := d.Head()
	if h.View != Overlay {
		m, err := d.copiedFrom()
		return err == nil && !maps.Equal(m.Refs, readRefs(d.path("tree", ".git")).values())
	}
	for i, root := range d.roots() {
		// dir is the project's repository, at the layer over it, which has only the files that were written in the draft.
		dir, at := filepath.Join(root, ".git"), d.path("upper", ".git")
		// The second layer is over the repository itself, not over a folder that holds a .git.
		if i > 0 {
			dir, at = root, d.path(layerName("upper", i))
		}
		had := readRefs(dir)
		if !maps.Equal(had.values(), had.under(readRefs(at)).values()) {
			return true
		}
	}
	return false
}

// refs are the HEADs and refs in a repository's files (gitrepository-layout(5)). The maps are keyed by the path in the repository, such as
// "refs/heads/main"; the values are a hash or "ref: NAME".
type refs struct {
	loose  map[string]string
	packed map[string]string // nil: there is no packed-refs file
	gone   []string          // paths with a whiteout, files and folders; only in an overlay's layer
}

// values are all refs by name. A loose ref takes precedence over the packed one, as in Git.
func (r refs) values() map[string]string {
	out := map[string]string{}
	maps.Copy(out, r.packed)
	maps.Copy(out, r.loose)
	return out
}

// under are the refs of a repository as the draft sees them, with layer's files and whiteouts over it.
func (r refs) under(layer refs) refs {
	out := refs{loose: maps.Clone(r.loose), packed: r.packed}
	for _, rel := range layer.gone {
		if rel == "packed-refs" {
			out.packed = nil
		}
		maps.DeleteFunc(out.loose, func(name, _ string) bool { return name == rel || strings.HasPrefix(name, rel+"/") })
	}
	maps.Copy(out.loose, layer.loose)
	if layer.packed != nil {
		out.packed = layer.packed
	}
	return out
}

// maxRefs bounds each file that readRefs reads, in bytes: a command in the draft may have put anything there.
const maxRefs = 64 << 20

// readRefs reads the refs from a repository's folder. Files that cannot be read are left out; a folder that does not exist has no refs.
func readRefs(dir string) refs {
	r := refs{loose: map[string]string{}}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return nil
		}
		rel = filepath.ToSlash(rel)
		if e.IsDir() {
			// These hold most of a repository's files and none of its refs; modules has the repositories of submodules.
			if rel == "objects" || rel == "logs" || rel == "lfs" || rel == "modules" {
				return fs.SkipDir
			}
			return nil
		}
		if e.Type()&fs.ModeCharDevice != 0 {
			if fi, err := e.Info(); err == nil && whiteout(fi) {
				r.gone = append(r.gone, rel)
			}
			return nil
		}
		head := rel == "HEAD" || strings.HasPrefix(rel, "worktrees/") && strings.HasSuffix(rel, "/HEAD")
		if !head && rel != "packed-refs" && !strings.HasPrefix(rel, "refs/") {
			return nil
		}
		text, err := readSome(path, maxRefs)
		if err != nil {
			return nil
		}
		if rel != "packed-refs" {
			r.loose[rel] = strings.TrimSpace(text)
			return nil
		}
		// A line is a hash and a name; # begins a comment, ^ the commit of the tag above (git-pack-refs(1)).
		r.packed = map[string]string{}
		for line := range strings.Lines(text) {
			if hash, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && hash[0] != '#' && hash[0] != '^' {
				r.packed[name] = hash
			}
		}
		return nil
	})
	return r
}

// readSome reads a regular file; one of more than most bytes is an error.
func readSome(path string, most int64) (string, error) {
	f, err := openPlain(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most {
		err = errors.New("it is too large")
	}
	return string(b), err
}
