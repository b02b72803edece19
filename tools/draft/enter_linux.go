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

// spec tells the helper what to mount. It is passed as JSON in an argument, so that a start writes nothing to the disk.
type spec struct {
	Layers []mounted `json:"layers,omitempty"`
	Shared []shared  `json:"shared,omitempty"` // mounted read-only
	Hide   []string  `json:"hide,omitempty"`   // folders that show nothing
	PIDs   bool      `json:"pids,omitempty"`   // the helper is in a PID namespace, which needs its own /proc
	Try    bool      `json:"try,omitempty"`    // only mount, then exit with 0, to find out whether mounting works
	// Dir is the working directory of the program. It is entered after mounting: entered earlier, it would be the folder below the mount.
	Dir string `json:"dir"`
}

// mounted is one layer of the view. With Work, an overlay of Upper over At is mounted at At; without, Upper is a clone that is
// bind-mounted over At. Work is the overlay's work folder, on Upper's file system.
type mounted struct {
	At    string `json:"at"`
	Upper string `json:"upper"`
	Work  string `json:"work,omitempty"`
}

// shared is a folder that is mounted at another path too. In spec.Shared, From is the project's own folder before the clone is mounted over
// it, and At is where the clone's view shows it, read-only.
type shared struct {
	From string `json:"from"`
	At   string `json:"at"`
}

// Main is the helper: it mounts the spec in the first argument and becomes the program in the others. It returns only after a failure,
// with the exit code, so the program never runs outside of the view. env(1) and timeout(1) also return 125 for failures of their own;
// programs rarely do.
func Main(args []string) int {
	err := enter(args)
	fmt.Fprintln(os.Stderr, "pillion: the draft could not be entered:", err)
	return 125
}

// enter replaces this process by args[1:] in the view of args[0]. Capabilities are dropped after mounting, which needs them, and before
// exec, so that the program never has them.
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
	runtime.LockOSThread() // capabilities belong to a thread: dropRights and exec must run on the same one
	if err := s.mount(); err != nil {
		return err
	}
	if s.Try {
		os.Exit(0)
	}
	if err := os.Chdir(s.Dir); err != nil { // the directory inherited at the start is the one below the new mounts
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

// mount builds the view. The order matters: mounts inside and other names of a folder must be found before a layer covers it. Any failure
// ends the helper, as half a view would let writes through to the project.
func (s *spec) mount() error {
	// With private propagation, mounts made in this namespace do not appear outside, and later mounts of the system do not cover a layer.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private mounts: %w", err)
	}
	// Read before anything is mounted: below and aliases need the mounts that the system has, without ours.
	table, err := mountTable()
	if err != nil {
		return err
	}
	if err := s.pin(table); err != nil {
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
			for _, x := range s.Layers { // a clone gets no aliases
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
			// Only folders that this layer covers are bound to their other names; those of the other layer follow when it is mounted.
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
	// An empty, read-only tmpfs: a command must reach neither other drafts nor the files of its own layer, past the overlay. 4 kB is one page.
	for _, dir := range s.Hide {
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,mode=0700"); err != nil {
			return fmt.Errorf("hiding %s: %w", dir, err)
		}
	}
	// The inherited /proc lists the processes outside, under numbers that belong to other processes in this namespace.
	if s.PIDs {
		if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("/proc: %w", err)
		}
	}
	return nil
}

// pin mounts each folder above a layer, above its other names and above what is hidden on itself. The kernel moves no folder that is a mount
// point (rename(2), EBUSY); otherwise a program could move the whole project away by a folder above it, which no layer covers.
func (s *spec) pin(table []mountPoint) error {
	at := slices.Clone(s.Hide)
	for _, l := range s.Layers {
		at = append(at, l.At)
		for _, o := range aliases(table, l.At) {
			at = append(at, o.At)
		}
	}
	var above []string
	for _, path := range at {
		for dir := filepath.Dir(path); dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
			above = append(above, dir)
		}
	}
	slices.Sort(above) // a folder comes before those in it, which its mount would cover
	for _, dir := range slices.Compact(above) {
		if slices.ContainsFunc(table, func(m mountPoint) bool { return m.at == dir }) {
			continue
		}
		// With what is mounted below: mounts that were made for all cannot be left out in a namespace of one's own (EINVAL).
		if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s, above the project: %w", dir, err)
		}
	}
	return nil
}

