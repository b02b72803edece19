package draft

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/paths"
)

// spec tells the helper what to mount. It travels as JSON in an argument, so that nothing has to be written to disk for a start.
type spec struct {
	Layers []mounted `json:"layers,omitempty"`
	Shared []shared  `json:"shared,omitempty"` // mounted read-only
	Hide   []string  `json:"hide,omitempty"`   // folders that show nothing
	PIDs   bool      `json:"pids,omitempty"`   // there is a namespace of processes, which needs its own /proc
	Try    bool      `json:"try,omitempty"`    // only mount: nothing is run in the view
	// Dir is where the program starts. It is entered after mounting: a folder that was entered before shows what lies below.
	Dir string `json:"dir"`
}

// mounted is a folder that is shown otherwise: At is the lower layer of an overlay, or (Work empty) has Upper mounted in its place.
type mounted struct {
	At    string `json:"at"`
	Upper string `json:"upper"`
	Work  string `json:"work,omitempty"`
}

// shared is a folder that is shown at another path too. In spec.Shared both are paths of the project: what is there is kept
// visible, read-only, under the clone that is mounted over it.
type shared struct {
	From string `json:"from"`
	At   string `json:"at"`
}

// Main is the helper: it mounts what the first argument says and becomes the program that follows. It returns only when
// that failed, with the exit code: nothing runs that would see the project itself. 125 is what env(1) and timeout(1) return for
// failures of their own, so it is not taken for an exit code of the program.
func Main(args []string) int {
	err := enter(args)
	fmt.Fprintln(os.Stderr, "pillion: the draft could not be entered:", err)
	return 125
}

// enter replaces this process by args[1:] in the view of args[0]. Rights are given up last, as mounting needs them, and before
// exec, so that no instruction of the program runs with them.
func enter(args []string) error {
	if len(args) == 0 {
		return errors.New("this is for Pillion's own use")
	}
	var s spec
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		return err
	}
	if len(args) < 2 && !s.Try {
		return errors.New("no program was named")
	}
	runtime.LockOSThread() // rights belong to the thread that becomes the program
	if err := s.mount(); err != nil {
		return err
	}
	if s.Try {
		os.Exit(0)
	}
	if err := os.Chdir(s.Dir); err != nil { // where we were is the place below the new mounts
		return err
	}
	if err := dropRights(); err != nil {
		return fmt.Errorf("rights: %w", err)
	}
	program, err := exec.LookPath(args[1])
	if err != nil {
		return err
	}
	return syscall.Exec(program, args[1:], os.Environ())
}

// mount arranges the view. The order matters: what shows through other names is found before the layers hide it. Any failure
// ends the helper; half a view would let writes through to the project.
func (s *spec) mount() error {
	// Private: mounts made here do not appear outside, and what the system mounts later does not appear over a layer.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	// Read before anything is mounted: below and aliases ask what the system had.
	table, err := mountTable()
	if err != nil {
		return err
	}
	var kept []detached
	for _, x := range s.Shared { // before the clone is mounted over them
		d, err := detach(x.From, x.At)
		if err != nil {
			return err
		}
		kept = append(kept, d)
	}
	for _, l := range s.Layers {
		inner, err := below(table, l.At)
		if err != nil {
			return err
		}
		var others []shared
		if l.Work != "" {
			for _, x := range s.Layers { // of a clone there is nothing to alias
				others = append(others, aliases(table, x.At)...)
			}
		}
		if err := l.mount(); err != nil {
			return err
		}
		for _, m := range inner {
			if err := m.attach(); err != nil {
				return err
			}
		}
		for _, o := range others {
			// Only what this layer covers is mounted here; names of the other layer's folder get theirs when that one is up.
			if !paths.Within(l.At, o.From) {
				continue
			}
			if err := unix.Mount(o.From, o.At, "", unix.MS_BIND|unix.MS_REC, ""); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s, another name of %s: %w", o.At, o.From, err)
			}
		}
	}
	for _, d := range kept {
		if err := d.attach(); err != nil {
			return err
		}
	}
	// An empty, read-only tmpfs: a command must read neither other drafts nor the layer below its own feet. 4 kB is one page.
	for _, dir := range s.Hide {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,mode=0700"); err != nil {
			return fmt.Errorf("hiding %s: %w", dir, err)
		}
	}
	// A new namespace still shows the old /proc, which lists processes of the outside by numbers that mean others in here.
	if s.PIDs {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("/proc: %w", err)
		}
	}
	return nil
}

