package check

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/lspbridge"
	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/patch"
	"github.com/pillion-dev/pillion/tools/paths"
)

// maxFile is the largest file that is copied or compared, in bytes. It is also the largest that lspbridge
// opens.
const maxFile = 16 << 20

// entry is a file of a commit: its mode and the object id of its content.
type entry struct {
	mode, id string
}

// WorkingTree plans what differs on disk from the last commit: changed, new and deleted files, staged or
// not. Ignored files are left out. It fails when root is in no repository, or has no commit.
func WorkingTree(ctx context.Context, root string) (*Plan, error) {
	g := git{root}
	before, opaque, err := g.tree(ctx, "HEAD")
	if err != nil {
		return nil, err
	}
	out, err := g.run(ctx, nil, "ls-files", "-co", "--exclude-standard", "-z")
	if err != nil {
		return nil, err
	}
	now, opaqueNow := map[string]string{}, map[string]entry{}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if text, ok := regular(filepath.Join(root, filepath.FromSlash(name))); ok && name != "" {
			now[name] = text
		} else if e, ok := g.opaqueOnDisk(ctx, name, opaque[name]); ok {
			opaqueNow[name] = e
		}
	}
	p, err := g.plan(ctx, before, now)
	if err == nil {
		p.unchecked = differing(opaque, opaqueNow)
	}
	return p, err
}

// opaqueOnDisk is a link or submodule as it is on disk; ok is false where there is neither. was is the entry of the last commit.
func (g git) opaqueOnDisk(ctx context.Context, name string, was entry) (now entry, ok bool) {
	path := filepath.Join(g.root, filepath.FromSlash(name))
	fi, err := os.Lstat(path)
	switch {
	case err != nil || name == "" || strings.HasSuffix(name, "/"): // a repository in a folder, which no commit will hold unless it is added
		return entry{}, false
	case fi.Mode()&fs.ModeSymlink != 0:
		now.mode = linkMode
		to, err := os.Readlink(path)
		if err != nil || was.mode != linkMode {
			return now, true
		}
		// The content of a link's object is its target.
		if b, err := g.run(ctx, nil, "cat-file", "blob", was.id); err == nil && string(b) == filepath.ToSlash(to) {
			now.id = was.id
		}
		return now, true
	case fi.IsDir(): // a submodule: Git lists no other folders
		now.mode = moduleMode
		if _, err := os.Lstat(filepath.Join(path, ".git")); err != nil {
			return was, was.mode == moduleMode // not checked out, so it is as it was
		}
		if b, err := (git{path}).run(ctx, nil, "rev-parse", "--verify", "HEAD"); err == nil {
			now.id = strings.TrimSpace(string(b))
		}
		return now, true
	}
	return entry{}, false
}

