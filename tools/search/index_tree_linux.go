package search

import (
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/inotify"
	"github.com/pillion-dev/pillion/tools/search/trigram"
	"golang.org/x/sys/unix"
)

// indexTree is the list of a project's files, held equal to the disk by inotify. The kernel queues the event of a change before the
// system call that made it returns, so after catchUp the list has everything that was changed before catchUp was called. What the kernel
// does not report ends the use of the tree (lost) or is looked at each time (rules, unsure). It is not safe for concurrent use: projectIndex.mu guards it.
type indexTree struct {
	root      string
	device    uint64
	inode     uint64
	global    *ruleSet // the person's global excludes
	prune     []string
	queue     *inotify.Queue
	mounts    *inotify.Mounts
	watches   int // most folders that are watched
	top       *indexFolder
	byWatch   map[int32]*indexFolder
	pending   map[pendingName]bool
	lost      error // why the list may differ from the disk; nil: it does not
	files     int
	unindexed int               // files in no segment
	inDelta   int               // files in the second one
	unsure    int               // files with several hard links: they may be written under a name that is not watched
	linked    map[uint64]bool   // inodes of files with several hard links that have been listed since the last join
	failed    map[string]string // folders that could not be read, with the reason
	rules     []ruleFile
	seed      maphash.Seed
}

// indexFolder is a folder that no ignore file hides.
type indexFolder struct {
	path   string // absolute
	scope  *scope // with its own ignore files
	watch  int32  // -1: no longer watched under this name
	files  []indexFile
	dirs   []*indexFolder // by name
	parent *indexFolder
	gone   bool
}

// indexFile is a regular file that no ignore file hides.
type indexFile struct {
	name     string
	modified int64  // nanoseconds since 1970
	state    uint64 // hash of its trigram.State
	inode    uint64
	doc      docID
	unsure   bool
}

// docID names a document of a segment: its group and, in the lowest bit, which segment. 0: the file is in neither, so it is always searched.
type docID uint32

func docOf(segment, group int) docID { return docID(group<<1|segment) + 1 }

// in reports whether the document is in the set of its segment.
func (d docID) in(sets *[2]trigram.Set) bool {
	if d == 0 {
		return true
	}
	s := sets[(d-1)&1]
	return s == nil || s.Has(int((d-1)>>1))
}

// pendingName is an entry of a folder that an event was about.
type pendingName struct {
	folder *indexFolder
	name   string
}

// ruleFile is a file that decides what is ignored, and its state when it was read. Most are watched like every file of the tree; looking
// at each of them also covers links, and folders above the root.
type ruleFile struct {
	path  string
	state trigram.State // zero: it did not exist; of .git only that counts
}

// ruleFileAt is a rule file as it is now.
func ruleFileAt(path string) ruleFile {
	state := stateOf(path)
	if filepath.Base(path) == ".git" && state != (trigram.State{}) {
		state = trigram.State{Size: 1} // git itself changes its times all the time
	}
	return ruleFile{path, state}
}

// inotifyMask is every change of a name, of content and of rights. IN_CLOSE_WRITE follows the last change through a mapping too: the kernel sends it
// when descriptor and mappings are gone.
const inotifyMask = unix.IN_CREATE | unix.IN_DELETE | unix.IN_MODIFY | unix.IN_CLOSE_WRITE | unix.IN_ATTRIB | unix.IN_MOVED_FROM | unix.IN_MOVED_TO |
	unix.IN_DELETE_SELF | unix.IN_MOVE_SELF | unix.IN_ONLYDIR | unix.IN_EXCL_UNLINK

