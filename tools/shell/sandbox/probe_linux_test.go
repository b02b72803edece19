package sandbox_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/pillion-dev/pillion/tools/shell/sandbox"
)

// Other tests of the sandbox are skipped where the system offers nothing, so one that takes too little for offered would hide what is broken.
// The programs unshare and mount, and the kernel itself, say what it offers.
func TestProbesFindWhatTheSystemOffers(t *testing.T) {
	if _, err := exec.LookPath("unshare"); err != nil {
		t.Skip("unshare is missing")
	}
	s := sandbox.Probe()
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	landlock, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if errno != 0 {
		landlock = 0
	}
	if s.Landlock != int(landlock) {
		t.Errorf("Landlock %d, but the kernel has %d", s.Landlock, landlock)
	}
	if !s.Usable() {
		t.Skip("no sandbox here:", s.Why)
	}
	user := []string{"--user", "--map-current-user"}
	if os.Geteuid() == 0 && exec.Command("unshare", "--mount", "true").Run() == nil {
		user = nil
	}
	works := func(args ...string) bool { return exec.Command("unshare", append(user, args...)...).Run() == nil }
	if s.Mounts != works("--mount", "true") || s.Netns != works("--mount", "--net", "true") || s.Mounts && s.Userns != (user != nil) {
		t.Errorf("%+v, but mounts %t, network %t", s, works("--mount", "true"), works("--mount", "--net", "true"))
	}
	if user != nil {
		return // mount needs a mapping to root
	}
	dir := t.TempDir()
	for _, name := range []string{"lower", "upper", "work", "place"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	overlay := works("--mount", "sh", "-c", `cd "$1" && mount -t overlay overlay -o lowerdir=lower,upperdir=upper,workdir=work place && echo x > place/x`, "sh", dir)
	if s.Overlay != overlay {
		t.Errorf("overlays %t, but mount makes them: %t", s.Overlay, overlay)
	}
}
