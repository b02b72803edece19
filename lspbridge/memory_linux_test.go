package lspbridge

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/tools/change"
)

// Over the budget the server that nobody has used for longest goes, and comes back when it is asked.
func TestMemoryBudget(t *testing.T) {
	m, root := goProject(t)
	m.o.Memory = 1 << 20
	ctx, path := longer(t), filepath.Join(root, "main.go")
	if r := m.Diagnostics(ctx, path); r.Certainty != change.Fresh {
		t.Fatal(r)
	}
	s := m.running()[0]
	if c := s.current(); groupMemory(c.proc.pid) < 10<<20 {
		t.Fatalf("gopls weighs %d bytes", groupMemory(c.proc.pid))
	}
	weigh := func() {
		m.mu.Lock()
		m.measured = time.Time{}
		m.mu.Unlock()
		m.stopOverBudget()
	}
	if weigh(); s.current() == nil {
		t.Error("a server in use was stopped")
	}
	s.mu.Lock()
	s.used = time.Now().Add(-time.Hour)
	s.mu.Unlock()
	if weigh(); s.current() != nil {
		t.Error("it was not stopped")
	}
	if r := m.Diagnostics(ctx, path); r.Certainty != change.Fresh || len(r.Items) != 2 {
		t.Errorf("%s %q", r.Certainty, r.Reason)
	}
}

// With its last user gone a project's servers stop soon, not after the idle time; somebody who comes back in time keeps
// them.
func TestServersLeaveWithTheirUsers(t *testing.T) {
	m, root := goProject(t)
	m.o.Linger = 50 * time.Millisecond
	ctx, path := longer(t), filepath.Join(root, "main.go")
	one, two := m.Use(), m.Use()
	m.Diagnostics(ctx, path)
	c := m.running()[0].current()
	one()
	two()
	two() // once is enough
	again := m.Use()
	m.mu.Lock()
	users := m.users
	m.mu.Unlock()
	if r := m.Diagnostics(ctx, path); r.Certainty != change.Fresh || m.running()[0].current() != c || users != 1 {
		t.Errorf("%s %q, %d users", r.Certainty, r.Reason, users)
	}
	again()
	select {
	case <-c.proc.exited:
	case <-ctx.Done():
		t.Fatal("gopls stayed")
	}
	if r := m.Diagnostics(longer(t), path); r.Certainty != change.Fresh || len(r.Items) != 2 {
		t.Errorf("asked again: %s %q", r.Certainty, r.Reason)
	}
}

func TestScarce(t *testing.T) {
	for text, want := range map[string]bool{
		"MemTotal:       24683520 kB\nMemFree:          100000 kB\nMemAvailable:   20000000 kB\n": false,
		"MemTotal:        8000000 kB\nMemFree:          100000 kB\nMemAvailable:     999999 kB\n": true,
		"MemTotal:        8000000 kB\nMemAvailable:    1000000 kB\n":                              false,
		"MemTotal:        8000000 kB\nMemAvailable:          0 kB\n":                              true,
		"MemTotal:        8000000 kB\nMemFree:          100000 kB\n":                              false, // an old kernel does not say
		"": false,
	} {
		if scarce(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// gopls collects its heap early, unless the person has set its pace, in the environment or for this server.
func TestHeapOfGopls(t *testing.T) {
	for _, c := range []struct{ environment, setting, want string }{{"", "", "GOGC=50"}, {"200", "", "GOGC=200"}, {"200", "75", "GOGC=75"}, {"", "75", "GOGC=75"}} {
		t.Setenv("GOGC", c.environment)
		m, root := goProject(t)
		if c.setting != "" {
			m.o.Servers = map[string]ServerConfig{"gopls": {Env: map[string]string{"GOGC": c.setting}}}
			m.rows = func() []Server { return configured(m.o.Servers) }
		}
		run, err := m.slotsFor(filepath.Join(root, "main.go"))[0].get(longer(t))
		if err != nil {
			t.Fatal(err)
		}
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", run.proc.pid))
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for entry := range strings.SplitSeq(string(environ), "\x00") {
			if strings.HasPrefix(entry, "GOGC=") {
				got = entry
			}
		}
		if got != c.want {
			t.Errorf("GOGC=%s, setting %q: %q, want %q", c.environment, c.setting, got, c.want)
		}
	}
}