// openTree lists the project and watches it. pause is called now and then, so that the work does not delay others. The caller closes the tree.
func openTree(ctx context.Context, root string, prune []string, maxFiles int, pause func()) (_ *indexTree, err error) {
	t := &indexTree{root: root, prune: prune, byWatch: map[int32]*indexFolder{}, pending: map[pendingName]bool{}, linked: map[uint64]bool{}, failed: map[string]string{}, seed: indexSeed}
	defer func() {
		if err != nil {
			t.close()
		}
	}()
	if ok, err := inotify.Reports(root); err != nil {
		return nil, err
	} else if !ok {
		return nil, errIndexSystem
	}
	if t.watches, err = watchesToUse(); err != nil {
		return nil, err
	}
	if t.mounts, err = inotify.OpenMounts(); err != nil {
		return nil, err
	}
	if t.queue, err = inotify.Open(); err != nil {
		return nil, errIndexWatches // there is a limit of instances too
	}
	if err := t.noMounts(); err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Stat(root, &st); err != nil {
		return nil, err
	}
	t.device, t.inode = uint64(st.Dev), st.Ino
	// The states of rule files are taken before the files are read: a change between the two is seen as one.
	for _, p := range outerRuleFiles(root) {
		t.rules = append(t.rules, ruleFileAt(p))
	}
	outer := above(root)
	t.global = outer.globalRules()
	t.top = &indexFolder{path: root, watch: -1}
	todo := []*indexFolder{t.top}
	for n := 0; len(todo) > 0; n++ {
		f := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		up := outer
		if f.parent != nil {
			up = f.parent.scope
		}
		if err := t.read(f, up); err != nil {
			return nil, err
		}
		todo = append(todo, f.dirs...)
		if t.files > maxFiles {
			return nil, errIndexLarge
		}
		if n%32 == 31 {
			if pause(); ctx.Err() != nil {
				return nil, ctx.Err()
			}
		}
	}
	t.join()
	return t, nil
}

// indexSeed makes the hashes of states unpredictable: nobody can choose times for a file with which it is taken for another.
var indexSeed = maphash.MakeSeed()

// close ends the watching. It may be called again.
func (t *indexTree) close() {
	if t.queue != nil {
		t.queue.Close()
	}
	if t.mounts != nil {
		t.mounts.Close()
	}
	t.lost = errIndexMoved
}

// watchesToUse is how many folders may be watched. All programs of the person share the limit, editors above all, so most of it is left to them.
func watchesToUse() (int, error) {
	limit, err := inotify.Watches()
	if err != nil {
		return 0, errIndexSystem
	}
	return min(maxIndexFolders, limit/4), nil
}

// noMounts refuses a project below which something is mounted: other files may appear there at any time without an event.
func (t *indexTree) noMounts() error {
	below, err := t.mounts.Below(t.root)
	if err == nil && below {
		return errIndexMounts
	}
	return err
}

// stateOf is the state of a path, or of what a link leads to; zero if it does not exist.
func stateOf(path string) trigram.State {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return trigram.State{}
	}
	return stateFrom(&st)
}

func stateFrom(st *unix.Stat_t) trigram.State {
	return trigram.State{Size: st.Size, Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(), Inode: st.Ino}
}

// hash is a state in eight bytes.
func (t *indexTree) hash(s trigram.State) uint64 { return maphash.Comparable(t.seed, s) }

// read watches a folder, then lists it: what is created after the list was read has an event. up is the scope of the folder above. Only an error
// that ends the whole tree is returned.
func (t *indexTree) read(f *indexFolder, up *scope) error {
	d, err := openDir(f.path)
	if err != nil {
		return t.unreadable(f, up, err)
	}
	defer d.Close()
	fd := int(d.Fd())
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if uint64(st.Dev) != t.device {
		return errIndexMounts
	}
	if f.parent == nil && st.Ino != t.inode {
		return errIndexMoved
	}
	if len(t.byWatch) >= t.watches {
		return errIndexWatches
	}
	w, err := t.queue.Add(fd, inotifyMask)
	switch {
	case err == unix.EACCES:
		return t.unreadable(f, up, err)
	case err == unix.ENOENT:
		return t.unreadable(f, up, fs.ErrNotExist) // removed since it was opened
	case err != nil:
		return errIndexWatches
	}
	if old := t.byWatch[w]; old != nil {
		old.watch = -1 // it was moved here, and the event is still to come
	}
	f.watch = w
	t.byWatch[f.watch] = f
	entries, err := d.ReadDir(-1)
	if err != nil {
		return t.unreadable(f, up, err)
	}
	special := specialEntries(entries)
	for _, name := range special {
		path := filepath.Join(f.path, name)
		if name == ".git" {
			path = filepath.Join(path, "info", "exclude")
		}
		if t.rules = append(t.rules, ruleFileAt(path)); len(t.rules) > maxRuleFiles {
			return errIndexLarge
		}
	}
	f.scope = up.enter(f.path, special)
	return t.fill(f, fd, entries)
}

