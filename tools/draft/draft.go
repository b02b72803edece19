// Package draft gives an agent a copy-on-write view of a project: a program in it reads and writes the project under
// the project's own absolute path, and the project's files stay as they are until the draft is landed.
//
// A Draft is a folder in Pillion's state. No process runs while it is idle; each program that Command returns mounts the view
// again, in a namespace of its own. On Linux the view is an overlay whose lower layer is the project (View "overlay").
// With namespaces but without overlays it is a clone mounted over the project ("bind"), and without namespaces a clone
// under another path ("copy"), which the caller has to translate.
//
// The package knows files and mounts. What may run, approval requests and writing files of the project are left to others:
// Changes returns the changes of the draft as values.
//
//	d, err := draft.Create(ctx, draft.Options{Dir: state + "/drafts", Project: "/home/ann/app"})
//	cmd, err := d.Command("bash", "-c", "sed -i s/a/b/ *.go")   // not started yet
//	…
//	err = d.Record(start, nil)    // keep the project's version of each changed path
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
)

// View says how a draft shows the project.
type View string

// The views, from the best to the one that always works.
const (
	Overlay View = "overlay" // an overlay file system over the project
	Bind    View = "bind"    // a clone, mounted over the project
	Copy    View = "copy"    // a clone under another path
)

// State is the stage of a draft's life. It is kept in draft.json, so that other processes, and the next one after a crash, see it.
type State string

// The states, in their usual order. A landed draft is removed and has no state.
const (
	Open     State = "open"     // a session works in it
	Proposed State = "proposed" // it waits for the person's decision
	Rejected State = "rejected" // kept for second thoughts, see Prune; the session's next turn begins another draft
	Landing  State = "landing"  // LandBulk moves its files into the project; after a crash, landing again completes the move
)

// Head is the content of draft.json: everything about a draft that can be known without reading its layer. Each Set replaces the
// whole file, so other processes, which list drafts, never read a half-written one.
type Head struct {
	ID      string    `json:"id"`
	Project string    `json:"project"` // absolute, links resolved
	Session string    `json:"session,omitempty"`
	Title   string    `json:"title,omitempty"`
	Created time.Time `json:"created"`
	// Used is the last Set, in UTC; Prune measures MaxAge from it.
	Used time.Time `json:"used"`
	View View      `json:"view"`
	Why  string    `json:"why,omitempty"` // why the view is not an overlay
	// SharedPIDs means that the draft's processes have no PID namespace of their own. Package guard finds them by its marks then.
	SharedPIDs bool   `json:"sharedPIDs,omitempty"`
	State      State  `json:"state"`
	Branch     string `json:"branch,omitempty"` // what .git/HEAD held when the draft was made
	// Mode is the permission bits of the project's folder when the draft was made.
	Mode uint32 `json:"mode,omitempty"`
	// Attempt counts how often the proposal was returned to the model before a person was asked.
	Attempt int `json:"attempt,omitempty"`
	// Size is the disk space that the draft used at the last Keep, in bytes.
	Size int64 `json:"size,omitempty"`
	// Boot identifies the run of the operating system in which programs may have written to the draft since the last Keep; empty: all of it is
	// on the disk. If that run has ended, files of the draft may be incomplete, and Propose says so.
	Boot string `json:"boot,omitempty"`
	// GitDir is the project's repository if it is outside of the project, see outsideGit. It is empty for an ordinary repository,
	// whose .git folder the project's own layer covers.
	GitDir string `json:"gitDir,omitempty"`
}

// Draft is one draft's folder. Its methods are safe for concurrent use; callers serialise what they run in the view.
type Draft struct {
	Dir string // absolute; holds draft.json, bases.json, base/, upper/, work/ or tree/

	// copied is the manifest of a clone, see copiedFrom.
	copied struct {
		sync.Mutex
		m *manifest // guarded by the mutex; its fields are only read, so another one replaces it
	}

	mu    sync.Mutex
	head  Head            // guarded by mu
	bases map[string]Base // guarded by mu; by path relative to the project, with slashes
	left  error           // guarded by mu; what resume could not put in order, for the person
	steps *os.File        // guarded by mu; what LandBulk is doing, see landStep; nil: it does not run
	held  func()          // guarded by mu; releases the lock that Create took, until the first Acquire takes it over; nil: no lock
}