// differing are the names whose entries differ, sorted.
func differing(before, after map[string]entry) (names []string) {
	for name, e := range before {
		if after[name] != e {
			names = append(names, name)
		}
	}
	for name := range after {
		if _, there := before[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Range plans what a commit changes against its first parent (the first commit against nothing), what A..B changes from A to B, or what A...B
// changes on B since both parted. A missing end is HEAD. It reads objects only: the working tree may
// differ.
func Range(ctx context.Context, root, spec string) (*Plan, error) {
	g := git{root}
	from, to, isRange := strings.Cut(spec, "..")
	switch {
	case strings.HasPrefix(to, "."): // A...B is what B changes since they parted
		to = strings.TrimPrefix(to, ".")
		b, err := g.run(ctx, nil, "merge-base", or(from, "HEAD"), or(to, "HEAD"))
		if err != nil {
			return nil, err
		}
		from = strings.TrimSpace(string(b))
	case !isRange:
		from, to = spec+"^", spec
	}
	var before, opaque map[string]entry
	var err error
	if isRange || !g.isFirst(ctx, spec) {
		if before, opaque, err = g.tree(ctx, or(from, "HEAD")); err != nil {
			return nil, err
		}
	}
	after, opaqueAfter, err := g.tree(ctx, or(to, "HEAD"))
	if err != nil {
		return nil, err
	}
	changed := map[string]entry{}
	now := map[string]string{}
	same := map[string]bool{}
	for name, e := range after {
		// Compare ids before reading: an unchanged file need not be loaded from the repository at all.
		if before[name].id == e.id {
			same[name] = true
		} else {
			changed[name] = e
		}
	}
	err = g.blobs(ctx, changed, func(name string, b []byte) error { now[name] = string(b); return nil })
	if err != nil {
		return nil, err
	}
	p, err := g.plan(ctx, before, now, same)
	if err == nil {
		p.unchecked = differing(opaque, opaqueAfter)
	}
	return p, err
}

// isFirst reports whether a commit has no parent. The object itself names its parents also where a shallow clone does not have them.
func (g git) isFirst(ctx context.Context, commit string) bool {
	if strings.HasPrefix(commit, "-") {
		return false
	}
	b, err := g.run(ctx, nil, "cat-file", "commit", commit)
	head, _, _ := strings.Cut(string(b), "\n\n")
	return err == nil && !strings.Contains(head, "\nparent ")
}

// or returns s, or otherwise when s is empty.
func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// Patch plans a unified diff, or an envelope as the apply_patch tool takes, against the files on disk. It
// fails when the patch does not apply, or names a file outside root. An empty patch, as git diff prints it where nothing has changed,
// changes nothing. Binary files, links and submodules in it are left out, as they are of the working tree: no language server checks them.
func Patch(root, text string) (*Plan, error) {
	text, left := withoutOpaque(text)
	if strings.TrimSpace(text) == "" {
		return &Plan{Root: root, Dir: root, unchecked: left}, nil
	}
	p, err := patch.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("the patch cannot be read: %w", err)
	}
	// at refuses paths outside the project: the patch may come from anybody, and the answer would tell them
	// what other files hold.
	at := func(name string) (string, error) {
		path := filepath.FromSlash(name)
		if !filepath.IsAbs(path) {
			path = filepath.Join(root, path)
		}
		if path = filepath.Clean(path); !paths.Within(root, path) {
			return "", fmt.Errorf("the patch changes %s, which is not in %s", name, root)
		}
		return path, nil
	}
	changes, err := p.Apply(func(name string) (string, bool, error) {
		path, err := at(name)
		if err != nil {
			return "", false, err
		}
		text, ok := regular(path)
		return text, ok, nil
	})
	if err != nil {
		return nil, fmt.Errorf("the patch does not apply to the files in %s: %w", root, err)
	}
	if err := exactly(p, changes); err != nil {
		return nil, fmt.Errorf("the patch does not apply to the files in %s: %w", root, err)
	}
	plan := &Plan{Root: root, Dir: root, unchecked: left}
	for _, c := range changes {
		path, err := at(c.Path)
		if err != nil {
			return nil, err
		}
		switch c.Kind {
		case patch.Delete:
			plan.Files = append(plan.Files, lspbridge.Proposal{Path: path, Delete: true})
		case patch.Move:
			to, err := at(c.NewPath)
			if err != nil {
				return nil, err
			}
			// From tells servers that imports may follow the file.
			plan.Files = append(plan.Files, lspbridge.Proposal{Path: to, Text: c.New, From: path}, lspbridge.Proposal{Path: path, Delete: true})
		default:
			plan.Files = append(plan.Files, lspbridge.Proposal{Path: path, Text: c.New, Old: c.Old})
		}
	}
	return plan, nil
}

// exactly refuses what a model's edit may be forgiven and a program's patch may not: lines that the file has otherwise, and a change that
// is there already. A build that has the changed files checked out would else be told that nothing changes.
func exactly(p *patch.Patch, changes []patch.FileChange) error {
	for _, c := range changes {
		for _, l := range c.Loose {
			if l.Reworded {
				return fmt.Errorf("%s has other text in lines %d to %d than the patch expects, or the change already; check out the files as they were before the change, or name the commits (pillion check A..B)", c.Path, l.First, l.Last)
			}
		}
	}
	for _, op := range p.Ops {
		if op.Kind != patch.Update || !changesLines(op) {
			continue
		}
		i := slices.IndexFunc(changes, func(c patch.FileChange) bool { return c.Path == op.Path })
		if i < 0 || p.Unified && addedAlready(op, changes[i].Old) {
			return fmt.Errorf("%s has the change already; check out the files as they were before it, or name the commits (pillion check A..B)", op.Path)
		}
	}
	return nil
}

// changesLines reports whether a section adds or removes a line; one that only sets a mode does not.
func changesLines(op patch.Op) bool {
	return slices.ContainsFunc(op.Hunks, func(h patch.Hunk) bool {
		return slices.ContainsFunc(h.Lines, func(l patch.Line) bool { return l.Op != ' ' })
	})
}

// addedAlready reports whether a file begins or ends with what a diff adds there. A diff has fewer than three lines around a change only at
// the ends of a file, so a hunk that begins or ends with a new line belongs there; its old lines may still be found beside the new ones.
func addedAlready(op patch.Op, text string) bool {
	file := strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r", ""), "\n"), "\n")
	begins := func(lines []string) bool {
		return len(lines) <= len(file) && slices.Equal(file[:len(lines)], lines)
	}
	ends := func(lines []string) bool {
		return len(lines) <= len(file) && slices.Equal(file[len(file)-len(lines):], lines)
	}
	for _, h := range op.Hunks {
		var old, now []string
		for _, l := range h.Lines {
			if l.Op != '+' {
				old = append(old, strings.TrimSuffix(l.Text, "\r"))
			}
			if l.Op != '-' {
				now = append(now, strings.TrimSuffix(l.Text, "\r"))
			}
		}
		if len(old) == 0 || len(now) == 0 {
			continue // of an empty file, or to one
		}
		if h.Lines[len(h.Lines)-1].Op == '+' && ends(now) && !ends(old) || h.Lines[0].Op == '+' && h.OldStart <= 1 && begins(now) && !begins(old) {
			return true
		}
	}
	return false
}

// withoutOpaque is a patch of Git without its binary files, symbolic links and submodules, and the names of those in it that a build can
// depend on: links and submodules.
func withoutOpaque(text string) (rest string, left []string) {
	var kept strings.Builder
	files, dropped := 0, 0
	for _, part := range splitFiles(text) {
		head, _, _ := strings.Cut(part, "\n@@ ")
		name, _, _ := strings.Cut(strings.TrimPrefix(part, "diff --git "), "\n")
		name = strings.TrimSpace(name[strings.LastIndexByte(name, ' ')+1:])
		name = strings.TrimPrefix(strings.Trim(name, `"`), "b/")
		switch {
		case !strings.HasPrefix(part, "diff --git "):
			kept.WriteString(part)
		case opaqueMode().MatchString(head):
			left = append(left, name)
			dropped++
		case binaryPart().MatchString(head):
			dropped++
		default:
			kept.WriteString(part)
			files++
		}
	}
	if files == 0 && dropped > 0 {
		return "", left // the head of a mail alone is no patch
	}
	return kept.String(), left
}

var (
	// Modes of gitformat-index(5): symbolic link, submodule.
	opaqueMode = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^(?:(?:new|deleted|old) (?:file )?mode (?:120000|160000)|index \S+ (?:120000|160000))\r?$`)
	})
	binaryPart = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^(?:GIT binary patch|Binary files .* differ)\r?$`)
	})
)

