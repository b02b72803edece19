package custom

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/pillion-dev/pillion/tools/whole"
)

// bundled is a file that is ready to run. The stamp decides when the file is loaded again, so it must describe the contents that went into
// the bundle, even if the files have changed since.
type bundled struct {
	code    string   // path of the bundle
	inputs  []string // all files that it was made from
	stamp   string   // stampAll of inputs as they went into it; empty: unknown, so the next refresh bundles again
	passing bool     // the bundle is for this load only, and open removes it
}

// keptBundle describes what a cached bundle was made from; the bundle is valid while none of it has changed. Files are compared by hash,
// because a checkout changes times without changing contents. Folders in which imports are looked up are compared by time, because a file
// that is added or removed there can change where an import leads.
type keptBundle struct {
	Maker   string            `json:"maker"`   // see maker
	Inputs  map[string]string `json:"inputs"`  // SHA-256 by path
	Folders map[string]string `json:"folders"` // stamp by path
}

// maker identifies the bundler, its settings and the host's own files by the stamp of the program that contains them: another build of
// Pillion may have another bundler or other shims, so its bundles are not used. It is empty if the program's file cannot be read.
func maker() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	return stampOf(self)
}

// bundleKept is bundle with a cache on the disk: a file is not bundled again, by this process or another, while it and its imports are
// unchanged. Several processes may do this at the same time: whole.Write replaces files atomically, and the description is written last.
func bundleKept(path, host string, bun bool) (bundled, error) {
	// Named by the path and not by the contents, so that a changed file replaces its old bundle and the cache does not grow.
	sum := sha256.Sum256([]byte(path))
	base := filepath.Join(host, "bundles", hex.EncodeToString(sum[:12]))
	if bun {
		base += "-bun"
	}
	code, about := base+".mjs", base+".json"
	// A description without its bundle (a person has cleared the cache) does not count.
	if kept, ok := readKept(about); ok && stampOf(code) != "" {
		b := bundled{code: code}
		for p := range kept.Inputs {
			b.inputs = append(b.inputs, p)
		}
		b.stamp = stampAll(b.inputs) // before the contents are compared, so that a change after the comparison is noticed later
		if kept.counts() {
			return b, nil
		}
	}
	began := time.Now()
	text, inputs, err := bundle(path, host, code, bun)
	if err != nil {
		return bundled{}, err
	}
	b := bundled{code: code, inputs: inputs, stamp: stampAll(inputs)}
	// A file that changed during bundling may have gone in before or after the change. Such a bundle is used once and not cached.
	if changedSince(inputs, began) {
		b.stamp, b.passing = "", true
		b.code = base + "-" + rand.Text() + ".mjs"
		return b, whole.Write(b.code, text, 0o600)
	}
	kept := keptBundle{Maker: maker(), Inputs: map[string]string{}, Folders: folderStamps(path, inputs)}
	for _, p := range inputs {
		kept.Inputs[p] = sumOf(p)
	}
	raw, err := json.Marshal(kept)
	if err != nil {
		return bundled{}, err
	}
	_ = os.Remove(about) // first, so that a crash never leaves the old description beside the new bundle
	if err := whole.Write(code, text, 0o600); err != nil {
		return bundled{}, err
	}
	return b, whole.Write(about, raw, 0o600)
}

// readKept reads a description; ok is false if there is none, or if another build of Pillion wrote it.
func readKept(path string) (k keptBundle, ok bool) {
	raw, err := os.ReadFile(path)
	return k, err == nil && json.Unmarshal(raw, &k) == nil && k.Maker == maker() && len(k.Inputs) > 0
}

// counts reports whether the bundle is still valid. Folders are compared first, since each costs only a stat, while inputs must be read
// as a whole.
func (k keptBundle) counts() bool {
	for path, stamp := range k.Folders {
		if folderStamp(path) != stamp {
			return false
		}
	}
	for path, sum := range k.Inputs {
		if sumOf(path) != sum {
			return false
		}
	}
	return true
}

// folderStamps are the stamps of all that decides where imports lead: the folders of the inputs, and node_modules, package.json and
// tsconfig.json in every folder above the file. Without the latter, an npm install beside the project would go unnoticed and the bundle
// would keep the old package.
func folderStamps(path string, inputs []string) map[string]string {
	out := map[string]string{}
	for _, p := range inputs {
		dir := filepath.Dir(p)
		out[dir] = folderStamp(dir)
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		for _, name := range []string{"node_modules", "package.json", "tsconfig.json"} {
			p := filepath.Join(dir, name)
			out[p] = folderStamp(p)
		}
		if dir == filepath.Dir(dir) {
			return out
		}
	}
}

// folderStamp is the time of modification of a folder or file; empty if it does not exist.
func folderStamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return info.ModTime().UTC().Format(time.RFC3339Nano)
}

// sumOf is the SHA-256 of a file in hexadecimal; empty if the file cannot be read, so that a cached bundle with a real sum is not used.
func sumOf(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// changedSince reports whether any of the files was modified after t or is missing. A file system with coarse times can hide a change that
// falls into the same tick.
func changedSince(paths []string, t time.Time) bool {
	for _, p := range paths {
		if info, err := os.Stat(p); err != nil || info.ModTime().After(t) {
			return true
		}
	}
	return false
}