// Base is what the project had at a path when the draft first changed it.
type Base struct {
	Kind   Kind   `json:"kind"`
	Mode   uint32 `json:"mode,omitempty"` // permission bits
	Hash   string `json:"hash,omitempty"` // of a file's bytes, which are in base/<hash>, or of a link's target
	Size   int64  `json:"size,omitempty"`
	Unsure bool   `json:"unsure,omitempty"` // the project's file changed during the call or since the clone was made, so the draft may have read another text; a file then has no Hash
	Buffer bool   `json:"buffer,omitempty"` // the bytes are an editor's unsaved text
	Big    bool   `json:"big,omitempty"`    // larger than files.MaxText, or not readable: no bytes are kept, only size and mode
	ID     string `json:"id,omitempty"`     // with Big: fingerprint of the project's file
	// Emptied means that the draft has removed everything in this folder, and that each removed path has a base.
	Emptied bool `json:"emptied,omitempty"`
}

// Kind says what is at a path.
type Kind string

// The kinds. They are stored in bases.json and in a clone's manifest, so their values must stay as they are.
const (
	None    Kind = ""        // nothing is there
	File    Kind = "file"    // a regular file
	Link    Kind = "link"    // a symbolic link, which is never followed
	Folder  Kind = "folder"  // a directory
	Special Kind = "special" // a socket, named pipe or device, which cannot be landed
)

// The errors that callers test with errors.Is. ErrTooMany and ErrPlace come from Create; the text that wraps them says what to do.
var (
	ErrTooMany = errors.New("there are too many drafts of this project")
	ErrPlace   = errors.New("no draft can be created for this folder")
	// ErrCopies is returned by Create with NoCopy if the draft would be a clone.
	ErrCopies = errors.New("a draft of this project is a copy of it")
	// ErrBusy is returned by Acquire while another session or process holds the draft.
	ErrBusy = errors.New("a session is working in this draft")
)

// The limits for one project. A clone holds a copy of the project, and packages that were installed in a draft stay in it, so
// forgotten drafts would fill the disk.
const (
	Most    = 20                  // drafts that are not rejected
	MaxSize = 20 << 30            // bytes of all drafts together, beyond which Create refuses another
	MaxAge  = 14 * 24 * time.Hour // since Head.Used; the next Create removes an older draft
)

// Options say which draft to make.
type Options struct {
	Dir     string // where drafts are kept
	Project string // the worktree's root
	Session string // id of the session that works in the draft; may be empty
	Title   string // what lists show a person; may be empty
	// View overrides the probe; empty: the best view that the system and the project allow.
	View View
	// Untried makes Create take an overlay for granted, which saves the start of a process. The caller starts a program in the view and calls
	// Fits before the draft is used; if either fails it drops the draft and creates another one without Untried. View must be empty.
	Untried bool
	// NoCopy makes Create fail with ErrCopies instead of cloning the project, for a draft that is only likely to be needed.
	NoCopy bool
	// Ignored reports what Git ignores; nil: nothing. A clone does not copy an ignored folder that is larger than maxShared.
	Ignored func(abs string, dir bool) bool
}

// Create makes an empty draft. It returns before anything is mounted; for a clone it copies the project. It fails with
// ErrPlace for a project that contains the drafts' own folder, and with ErrTooMany. A draft that fails half-way is removed.
func Create(ctx context.Context, o Options) (*Draft, error) {
	project, err := o.place()
	if err != nil {
		return nil, err
	}
	// Rejected drafts count for the size, not for the number: a person who rejects twenty drafts must still get the next one.
	have, err := List(o.Dir, project)
	if err != nil {
		return nil, err
	}
	have = Prune(have)
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
	// Eight letters of base 32 (40 random bits) are short enough to type after `pillion drafts show`.
	id := "dr" + strings.ToLower(rand.Text()[:8])
	// Branch is stored so that Propose can note when the project is on another one by then.
	now := time.Now().UTC()
	d := &Draft{Dir: filepath.Join(o.Dir, id), bases: map[string]Base{}, head: Head{
		ID: id, Project: project, Session: o.Session, Title: o.Title, Created: now, Used: now, State: Open, Branch: branch(project), GitDir: outsideGit(project),
	}}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	// Mkdir, not MkdirAll: if the id exists already this fails, and two drafts never share a folder.
	if err := os.Mkdir(d.Dir, 0o700); err != nil {
		return nil, err
	}
	// Locked before draft.json makes it visible: Prune in another process removes an unlocked draft without changes as a leftover of a crash.
	if d.held, err = d.Acquire(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(d.Dir))
	}
	pids := true
	if o.Untried {
		d.head.View = Overlay
	} else if d.head.View, d.head.Why = o.View, "it was asked for"; o.View == "" {
		d.head.View, pids, d.head.Why = best(ctx, d)
	} else if o.View != Copy {
		pids = Probe().PIDs
	}
	d.head.SharedPIDs = !pids
	if o.NoCopy && d.head.View != Overlay {
		_ = d.Drop()
		return nil, ErrCopies
	}
	if err := d.fill(ctx, o); err != nil {
		_ = d.Drop()
		return nil, err
	}
	if err := d.saveHead(); err != nil {
		_ = d.Drop()
		return nil, err
	}
	return d, nil
}