// mount shows the layer. Folders are named by descriptors: the option string of an overlay gives ":" and "," a meaning, and
// projects may have both in their paths. userxattr (Linux 5.11) keeps the overlay's marks in user.* attributes, as trusted.* ones
// need rights outside of the user namespace; layer_linux.go reads them.
func (l mounted) mount() error {
	if l.Work == "" {
		if err := unix.Mount(l.Upper, l.At, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mounting the clone over %s: %w", l.At, err)
		}
		return nil
	}
	var fds [3]int
	for i, dir := range []string{l.At, l.Upper, l.Work} {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", dir, err)
		}
		defer unix.Close(fd)
		fds[i] = fd
	}
	var was, is unix.Stat_t
	if err := unix.Stat(l.At, &was); err != nil {
		return fmt.Errorf("%s: %w", l.At, err)
	}
	data := fmt.Sprintf("userxattr,lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d", fds[0], fds[1], fds[2])
	if err := unix.Mount("pillion", l.At, "overlay", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return fmt.Errorf("an overlay over %s: %w", l.At, err)
	}
	// The mount is believed only when the path leads to it: folders of an overlay have a device of their own.
	if err := unix.Stat(l.At, &is); err != nil || is.Dev == was.Dev {
		return fmt.Errorf("an overlay over %s: it does not show there (%v)", l.At, err)
	}
	return nil
}

// mountPoint is a line of /proc/self/mountinfo (proc_pid_mountinfo(5)): device as major:minor, root the folder of the file system
// that is mounted, at where it is seen.
type mountPoint struct{ device, root, at string }

// mountTable reads the mounts of this namespace.
func mountTable() ([]mountPoint, error) {
	b, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	var out []mountPoint
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		f := strings.Fields(lines.Text()) // id parent major:minor root mountpoint …
		if len(f) > 5 {
			out = append(out, mountPoint{f[2], unescape(f[3]), unescape(f[4])})
		}
	}
	return out, lines.Err()
}

// unescape undoes the octal escapes of /proc/self/mountinfo: \040 for a blank, \011 tab, \012 newline, \134 backslash.
func unescape(s string) string {
	var b strings.Builder
	// A backslash that three octal digits do not follow is left as it is.
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// holder is the mount that shows a path: of those on the longest prefix the last one, as a later mount covers an earlier.
func holder(table []mountPoint, path string) (m mountPoint, ok bool) {
	for _, x := range table {
		if paths.Within(x.at, path) && (!ok || len(x.at) >= len(m.at)) {
			m, ok = x, true
		}
	}
	return m, ok
}

// aliases are the other names under which a folder, or a part of it, can be reached: mounts of the same file system. A
// command could change the project through them, behind the layer, as where /home is a bind mount of /data/home. from is the
// name inside dir, which shows the layer once it is mounted.
func aliases(table []mountPoint, dir string) []shared {
	m, ok := holder(table, dir)
	if !ok {
		return nil
	}
	rel, err := filepath.Rel(m.at, dir)
	if err != nil {
		return nil
	}
	inside := filepath.Join(m.root, rel) // the folder within the file system
	var out []shared
	for _, x := range table {
		if x.device != m.device {
			continue
		}
		switch {
		// Bind mounts of one file system have the same device and differ in root.
		case paths.Within(x.root, inside): // shows all of it
			rest, _ := filepath.Rel(x.root, inside)
			if at := filepath.Join(x.at, rest); at != dir {
				out = append(out, shared{dir, at})
			}
		case paths.Within(inside, x.root): // shows a part
			rest, _ := filepath.Rel(inside, x.root)
			if from := filepath.Join(dir, rest); x.at != from {
				out = append(out, shared{from, x.at})
			}
		}
	}
	return out
}

// detached is a mount inside the project, taken before the layer hides it. fd keeps it alive until attach, which closes it.
type detached struct {
	fd int
	at string
}

// below takes copies of the mounts inside a folder. An overlay does not show them, so they are put on it again, read-only:
// nothing would keep what is written there. A mount within one that was taken comes with it and is skipped.
func below(table []mountPoint, dir string) ([]detached, error) {
	var out []detached
	for _, m := range table {
		if m.at == dir || !paths.Within(dir, m.at) || slices.ContainsFunc(out, func(d detached) bool { return paths.Within(d.at, m.at) }) {
			continue
		}
		d, err := detach(m.at, m.at)
		if err != nil {
			return nil, fmt.Errorf("%s, which is mounted in the project: %w", m.at, err)
		}
		out = append(out, d)
	}
	return out, nil
}

// detach copies what is mounted at a path, with the mounts inside of it, to be attached at another (open_tree(2), Linux 5.2).
func detach(from, at string) (detached, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return detached{}, fmt.Errorf("%s: %w", from, err)
	}
	return detached{fd, at}, nil
}

