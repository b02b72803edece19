package check

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Target plans the change that a person names: nothing for what differs on disk from the last commit, a file with a patch,
// a commit, a range A..B or A...B. With branches set, the name of a branch stands for what it changes since it left the
// default branch, as a pull request shows it; without, it is its last commit. Files are looked up from dir.
func Target(ctx context.Context, root, dir, name string, branches bool) (*Plan, error) {
	if name == "" {
		return WorkingTree(ctx, root)
	}
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	// A name that is both a file and a branch means the file.
	if fi, err := os.Stat(path); err == nil && fi.Mode().IsRegular() {
		text, ok := regular(path)
		if !ok {
			return nil, fmt.Errorf("%s is larger than %d MiB", name, maxFile>>20)
		}
		return Patch(root, text)
	}
	if branches && !strings.Contains(name, "..") {
		if base := (git{root}).parted(ctx, name); base != "" {
			name = base + ".." + name
		}
	}
	return Range(ctx, root, name)
}

// parted is the commit at which a branch left the default branch; "" when name is not a branch, or is the default branch
// itself.
func (g git) parted(ctx context.Context, name string) string {
	branch := func(n string) bool {
		for _, in := range []string{"refs/heads/", "refs/remotes/"} {
			if _, err := g.run(ctx, nil, "show-ref", "--verify", "--quiet", in+n); err == nil {
				return true
			}
		}
		return false
	}
	if !branch(name) {
		return ""
	}
	// The remote says what its default branch is; without a remote these are the names in use.
	for _, main := range []string{"origin/HEAD", "origin/main", "origin/master", "main", "master"} {
		if main == name || strings.TrimPrefix(main, "origin/") == name {
			continue
		}
		if base, err := g.run(ctx, nil, "merge-base", main, name); err == nil {
			return strings.TrimSpace(string(base))
		}
	}
	return ""
}
