package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// Main is the helper: it restricts this process as the Box in args[0] (JSON) says, and then executes the program in args[1:].
// It returns only on failure, with the exit code 126, which shells use for a command that was found but could not be executed.
// So the program never runs without its restrictions.
func Main(args []string) int {
	if len(args) == 1 && args[0] == "probe" {
		fmt.Print(probed)
		return 0
	}
	// On success enter does not return, because it executes the program.
	err := enter(args)
	fmt.Fprintln(os.Stderr, "pillion: the sandbox could not be set up, so the command was not run:", err)
	return 126
}

// enter restricts this thread step by step, and then executes the program. The order matters: the control group and the mounts
// need rights that dropRights drops, Landlock's rules must see the final mounts, and a thread under Landlock may not mount
// (landlock(7)). Any failure ends the helper before the program runs.
func enter(args []string) error {
	if len(args) < 2 {
		return errors.New("this is for Pillion's own use")
	}
	var b Box
	if err := json.Unmarshal([]byte(args[0]), &b); err != nil {
		return err
	}
	program, err := exec.LookPath(args[1])
	if err != nil {
		return err
	}
	runtime.LockOSThread() // namespaces and capabilities belong to a thread; this one must be the one that calls Exec
	if b.Support.Cgroup != "" {
		if err := b.join(); err != nil {
			return fmt.Errorf("process limit: %w", err)
		}
	}
	if b.Support.Mounts {
		if err := b.mounts(); err != nil {
			return fmt.Errorf("view of the file system: %w", err)
		}
	}
	if !b.Network && b.Support.Netns {
		if err := b.ownNetwork(); err != nil {
			return fmt.Errorf("network: %w", err)
		}
	}
	if err := dropRights(b.Support.Userns); err != nil {
		return fmt.Errorf("rights: %w", err)
	}
	if err := b.landlock(); err != nil {
		return err
	}
	if err := b.limit(); err != nil {
		return fmt.Errorf("process limit: %w", err)
	}
	if err := b.restrictSockets(); err != nil {
		return fmt.Errorf("sockets: %w", err)
	}
	return syscall.Exec(program, args[1:], os.Environ())
}

// join moves this process into a control group of its own, after setting the limit of the group. pids.max counts processes
// and threads (kernel documentation, Process Number Controller).
func (b *Box) join() error {
	group := b.group(os.Getpid())
	if err := os.Mkdir(group, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := os.WriteFile(filepath.Join(group, "pids.max"), []byte(strconv.Itoa(b.Processes)), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644)
}

// limit sets RLIMIT_NPROC (getrlimit(2)). It counts all processes and threads of the user, or of the user in the user
// namespace if there is one. Root is exempt.
func (b *Box) limit() error {
	if os.Geteuid() == 0 {
		return nil
	}
	// Without a user namespace those that the user runs already count too, so they are added.
	n := uint64(b.Processes)
	if !b.Support.Userns {
		n += tasksOf(os.Geteuid())
	}
	var have unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &have); err != nil {
		return err
	}
	// An ordinary process may not raise the hard limit (setrlimit(2)).
	n = min(n, have.Max)
	return unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: n, Max: n})
}

// tasksOf counts a user's threads, which is what RLIMIT_NPROC counts.
func tasksOf(uid int) (n uint64) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, d := range dirs {
		info, err := os.Stat(d)
		if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != uid {
			continue
		}
		tasks, _ := os.ReadDir(d + "/task")
		n += uint64(len(tasks))
	}
	return n
}