// attach makes the copy read-only, whole tree at once (mount_setattr(2), Linux 5.12), and only then shows it: there is no moment in
// which it could be written.
func (d detached) attach() error {
	defer unix.Close(d.fd)
	if err := unix.MountSetattr(d.fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("%s read-only: %w", d.at, err)
	}
	if err := unix.MoveMount(d.fd, "", unix.AT_FDCWD, d.at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("%s: %w", d.at, err)
	}
	return nil
}

// kept are the rights that a program in a draft may have if this user is root: what root needs to work with files of several owners.
// None of them can change mounts. CAP_SETFCAP is what the kernel wants for a user namespace of root's (Linux 5.12), which
// the sandbox makes for each command.
var kept = []uintptr{unix.CAP_SETFCAP, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID}

// dropRights gives up, for good, what was needed to mount: with it a command could take the layer off again. Three ways lead back
// to a right across exec (capabilities(7)): the ambient set, the bounding set, from which a program of root's gets its rights, and
// the inheritable set with a file's own. All three are closed; no_new_privs closes set-user-ID programs as well.
func dropRights() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	root := os.Geteuid() == 0
	// Every number is tried, as a newer kernel may know rights that this program does not.
	for c := uintptr(0); c <= unix.CAP_LAST_CAP+8; c++ { // a few more than this build knows
		if root && slices.Contains(kept, c) {
			continue
		}
		// EINVAL is a number that this kernel does not know.
		if has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err != nil || has == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil {
			return err
		}
	}
	var head unix.CapUserHeader
	head.Version = unix.LINUX_CAPABILITY_VERSION_3
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	data[0].Inheritable, data[1].Inheritable = 0, 0
	if err := unix.Capset(&head, &data[0]); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
}

// command is Command on Linux. The drafts' folder is hidden in every mounted view; a copy has no mounts, so nothing is hidden in it.
func (d *Draft) command(argv []string) (*exec.Cmd, error) {
	h := d.Head()
	if h.View == Copy {
		cmd := guard.Command(guard.Bash, argv...)
		cmd.Dir = d.Root()
		return cmd, nil
	}
	// With a namespace of processes a command in the background cannot outlive the worker.
	s := spec{Dir: h.Project, Hide: []string{filepath.Dir(d.Dir)}, PIDs: !h.SharedPIDs}
	if h.View == Overlay {
		for i, root := range d.roots() {
			s.Layers = append(s.Layers, mounted{root, d.path(layerName("upper", i)), d.path(layerName("work", i))})
		}
	} else {
		s.Layers = []mounted{{At: h.Project, Upper: d.path("tree")}}
		m, err := readManifest(d.path("manifest.json"))
		if err != nil {
			return nil, err
		}
		// A repository outside of the project has no layer here, so nothing may write to it: a commit fails, and is said to.
		if h.GitDir != "" {
			s.Shared = append(s.Shared, shared{h.GitDir, h.GitDir})
		}
		// Folders too large for the clone show the project's own, unless they have been removed since.
		for _, rel := range m.Shared {
			at := filepath.Join(h.Project, filepath.FromSlash(rel))
			if _, err := os.Stat(at); err == nil {
				s.Shared = append(s.Shared, shared{at, at})
			}
		}
	}
	return helper(s, argv)
}

