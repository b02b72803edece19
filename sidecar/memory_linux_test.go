package main

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOnlyPagesThatWereNeverWrittenAreGivenBack(t *testing.T) {
	const smaps = `00400000-00402000 r--p 00000000 fe:00 10199810                           /bin/pillion
Size:                  8 kB
Anonymous:             0 kB
VmFlags: rd mr mw me sd
00402000-02670000 r-xp 00002000 fe:00 10199810                           /bin/pillion
Anonymous:             0 kB
05663000-05664000 r--p 05262000 fe:00 10199810                           /bin/pillion
Anonymous:             4 kB
05664000-0570e000 rw-p 05263000 fe:00 10199810                           /bin/pillion
Anonymous:             0 kB
7f00000000-7f00001000 r-xp 00000000 fe:00 77                             /lib/libc.so.6
Anonymous:             0 kB
c000000000-c000400000 rw-p 00000000 00:00 0
Anonymous:             0 kB
`
	want := []span{{0x400000, 0x402000}, {0x402000, 0x2670000}}
	if got := cleanMappings([]byte(smaps), "/bin/pillion"); !slices.Equal(got, want) {
		t.Errorf("%x", got)
	}
	if got := cleanMappings([]byte(smaps), "/bin/pillion (deleted)"); got != nil {
		t.Errorf("another program's: %x", got)
	}
}

// New threads go through libc by addresses that the dynamic linker wrote; without them the process dies of SIGSEGV.
func TestThreadsStartAfterGivingBack(t *testing.T) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Skip("no smaps here: ", err)
	}
	if len(cleanMappings(smaps, exe)) == 0 {
		t.Fatal("nothing would be given back")
	}
	dropFilePages()
	const threads = 50
	ids := map[int]bool{}
	var mu sync.Mutex
	var all, started sync.WaitGroup
	started.Add(threads)
	for range threads {
		all.Go(func() {
			runtime.LockOSThread() // never unlocked: each goroutine takes a thread along when it ends
			mu.Lock()
			ids[unix.Gettid()] = true
			mu.Unlock()
			started.Done()
			started.Wait() // all at once, so that no thread serves two
		})
	}
	all.Wait()
	if len(ids) != threads {
		t.Errorf("%d threads", len(ids))
	}
}