// fill makes the lists of a folder from its entries.
func (t *indexTree) fill(f *indexFolder, fd int, entries []fs.DirEntry) error {
	prefix := withSeparator(f.path)
	var names strings.Builder // one allocation for the names of a folder
	n := 0
	for _, e := range entries {
		if e.Type().IsRegular() {
			names.WriteString(e.Name())
			n++
		}
	}
	all := names.String()
	f.files = make([]indexFile, 0, n)
	for _, e := range entries {
		name, path := e.Name(), ""
		if e.Type().IsRegular() {
			name, all = all[:len(name)], all[len(name):]
		}
		if path = prefix + name; t.wanted(f, path, name, e.IsDir(), e.Type().IsRegular()) {
			if e.IsDir() {
				f.dirs = append(f.dirs, &indexFolder{path: path, parent: f, watch: -1})
			} else {
				var st unix.Stat_t
				switch err := unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW); {
				case err == unix.ENOENT: // removed since the folder was read
				case err != nil:
					return err // the folder can be read, what is in it cannot
				case st.Mode&unix.S_IFMT == unix.S_IFREG:
					f.files = append(f.files, t.listed(name, &st))
				}
			}
		}
	}
	slices.SortFunc(f.files, func(a, b indexFile) int { return strings.Compare(a.name, b.name) })
	slices.SortFunc(f.dirs, func(a, b *indexFolder) int { return strings.Compare(a.path, b.path) })
	return nil
}

// wanted reports whether the walk would visit an entry: the same tests as in walk.read.
func (t *indexTree) wanted(f *indexFolder, path, name string, isDir, isFile bool) bool {
	return name != ".git" && (isDir || isFile) && !f.scope.ignored(path, isDir) && !(isDir && slices.Contains(t.prune, path))
}

// listed is a new file of the list, which is in no segment yet.
func (t *indexTree) listed(name string, st *unix.Stat_t) indexFile {
	x := indexFile{name: name, modified: st.Mtim.Nano(), state: t.hash(stateFrom(st)), inode: st.Ino, unsure: st.Nlink > 1}
	t.counted(x, 1)
	if x.unsure {
		t.linked[x.inode] = true
	}
	return x
}

// counted adds a file to the counts, or takes it out of them with -1.
func (t *indexTree) counted(x indexFile, n int) {
	t.files += n
	switch {
	case x.doc == 0:
		t.unindexed += n
	case (x.doc-1)&1 == 1:
		t.inDelta += n
	}
	if x.unsure {
		t.unsure += n
	}
}

// unreadable keeps a folder that cannot be read: searches say so. One that is gone is none, its event follows.
func (t *indexTree) unreadable(f *indexFolder, up *scope, err error) error {
	f.scope = up
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		if f.parent == nil {
			return errIndexMoved
		}
		return nil
	}
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	t.failed[f.path] = describe(f.path, err)
	return nil
}

// catchUp brings the list up to date with everything that has happened until now. Afterwards lost says whether it can be used.
func (t *indexTree) catchUp() error {
	if t.lost == nil {
		t.lost = inOrder(t.drain, t.apply, t.checkMounts, t.checkRules)
	}
	return t.lost
}

// inOrder calls the functions until one fails.
func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// drain reads all events that the kernel has queued.
func (t *indexTree) drain() error {
	err := t.queue.Drain(t.event)
	if errors.Is(err, inotify.ErrLost) {
		return errIndexQueue
	}
	return err
}