// place returns the project with its links resolved. It fails where no draft can be created.
func (o Options) place() (string, error) {
	project, err := filepath.EvalSymlinks(o.Project)
	if err != nil {
		return "", err
	}
	// Otherwise the overlay's lower layer would contain its own upper one, and Pillion's state would become part of what is landed.
	if project == "/" || paths.Within(project, o.Dir) {
		return "", fmt.Errorf("%w: %s contains Pillion's own state (%s); work in a folder below it", ErrPlace, project, o.Dir)
	}
	return project, nil
}

// fill creates the folders of the view: the copy for a clone, or upper and work of each overlay. The work folder must be empty and on
// the same file system as upper (the kernel's Documentation/filesystems/overlayfs.rst), so the two are side by side.
func (d *Draft) fill(ctx context.Context, o Options) error {
	fi, err := os.Stat(d.head.Project)
	if err != nil {
		return err
	}
	d.head.Mode = uint32(fi.Mode().Perm())
	if d.head.View != Overlay {
		if err := clone(ctx, d.head.Project, d.path("tree"), o.Ignored, d.path("manifest.json")); err != nil {
			return err
		}
		return os.Chmod(d.path("tree"), fi.Mode().Perm())
	}
	for i := range d.roots() {
		for _, name := range []string{"upper", "work"} {
			if err := os.Mkdir(d.path(layerName(name, i)), 0o700); err != nil {
				return err
			}
		}
	}
	// The root of the mounted view shows the mode of upper, which was created with 0700.
	return os.Chmod(d.path("upper"), fi.Mode().Perm())
}

// roots are the folders that get an overlay: the project, and its repository where that is outside.
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

// Head returns a copy of the head.
func (d *Draft) Head() Head {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.head
}

// Set changes the head, sets Used and stores draft.json. change runs under d.mu, so it must not call methods of d.
func (d *Draft) Set(change func(*Head)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.head)
	d.head.Used = time.Now().UTC()
	return d.saveHead()
}

// saveBases stores the bases. The caller holds d.mu.
func (d *Draft) saveBases() error {
	b, err := json.Marshal(d.bases)
	if err != nil {
		return err
	}
	return replace(d.path("bases.json"), b)
}

// saveHead stores the head. The caller holds d.mu.
func (d *Draft) saveHead() error {
	b, err := json.MarshalIndent(d.head, "", "  ")
	if err != nil {
		return err
	}
	return replace(d.path("draft.json"), b)
}

