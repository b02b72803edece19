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

// Main is the helper: it restricts this process as the first argument says, and becomes the program that
// follows. It returns only when that failed, with the exit code: nothing runs that could not be restricted.
// 126 is what a shell returns for a command that it found and could not execute.
func Main(args []string) int {
	if len(args) == 1 && args[0] == "probe" {
		fmt.Print(probed)
		return 0
	}
	// enter returns only when it failed: otherwise this process is the program by then.
	err := enter(args)
	fmt.Fprintln(os.Stderr, "pillion: the sandbox could not be set up, so the command was not run:", err)
	return 126
}

// enter restricts this thread step by step. The order is fixed: the control group and the mounts need rights that dropRights
// gives up, Landlock's rules are about the final view of the file system, and a thread under Landlock may not mount any more
// (landlock(7)). Any failure ends the helper before the command runs.
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
	runtime.LockOSThread() // namespaces and rights belong to the thread that becomes the program
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

// join moves this process into a control group of its own.
// pids.max counts processes and threads (kernel documentation, cgroup pids controller). The limit is written before the
// process joins, so there is no moment without one.
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

// limit sets RLIMIT_NPROC, which counts per user, in a user namespace per namespace. Root is exempt from it.
func (b *Box) limit() error {
	if os.Geteuid() == 0 {
		return nil
	}
	// Outside of a user namespace all processes of the user count, so those that run already are added.
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

// tasksOf counts a user's processes and threads.
// RLIMIT_NPROC counts threads (getrlimit(2)), so the threads that the user runs already are added to the limit.
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

// mounts makes everything read-only but the writable places, and in those read-only what is protected. Each step relies on the
// one before: overlays, writable mounts, everything read-only, the writable ones back, protected ones read-only, sockets masked, keys hidden.
func (b *Box) mounts() error {
	if !b.Support.Userns {
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return err
		}
	}
	// Private: what is mounted below must not appear in the namespace of the rest of the system.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	bind := func(path string) error {
		if err := unix.Mount(path, path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	}
	// mount_setattr(2) is of Linux 5.12. NOFOLLOW: the paths are resolved already, and a link that appeared since must not count.
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
			options += ",userxattr" // an ordinary user may not write the other attributes by which overlayfs marks files
		}
		if unix.Mount("overlay", l.Place, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options) != nil {
			// A file system that cannot be below or above: this cache stays read-only.
			b.Writable = slices.DeleteFunc(b.Writable, func(w string) bool { return w == l.Place })
		}
	}
	// Each writable place becomes a mount of its own: read-only is a property of mounts, not of folders.
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
		// Something mounted in it was read-only before and stays so. The others are set one by one, or a project that is a mount in a
		// temporary folder, as in a draft, would be read-only too.
		if err := set(w, 0, 0, unix.MOUNT_ATTR_RDONLY); err != nil {
			return err
		}
		for _, m := range mountsBelow(w) {
			_ = set(m, 0, 0, unix.MOUNT_ATTR_RDONLY)
		}
	}
	// A mount point cannot be renamed or removed (EBUSY), which is all that Pinned asks for.
	inside := slices.Concat(b.Pinned, b.ReadOnly)
	slices.Sort(inside) // from the outside in
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
	// connect(2) to a path that is not a socket fails with ECONNREFUSED.
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
		case err != nil: // gone meanwhile
			continue
		case info.IsDir():
			err = unix.Mount("tmpfs", h, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,mode=0")
		default:
			// A device in a mount without devices cannot be opened, by root neither (mount(2), MS_NODEV): an empty file in its place
			// would be committed as such.
			if err = unix.Mount("/dev/null", h, "", unix.MS_BIND, ""); err == nil {
				err = unix.MountSetattr(unix.AT_FDCWD, h, unix.AT_SYMLINK_NOFOLLOW, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV | unix.MOUNT_ATTR_RDONLY})
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", h, err)
		}
	}
	return os.Chdir(b.Dir) // where we were is the place below the new mounts
}

// mountsBelow are the mount points below a folder, from /proc/self/mountinfo (proc_pid_mountinfo(5)): the fifth field, in which a blank, a
// tab, a newline and a backslash are octal escapes. None where the file cannot be read.
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

// ownNetwork is a network with nothing but loopback, which tests use.
func (b *Box) ownNetwork() error {
	if !b.Support.Userns {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return err
		}
	}
	// A new network has its loopback switched off; any socket serves for the ioctl (netdevice(7)).
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

// kept are the rights over files and identities that root's build tools use; the rest would lead out of the sandbox.
var kept = []uintptr{unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_FSETID, unix.CAP_KILL, unix.CAP_SETGID, unix.CAP_SETUID, unix.CAP_NET_BIND_SERVICE}

// dropRights gives up what the program must not have; with all when the rights only served to set up the sandbox.
// Without it a command could use CAP_SYS_ADMIN of the user namespace to undo the mounts.
func dropRights(all bool) error {
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return err
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP+8; c++ { // a few more than this build knows
		if !all && slices.Contains(kept, c) {
			continue
		}
		if has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0); err != nil || has == 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && os.Geteuid() == 0 {
			return err // only root regains rights by becoming another program
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

// Rights of Landlock that change files. Reading and running are not handled, so they stay as they are.
const (
	landlockFiles = ll.AccessFSWriteFile | ll.AccessFSTruncate
	landlockDirs  = landlockFiles | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer
	landlockNever = ll.AccessFSMakeChar | ll.AccessFSMakeBlock | ll.AccessFSResolveUnix
)

// devices are writable whatever the box says: they hold no data, and programs expect to be able to open them.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/ptmx", "/dev/pts/ptmx"}

// landlock allows changes below the writable places only. It is the inner wall: it holds where mounts are missing, and the
// scopes keep signals and abstract sockets within the command. BestEffort drops what an older kernel does not know; the check
// of the version keeps it from dropping everything.
func (b *Box) landlock() error {
	args := []any{landlock.AccessFSSet(landlockDirs | landlockNever), landlock.ScopedSet(ll.ScopeAbstractUnixSocket | ll.ScopeSignal)}
	if !b.Network && !b.Support.Netns {
		args = append(args, landlock.AccessNetSet(ll.AccessNetBindTCP|ll.AccessNetConnectTCP|ll.AccessNetBindUDP|ll.AccessNetConnectSendUDP))
	}
	config, err := landlock.NewConfig(args...)
	if err != nil {
		return err
	}
	var rules []landlock.Rule
	for _, p := range slices.Concat(b.Writable, devices) {
		info, err := os.Stat(p)
		switch {
		case err != nil:
			continue
		// A rule about a file may hold rights of files only; the kernel refuses others with EINVAL.
		case info.IsDir():
			rules = append(rules, landlock.PathAccess(landlockDirs, p))
		default:
			rules = append(rules, landlock.PathAccess(landlockFiles, p))
		}
	}
	// The probe ran in another process, maybe long ago; without this check BestEffort would succeed with no rules at all.
	if version, err := ll.LandlockGetABIVersion(); err != nil || version < minLandlock {
		return fmt.Errorf("Landlock is no longer available (version %d, %v)", version, err)
	}
	if err := config.BestEffort().Restrict(rules...); err != nil {
		return fmt.Errorf("Landlock: %s", strings.TrimPrefix(err.Error(), "landlock: "))
	}
	return nil
}