// event notes what an event is about.
func (t *indexTree) event(watch int32, mask uint32, name string) error {
	f := t.byWatch[watch]
	switch {
	case f == nil: // of a folder that is no longer in the list
	case mask&(unix.IN_IGNORED|unix.IN_UNMOUNT) != 0:
		// The folder was removed. The event of the folder above it comes as well.
		delete(t.byWatch, watch)
		if f.watch = -1; f.parent == nil {
			return errIndexMoved
		}
	case name == "":
		if f.parent == nil && mask&(unix.IN_DELETE_SELF|unix.IN_MOVE_SELF) != 0 {
			return errIndexMoved
		}
	case name == ".git":
		if mask&(unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVED_FROM|unix.IN_MOVED_TO) != 0 {
			return errIndexRules
		}
	case slices.Contains(ignoreNames[:], name):
		return errIndexRules
	case mask&unix.IN_ISDIR != 0 && mask&unix.IN_ATTRIB != 0:
		// Its rights may have changed, and with them what can be read below it.
		path := withSeparator(f.path) + name
		if f.dir(name) != nil && (t.failed[path] != "" || unix.Access(path, unix.R_OK|unix.X_OK) != nil) {
			return errIndexRules
		}
	default:
		t.pending[pendingName{f, name}] = true
	}
	return nil
}

// find is the place of a file in the folder's list.
func (f *indexFolder) find(name string) (int, bool) {
	return slices.BinarySearchFunc(f.files, name, func(x indexFile, name string) int { return strings.Compare(x.name, name) })
}

// dir is a folder of the folder, or nil.
func (f *indexFolder) dir(name string) *indexFolder {
	i, ok := f.findDir(name)
	if !ok {
		return nil
	}
	return f.dirs[i]
}

// findDir is the place of a folder in the list. All have the same parent, so whole paths compare as names do.
func (f *indexFolder) findDir(name string) (int, bool) {
	path := withSeparator(f.path) + name
	return slices.BinarySearchFunc(f.dirs, path, func(d *indexFolder, path string) int { return strings.Compare(d.path, path) })
}

// apply looks at every name that an event was about. Folders are taken out of the list first: one that was moved would otherwise be in it twice.
func (t *indexTree) apply() error {
	if len(t.pending) == 0 {
		return nil
	}
	names := t.pending
	t.pending = map[pendingName]bool{}
	for p := range names {
		if i, ok := p.folder.findDir(p.name); ok {
			t.drop(p.folder.dirs[i])
			p.folder.dirs = slices.Delete(p.folder.dirs, i, i+1)
		}
	}
	for p := range names {
		if p.folder.gone {
			continue
		}
		if err := t.look(p.folder, p.name); err != nil {
			return err
		}
	}
	t.join()
	return nil
}

// join marks the other names of files that have got a further one: linking a file is an event of its new folder only.
func (t *indexTree) join() {
	if len(t.linked) == 0 {
		return
	}
	t.each(t.top, func(f *indexFolder) {
		for i := range f.files {
			if x := &f.files[i]; t.linked[x.inode] && !x.unsure {
				t.counted(*x, -1)
				x.doc, x.unsure = 0, true
				t.counted(*x, 1)
			}
		}
	})
	clear(t.linked)
}

// drop takes a folder and all below it out of the list.
func (t *indexTree) drop(f *indexFolder) {
	f.gone = true
	for _, x := range f.files {
		t.counted(x, -1)
	}
	for _, d := range f.dirs {
		t.drop(d)
	}
	delete(t.failed, f.path)
	if f.watch >= 0 {
		delete(t.byWatch, f.watch)
		t.queue.Remove(f.watch)
		f.watch = -1
	}
}

// look brings one name of a folder up to date. A folder that was dropped by apply is read anew, with all below it.
func (t *indexTree) look(f *indexFolder, name string) error {
	path := withSeparator(f.path) + name
	var st unix.Stat_t
	err := unix.Lstat(path, &st)
	kind := st.Mode & unix.S_IFMT
	if err != nil && err != unix.ENOENT && err != unix.ENOTDIR {
		return err
	}
	i, ok := f.find(name)
	isFile := err == nil && kind == unix.S_IFREG
	isDir := err == nil && kind == unix.S_IFDIR
	if !t.wanted(f, path, name, isDir, isFile) {
		if ok {
			t.counted(f.files[i], -1)
			f.files = slices.Delete(f.files, i, i+1)
		}
		return nil
	}
	if isFile {
		x := t.listed(strings.Clone(name), &st)
		if ok {
			t.counted(f.files[i], -1)
			f.files[i] = x
		} else {
			f.files = slices.Insert(f.files, i, x)
		}
		return nil
	}
	if ok {
		t.counted(f.files[i], -1)
		f.files = slices.Delete(f.files, i, i+1)
	}
	at, have := f.findDir(name)
	if have {
		return nil
	}
	d := &indexFolder{path: path, parent: f, watch: -1}
	f.dirs = slices.Insert(f.dirs, at, d)
	for todo := []*indexFolder{d}; len(todo) > 0; {
		d := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		rules := len(t.rules)
		if err := t.read(d, d.parent.scope); err != nil {
			return err
		}
		for _, r := range t.rules[rules:] {
			if young(r.state, time.Now()) {
				return errIndexRules
			}
		}
		todo = append(todo, d.dirs...)
		if t.files > maxIndexFiles {
			return errIndexLarge
		}
	}
	return nil
}