// replace writes a file of the draft so that a reader never sees half of it, and a killed process leaves none. It does not wait for the
// disk: Keep does that for the whole draft.
func replace(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Keep must be called when a turn leaves a draft that is not landed or dropped at once. It stores in Head.Size how much disk space the draft
// uses, so that Create need not walk every layer, and waits until all of the draft is on the disk. It walks the draft's folder. After the
// end of ctx it stores nothing any more, so that the draft may be dropped while Keep still waits for the disk.
func (d *Draft) Keep(ctx context.Context) error {
	var n int64
	_ = filepath.WalkDir(d.Dir, func(_ string, e fs.DirEntry, err error) error {
		if err == nil {
			if fi, err := e.Info(); err == nil {
				n += onDisk(fi)
			}
		}
		return nil
	})
	// The files first: the head says that they are on the disk.
	if err := syncAll(d.Dir); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if ctx.Err() != nil {
		return nil
	}
	d.head.Size, d.head.Boot = n, ""
	return d.saveHead()
}

// Load opens a draft's folder. It mounts nothing. Without a bases.json nothing has been recorded in the draft yet.
func Load(dir string) (*Draft, error) {
	d := &Draft{Dir: dir, bases: map[string]Base{}}
	b, err := os.ReadFile(d.path("draft.json"))
	if err == nil {
		err = json.Unmarshal(b, &d.head)
	}
	if err != nil {
		return nil, fmt.Errorf("the draft in %s cannot be read: %w", dir, err)
	}
	// A bases.json that cannot be parsed is an error: without bases every file of the layer would be proposed as new.
	if b, err = os.ReadFile(d.path("bases.json")); err == nil {
		err = json.Unmarshal(b, &d.bases)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the draft in %s cannot be read: %w", dir, err)
	}
	return d, nil
}

// List returns the drafts in a folder, oldest first; only those of project unless it is empty. Folders without a readable draft are
// left out, and a folder that does not exist has none.
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

// Prune drops drafts that are no longer useful: those that were not used for MaxAge; rejected ones except the newest Most/2; and open ones
// that a killed process left behind without changes or without a session. It returns the remaining drafts in their order. list must be
// sorted as List returns it.
func Prune(list []*Draft) (left []*Draft) {
	// From the newest to the oldest, so that the count keeps the newest rejected drafts.
	rejected := 0
	for _, d := range slices.Backward(list) {
		h := d.Head()
		if h.State == Rejected {
			rejected++
		}
		// A draft that cannot be removed still takes space, so it stays in the list. One that a session holds is in use, whatever its head
		// says: Acquire fails, and it stays too.
		if time.Since(h.Used) > MaxAge || h.State == Rejected && rejected > Most/2 || h.State == Open {
			if release, err := d.Acquire(); err == nil {
				if h.State != Open || time.Since(h.Used) > MaxAge || h.Session == "" || d.untouched() {
					err = d.Drop()
				} else {
					err = errKept
				}
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

// errKept is used within Prune for a draft that is not dropped because it has changes.
var errKept = errors.New("the draft is kept")

// Find returns the draft with an id, or the only one whose id begins with it. An ambiguous beginning is an error, as dropping or landing
// the wrong draft cannot be undone.
func Find(dir, id string) (*Draft, error) {
	list, err := List(dir, "")
	if err != nil {
		return nil, err
	}
	var found []*Draft
	for _, d := range list {
		// An exact id wins over prefixes.
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

// Acquire locks the draft for one session, or fails with ErrBusy. Without the lock one session could land or change the draft while
// another works in it, and changes would be lost. release unlocks it and may be called twice; the end of the process unlocks it as well.
func (d *Draft) Acquire() (release func(), err error) {
	d.mu.Lock()
	release, d.held = d.held, nil
	d.mu.Unlock()
	if release != nil {
		return release, nil
	}
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
	// Whoever works in the draft must find all that it has in its layer.
	if err := d.resume(); err != nil {
		d.mu.Lock()
		d.left = err
		d.mu.Unlock()
	}
	return sync.OnceFunc(func() { f.Close() }), nil
}

// Busy reports whether some session holds the draft. It tries the lock for a moment, so a concurrent Acquire may fail because of it.
func (d *Draft) Busy() bool {
	release, err := d.Acquire()
	if err == nil {
		release()
	}
	return errors.Is(err, ErrBusy)
}

// Drop removes the draft's folder. An overlay leaves work/work behind with mode 0000, and commands may have made folders read-only;
// both make RemoveAll fail. Drop then gives the owner all rights to every folder and tries once more.
func (d *Draft) Drop() error {
	d.mu.Lock()
	if d.held != nil {
		d.held()
		d.held = nil
	}
	d.mu.Unlock()
	return removeAll(d.Dir)
}

// removeAll removes a folder with what the overlay left in it: its work folder has the mode 0000.
func removeAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// Root is where programs in the draft find the project: at its own path, or in a copy at the clone's path.
func (d *Draft) Root() string {
	if h := d.Head(); h.View != Copy {
		return h.Project
	}
	return d.path("tree")
}

// branch is what .git/HEAD names: a branch, or the commit of a detached HEAD; "" without Git. The file is read directly, as starting
// git for it would slow down every Create.
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

// outsideGit is the repository of a linked worktree, with links resolved; "" if the repository is inside or around the project. Git
// commands in the draft write there: without a layer over it, a commit in the draft would change the person's own repository. A
// worktree's own folder names the repository that all worktrees share in its commondir file (gitrepository-layout(5)).
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
	// The project's layer covers a repository inside it. Layers of a folder and of one around it would overlap.
	if real, err := filepath.EvalSymlinks(dir); err == nil && !paths.Within(root, real) && !paths.Within(real, root) {
		return real
	}
	return ""
}

// BranchNow is the project's current branch; Head.Branch has the one at the draft's start.
func (d *Draft) BranchNow() string { return branch(d.Head().Project) }