// helper is the command that enters a view and becomes argv. guard.Command gives it an environment without keys.
func helper(s spec, argv []string) (*exec.Cmd, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd := guard.Command(guard.Bash, slices.Concat([]string{self(), Arg, string(b)}, argv)...)
	cmd.SysProcAttr = attributes(s.PIDs)
	return cmd, nil
}

// self is this program. The link stays right when the file was replaced by an update, and the helper always has the version
// of the process that wrote its spec. Tests set it.
var self = func() string { return "/proc/self/exe" }

// attributes ask for the namespaces, in which this user has the right to mount. Only ids that are mapped can own files in there.
func attributes(pids bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS}
	if pids {
		a.Cloneflags |= syscall.CLONE_NEWPID
	}
	if os.Geteuid() == 0 {
		// All that is mapped here, as it is: files of other owners stay those of their owners.
		a.UidMappings, a.GidMappings = identity("/proc/self/uid_map"), identity("/proc/self/gid_map")
		a.GidMappingsEnableSetgroups = true
		return a
	}
	// Without rights outside, the kernel lets a user map the own id and no other (user_namespaces(7)).
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	// The overlay acts with the rights of who mounts it: its own work folders have no permissions at all.
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_FSETID}
	return a
}

// identity maps every id of a uid_map or gid_map to itself: root in a container may have a part of the ids only, and mapping more
// fails. Without the file, root alone is mapped.
func identity(table string) []syscall.SysProcIDMap {
	b, err := os.ReadFile(table)
	var out []syscall.SysProcIDMap
	for line := range strings.Lines(string(b)) {
		var inside, outside, n int
		if _, err := fmt.Sscan(line, &inside, &outside, &n); err == nil {
			out = append(out, syscall.SysProcIDMap{ContainerID: inside, HostID: inside, Size: n})
		}
	}
	if err != nil || len(out) == 0 {
		return []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}}
	}
	return out
}

// Probe says what the system offers. It tries it for real, once in the life of this process, in a process of its own: kernel
// version, AppArmor, seccomp and containers all can forbid it, and no file tells the answer.
func Probe() Support { return probe() }

var probe = sync.OnceValue(func() Support {
	dir, err := os.MkdirTemp("", "pillion-draft-")
	if err != nil {
		return Support{View: Copy, Why: err.Error()}
	}
	defer os.RemoveAll(dir)
	return probeIn(dir)
})

// probeIn tries an overlay in a folder, then a bind mount, each with a namespace of processes first and then without: some containers
// do not allow a /proc of one's own.
func probeIn(dir string) Support {
	var s Support
	for _, name := range []string{"lower", "upper", "work"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			return Support{View: Copy, Why: err.Error()}
		}
	}
	at := filepath.Join(dir, "lower")
	layer := mounted{at, filepath.Join(dir, "upper"), filepath.Join(dir, "work")}
	if os.WriteFile(filepath.Join(at, "a"), nil, 0o600) != nil {
		return Support{View: Copy, Why: "temporary files cannot be written"}
	}
	// A write, a deletion and a new file are the three things that leave different marks in an upper folder.
	try := func(l mounted, pids bool) error {
		cmd, err := helper(spec{Layers: []mounted{l}, Dir: at, PIDs: pids}, []string{"/bin/sh", "-c", "echo b >a && rm a && echo c >b"})
		if err != nil {
			return err
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			if text := strings.TrimSpace(string(out)); text != "" {
				return errors.New(strings.TrimPrefix(text, "pillion: the draft could not be entered: "))
			}
			return err
		}
		return nil
	}
	var first error
	for _, pids := range []bool{true, false} {
		err := try(layer, pids)
		if err == nil {
			// The mount succeeded, but the new file is in the lower folder: such a system must not be trusted with a project.
			if _, gone := os.Lstat(filepath.Join(at, "b")); gone == nil {
				return Support{View: Copy, Why: "an overlay let a write through"}
			}
			s.View, s.PIDs = Overlay, pids
			return s
		}
		if first == nil {
			first = err
		}
	}
	s.Why = "this system mounts no overlay for " + user() + ": " + first.Error()
	for _, pids := range []bool{true, false} {
		if try(mounted{At: at, Upper: filepath.Join(dir, "upper")}, pids) == nil {
			s.View, s.PIDs = Bind, pids
			return s
		}
	}
	s.View, s.Why = Copy, "this system gives "+user()+" no namespaces: "+first.Error()
	return s
}