// mount mounts the layer. The option string names folders by descriptor, as ":" and "," have a meaning in it and may occur in a
// project's path. userxattr (Linux 5.11) stores the overlay's marks in user.overlay.* attributes, which layer_linux.go reads; the
// default trusted.* attributes need rights outside of the user namespace. volatile (Linux 5.10) turns syncing off: without it the end of a
// view writes the whole file system to the disk, every other program's data too, which takes from a tenth of a second to many seconds.
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
	// A mount with the option volatile leaves this mark, so that a crash of the machine is noticed; while it is there the kernel mounts the
	// layer no more (overlayfs.rst). Keep notices such a crash itself, so the mark is removed.
	if err := os.RemoveAll(filepath.Join(l.Work, "work", "incompat")); err != nil {
		return fmt.Errorf("%s: %w", l.Work, err)
	}
	data := fmt.Sprintf("userxattr,volatile,lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d", fds[0], fds[1], fds[2])
	if err := unix.Mount("pillion", l.At, "overlay", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		return fmt.Errorf("an overlay over %s: %w", l.At, err)
	}
	// A mount call that succeeded is not enough: the path must lead to the overlay, whose folders have a device number of their own.
	// Otherwise the program would write to the project.
	if err := unix.Stat(l.At, &is); err != nil || is.Dev == was.Dev {
		return fmt.Errorf("an overlay over %s: it is not visible there (%v)", l.At, err)
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

// holder is the mount that a path belongs to: the one at the longest prefix of the path, and of several there the last in the table, as
// a later mount covers an earlier one.
func holder(table []mountPoint, path string) (m mountPoint, ok bool) {
	for _, x := range table {
		if paths.Within(x.at, path) && (!ok || len(x.at) >= len(m.at)) {
			m, ok = x, true
		}
	}
	return m, ok
}

// aliases are the other paths under which a folder, or a part of it, can be reached through mounts of the same file system. Where /home
// is a bind mount of /data/home, a command could change the project under /data/home, past the layer. From is the path inside dir,
// which shows the layer once that is mounted; At is the other path.
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
		// Bind mounts of one file system have the same device and differ in root, the folder of the file system that they show.
		case paths.Within(x.root, inside): // shows all of dir
			rest, _ := filepath.Rel(x.root, inside)
			if at := filepath.Join(x.at, rest); at != dir {
				out = append(out, shared{dir, at})
			}
		case paths.Within(inside, x.root): // shows a folder below dir
			rest, _ := filepath.Rel(inside, x.root)
			if from := filepath.Join(dir, rest); x.at != from {
				out = append(out, shared{from, x.at})
			}
		}
	}
	return out
}

// detached is a copy of a mount, made before a layer covers the original. fd keeps it alive until attach, which closes it.
type detached struct {
	fd int
	at string
}

// below copies the mounts inside a folder. An overlay does not show them, so they are attached to it again, read-only: they are not part
// of the layer, and writes would reach the real file system. A mount inside one that was copied is part of that copy and is skipped.
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

// detach copies what is visible at a path, with all mounts inside it, to be attached at another path (open_tree(2), Linux 5.2).
func detach(from, at string) (detached, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, from, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return detached{}, fmt.Errorf("%s: %w", from, err)
	}
	return detached{fd, at}, nil
}

// attach makes the whole copied tree read-only (mount_setattr(2), Linux 5.12) before it mounts it, so there is no moment at which it could
// be written.
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

// kept are the capabilities that programs in a draft keep if this user is root: those that work with files and processes of several
// owners. None of them can change mounts. CAP_SETFCAP is needed to map root into a user namespace (Linux 5.12), which the sandbox creates
// for each command.
var kept = []uintptr{unix.CAP_SETFCAP, unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID}