// splitFiles cuts a patch of Git before each file. What is before the first one, such as the head of a mail, is a part of its own. A line of
// a hunk begins with a blank, + or -, so it is never taken for the beginning of a file.
func splitFiles(text string) (parts []string) {
	for {
		at := strings.Index(text[min(1, len(text)):], "\ndiff --git ")
		if at < 0 {
			return append(parts, text)
		}
		parts, text = append(parts, text[:at+2]), text[at+2:]
	}
}

// plan copies the state before into a temporary folder, and makes a proposal of each file that differs
// now. same are files known to be unchanged, which now does not hold. The servers need a copy because they
// also read files that are not open, from disk: on the project itself they would see the state after.
func (g git) plan(ctx context.Context, before map[string]entry, now map[string]string, same ...map[string]bool) (*Plan, error) {
	dir, err := os.MkdirTemp("", "pillion-check-")
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // servers answer with real paths
		return nil, err
	}
	p := &Plan{Root: g.root, Dir: dir, close: func() { _ = os.RemoveAll(dir) }}
	old := map[string]string{}
	err = g.blobs(ctx, before, func(name string, b []byte) error {
		// A commit made by hand can hold a path such as "../x", which must not be written outside the copy.
		at := filepath.Join(dir, filepath.FromSlash(name))
		if !paths.Within(dir, at) {
			return fmt.Errorf("a commit contains the path %q", name)
		}
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
		old[name] = string(b)
		return os.WriteFile(at, b, 0o600)
	})
	if err == nil {
		err = g.lend(ctx, dir, before)
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	unchanged := func(name string) bool { return len(same) > 0 && same[0][name] }
	for name, text := range now {
		was, there := old[name]
		// With core.autocrlf Git checks out CRLF for what is stored with LF; that is not a change.
		if there && (was == text || was == strings.ReplaceAll(text, "\r\n", "\n")) {
			continue
		}
		p.Files = append(p.Files, lspbridge.Proposal{Path: filepath.Join(dir, filepath.FromSlash(name)), Text: text, Old: was})
	}
	for name := range old {
		if _, there := now[name]; !there && !unchanged(name) {
			p.Files = append(p.Files, lspbridge.Proposal{Path: filepath.Join(dir, filepath.FromSlash(name)), Delete: true})
		}
	}
	return p, nil
}

