package guard

import (
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Windows ends all processes of a job object when its last handle closes, which the system does when this program ends,
// however it ends.

// familyMarks is empty: the job object knows its processes.
type familyMarks struct{}

// all is the one job object, made at the first start. Its handle is never closed by this program: the system does that.
var all = sync.OnceValues(func() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
	return job, err
})

// There is no watcher, so there is nothing to turn on.
func watch()  {}
func enable() {}

// start starts a command inside the job object whose handle this process holds: Windows
// kills the job's processes when the handle is closed, also by a crash.
func start(cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	job, err := all()
	if err != nil {
		return nil // no protection, but the command runs
	}
	const rights = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE
	// Assigned after the start: what the program starts before that moment is outside of the job.
	if p, err := windows.OpenProcess(rights, false, uint32(cmd.Process.Pid)); err == nil {
		_ = windows.AssignProcessToJobObject(job, p)
		_ = windows.CloseHandle(p)
	}
	return nil
}

// A family is not told apart from the rest: all are in the one job.
func (f *Family) start(cmd *exec.Cmd) error { return start(cmd) }

// forgetMarks has nothing to forget.
func (f *Family) forgetMarks() {}

// Close has nothing to do: the system closes the job's handle.
func Close() {}

// Main is never called: no watcher is started.
func Main() int { return 2 }