// dropRights drops the capabilities for mounting for good: with them a command could unmount the layer and write to the project. A
// program can get a capability across exec in three ways (capabilities(7)): from the ambient set, from the bounding set when root runs
// it, and from the inheritable set together with the file's own. All three are emptied; no_new_privs disables set-user-ID programs.
func dropRights() error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	root := os.Geteuid() == 0
	// Eight numbers beyond those that this build knows, as a newer kernel may have more capabilities.
	for c := uintptr(0); c <= unix.CAP_LAST_CAP+8; c++ {
		if root && slices.Contains(kept, c) {
			continue
		}
		// An error (EINVAL) means that this kernel does not know the number.
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
	// In a PID namespace all processes end with its first one, so a command in the background cannot outlive the worker.
	s := spec{Dir: h.Project, Hide: []string{filepath.Dir(d.Dir)}, PIDs: !h.SharedPIDs}
	if h.View == Overlay {
		for i, root := range d.roots() {
			s.Layers = append(s.Layers, mounted{root, d.path(layerName("upper", i)), d.path(layerName("work", i))})
		}
	} else {
		s.Layers = []mounted{{At: h.Project, Upper: d.path("tree")}}
		m, err := d.copiedFrom()
		if err != nil {
			return nil, err
		}
		// The clone does not include a repository outside of the project. It is shared read-only, so a commit in the draft fails instead of
		// changing the person's repository.
		if h.GitDir != "" {
			s.Shared = append(s.Shared, shared{h.GitDir, h.GitDir})
		}
		// Folders that were too large to copy show the project's own content, unless the project has removed them since.
		for _, rel := range m.Shared {
			at := filepath.Join(h.Project, filepath.FromSlash(rel))
			if _, err := os.Stat(at); err == nil {
				s.Shared = append(s.Shared, shared{at, at})
			}
		}
	}
	return helper(s, argv)
}

// helper is the command that enters a view and becomes argv. guard.Command gives it an environment without API keys.
func helper(s spec, argv []string) (*exec.Cmd, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	cmd := guard.Command(guard.Bash, slices.Concat([]string{self(), Arg, string(b)}, argv)...)
	cmd.SysProcAttr = attributes(s.PIDs)
	return cmd, nil
}

// self is the path of this program. The link leads to the running binary even after an update has replaced the file, so the helper
// always has the version of the process that wrote its spec. Tests set it.
var self = func() string { return "/proc/self/exe" }

// attributes start the helper in a new user namespace, where it may mount, and a new mount namespace; with pids, a PID namespace too.
// Files of owners that are not mapped cannot be changed or created there.
func attributes(pids bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS}
	if pids {
		a.Cloneflags |= syscall.CLONE_NEWPID
	}
	if os.Geteuid() == 0 {
		// Every id keeps its number, so files keep their owners.
		a.UidMappings, a.GidMappings = identity("/proc/self/uid_map"), identity("/proc/self/gid_map")
		a.GidMappingsEnableSetgroups = true
		return a
	}
	// Without privileges the kernel lets a user map only their own id (user_namespaces(7)).
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	// The overlay acts with the capabilities of the process that mounts it, and its work/work has mode 0000. Ambient capabilities
	// survive the exec of the helper; dropRights clears them.
	a.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_CHOWN, unix.CAP_FSETID}
	return a
}

// identity maps every id that a uid_map or gid_map lists to itself: root in a container may have only a part of the ids, and mapping any
// other fails. Without the file only root is mapped.
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

// Probe reports what the system offers. It mounts a real view in a helper process and caches the answer for the life of this process:
// the kernel's version, AppArmor, seccomp and containers can all forbid it, and no file tells whether they do.
func Probe() Support { return probe() }

var probe = sync.OnceValue(func() Support {
	dir, err := os.MkdirTemp("", "pillion-draft-")
	if err != nil {
		return Support{View: Copy, Why: err.Error()}
	}
	defer os.RemoveAll(dir)
	return probeIn(dir)
})