// lent are the folders that hold installed packages. Commits do not contain them, but without them every
// import would be an error.
var lent = map[string]bool{"node_modules": true, ".venv": true, "venv": true, "vendor": true, "site-packages": true}

// maxLooked bounds the walk that looks for lent folders, in directory entries, so that a huge project does
// not delay the check without end. Packages that are not found make the verdict worse, not wrong: the
// errors are there before and after.
const maxLooked = 200_000

// lend links installed packages into the copy, and writes a compile_commands.json whose paths name the
// copy: with the original clangd would compile the files of the project. Links are enough, since servers
// only read packages. Files that the commit itself holds win.
func (g git) lend(ctx context.Context, dir string, tracked map[string]entry) error {
	left := maxLooked
	return filepath.WalkDir(g.root, func(at string, d fs.DirEntry, err error) error {
		if left--; left < 0 || ctx.Err() != nil {
			return filepath.SkipAll
		}
		rel, relErr := filepath.Rel(g.root, at)
		if err != nil || relErr != nil || rel == "." {
			return nil
		}
		to := filepath.Join(dir, rel)
		switch {
		case d.IsDir() && d.Name() == ".git":
			return filepath.SkipDir
		case d.IsDir() && lent[d.Name()]:
			if _, err := os.Lstat(to); err == nil { // it is in the commit
				return nil
			}
			// The commit has no such folder, so nothing in the copy could import from it.
			if _, err := os.Lstat(filepath.Dir(to)); err != nil {
				return filepath.SkipDir
			}
			if err := os.Symlink(at, to); err != nil {
				return err
			}
			return filepath.SkipDir
		case d.Name() == "compile_commands.json" && d.Type().IsRegular():
			if _, there := tracked[filepath.ToSlash(rel)]; there {
				return nil
			}
			text, ok := regular(at)
			if !ok {
				return nil
			}
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return err
			}
			return os.WriteFile(to, []byte(strings.ReplaceAll(text, g.root, dir)), 0o600)
		}
		return nil
	})
}

// regular reads a file that is a regular file of at most maxFile bytes. It does not follow symbolic links:
// a commit could point one at any file of the machine.
func regular(path string) (string, bool) {
	fi, err := os.Lstat(path)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() > maxFile {
		return "", false
	}
	b, err := os.ReadFile(path)
	return string(b), err == nil
}

// git runs Git plumbing commands in the repository of a folder. Plumbing runs no filters, and hooks and
// the file system monitor are turned off: a repository's own configuration can make Git run any program,
// and a check must be safe in an untrusted one.
type git struct{ root string }

