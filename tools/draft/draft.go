// Package draft gives an agent a copy-on-write view of a project: whatever runs in it reads and writes the project under
// its own absolute path, and the project's files stay as they are until the draft is landed.
//
// A Draft is a folder beside the sessions. Nothing runs while it is idle; Start mounts the view anew, in a namespace of
// its own, and runs a program in it. On Linux the view is an overlay whose lower layer is the project (View "overlay").
// Where there are namespaces but no overlay it is a clone mounted over the project ("bind"), and without namespaces a clone
// under another path ("copy"), which the caller has to translate.
//
// The package knows files and mounts. It leaves to others what may run, what a person is asked, and writing the project:
// Changes gives what the draft changed as values.
//
//	d, err := draft.Create(ctx, draft.Options{Dir: state + "/drafts", Project: "/home/ann/app"})
//	cmd, err := d.Command("bash", "-c", "sed -i s/a/b/ *.go")   // not started yet
//	…
//	err = d.Record(start)         // what the tree had where the draft changed something
//	list, err := d.Changes(nil)   // before and after of every file
//	err = d.Drop()
package draft

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/whole"
)

// View says how a draft shows the project.
type View string

// The views, from the best to the one that always works.
const (
	Overlay View = "overlay" // an overlay file system over the project
	Bind    View = "bind"    // a clone, mounted over the project
	Copy    View = "copy"    // a clone under another path
)

// State is the stage of a draft's life, kept in draft.json: a later process reads from it what an earlier one left undone.
type State string

const (
	// Open is a draft that a session works in. Proposed waits for its decision. Rejected is kept for a while, see prune; the
	// session's next turn begins another. Landing means that files are being moved into the project. A landed draft is removed.
	Open     State = "open"
	Proposed State = "proposed"
	Rejected State = "rejected"
	Landing  State = "landing"
)

// Head is what draft.json holds: all that is known of a draft without reading its layer. It is rewritten whole at each Set,
// so lists of drafts and other processes never read a half-written one.
type Head struct {
	ID      string    `json:"id"`
	Project string    `json:"project"` // absolute, links resolved
	Session string    `json:"session,omitempty"`
	Title   string    `json:"title,omitempty"`
	Created time.Time `json:"created"`
	// Used is the last Set, in UTC; prune measures MaxAge from it.
	Used time.Time `json:"used"`
	View View      `json:"view"`
	Why  string    `json:"why,omitempty"` // why the view is not an overlay
	// SharedPIDs: the system gives a draft's processes no namespace of their own. They are found by their marks.
	SharedPIDs bool   `json:"sharedPIDs,omitempty"`
	State      State  `json:"state"`
	Branch     string `json:"branch,omitempty"` // what .git/HEAD held when the draft was made
	// Attempt counts how often the proposal went back to the model before a person was asked.
	Attempt int `json:"attempt,omitempty"`
	// Size is what the draft took on the disk, in bytes, when its worker last ended.
	Size int64 `json:"size,omitempty"`
	// GitDir is a repository outside the project, see outsideGit; empty in an ordinary clone, whose .git is layered with it.
	GitDir string `json:"gitDir,omitempty"`
}

// Draft is one draft's folder. Its methods are safe for concurrent use; what runs in the view is the caller's to serialise.
type Draft struct {
	Dir string // absolute; holds draft.json, bases.json, base/, upper/, work/ or tree/

	mu    sync.Mutex
	head  Head            // guarded by mu
	bases map[string]Base // guarded by mu; by path relative to the project, with slashes
}

// Base is what the project had at a path when the draft first changed it.
type Base struct {
	Kind   Kind   `json:"kind"`
	Mode   uint32 `json:"mode,omitempty"` // permission bits
	Hash   string `json:"hash,omitempty"` // of a file's bytes, which are in base/<hash>, or of a link's target
	Size   int64  `json:"size,omitempty"`
	Unsure bool   `json:"unsure,omitempty"` // the file was written while the draft read it: the draft may have seen another text
	Buffer bool   `json:"buffer,omitempty"` // the bytes are an editor's unsaved text
	Big    bool   `json:"big,omitempty"`    // too big to be kept: only size and mode are known
}

// Kind says what is at a path.
type Kind string