// probeIn tries an overlay in a folder, then a bind mount, each first with a PID namespace and then without: some containers do not
// allow mounting /proc.
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
	// A write, a deletion and a new file exercise the three mechanisms of an upper folder: copy-up, whiteout and creation.
	try := func(l mounted, pids bool) error {
		cmd, err := helper(spec{Layers: []mounted{l}, Dir: at, PIDs: pids}, []string{"/bin/sh", "-c", "echo b >a && rm a && echo c >b"})
		if err != nil {
			return err
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			if text := strings.TrimSpace(string(out)); text != "" {
				return errors.New(strings.TrimPrefix(text, "pillion: the draft could not be entered: "))
			}
			return errors.New(refusal(err))
		}
		return nil
	}
	var first error
	for _, pids := range []bool{true, false} {
		err := try(layer, pids)
		if err == nil {
			// gone is Lstat's error; nil means that the new file reached the lower folder, so views of this system do not protect a project.
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

// refusal words why the helper did not even start: the kernel refused the namespaces. Its own words mislead, as those for a reached limit are
// "no space left on device" (clone(2)), so the settings are named that a person can change.
func refusal(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "a limit of namespaces is reached (sysctl user.max_user_namespaces, user.max_mnt_namespaces, user.max_pid_namespaces)"
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EACCES):
		return "user namespaces are forbidden (in a container by its seccomp profile; else sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
	}
	return err.Error()
}

// user names who runs this, for Support.Why.
func user() string {
	if os.Geteuid() == 0 {
		return "root"
	}
	return "an ordinary user"
}

// unfit is the reason why this project cannot have an overlay; "" if it can. The reason may be the system, the project's file system, the
// drafts' file system, or files of owners that the user namespace does not map: copying such a file up fails in the middle of a command
// (EOVERFLOW).
func (d *Draft) unfit(ctx context.Context, pids bool) string {
	// Beside the draft's own layer, so that upper and work of the trial are on the file system that the real ones will use.
	probe := d.path("probe")
	defer removeAll(probe)
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
	// The project is walked while the helper runs.
	owners := make(chan string, 1)
	within, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { owners <- d.foreign(within) }()
	if out, err := cmd.CombinedOutput(); err != nil {
		if text := strings.TrimSpace(string(out)); text != "" {
			return strings.TrimPrefix(text, "pillion: the draft could not be entered: ")
		}
		return refusal(err)
	}
	return <-owners
}

// foreign is the reason why the owners of the project's files allow no overlay; "" if they do. Root maps every id, see attributes.
func (d *Draft) foreign(ctx context.Context) string {
	if os.Geteuid() == 0 {
		return ""
	}
	return foreign(ctx, d.roots())
}

// foreign looks for a file whose owner or group the user namespace does not map. To change such a file, the overlay would have to copy
// it with its owner, and cannot. One that is found is the reason that a person reads; "" if there is none. It looks at every file, so it
// lists and asks through descriptors of the folders, which takes half the time of full paths.
func foreign(ctx context.Context, roots []string) string {
	uid, gid := uint32(os.Geteuid()), uint32(os.Getegid())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	found := ""
	folders := queue{}
	for _, root := range roots {
		folders.put(root)
	}
	folders.run(2*runtime.NumCPU(), func(dir string) {
		if ctx.Err() != nil {
			return
		}
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return // a command cannot read it either, so nothing in it is ever copied up
		}
		defer unix.Close(fd)
		buf := make([]byte, 32<<10)
		var names []string
		for {
			n, err := again(func() (int, error) { return unix.ReadDirent(fd, buf) })
			if err != nil || n <= 0 {
				return
			}
			_, _, names = unix.ParseDirent(buf[:n], -1, names[:0])
			for _, name := range names {
				var st unix.Stat_t
				if unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
					continue // it was removed since the folder was listed
				}
				if st.Uid != uid || st.Gid != gid {
					once.Do(func() {
						found = fmt.Sprintf("%s belongs to another user or group (%d:%d), and an overlay could not copy it", filepath.Join(dir, name), st.Uid, st.Gid)
						cancel()
					})
					return
				}
				if st.Mode&unix.S_IFMT == unix.S_IFDIR {
					folders.put(filepath.Join(dir, name))
				}
			}
		}
	})
	return found
}
