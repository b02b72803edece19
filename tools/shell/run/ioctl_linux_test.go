package run

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// File systems have calls of their own that take a file which is open for reading only: Landlock has no say in them.
func TestAContainedCommandChangesNothingThroughReadOnlyDescriptors(t *testing.T) {
	needPython(t)
	root := t.TempDir()
	writeFile(t, root+"/a", "fine")
	try := func(request uint32, of string) string {
		o := *containedIn(t, root)
		code := fmt.Sprintf(`import os, fcntl; fcntl.ioctl(os.open("%s", os.O_RDONLY), %d, bytes(1024))`, of, request)
		return run(t, Command{Text: "python3 -c '" + code + "'", Dir: root, Contained: &o, Timeout: time.Minute}).Output.Head
	}
	for name, request := range map[string]uint32{
		"flags": 0x40086602, "extended flags": 0x401c5820, "version": 0x40087602, "seal a file": 0x40806685, "encrypt": 0x800c6613,
		"make a snapshot": 0x50009401, "make a subvolume": 0x5000940e, "delete a subvolume": 0x5000940f, "share blocks": 0x40049409, "FAT's attributes": 0x40047211, "freeze": 0xc0045877,
	} {
		for _, of := range []string{"a", "."} {
			if out := try(request, of); !strings.Contains(out, "[Errno 25]") { // ENOTTY, from the filter and before any file system
				t.Errorf("%s of %s: %s", name, of, out)
			}
		}
	}
}
