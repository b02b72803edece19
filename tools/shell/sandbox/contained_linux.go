//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// CanContain reports whether commands can be contained on this system, and if not, why. The first call tries it on a thread.
func CanContain() (ok bool, why string) {
	err := canContain()
	if err != nil {
		return false, err.Error()
	}
	return true, ""
}

// Layers describes for a person what contains a command that runs without approval.
func Layers() string {
	version := landlockVersion()
	parts := []string{fmt.Sprintf("Landlock %d: reads the project and the system, writes to a private temporary folder", version)}
	if version < 3 {
		parts = append(parts, "seccomp instead of Landlock against emptying files")
	}
	parts = append(parts, "seccomp: no socket, no metadata, no other process")
	if version < 6 {
		parts = append(parts, "no signals at all, since this Landlock cannot tell whose they are")
	}
	return strings.Join(append(parts, "limits of processor time, memory, files and processes"), "; ")
}

// canContain runs tryContain once, since each try costs a thread.
var canContain = sync.OnceValue(func() error { return tryContain(landlockVersion()) })

// landlockVersion is the version of the kernel's Landlock interface, 0 without Landlock.
func landlockVersion() int {
	version, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return version
}

// tryContain restricts a thread and tests that the restrictions work. The success of the calls is not enough proof, so the
// thread then opens a socket, which the filter must refuse, and "/", which Landlock must refuse. The thread ends with its
// goroutine, so the rest of this process is not restricted.
func tryContain(version int) error {
	if version < 1 {
		return errors.New("this kernel has no Landlock (Linux 5.13 and newer, enabled with lsm=landlock)")
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the restricted thread ends with this goroutine
		c := &Contained{}
		err := c.restrict(version)
		if err == nil {
			if fd, socketErr := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM, 0); socketErr == nil {
				_ = unix.Close(fd)
				err = errors.New("the seccomp filter was installed but has no effect")
			}
		}
		if err == nil {
			if fd, openErr := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); openErr == nil {
				_ = unix.Close(fd)
				err = errors.New("the Landlock rules were installed but have no effect")
			}
		}
		done <- err
	}()
	return <-done
}

// Restrict contains the calling thread, and everything it starts, irrevocably. The goroutine must be locked to its thread and
// never unlock it, so that the thread ends with the goroutine. The thread may start the commands for which Same reports true.
func (c *Contained) Restrict() error { return c.restrict(landlockVersion()) }

// restrict is Restrict for a version of Landlock. no_new_privs must come first: without it an ordinary user may use neither
// Landlock nor seccomp (landlock_restrict_self(2), seccomp(2)), and a set-user-ID program could regain rights.
func (c *Contained) restrict(version int) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no_new_privs: %w", err)
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if err := c.landlock(version); err != nil {
		return fmt.Errorf("Landlock: %w", err)
	}
	return installFilter(seccompFilter(version))
}

// dropCapabilities drops all capabilities except CAP_DAC_READ_SEARCH, which root needs to read other users' files. Because of
// no_new_privs, executing a program does not restore them.
func dropCapabilities() error {
	var head unix.CapUserHeader
	head.Version = unix.LINUX_CAPABILITY_VERSION_3
	var have [2]unix.CapUserData
	if err := unix.Capget(&head, &have[0]); err != nil {
		return err
	}
	if have[0].Permitted == 0 && have[1].Permitted == 0 {
		return nil
	}
	const read = 1 << unix.CAP_DAC_READ_SEARCH
	left := [2]unix.CapUserData{{Effective: have[0].Effective & read, Permitted: have[0].Permitted & read}}
	return unix.Capset(&head, &left[0])
}

// allRights are Landlock's rights over files except executing, which needs no restriction: what runs is contained too. The
// ruleset handles all of them, so what no rule allows is refused.
const allRights = uint64(ll.AccessFSWriteFile | ll.AccessFSReadFile | ll.AccessFSReadDir | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeChar | ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeBlock | ll.AccessFSMakeSym | ll.AccessFSRefer | ll.AccessFSTruncate | ll.AccessFSIoctlDev)

// containedRights are the rights in allRights that a version of Landlock knows; the kernel refuses a ruleset with an unknown
// right (EINVAL, landlock_create_ruleset(2)). Version 2 is Linux 5.19, 3 is 6.2, 5 is 6.10.
func containedRights(version int) uint64 {
	rights := allRights
	for right, since := range map[uint64]int{ll.AccessFSRefer: 2, ll.AccessFSTruncate: 3, ll.AccessFSIoctlDev: 5} {
		if version < since {
			rights &^= right
		}
	}
	return rights
}

// rule allows rights over a file, or over a folder and everything below it. Device and inode let Same detect that another
// file has taken the path.
type rule struct {
	path     string
	rights   uint64
	dev, ino uint64 // of the file at path when the rule was made; 0 in systemRules
}