// run runs git and returns its output. An error holds what Git printed to stderr.
func (g git) run(ctx context.Context, in io.Reader, args ...string) ([]byte, error) {
	cmd := guard.CommandContext(ctx, guard.Helper, append([]string{"git"}, append([]string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-C", g.root}, args...)...)...)
	cmd.Stdin = in
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		if text := strings.TrimSpace(said.String()); text != "" {
			err = errors.New(text)
		}
		return nil, fmt.Errorf("git %s: %w", args[0], err)
	}
	return out, nil
}

// explain says why a commit cannot be read, where that is known: Git names the symptom only.
func (g git) explain(ctx context.Context, commit string, err error) error {
	is := func(args ...string) bool { _, err := g.run(ctx, nil, args...); return err == nil }
	switch shallow, _ := g.run(ctx, nil, "rev-parse", "--is-shallow-repository"); {
	case !is("rev-parse", "--git-dir"):
		return fmt.Errorf("%s is in no Git repository, so only a patch can be checked: %w", g.root, err)
	case !is("rev-parse", "--verify", "--quiet", "HEAD"):
		return fmt.Errorf("the repository has no commit yet, so only a patch can be checked: %w", err)
	case strings.TrimSpace(string(shallow)) == "true":
		return fmt.Errorf("%s is not in this clone, which is shallow; run git fetch --unshallow (in GitHub Actions: fetch-depth: 0): %w", commit, err)
	}
	return fmt.Errorf("%s is neither a commit nor a file: %w", commit, err)
}

// Modes of a tree's entries (gitformat-index(5)); those of regular files begin with 100.
const linkMode, moduleMode = "120000", "160000"

// tree lists the regular files of a commit below the root, by paths relative to it, and apart from them its links and submodules: those are
// not copied, because servers would follow them out of the copy.
func (g git) tree(ctx context.Context, commit string) (files, opaque map[string]entry, err error) {
	// Git would take it for an option, and some options run programs.
	if strings.HasPrefix(commit, "-") {
		return nil, nil, fmt.Errorf("%q is not a commit", commit)
	}
	out, err := g.run(ctx, nil, "ls-tree", "-r", "-z", commit)
	if err != nil {
		return nil, nil, g.explain(ctx, commit, err)
	}
	files, opaque = map[string]entry{}, map[string]entry{}
	for line := range strings.SplitSeq(string(out), "\x00") {
		head, name, ok := strings.Cut(line, "\t")
		f := strings.Fields(head) // mode, type, id
		switch {
		case !ok || len(f) != 3:
		case f[0] == linkMode || f[0] == moduleMode:
			opaque[name] = entry{f[0], f[2]}
		case f[1] == "blob" && strings.HasPrefix(f[0], "100"):
			files[name] = entry{f[0], f[2]}
		}
	}
	return files, opaque, nil
}

// blobs calls take with the content of each file, all read by one git process; files larger than maxFile
// are left out. Names come in no particular order.
func (g git) blobs(ctx context.Context, files map[string]entry, take func(name string, b []byte) error) error {
	var ask strings.Builder
	names := make([]string, 0, len(files))
	for name, e := range files {
		names = append(names, name)
		ask.WriteString(e.id + "\n")
	}
	if len(names) == 0 {
		return nil
	}
	out, err := g.run(ctx, strings.NewReader(ask.String()), "cat-file", "--batch")
	if err != nil {
		return err
	}
	r := bufio.NewReader(bytes.NewReader(out))
	for _, name := range names {
		head, err := r.ReadString('\n')
		f := strings.Fields(head) // id, type, size
		if err != nil || len(f) != 3 {
			return fmt.Errorf("git cat-file says %q of %s", strings.TrimSpace(head), name)
		}
		size, err := strconv.Atoi(f[2])
		if err != nil {
			return err
		}
		b := make([]byte, size)
		if _, err := io.ReadFull(r, b); err != nil {
			return err
		}
		// A line feed follows the content of each object (git-cat-file(1), BATCH OUTPUT).
		if _, err := r.Discard(1); err != nil {
			return err
		}
		if size <= maxFile {
			if err := take(name, b); err != nil {
				return err
			}
		}
	}
	return nil
}