// mounts makes everything read-only except the writable places, and protected paths in those read-only again. The steps must be
// in this order: mount overlays, bind writable places, set everything read-only, set writable places back, set protected paths
// read-only, mask sockets, hide files. The namespace for System V IPC and message queues, which have keys and no paths, comes with that of
// the mounts: in it the command finds none of another program's.
func (b *Box) mounts() error {
	if !b.Support.Userns {
		if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_NEWIPC); err != nil {
			return err
		}
	}
	// With MS_PRIVATE the mounts below do not propagate to the namespace of the rest of the system.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	bind := func(path string) error {
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	// mount_setattr(2) needs Linux 5.12. All paths are resolved; with NOFOLLOW a link that has replaced one of them since is not
	// followed.
	set := func(path string, flags uint, set, clear uint64) error {
		err := unix.MountSetattr(unix.AT_FDCWD, path, flags|unix.AT_SYMLINK_NOFOLLOW, &unix.MountAttr{Attr_set: set, Attr_clr: clear})
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	layered := func(w string) bool {
		return slices.ContainsFunc(b.Caches, func(l layer) bool { return l.Place == w })
	}
	for _, l := range b.Caches {
		options := "lowerdir=" + l.Place + ",upperdir=" + l.Upper + ",workdir=" + l.Work
		if b.Support.Userns {
			options += ",userxattr" // in a user namespace overlayfs may not use its default, trusted.* attributes
		}
		if unix.Mount("overlay", l.Place, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options) != nil {
			// Some file systems cannot be a layer of an overlay. The cache then stays read-only.
			b.Writable = slices.DeleteFunc(b.Writable, func(w string) bool { return w == l.Place })
		}
	}
	// Read-only is a property of mounts, not of folders, so each writable place must be a mount of its own.
	writable := slices.DeleteFunc(slices.Clone(b.Writable), missing)
	for _, w := range writable {
		if w == "/" || layered(w) {
			continue
		}
		if err := bind(w); err != nil {
			return err
		}
	}
	if err := set("/", unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY, 0); err != nil {
		return err
	}
	for _, w := range writable {
		if set(w, unix.AT_RECURSIVE, 0, unix.MOUNT_ATTR_RDONLY) == nil {
			continue
		}
		// The recursive call fails if it may not change one mount below w, such as one that the system has made read-only. Then each
		// mount is set by itself, or a project that is a mount in a temporary folder, as in a draft, would stay read-only.
		if err := set(w, 0, 0, unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
		for _, m := range mountsBelow(w) {
			_ = set(m, 0, 0, unix.MOUNT_ATTR_RDONLY)
		}
	}
	b.ownTerminals()
	// A mount point cannot be renamed or removed (EBUSY), so a bind mount is all that a path in Pinned needs.
	inside := slices.Concat(b.Pinned, b.ReadOnly)
	slices.Sort(inside) // parents first, or the mount of a parent would cover that of its child
	for _, p := range slices.Compact(inside) {
		if missing(p) || !slices.ContainsFunc(writable, func(w string) bool { return p == w || below(w, p) }) {
			continue
		}
		if !slices.Contains(writable, p) {
			if err := bind(p); err != nil {
				return err
			}
		}
	}
	for _, p := range b.ReadOnly {
		if missing(p) || !slices.ContainsFunc(writable, func(w string) bool { return p == w || below(w, p) }) {
			continue
		}
		if err := set(p, unix.AT_RECURSIVE, unix.MOUNT_ATTR_RDONLY, 0); err != nil {
			return err
		}
	}
	// With /dev/null in the socket's place, connect(2) fails with ECONNREFUSED.
	for _, m := range b.Masked {
		if !missing(m) {
			if err := unix.Mount("/dev/null", m, "", unix.MS_BIND, ""); err != nil {
				return fmt.Errorf("%s: %w", m, err)
			}
		}
	}
	for _, h := range b.Hidden {
		info, err := os.Lstat(h)
		switch {
		case err != nil: // removed since New
			continue
		case info.IsDir():
			err = unix.Mount("tmpfs", h, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,mode=0")
		default:
			// A device in a mount with MS_NODEV cannot be opened, not even by root (mount(2)). An empty file in its place would be read
			// as the file's contents, and git would commit it.
			if err = unix.Mount("/dev/null", h, "", unix.MS_BIND, ""); err == nil {
				err = unix.MountSetattr(unix.AT_FDCWD, h, unix.AT_SYMLINK_NOFOLLOW, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_RDONLY})
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", h, err)
		}
	}
	return os.Chdir(b.Dir) // the working directory still refers to the folder under the new mounts
}

// ownTerminals gives the command pseudo terminals of its own (devpts, kernel documentation), so that it can open one, as test runners and
// agents do, and cannot read what is typed in the person's. Where the system does not allow it, Landlock keeps the command from opening
// any: the terminals stay those of the system, which are read-only. A command that runs in a terminal keeps them, or it could not find its
// own by name (ttyname(3)).
func (b *Box) ownTerminals() {
	if _, err := unix.IoctlGetTermios(0, unix.TCGETS); err == nil {
		return
	}
	// The owner may read and write a terminal, and anybody may open a new one. No group: that of terminals need not exist in a user
	// namespace.
	if unix.Mount("devpts", terminals, "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0600") != nil {
		return
	}
	// /dev/ptmx is often a device by itself, which opens a terminal of the instance it was made in.
	b.terminals = unix.Mount(terminals+"/ptmx", "/dev/ptmx", "", unix.MS_BIND, "") == nil
}

// terminals is where devpts is mounted.
const terminals = "/dev/pts"

// mountsBelow lists the mount points below a folder, from the fifth field of /proc/self/mountinfo (proc_pid_mountinfo(5)), in which
// blank, tab, newline and backslash are octal escapes. It is empty when the file cannot be read.
func mountsBelow(dir string) (out []string) {
	table, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	undo := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 5 {
			if at := undo.Replace(f[4]); below(dir, at) {
				out = append(out, at)
			}
		}
	}
	return out
}

// ownNetwork moves this thread to a network namespace (with Userns it is in one already) and switches on loopback, which is all that
// the namespace has, and which many tests need.
func (b *Box) ownNetwork() error {
	if !b.Support.Userns {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
	}
	// Loopback is off in a new namespace. The ioctl works on any socket (netdevice(7)).
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// kept are the capabilities that root's build tools need, for files and user ids. With others a command could leave the sandbox.
var kept = []uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE}

// dropRights drops all capabilities from the bounding set, or all but kept. all is true in a user namespace, where they only
// served to set up the sandbox; with its CAP_SYS_ADMIN a command could undo the mounts.
func dropRights(all bool) error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP+8; c++ { // the kernel may have a few more than this build knows
		if !all && slices.Contains(kept, c) {
			continue
		}
		if has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err != nil || has == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && os.Geteuid() == 0 {
			return err // matters for root only: executing a program gives capabilities back to root
		}
	}
	var head unix.CapUserHeader
	head.Version = unix.LINUX_CAPABILITY_VERSION_3
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return err
	}
	data[0].Inheritable, data[1].Inheritable = 0, 0
	return unix.Capset(&head, &data[0])
}