// Special is what cannot be carried over: sockets, named pipes, devices.
const (
	None Kind = ""
	// File is a regular file, Link a symbolic link, which is never followed. The zero value None means that nothing is there.
	File    Kind = "file"
	Link    Kind = "link"
	Folder  Kind = "folder"
	Special Kind = "special"
)

// Errors of Create, to be tested with errors.Is; the text around them says what to do.
var (
	ErrTooMany = errors.New("there are too many drafts of this project")
	ErrPlace   = errors.New("no draft can be made of this folder")
	// ErrBusy is of Acquire.
	ErrBusy = errors.New("a session is working in this draft")
)

// Most is how many drafts of one project may be undecided, MaxSize how many bytes all of them may take before another is made, and MaxAge
// how long one that nobody used is kept. A draft of a clone holds a copy of the project, and one in which packages were installed those,
// so drafts that everybody forgot must not fill the disk.
const (
	Most    = 20
	MaxSize = 20 << 30
	MaxAge  = 14 * 24 * time.Hour
)

// Options say which draft to make.
type Options struct {
	Dir     string // where drafts are kept
	Project string // the worktree's root
	Session string
	Title   string
	// Session is the id of the session that works in the draft, Title what a list shows a person. Both may be empty.
	// View overrides the probe; empty: the best there is.
	View View
	// Ignored reports folders and files that git would not show, below the project: a clone shares them instead of copying.
	Ignored func(abs string, dir bool) bool
}

// Create makes an empty draft. It returns before anything is mounted; for a clone it copies the project. It fails with
// ErrPlace for a project that contains the drafts' own folder, and with ErrTooMany. A draft that fails half-way is removed.
func Create(ctx context.Context, o Options) (*Draft, error) {
	project, err := filepath.EvalSymlinks(o.Project)
	if err != nil {
		return nil, err
	}
	// The layer would hold its own upper folder, and Pillion's state would become a part of what is landed.
	if project == "/" || paths.Within(project, o.Dir) {
		return nil, fmt.Errorf("%w: %s holds Pillion's own state (%s); work in a folder below it", ErrPlace, project, o.Dir)
	}
	// Rejected drafts do not count: a person who says no twenty times must still get the next one.
	have, err := List(o.Dir, project)
	if err != nil {
		return nil, err
	}
	have = prune(have)
	undecided, taken := 0, int64(0)
	for _, d := range have {
		h := d.Head()
		if taken += h.Size; h.State != Rejected {
			undecided++
		}
	}
	if undecided >= Most {
		return nil, fmt.Errorf("%w (%d); land or drop some: pillion drafts list", ErrTooMany, undecided)
	}
	if taken > MaxSize {
		return nil, fmt.Errorf("%w: they take %s; land or drop some: pillion drafts list", ErrTooMany, size(taken))
	}
	// Eight letters of base 32, 40 random bits, are short enough to type after `pillion drafts show`.
	id := "dr" + strings.ToLower(rand.Text()[:8])
	// The branch is remembered so that a reader learns when the project has left it by the time the draft is proposed.
	now := time.Now().UTC()
	d := &Draft{Dir: filepath.Join(o.Dir, id), bases: map[string]Base{}, head: Head{
		ID: id, Project: project, Session: o.Session, Title: o.Title, Created: now, Used: now, State: Open, Branch: branch(project), GitDir: outsideGit(project),
	}}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	// Mkdir and not MkdirAll: should the id exist already, this fails, and no draft is mixed with another.
	if err := os.Mkdir(d.Dir, 0o700); err != nil {
		return nil, err
	}
	pids := true
	if d.head.View, d.head.Why = o.View, "it was asked for"; o.View == "" {
		d.head.View, pids, d.head.Why = best(ctx, d)
	} else if o.View != Copy {
		pids = Probe().PIDs
	}
	d.head.SharedPIDs = !pids
	if err := d.fill(ctx, o); err != nil {
		_ = d.Drop()
		return nil, err
	}
	if err := d.save(); err != nil {
		_ = d.Drop()
		return nil, err
	}
	return d, nil
}