// rules lists the rules for the project and the temporary folder, from what exists now. systemRules has those for the system.
func (c *Contained) rules() (rules []rule) {
	add := func(path string, rights uint64) {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil {
			return // a rule needs an existing file
		}
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			rights &= fileRights
		}
		rules = append(rules, rule{path, rights, st.Dev, st.Ino})
	}
	without := slices.Concat(c.hidden, c.unseen)
	for _, p := range c.readable {
		allowReading(p, without, add)
	}
	if c.temp != "" {
		add(c.temp, allRights&^(ll.AccessFSMakeChar|ll.AccessFSMakeBlock))
	}
	return rules
}

// Same reports whether a thread that c has restricted may start the command of o: the rules are equal, and each path is still
// the same file.
func (c *Contained) Same(o *Contained) bool { return slices.Equal(c.asRestricted, o.rules()) }

// landlock restricts the calling thread. It makes the system calls itself because go-landlock's functions restrict all threads
// of the process.
func (c *Contained) landlock(version int) error {
	handled := containedRights(version)
	attr := ll.RulesetAttr{HandledAccessFS: handled}
	// Version 4 (Linux 6.7) has rights for TCP. No rule allows a port; the seccomp filter refuses sockets as well.
	if version >= 4 {
		attr.HandledAccessNet = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	// Version 6 (Linux 6.12) restricts signals and abstract sockets to processes under the same ruleset.
	if version >= 6 {
		attr.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	ruleset, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return err
	}
	defer unix.Close(ruleset)
	c.asRestricted = c.rules()
	for _, r := range slices.Concat(c.asRestricted, c.systemRules()) {
		if r.rights &= handled; r.rights == 0 {
			continue
		}
		fd, err := unix.Open(r.path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // removed since the rules were made
		}
		err = ll.LandlockAddPathBeneathRule(ruleset, &ll.PathBeneathAttr{AllowedAccess: r.rights, ParentFd: fd}, 0)
		_ = unix.Close(fd)
		if err != nil {
			return fmt.Errorf("%s: %w", r.path, err)
		}
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// fileRights are the rights that a rule for a file may have; with others landlock_add_rule(2) fails with EINVAL.
const fileRights = ll.AccessFSWriteFile | ll.AccessFSReadFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev

// systemRules lists the rules for systemPlaces and for the devices that may be read and written.
func (c *Contained) systemRules() (rules []rule) {
	add := func(path string, rights uint64) {
		if info, err := os.Stat(path); err == nil {
			if !info.IsDir() {
				rights &= fileRights
			}
			rules = append(rules, rule{path: path, rights: rights})
		}
	}
	for _, p := range systemPlaces() {
		allowReading(p, c.apart, add)
	}
	// Runtimes list /proc/self/fd to close inherited descriptors.
	add("/proc", ll.AccessFSReadDir)
	for _, p := range devices {
		// /dev/pts holds the terminals of the person's other programs: a command could read what is typed there and print control
		// sequences. Its own terminal is /dev/tty.
		if !strings.HasPrefix(p, "/dev/pt") {
			add(p, ll.AccessFSReadFile|fileRights)
		}
	}
	return rules
}

// allowReading calls add with rules that allow reading place except the paths in without. Landlock rules cannot exclude a
// part of a folder, so a folder with an exception gets a rule for each of its other entries. The names of all entries in it can
// be listed; a file created in it later cannot be read, because it has no rule.
func allowReading(place string, without []string, add func(string, uint64)) {
	switch {
	case slices.Contains(without, place):
		return
	case !slices.ContainsFunc(without, func(h string) bool { return below(place, h) }):
		add(place, ll.AccessFSReadFile|ll.AccessFSReadDir)
		return
	}
	add(place, ll.AccessFSReadDir) // listing only
	entries, _ := os.ReadDir(place)
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 { // a link needs no rule: Landlock checks its target
			allowReading(filepath.Join(place, e.Name()), without, add)
		}
	}
}

// confine sets what the command may read. The files in Hidden need no exception here, since mounts cover them.
func (b *Box) confine(project []string, o Options) {
	b.Confined = true
	places := slices.Concat(project, []string{realDir(o.Dir)}, existing(gitReadable(o.Root)), existing(homeReadable(o.Home, o.Getenv)), systemPlaces())
	without := apart(slices.Concat(project, existing([]string{o.Home})))
	for _, place := range places {
		// The project may lie in a folder that is set apart from the system.
		except := without
		if slices.Contains(project, place) {
			except = nil
		}
		allowReading(place, except, func(path string, rights uint64) {
			if rights&ll.AccessFSReadFile != 0 {
				b.Readable = append(b.Readable, path)
			} else {
				b.Listed = append(b.Listed, path)
			}
		})
	}
}

// Limits are the resource limits of the command: RLIMIT_* numbers and their values (setrlimit(2)).
func (c *Contained) Limits() map[int]uint64 {
	return map[int]uint64{
		unix.RLIMIT_CPU: containedCPU, unix.RLIMIT_DATA: containedData, unix.RLIMIT_FSIZE: containedFile, unix.RLIMIT_CORE: 0,
	}
}
