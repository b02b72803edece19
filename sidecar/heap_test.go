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
	const mb = 1 << 20
	for _, c := range []struct {
		live, scan uint64 // MB
		turns      int64
		want       int
	}{
		{0, 0, 1, 800}, // the least room
		{2, 2, 1, 400},
		{6, 6, 1, 400},
		{8, 8, 1, 300},
		{12, 12, 1, 150},
		{16, 16, 1, 50},
		{100, 100, 1, 50}, // a long session: half of what is searched
		{128, 128, 1, 100},
		{1 << 20, 1 << 20, 1, 100},
		{100, 6, 1, 5}, // three texts of 32 MB beside a small heap
		{40, 6, 1, 20},
		{400, 200, 1, 50},
		{8, 8, 20, 1000}, // twenty turns at once
		{40, 40, 20, 200},
		{40, 40, 1000, 250}, // of which so many count
		{40, 40, 0, 50},
	} {
		if got := heapPercent(c.live*mb, c.scan*mb, c.turns); got != c.want {
			t.Errorf("%+v: %d", c, got)
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
	big := make([]byte, 100<<20)
	until("a large text", func() bool { return pace() < 50 })
	runtime.KeepAlive(big)
	big = nil
	until("small again", func() bool { return pace() > 100 })
	alone := pace()
	for range 20 {
		heapPace.begin()
	}
	if got := pace(); got <= alone {
		t.Errorf("twenty turns at once: %d, and %d before", got, alone)
	}
	for range 20 {
		heapPace.end()
	}
	until("alone again", func() bool { return pace() <= alone })
}