// Rights of Landlock to change files. Rights to read and execute are not handled by the ruleset, so they are not restricted.
const (
	landlockFiles = ll.AccessFSWriteFile | ll.AccessFSTruncate
	landlockDirs  = landlockFiles | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer
	landlockNever = ll.AccessFSMakeChar | ll.AccessFSMakeBlock | ll.AccessFSResolveUnix
)

// devices are always writable: they store no data, and programs expect to open them.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts/ptmx"}

// landlock restricts changes of files to the writable places, and signals and abstract sockets to the command's processes. It
// is the only restriction of files where there are no mounts. BestEffort drops what an older kernel does not know; the check of
// the version below makes sure that it does not drop everything.
func (b *Box) landlock() error {
	handled := landlock.AccessFSSet(landlockDirs | landlockNever)
	if b.Confined {
		handled |= ll.AccessFSReadFile | ll.AccessFSReadDir
	}
	args := []any{handled, landlock.ScopedSet(ll.ScopeAbstractUnixSocket | ll.ScopeSignal)}
	if !b.Network && !b.Support.Netns {
		args = append(args, landlock.AccessNetSet(ll.AccessNetBindTCP|ll.AccessNetConnectTCP|ll.AccessNetBindUDP|ll.AccessNetConnectSendUDP))
	}
	config, err := landlock.NewConfig(args...)
	if err != nil {
		return err
	}
	var rules []landlock.Rule
	writable := slices.Concat(b.Writable, devices)
	if b.terminals {
		writable = append(writable, terminals)
	}
	for _, p := range writable {
		info, err := os.Stat(p)
		switch {
		case err != nil:
			continue
		// The kernel refuses a rule for a file that has rights of folders (EINVAL).
		case info.IsDir():
			rules = append(rules, landlock.PathAccess(landlockDirs|handled&(ll.AccessFSReadFile|ll.AccessFSReadDir), p))
		default:
			rules = append(rules, landlock.PathAccess(landlockFiles|handled&ll.AccessFSReadFile, p))
		}
	}
	if b.Confined {
		rules = append(rules, b.reading()...)
	}
	// Without Landlock, BestEffort would succeed and restrict nothing. Probe ran in another process, perhaps long ago.
	if version, err := ll.LandlockGetABIVersion(); err != nil || version < minLandlock {
		return fmt.Errorf("Landlock is no longer available (version %d, %v)", version, err)
	}
	if err := config.BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("Landlock: %s", strings.TrimPrefix(err.Error(), "landlock: "))
	}
	return nil
}

// reading lists the rules for what a confined command may read besides the writable places. Of /proc it may read what concerns itself:
// Landlock keeps the memory and the environment of processes outside the sandbox from it, and programs look up much there.
func (b *Box) reading() (rules []landlock.Rule) {
	for _, p := range append([]string{"/proc", "/dev/pts"}, b.Readable...) {
		if info, err := os.Stat(p); err != nil {
			continue
		} else if info.IsDir() {
			rules = append(rules, landlock.PathAccess(ll.AccessFSReadFile|ll.AccessFSReadDir, p))
		} else {
			rules = append(rules, landlock.PathAccess(ll.AccessFSReadFile, p))
		}
	}
	for _, p := range b.Listed {
		if !missing(p) {
			rules = append(rules, landlock.PathAccess(ll.AccessFSReadDir, p))
		}
	}
	return rules
}
