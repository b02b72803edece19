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

// selfProgram is a path that always executes the running program. After an update the path of its file would execute the new
// version, whose Main may expect other arguments.
func selfProgram() string { return "/proc/self/exe" }

// Probe reports what the system offers. The first call starts helper processes to try it; later calls return the same result.
func Probe() Support { return probe() }

// probe runs probeWith once, since each try costs a process.
var probe = sync.OnceValue(func() Support { return probeWith([]string{selfProgram(), Arg}) })

// probeWith tries mounts and network namespaces with a helper process. The kernel's version is not enough to know: distributions
// switch user namespaces off or restrict them with AppArmor.
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
		// The smallest box for which enter goes through all steps.
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
	// Root needs no user namespace, unless it lacks CAP_SYS_ADMIN, as in a container or in a draft.
	ways := []bool{true}
	if os.Geteuid() == 0 {
		ways = []bool{false, true}
	}
	for _, userns := range ways {
		// A system may allow mounts but not network namespaces, so mounts alone are tried too.
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
		// A file system may refuse overlays where mounts are allowed, so an overlay is tried too.
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

// tryOverlay runs a command that writes to a folder with an overlay, and reports whether the file is only in the upper folder.
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

// probed is what the helper prints when it runs as "probe" in the sandbox. An exit code of 0 would not prove that it got there.
const probed = "the sandbox works\n"

// Attributes makes the helper start in a user namespace, with mounts and capabilities of its own, if Support.Userns says so. Here
// and not in the helper, because a Go program has several threads and unshare(CLONE_NEWUSER) needs a single one. The helper
// drops the capabilities before the command starts. User and group are mapped to themselves, so that files keep their owners.
func (b *Box) Attributes(attr *syscall.SysProcAttr) {
	if !b.Support.Userns {
		return
	}
	attr.Cloneflags |= syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	if len(b.Caches) > 0 { // overlayfs creates a folder of mode 0 in the work folder with the capabilities of the mounting process
		attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER)
	}
	// ownNetwork needs CAP_NET_ADMIN to switch on loopback.
	if !b.Network && b.Support.Netns {
		attr.Cloneflags |= syscall.CLONE_NEWNET
		attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_NET_ADMIN)
	}
}

// processGroups is pidsGroup, asked once.
var processGroups = sync.OnceValue(pidsGroup)

// pidsGroup finds a folder in which this process may create control groups that limit processes; empty if there is none.
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
			// A group can often be created where the pids controller is not delegated; pids.max is then missing or not writable.
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

// Release removes the command's control group and releases its private caches. It must be called after all processes of the command
// have ended: a group with processes cannot be removed, and stays until sweepGroups. It may be called more than once.
func (b *Box) Release(pid int) {
	if b != nil && b.unlock != nil {
		b.unlock() // a sync.OnceFunc: the goroutine that waits for the command and the one that ends it may both call Release
	}
	if b != nil && b.Support.Cgroup != "" {
		_ = os.Remove(b.group(pid))
	}
}

// sweepGroups removes control groups of processes that no longer exist, left behind by a crash of Pillion.
func sweepGroups(dir string) {
	entries, _ := filepath.Glob(filepath.Join(dir, "pillion*.*"))
	for _, e := range entries {
		_, owner, _ := strings.Cut(filepath.Base(e), ".") // pillion.PID, or pillion-contained.PID.N of a ProcessLimit
		owner, _, _ = strings.Cut(owner, ".")
		pid, err := strconv.Atoi(owner)
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = os.Remove(e) // fails for a group that still has processes
		}
	}
}