// fill makes the folders of the view: the copy of a clone, or upper and work of each layer. An overlay wants an empty work
// folder on the file system of its upper one (Documentation/filesystems/overlayfs.rst), so the two lie side by side.
func (d *Draft) fill(ctx context.Context, o Options) error {
	if d.head.View != Overlay {
		return clone(ctx, d.head.Project, d.path("tree"), o.Ignored, d.path("manifest.json"))
	}
	for i := range d.roots() {
		for _, name := range []string{"upper", "work"} {
			if err := os.Mkdir(d.path(layerName(name, i)), 0o700); err != nil {
				return err
			}
		}
	}
	// The root of the view has the mode of the upper folder.
	fi, err := os.Stat(d.head.Project)
	if err != nil {
		return err
	}
	return os.Chmod(d.path("upper"), fi.Mode().Perm())
}

// roots are the folders that are layered: the project, and a linked worktree's repository.
func (d *Draft) roots() []string {
	if d.head.GitDir == "" {
		return []string{d.head.Project}
	}
	return []string{d.head.Project, d.head.GitDir}
}

// layerName is the folder of the nth layer: upper and work for the project, upper.1 and work.1 for the repository outside.
func layerName(name string, n int) string {
	if n == 0 {
		return name
	}
	return fmt.Sprintf("%s.%d", name, n)
}

// path is a path in the draft's own folder.
func (d *Draft) path(name ...string) string {
	return filepath.Join(append([]string{d.Dir}, name...)...)
}

// Head is a copy of what is known of the draft.
func (d *Draft) Head() Head {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.head
}

// Set changes the head and stores it. Callers change the head through it alone, so memory and draft.json stay the same.
// change runs under d.mu: it must not call methods of d.
func (d *Draft) Set(change func(*Head)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.head)
	d.head.Used = time.Now().UTC()
	return d.saveLocked()
}

// save stores head and bases.
func (d *Draft) save() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.saveLocked()
}

// saveLocked is save for callers that hold d.mu. Each file is replaced as a whole; a crash between the two leaves bases.json
// as it was before, and the next Record notes again what is missing in it.
func (d *Draft) saveLocked() error {
	b, err := json.MarshalIndent(d.head, "", "  ")
	if err != nil {
		return err
	}
	if err := whole.Write(d.path("draft.json"), b, 0o600); err != nil {
		return err
	}
	if b, err = json.Marshal(d.bases); err != nil {
		return err
	}
	return whole.Write(d.path("bases.json"), b, 0o600)
}

// Load opens a draft's folder. It mounts nothing. A missing bases.json is a draft in which nothing has been recorded.
func Load(dir string) (*Draft, error) {
	d := &Draft{Dir: dir, bases: map[string]Base{}}
	b, err := os.ReadFile(d.path("draft.json"))
	if err == nil {
		err = json.Unmarshal(b, &d.head)
	}
	if err != nil {
		return nil, fmt.Errorf("the draft in %s cannot be read: %w", dir, err)
	}
	// A file that cannot be parsed is an error: without the bases a landing would take every text for new.
	if b, err = os.ReadFile(d.path("bases.json")); err == nil {
		err = json.Unmarshal(b, &d.bases)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the draft in %s cannot be read: %w", dir, err)
	}
	return d, nil
}

// List are the drafts in a folder, of one project where it is named, the oldest first. Folders that hold no draft are left out.
func List(dir, project string) ([]*Draft, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []*Draft
	for _, e := range entries {
		d, err := Load(filepath.Join(dir, e.Name()))
		if err != nil || project != "" && d.head.Project != project {
			continue
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b *Draft) int { return a.head.Created.Compare(b.head.Created) })
	return out, nil
}

// prune drops drafts that nobody used for MaxAge, and rejected ones beyond half of Most: those are kept for second thoughts only. It
// returns those that are left.
func prune(list []*Draft) (left []*Draft) {
	// The newest first: the rejected drafts that are kept are the last ones.
	rejected := 0
	for _, d := range slices.Backward(list) {
		h := d.Head()
		if h.State == Rejected {
			rejected++
		}
		// One that cannot be removed is still there, and counts. One that a session works in is not old, whatever its head says.
		if time.Since(h.Used) > MaxAge || h.State == Rejected && rejected > Most/2 {
			if release, err := d.Acquire(); err == nil {
				err = d.Drop()
				release()
				if err == nil {
					continue
				}
			}
		}
		left = append(left, d)
	}
	slices.Reverse(left)
	return left
}

