package sandbox

import (
	"os"
	"slices"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// A user who is not root gets the namespaces and capabilities that the restrictions of a box need, and no more.
func TestNamespacesOfAnOrdinaryUser(t *testing.T) {
	const always = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWIPC
	base := []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP}
	for _, c := range []struct {
		box   Box
		flags uintptr
		caps  []uintptr
	}{
		{Box{Support: Support{Mounts: true, Netns: true}}, 0, nil},
		{Box{Support: Support{Userns: true}}, always, base},
		{Box{Support: Support{Userns: true, Netns: true}}, always | syscall.CLONE_NEWNET, append(slices.Clone(base), unix.CAP_NET_ADMIN)},
		{Box{Support: Support{Userns: true, Netns: true}, Network: true}, always, base},
		{Box{Support: Support{Userns: true}, Caches: []layer{{}}}, always, append(slices.Clone(base), unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER)},
	} {
		attr := &syscall.SysProcAttr{}
		c.box.Attributes(attr)
		if attr.Cloneflags != c.flags || !slices.Equal(attr.AmbientCaps, c.caps) {
			t.Errorf("%+v: flags %#x, capabilities %v, want %#x, %v", c.box, attr.Cloneflags, attr.AmbientCaps, c.flags, c.caps)
		}
		if c.flags != 0 && (len(attr.UidMappings) != 1 || attr.UidMappings[0] != (syscall.SysProcIDMap{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}) || len(attr.GidMappings) != 1 || attr.GidMappings[0] != (syscall.SysProcIDMap{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1})) {
			t.Errorf("files would change their owners: %v, %v", attr.UidMappings, attr.GidMappings)
		}
	}
}

// Where the kernel has Landlock, commands can be contained; otherwise the tests of that would be skipped.
func TestContainmentIsFoundToWork(t *testing.T) {
	version := landlockVersion()
	if version == 0 {
		t.Skip("this kernel has no Landlock")
	}
	if err := tryContain(version); err != nil {
		t.Error(err)
	}
	if tryContain(0) == nil {
		t.Error("without Landlock a command counts as contained")
	}
}
