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

// CanContain reports whether commands can be contained here, and why not. It tries it, once, on a thread that ends.
func CanContain() (ok bool, why string) {
	err := canContain()
	if err != nil {
		return false, err.Error()
	}
	return true, ""
}

// Layers says for a person what contains a command that runs without a question.
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

// canContain is tried once for the life of this program, since it costs a thread.
var canContain = sync.OnceValue(func() error { return tryContain(landlockVersion()) })

// landlockVersion is the version of Landlock's interface; 0: there is none.
func landlockVersion() int {
	version, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	return version
}

// tryContain restricts a thread and looks whether it holds.
// That the calls succeed is not enough: filter and rules are both tried with something that they must refuse. The thread
// ends with its goroutine, so this process stays as it was.
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

// Restrict contains the calling thread, and what it starts, for good. The thread must be locked to its goroutine, start
// the one command, and end with it.
func (c *Contained) Restrict() error { return c.restrict(landlockVersion()) }

// no_new_privs comes first: without it an ordinary user may install neither of the other two (landlock_restrict_self(2),
// seccomp(2)), and a set-user-ID program would bring rights back.
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

// dropCapabilities leaves root the one that reading other users' files needs. With no_new_privs none comes back.
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

// allRights are Landlock's rights over files but running them: what runs is contained as well.
// A right that is handled and that no rule allows is refused: that is how device files stay out of the temporary folder.
const allRights = uint64(ll.AccessFSWriteFile | ll.AccessFSReadFile | ll.AccessFSReadDir | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeChar | ll.AccessFSMakeDir | ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeBlock | ll.AccessFSMakeSym | ll.AccessFSRefer | ll.AccessFSTruncate | ll.AccessFSIoctlDev)

// containedRights are those of them that a version of Landlock knows.
// A ruleset with an unknown right is refused with EINVAL (landlock_create_ruleset(2)). Version 2 is Linux 5.19, 3 is 6.2,
// 5 is 6.10.
func containedRights(version int) uint64 {
	rights := allRights
	for right, since := range map[uint64]int{ll.AccessFSRefer: 2, ll.AccessFSTruncate: 3, ll.AccessFSIoctlDev: 5} {
		if version < since {
			rights &^= right
		}
	}
	return rights
}

// rule allows rights over a file, or a folder with all below.
// Device and inode make Same notice a path that means another file by now.
type rule struct {
	path     string
	rights   uint64
	dev, ino uint64 // of the file that the path meant
}

// rules works out the rules for the project and the temporary folder, from what exists now. Those for the system are
// systemRules.
func (c *Contained) rules() (rules []rule) {
	add := func(path string, rights uint64) {
		var st unix.Stat_t
		if unix.Stat(path, &st) != nil {
			return // not there: nothing to allow
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

// Same reports whether a thread that is restricted as c may start a command that is contained as o: both read the
// same files now, and not only by the same names.
func (c *Contained) Same(o *Contained) bool { return slices.Equal(c.asRestricted, o.rules()) }

// landlock restricts the calling thread. The wrappers of go-landlock restrict all threads, so this one makes the
// system calls itself.
func (c *Contained) landlock(version int) error {
	handled := containedRights(version)
	attr := ll.RulesetAttr{HandledAccessFS: handled}
	// TCP rights came with Linux 6.7. No rule allows any port; the seccomp filter already refuses sockets.
	if version >= 4 {
		attr.HandledAccessNet = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	// Linux 6.12 confines signals and abstract sockets to the ruleset's own processes.
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
			continue // gone meanwhile
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

// fileRights are the rights that a rule for a file, not a folder, may have.
// Others make landlock_add_rule(2) fail with EINVAL.
const fileRights = ll.AccessFSWriteFile | ll.AccessFSReadFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev

// systemRules are for the system's readable places and the devices that may be written.
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
	// Runtimes list /proc/self/fd to close what they inherited.
	add("/proc", ll.AccessFSReadDir)
	for _, p := range devices {
		// The terminals of the person's other programs are /dev/pts/N: what is printed there they obey, and what is typed
		// there can be read. The command's own is /dev/tty.
		if !strings.HasPrefix(p, "/dev/pt") {
			add(p, ll.AccessFSReadFile|fileRights)
		}
	}
	return rules
}

// allowReading allows a place but what is left out of it; one that holds such by its parts, since Landlock takes nothing
// out again.
// Names in such a folder stay visible and what is made in it later is not readable: a new file has no rule.
func allowReading(place string, without []string, add func(string, uint64)) {
	switch {
	case slices.Contains(without, place):
		return
	case !slices.ContainsFunc(without, func(h string) bool { return below(place, h) }):
		add(place, ll.AccessFSReadFile|ll.AccessFSReadDir)
		return
	}
	add(place, ll.AccessFSReadDir) // names may be seen
	entries, _ := os.ReadDir(place)
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 { // where a link leads decides
			allowReading(filepath.Join(place, e.Name()), without, add)
		}
	}
}

// Limits are the resource limits of the command: number of the limit, and its value.
func (c *Contained) Limits() map[int]uint64 {
	return map[int]uint64{
		unix.RLIMIT_CPU: containedCPU, unix.RLIMIT_DATA: containedData, unix.RLIMIT_FSIZE: containedFile, unix.RLIMIT_CORE: 0,
	}
}
