package files

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// inPlace is false: hard links and owners are not examined on Windows, so a file is always replaced.
func inPlace(path string, fi fs.FileInfo) bool { return false }

func mayWrite(path string) error { return nil } // ACLs decide at the write

// copyAttrs copies the read-only bit, all that Windows keeps in a mode. ACLs are inherited
// from the folder.
func copyAttrs(from string, f *os.File) error {
	fi, err := os.Stat(from)
	if err != nil {
		return err
	}
	return f.Chmod(fi.Mode().Perm())
}

// syncDir does nothing: Windows has no way to flush a folder alone.
func syncDir(dir string) {}

// lockFile is the lock of attrs_unix.go by LockFileEx. Where no lock file can be made it reports success: callers compare hashes
// in any case.
func lockFile(path string) (unlock func(), ok bool) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return func() {}, true
	}
	if windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{}) != nil {
		f.Close()
		return nil, false
	}
	return func() { f.Close() }, true
}

// ProcessRuns reports whether a process with this id exists on this machine, whoever it belongs to.
func ProcessRuns(pid int) bool {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(h)
	var code uint32
	return windows.GetExitCodeProcess(h, &code) == nil && code == 259 // STILL_ACTIVE
}

// processStart is not known; a plan's process is then judged by its id alone.
func processStart(pid int) string { return "" }

// Links is 0: hard links are not counted on Windows.
func Links(string) int { return 0 }
