package guard

import (
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A job object holds a process and all that descends from it. Windows ends the processes of a job when its last handle closes, and it
// closes the handles of this program however this program ends. No watcher is needed.

// familyMarks is the job object of a family; 0 before the start and after Forget.
type familyMarks struct {
	mu  sync.Mutex
	job windows.Handle // guarded by mu
}

// all is the job of every process that has no family, made at the first start. This program never closes its handle.
var all = sync.OnceValues(newJob)

// newJob makes a job object whose processes end with its last handle.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, err
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		_ = windows.CloseHandle(job)
		return 0, err
	}
	return job, nil
}

// There is no watcher, so there is nothing to turn on.
func watch()  {}
func enable() {}

// ntResumeProcess resumes all threads of a process. exec.Cmd does not give the handle that ResumeThread needs.
var ntResumeProcess = windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")

// start starts a command that ends with this program.
func start(cmd *exec.Cmd) error {
	job, err := all()
	if err != nil {
		return fmt.Errorf("no job object, with which processes end when this program does: %w", err)
	}
	return startIn(job, cmd)
}

// startIn starts a command in a job. The process is suspended until it is in the job, so that all it starts is in the job too. A process that
// cannot be put there would outlive this program: it is killed, and startIn fails.
func startIn(job windows.Handle, cmd *exec.Cmd) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.CreationFlags |= windows.CREATE_SUSPENDED
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := admit(job, cmd.Process.Pid); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("%s cannot be held in a job object: %w", cmd.Path, err)
	}
	return nil
}

// admit puts a suspended process into a job and lets it run.
func admit(job windows.Handle, pid int) error {
	const rights = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE | windows.PROCESS_SUSPEND_RESUME
	p, err := windows.OpenProcess(rights, false, uint32(pid))
	if err != nil {
		return err
	}
	defer windows.CloseHandle(p)
	if err := windows.AssignProcessToJobObject(job, p); err != nil {
		return err
	}
	if status, _, _ := ntResumeProcess.Call(uintptr(p)); status != 0 {
		return windows.NTStatus(status)
	}
	return nil
}

// start gives the family a job of its own, in which Kill and Left find its processes.
func (f *Family) start(cmd *exec.Cmd) error {
	job, err := newJob()
	if err != nil {
		return err
	}
	f.os.mu.Lock()
	f.os.job = job
	f.os.mu.Unlock()
	return startIn(job, cmd)
}

// Kill ends all processes of the family. Windows only: elsewhere signals reach them.
func (f *Family) Kill() {
	f.os.mu.Lock()
	defer f.os.mu.Unlock()
	if f.os.job != 0 {
		_ = windows.TerminateJobObject(f.os.job, 1)
	}
}

// Left returns how many processes of the family run. Windows only.
func (f *Family) Left() int {
	f.os.mu.Lock()
	defer f.os.mu.Unlock()
	if f.os.job == 0 {
		return 0
	}
	// JOBOBJECT_BASIC_ACCOUNTING_INFORMATION of winnt.h, which x/sys/windows lacks.
	var info struct {
		TotalUserTime, TotalKernelTime, ThisPeriodTotalUserTime, ThisPeriodTotalKernelTime int64
		TotalPageFaultCount, TotalProcesses, ActiveProcesses, TotalTerminatedProcesses     uint32
	}
	if windows.QueryInformationJobObject(f.os.job, windows.JobObjectBasicAccountingInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil) != nil {
		return 0
	}
	return int(info.ActiveProcesses)
}

// forgetMarks closes the job, which ends what is left in it.
func (f *Family) forgetMarks() {
	f.os.mu.Lock()
	defer f.os.mu.Unlock()
	if f.os.job != 0 {
		_ = windows.CloseHandle(f.os.job)
		f.os.job = 0
	}
}

// Close has nothing to do: the system closes the jobs' handles.
func Close() {}

// Main is never called: no watcher is started.
func Main() int { return 2 }
