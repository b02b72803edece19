package inotify

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// localSystems are file systems of this machine's own disks and memory (statfs(2), f_type). Elsewhere changes come from other machines, or, with
// overlayfs, past the layer that is watched.
var localSystems = map[int64]bool{0xEF53: true, 0x58465342: true, 0x9123683E: true, 0x01021994: true, 0xF2F52010: true, 0xCA451A4E: true}

// Reports says whether the kernel reports every change in the file system of a path.
func Reports(path string) (bool, error) {
	var system unix.Statfs_t
	if err := unix.Statfs(path, &system); err != nil {
		return false, err
	}
	return localSystems[int64(system.Type)], nil
}

// Mounts tells when something was mounted or unmounted. Below a mount point other files appear without an event. It is not safe for
// concurrent use.
type Mounts struct{ file *os.File }

// OpenMounts looks at the mounts of this process.
func OpenMounts() (*Mounts, error) {
	fd, err := unix.Open("/proc/self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return &Mounts{os.NewFile(uintptr(fd), "mountinfo")}, nil
}

// Close may be called again.
func (m *Mounts) Close() { m.file.Close() }

// Changed reports whether something was mounted or unmounted, anywhere on the machine, since the last call (proc(5): POLLPRI).
func (m *Mounts) Changed() (bool, error) {
	p := []unix.PollFd{{Fd: int32(m.file.Fd()), Events: unix.POLLPRI}}
	for {
		n, err := unix.Poll(p, 0)
		if err == unix.EINTR {
			continue
		}
		return n > 0 && p[0].Revents&(unix.POLLPRI|unix.POLLERR) != 0, err
	}
}

// Below reports whether something is mounted below a folder. The fifth field is the mount point, in which blanks are written in octal (proc(5)).
func (m *Mounts) Below(dir string) (bool, error) {
	fd := int(m.file.Fd())
	if _, err := unix.Seek(fd, 0, io.SeekStart); err != nil {
		return false, err
	}
	var text bytes.Buffer
	for buf := make([]byte, 16<<10); ; {
		n, err := unix.Read(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return false, err
		}
		if n == 0 {
			break
		}
		text.Write(buf[:n])
	}
	dir = strings.TrimSuffix(dir, string(filepath.Separator)) + string(filepath.Separator)
	for line := range strings.SplitSeq(text.String(), "\n") {
		if fields := strings.Fields(line); len(fields) > 4 && strings.HasPrefix(unescape(fields[4]), dir) {
			return true, nil
		}
	}
	return false, nil
}

// unescape reads \040 and the like.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