// checkMounts looks whether something was mounted or unmounted since the last call, anywhere on the machine, and then whether it was in the project.
func (t *indexTree) checkMounts() error {
	changed, err := t.mounts.Changed()
	if err != nil || !changed {
		return err
	}
	return t.noMounts()
}

// checkRules compares what decides about ignored files with what it was, and whether the path still leads to the folder.
func (t *indexTree) checkRules() error {
	var st unix.Stat_t
	if err := unix.Stat(t.root, &st); err != nil || uint64(st.Dev) != t.device || st.Ino != t.inode {
		return errIndexMoved
	}
	for _, r := range t.rules {
		if ruleFileAt(r.path).state != r.state {
			return errIndexRules
		}
	}
	return nil
}

// settled reports whether no rule file was changed so shortly before it was read that another change may have left its times as they are.
func (t *indexTree) settled(read time.Time) bool {
	return !slices.ContainsFunc(t.rules, func(r ruleFile) bool { return young(r.state, read) })
}

// assign gives the files that are as a segment has them its documents. which is 0 or 1; documents that the files had there are forgotten.
func (t *indexTree) assign(which int, s *trigram.Segment) error {
	t.each(t.top, func(f *indexFolder) {
		for i := range f.files {
			x := &f.files[i]
			if x.doc != 0 && int(x.doc-1)&1 == which {
				t.counted(*x, -1)
				x.doc = 0
				t.counted(*x, 1)
			}
		}
	})
	if s == nil {
		return nil
	}
	return s.Each(func(folder string, docs []trigram.Doc) bool {
		f := t.folder(filepath.Join(t.root, filepath.FromSlash(folder)))
		if f == nil {
			return true
		}
		for _, d := range docs {
			i, ok := f.find(d.Name)
			if !ok || f.files[i].doc != 0 || f.files[i].unsure || f.files[i].state != t.hash(d.State) {
				continue
			}
			x := &f.files[i]
			t.counted(*x, -1)
			x.doc = docOf(which, d.Group)
			t.counted(*x, 1)
		}
		return true
	})
}

// each calls do for a folder and all below it.
func (t *indexTree) each(f *indexFolder, do func(*indexFolder)) {
	do(f)
	for _, d := range f.dirs {
		t.each(d, do)
	}
}

// folder is a folder of the list by its path; nil if it is not in the list.
func (t *indexTree) folder(path string) *indexFolder {
	if path == t.root {
		return t.top
	}
	rest, ok := strings.CutPrefix(path, withSeparator(t.root))
	if !ok {
		return nil
	}
	f := t.top
	for part := range strings.SplitSeq(rest, string(filepath.Separator)) {
		if f = f.dir(part); f == nil {
			return nil
		}
	}
	return f
}

// refresh takes the times of the files anew that may change without an event.
func (t *indexTree) refresh(f *indexFolder) {
	if t.unsure == 0 {
		return
	}
	t.each(f, func(f *indexFolder) {
		for i := range f.files {
			if x := &f.files[i]; x.unsure {
				if at, err := modTime(withSeparator(f.path) + x.name); err == nil {
					x.modified = at.UnixNano()
				}
			}
		}
	})
}

// interrupt ends a wait.
func (t *indexTree) interrupt() { t.queue.Interrupt() }

// wait blocks until there are events, the deadline has passed or the tree is closed. It reads nothing, and needs no lock.
func (t *indexTree) wait(until time.Time) { t.queue.Wait(until) }
