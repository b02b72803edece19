package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// selfProgram stays right when the file was replaced by an update.
// The path of the file would name the new version then, whose Main may take other arguments.
func selfProgram() string { return "/proc/self/exe" }

// Probe says what the system offers. It tries it for real, once, in a process of its own.
func Probe() Support { return probe() }

// probe asks once in the life of this program: each try costs a process.
var probe = sync.OnceValue(func() Support { return probeWith([]string{selfProgram(), Arg}) })

// probeWith tries mounts and networks with a helper: whether they are allowed depends on more than the kernel's version.
// Distributions switch user namespaces off, or restrict them with AppArmor, on kernels that have them.
func probeWith(helper []string) Support {
	var s Support
	version, err := ll.LandlockGetABIVersion()
	if err != nil || version < 1 {
		s.Why = "this kernel has no Landlock (Linux 5.13 and newer, enabled with lsm=landlock)"
		return s
	}
	s.Landlock = version
	if version < minLandlock {
		s.Why = fmt.Sprintf("this kernel's Landlock (version %d) cannot keep files from being emptied; it needs Linux 6.2", version)
		return s
	}
	try := func(try Support) bool {
		// The smallest box that takes all steps: 100 processes and one writable folder.
		box := &Box{Writable: []string{os.TempDir()}, Processes: 100, Dir: "/", Support: try}
		spec, err := json.Marshal(box)
		if err != nil {
			return false
		}
		cmd := exec.Command(helper[0], append(append([]string{}, helper[1:]...), string(spec), "/proc/self/exe", Arg, "probe")...)
		cmd.SysProcAttr = &syscall.SysProcAttr{}
		box.Attributes(cmd.SysProcAttr)
		out, err := cmd.Output()
		return err == nil && bytes.Contains(out, []byte(probed))
	}
	// Root arranges its own namespaces without a user namespace, unless it has lost the rights for that: in a container,
	// or in a draft.
	ways := []bool{true}
	if os.Geteuid() == 0 {
		ways = []bool{false, true}
	}
	for _, userns := range ways {
		// The most first: a system may allow mounts and refuse networks, so both are tried before the next way.
		for _, t := range []Support{{Mounts: true, Netns: true}, {Mounts: true}} {
			if t.Landlock, t.Userns = version, userns; !s.Mounts && try(t) {
				s.Mounts, s.Netns, s.Userns = true, t.Netns, userns
			}
		}
	}
	if !s.Mounts {
		s.Cgroup = processGroups()
		return s
	}
	if base, err := os.MkdirTemp("", "pillion-probe-"); err == nil {
		b := &Box{Support: Support{Overlay: true, Mounts: true, Userns: s.Userns}}
		place := filepath.Join(realDir(base), "cache")
		_ = os.Mkdir(place, 0o700)
		// A file system may refuse overlays although mounts are allowed, so one is made and written to.
		b.privateCaches(filepath.Join(base, "private"), "/", []string{place})
		s.Overlay = len(b.Caches) == 1 && tryOverlay(helper, b, version)
		if b.unlock != nil {
			b.unlock()
		}
		removeOverlay(filepath.Join(base, "private", shortHash("/")))
		_ = os.RemoveAll(base)
	}
	s.Cgroup = processGroups()
	return s
}

// tryOverlay lets a command write to a folder below an overlay, and looks whether that stayed above it.
func tryOverlay(helper []string, b *Box, version int) bool {
	b.Support.Landlock, b.Processes, b.Dir = version, 100, "/"
	spec, err := json.Marshal(b)
	if err != nil {
		return false
	}
	l := b.Caches[0]
	cmd := exec.Command(helper[0], append(append([]string{}, helper[1:]...), string(spec), "/bin/sh", "-c", "echo x >"+l.Place+"/probe")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	b.Attributes(cmd.SysProcAttr)
	if cmd.Run() != nil {
		return false
	}
	_, above := os.Stat(filepath.Join(l.Upper, "probe"))
	_, below := os.Stat(filepath.Join(l.Place, "probe"))
	return above == nil && below != nil
}

// probed is what the helper prints when it is called as "probe" inside of the sandbox. Its exit code alone would not tell a
// sandbox that works from a helper that did something else.
const probed = "the sandbox works\n"

// Attributes ask for the namespaces an ordinary user gets only at birth, with the rights to arrange them; the helper
// gives those up before the command starts.
// Each user id is mapped to itself, so that files keep their owners in the command's view.
func (b *Box) Attributes(attr *syscall.SysProcAttr) {
	if !b.Support.Userns {
		return
	}
	attr.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	if len(b.Caches) > 0 { // overlayfs makes a folder of mode 0 with the rights of the process that mounts it
		attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER)
	}
	// CAP_NET_ADMIN brings loopback up in the new network; see ownNetwork.
	if !b.Network && b.Support.Netns {
		attr.Cloneflags |= syscall.CLONE_NEWNET
		attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_NET_ADMIN)
	}
}

// processGroups is pidsGroup, asked once.
var processGroups = sync.OnceValue(pidsGroup)

// pidsGroup finds a folder where this process may make control groups that limit processes; empty where it may not.
func pidsGroup() string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	for _, line := range strings.Split(string(own), "\n") {
		f := strings.SplitN(line, ":", 3)
		if len(f) != 3 {
			continue
		}
		var roots []string
		switch {
		// The lines are hierarchy-ID:controllers:path (cgroups(7)): version 1 names the controller, version 2 has ID 0.
		case f[1] == "pids":
			roots = []string{"/sys/fs/cgroup/pids"}
		case f[0] == "0":
			roots = []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
		}
		for _, root := range roots {
			dir := filepath.Join(root, f[2])
			group := filepath.Join(dir, fmt.Sprintf("pillion.probe.%d", os.Getpid()))
			if os.Mkdir(group, 0o755) != nil {
				continue
			}
			// A group can often be made where the pids controller is not delegated; then pids.max is missing or refuses to be written.
			err := os.WriteFile(filepath.Join(group, "pids.max"), []byte("100"), 0o644)
			_ = os.Remove(group)
			if err == nil {
				sweepGroups(dir)
				return dir
			}
		}
	}
	return ""
}

// group is the control group of the command whose shell has this process id.
func (b *Box) group(pid int) string {
	return filepath.Join(b.Support.Cgroup, fmt.Sprintf("pillion.%d", pid))
}

// Release removes the command's control group and unlocks its private caches. It is for when nothing of the command is left:
// a group that still holds processes cannot be removed, and stays until sweepGroups.
func (b *Box) Release(pid int) {
	if b != nil && b.unlock != nil {
		b.unlock() // once: who waits for the command and who ends it may both come here, at the same time
	}
	if b != nil && b.Support.Cgroup != "" {
		_ = os.Remove(b.group(pid))
	}
}

// sweepGroups removes groups whose command ended after its session had died.
func sweepGroups(dir string) {
	entries, _ := filepath.Glob(filepath.Join(dir, "pillion*.*"))
	for _, e := range entries {
		_, owner, _ := strings.Cut(filepath.Base(e), ".") // pillion.PID, or pillion-contained.PID.N of a ProcessLimit
		owner, _, _ = strings.Cut(owner, ".")
		pid, err := strconv.Atoi(owner)
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = os.Remove(e) // one that still holds processes stays
		}
	}
}