// Find is a draft by its id, or by the beginning of it where only one has it. Several that fit are an error: dropping or landing the
// wrong one cannot be undone.
func Find(dir, id string) (*Draft, error) {
	list, err := List(dir, "")
	if err != nil {
		return nil, err
	}
	var found []*Draft
	for _, d := range list {
		// A whole id wins over those that only begin like it.
		if h := d.Head(); h.ID == id {
			return d, nil
		} else if id != "" && strings.HasPrefix(h.ID, id) {
			found = append(found, d)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return nil, fmt.Errorf("there is no draft %q; pillion drafts list --all shows them", id)
}

// Acquire takes the draft for one session, or fails with ErrBusy: two that work in it, or one that lands it while another goes on, would
// lose what the other does. release gives it back; so does the end of the process.
func (d *Draft) Acquire() (release func(), err error) {
	f, err := os.OpenFile(d.path("lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	ok, err := lockFile(f)
	if err == nil && !ok {
		err = fmt.Errorf("%w (%s); stop it first, or wait for its end", ErrBusy, d.Head().ID)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return sync.OnceFunc(func() { f.Close() }), nil
}

// Busy reports that a session works in the draft now.
func (d *Draft) Busy() bool {
	release, err := d.Acquire()
	if err == nil {
		release()
	}
	return errors.Is(err, ErrBusy)
}

// Measure notes how much the draft takes on the disk, so that a later Create need not look into all layers.
func (d *Draft) Measure() error {
	var n int64
	_ = filepath.WalkDir(d.Dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil {
			if fi, err := e.Info(); err == nil {
				n += onDisk(fi)
			}
		}
		return nil
	})
	return d.Set(func(h *Head) { h.Size = n })
}

// Drop removes the draft. The kernel leaves work/work behind with mode 0000 after an overlay, and commands may take rights
// away too; both stop RemoveAll, so every folder is opened for its owner and the removal tried again.
func (d *Draft) Drop() error {
	err := os.RemoveAll(d.Dir)
	if err == nil {
		return nil
	}
	_ = filepath.WalkDir(d.Dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(d.Dir)
}

// Root is the folder in which what runs in the draft finds the project: its own path, or the clone's.
func (d *Draft) Root() string {
	if h := d.Head(); h.View != Copy {
		return h.Project
	}
	return d.path("tree")
}

// branch is what .git/HEAD says, for a person: a branch's name, or the hash of a commit that was checked out by itself.
// Empty without Git. The file is read directly, as no process should start for a draft's title.
func branch(root string) string {
	dir := filepath.Join(root, ".git")
	if g := gitFile(root); g != "" {
		dir = g
	}
	b, err := os.ReadFile(filepath.Join(dir, "HEAD"))
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(string(b)), "ref: "), "refs/heads/")
}

// gitFile is the repository that a worktree's or submodule's .git file names with "gitdir: PATH" (gitrepository-layout(5)), made
// absolute; empty where .git is a folder, or nothing.
func gitFile(root string) string {
	b, err := os.ReadFile(filepath.Join(root, ".git"))
	if err != nil {
		return ""
	}
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
	if !ok {
		return ""
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(root, dir)
	}
	return filepath.Clean(dir)
}

// outsideGit is the repository of a linked worktree, which lies outside of it. Git commands in the draft write there: without a
// layer over it a commit in the draft would land in the person's own repository. Where the folder has a commondir file, that
// names the repository which all worktrees share (gitrepository-layout(5)).
func outsideGit(root string) string {
	dir := gitFile(root)
	if dir == "" {
		return ""
	}
	if b, err := os.ReadFile(filepath.Join(dir, "commondir")); err == nil {
		common := strings.TrimSpace(string(b))
		if !filepath.IsAbs(common) {
			common = filepath.Join(dir, common)
		}
		dir = filepath.Clean(common)
	}
	// A repository inside the project, or around it, has the layer of the project and needs none of its own.
	if real, err := filepath.EvalSymlinks(dir); err == nil && !paths.Within(root, real) && !paths.Within(real, root) {
		return real
	}
	return ""
}

// BranchNow is the branch the project is on at this moment, to be compared with the head's.
func (d *Draft) BranchNow() string { return branch(d.Head().Project) }