// user names who runs this, for Support.Why.
func user() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return "an ordinary user"
}

// unfit says why an overlay over this project cannot be had; "" when it can. The reason may be the system, the project's file system,
// the one where drafts are kept, or files of owners that the namespace does not know, whose copying would fail in the middle of a
// command (EOVERFLOW).
func (d *Draft) unfit(ctx context.Context, pids bool) string {
	// Beside the draft's own layer, so that upper and work of the trial are on the file system that the real ones will use.
	probe := d.path("probe")
	defer os.RemoveAll(probe)
	s := spec{Dir: d.head.Project, PIDs: pids, Try: true}
	for i, root := range d.roots() {
		l := mounted{root, filepath.Join(probe, layerName("upper", i)), filepath.Join(probe, layerName("work", i))}
		if err := errors.Join(os.MkdirAll(l.Upper, 0o700), os.MkdirAll(l.Work, 0o700)); err != nil {
			return err.Error()
		}
		s.Layers = append(s.Layers, l)
	}
	cmd, err := helper(s, nil)
	if err != nil {
		return err.Error()
	}
	// Root maps every id, see attributes. For others the walk goes on while the helper starts.
	owners := make(chan string, 1)
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	if os.Geteuid() == 0 {
		owners <- ""
	} else {
		go func() { owners <- foreign(within, d.roots()) }()
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		if text := strings.TrimSpace(string(out)); text != "" {
			return strings.TrimPrefix(text, "pillion: the draft could not be entered: ")
		}
		return err.Error() // no namespace was given, so nothing was started
	}
	return <-owners
}

// foreign looks for files whose owner or group the namespace does not map. Where such a file is changed, the overlay would
// have to copy it with its owner, and cannot. It stops at the first one, whose path is the reason that a person reads.
func foreign(ctx context.Context, roots []string) string {
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	var mu sync.Mutex
	found := ""
	var wg sync.WaitGroup
	// Four walks a core, as most of the time is spent waiting for the disk.
	slots := make(chan struct{}, 4*runtime.NumCPU())
	var walk func(dir string)
	walk = func(dir string) {
		list, err := os.ReadDir(dir)
		if err != nil {
			return // what cannot be read cannot be copied up either, with or without the right owner
		}
		for _, e := range list {
			if mu.Lock(); found != "" || ctx.Err() != nil {
				mu.Unlock()
				return
			}
			mu.Unlock()
			path := filepath.Join(dir, e.Name())
			var st unix.Stat_t
			if unix.Lstat(path, &st) != nil {
				continue
			}
			if st.Uid != uid || st.Gid != gid {
				mu.Lock()
				found = fmt.Sprintf("%s belongs to another user or group (%d:%d), and a layer over it could not copy it", path, st.Uid, st.Gid)
				mu.Unlock()
				return
			}
			if !e.IsDir() {
				continue
			}
			select {
			case slots <- struct{}{}:
				wg.Go(func() { walk(path); <-slots })
			// No slot is free: this goroutine goes down itself. Waiting for a slot while holding one could wait forever.
			default:
				walk(path)
			}
		}
	}
	for _, root := range roots {
		walk(root)
	}
	wg.Wait()
	return found
}
