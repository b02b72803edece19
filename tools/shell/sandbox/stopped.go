package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Parts of error messages, in lower case, that may mean that the sandbox denied something. They come from the C library, git,
// Node, Go and Java. If a program words it otherwise, Stopped says nothing, and only the program's own message is shown.
var (
	saysFiles     = []string{"permission denied", "operation not permitted", "read-only file system", "device or resource busy", "invalid cross-device link", "eacces", "eperm", "erofs", "exdev", "ebusy"}
	saysNetwork   = []string{"network is unreachable", "could not resolve", "temporary failure in name resolution", "name or service not known", "no such host", "getaddrinfo", "enotfound", "eai_again", "enetunreach", "econnrefused", "connection refused", "couldn't connect", "failed to connect", "network unreachable", "dns error"}
	saysProcesses = []string{"fork: retry", "cannot fork", "fork failed", "can't fork", "can't start new thread", "failed to create new os thread", "resource temporarily unavailable", "unable to create thread", "unable to create native thread"}
)

// Result is how a command ended, for Stopped, Passed and Blamed.
type Result struct {
	Exit     int // exit code; -1 when a signal ended it
	Canceled bool
	Output   string // what it printed; if that is long, its beginning and its end
}

// Stopped describes, for model and person, which restriction may have made a command fail, or a part of a command that exited
// with 0; empty if none did. It searches the output for known words, because the kernel reports a refusal only to the program.
func (b *Box) Stopped(out Result) string {
	// A cancelled command failed because of the cancellation.
	if b == nil || out.Canceled {
		return ""
	}
	const files = "it allows writing only in %s, and not to protected files such as .git/hooks, .git/config and editor settings"
	// A script may continue after a refused write and exit with 0; then only a message with a denied path counts, see blamed.
	if out.Exit == 0 {
		if place := b.blamed(out); place != "" {
			return place + ": " + fmt.Sprintf(files, b.where())
		}
		return ""
	}
	text := strings.ToLower(out.Output)
	has := func(words []string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	var why []string
	if has(saysProcesses) {
		why = append(why, fmt.Sprintf("it allows %d processes and threads at once", b.Processes))
	}
	// If the command has the network, these words have another cause than the sandbox.
	if !b.Network && has(saysNetwork) {
		why = append(why, "it has no network")
	}
	if has(saysFiles) {
		why = append(why, fmt.Sprintf(files, b.where()))
		if len(b.Hidden) > 0 {
			why = append(why, "nobody was asked about the command, so it cannot read .env files and keys")
		}
	}
	return strings.Join(why, "; ")
}

// where describes the writable places: those above or below the command's folder by their paths, all others in a few words.
func (b *Box) where() string {
	var names []string
	for _, w := range b.Writable {
		if w == b.Dir || below(w, b.Dir) || below(b.Dir, w) {
			names = append(names, w)
		}
	}
	return strings.Join(append(names, "temporary folders and build caches"), ", ")
}

// Settle must be called after a command has ended. It moves protected files that the command created to the quarantine, since
// editors, shells and git would use them; without a quarantine it only warns. Where protected files could not be made read-only,
// it also restores changed ones. It returns a line for each file, for model and person.
func (b *Box) Settle() []string {
	if b == nil {
		return nil
	}
	for _, dir := range b.Made {
		_ = os.Remove(dir) // fails for a folder that is not empty
	}
	var out []string
	if b.before != nil {
		out = b.before.putBack(b.Quarantine)
	}
	var came []string
	if b.look != nil {
		now := b.look()
		for _, p := range now.found {
			// Skip a path in a protected folder that existed before the command, or that is moved away as a whole.
			within := func(dir string) bool { return p == dir || below(dir, p) }
			if !slices.ContainsFunc(b.places.found, within) && !slices.ContainsFunc(came, within) && !b.isAllowed(p) {
				came = append(came, p)
			}
		}
		if !now.whole || !b.places.whole {
			out = append(out, fmt.Sprintf("The project has more than %d files, so it was not searched completely for new protected files.", protectedEntries))
		}
	}
	for _, p := range came {
		if b.Quarantine == "" {
			out = append(out, p+" was created and is protected: look at it before you use the project with other programs")
			continue
		}
		to := filepath.Join(b.Quarantine, time.Now().UTC().Format("20060102T150405.000000000")+"-"+filepath.Base(p))
		if err := moveAway(p, to); err != nil {
			out = append(out, p+" was created and is protected, but could not be moved away: "+err.Error())
			continue
		}
		out = append(out, p+" was created and is protected; it was moved to "+to)
	}
	return out
}

// moveAway moves a file or folder. Across file systems it copies without modes and owners: the copy is only for the person to
// read.
func moveAway(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	// rename(2) fails with EXDEV across file systems; then it is copied and removed.
	if os.Rename(from, to) == nil {
		return nil
	}
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		switch target := filepath.Join(to, rel); {
		case d.IsDir():
			return os.MkdirAll(target, 0o700)
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case d.Type().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(target, b, 0o600)
		}
		return nil // pipes and sockets have no contents to copy
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(from)
}
