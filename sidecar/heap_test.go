package main

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestHeapPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 1 << 20: 400, 6 << 20: 400, 8 << 20: 300, 10 << 20: 200, 12 << 20: 150, 16 << 20: 50, 100 << 20: 50, 128 << 20: 100, 1 << 40: 100} {
		if got := heapPercent(live); got != want {
			t.Errorf("%d MB live: %d", live>>20, got)
		}
	}
}

func TestTheHeapsPaceFollowsItsSize(t *testing.T) {
	if os.Getenv("PILLION_TEST_ALONE") == "" { // what other tests have left in the heap is not what this is about
		cmd := exec.Command(os.Args[0], "-test.run=^TestTheHeapsPaceFollowsItsSize$")
		cmd.Env = append(os.Environ(), "PILLION_TEST_ALONE=1", "GOGC=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	t.Setenv("GOGC", "")
	pace := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(10 * time.Second); !ok(); runtime.GC() { // the finalizers' goroutine is not ours
			if time.Now().After(end) {
				t.Fatalf("%s: %d", what, pace())
			}
			runtime.Gosched()
		}
	}
	tuneHeap()
	until("a small heap", func() bool { return pace() > 100 })
	big := make([]byte, 40<<20)
	until("a large heap", func() bool { return pace() == 50 })
	runtime.KeepAlive(big)
	big = nil
	until("small again", func() bool { return pace() > 100 })
}
