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

// bundled is a file made ready to run. The stamp decides when the file is loaded again, so it must be of the contents
// that went in, even where the files have changed since.
type bundled struct {
	code    string   // path of the bundle
	inputs  []string // all files it was made from
	stamp   string   // of these, as they went into it
	passing bool     // the bundle is of this load only, and is removed after it
}

// keptBundle says what a kept bundle was made from. It counts as long as all of it is as it was: what the files hold,
// and when the folders were changed in which imports are looked for. Contents are compared by hash, because a checkout
// changes times without changing files; folders are compared by time, because what counts there is a file that came or
// went.
type keptBundle struct {
	Maker   string            `json:"maker"`   // of the bundler, its settings and the host's own files
	Inputs  map[string]string `json:"inputs"`  // SHA-256 by path
	Folders map[string]string `json:"folders"` // stamp by path
}

// maker identifies the bundler, its settings and the host's own files by the program that they are part of. Another build
// of Pillion may bring another bundler or other shims, so its bundles are not used. Empty, where the program has been
// replaced, matches only other programs that could not tell either.
func maker() string {
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	return stampOf(self)
}

// bundleKept is bundle with a memory: a file whose imports are as they were is not bundled again, whoever did it. Several
// processes may do this at once for one file: whole.Write replaces files atomically, and the description is written last.
func bundleKept(path, host string) (bundled, error) {
	sum := sha256.Sum256([]byte(path))
	base := filepath.Join(host, "bundles", hex.EncodeToString(sum[:12]))
	code, about := base+".mjs", base+".json"
	if kept, ok := readKept(about); ok && stampOf(code) != "" {
		b := bundled{code: code}
		for p := range kept.Inputs {
			b.inputs = append(b.inputs, p)
		}
		b.stamp = stampAll(b.inputs) // before the contents are compared, so that a later change shows
		if kept.counts() {
			return b, nil
		}
	}
	began := time.Now()
	text, inputs, err := bundle(path, host, code)
	if err != nil {
		return bundled{}, err
	}
	b := bundled{code: code, inputs: inputs, stamp: stampAll(inputs)}
	// The bundle is used once and not described, and the empty stamp makes the next look bundle again.
	if changedSince(inputs, began) { // while it was bundled: what went in is not known
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
	_ = os.Remove(about) // never an old description of a new bundle
	if err := whole.Write(code, text, 0o600); err != nil {
		return bundled{}, err
	}
	return b, whole.Write(about, raw, 0o600)
}

// readKept reads a description; ok is false when there is none or it is of another version of Pillion.
func readKept(path string) (k keptBundle, ok bool) {
	raw, err := os.ReadFile(path)
	return k, err == nil && json.Unmarshal(raw, &k) == nil && k.Maker == maker() && len(k.Inputs) > 0
}

// counts reports whether everything is as it was. Folders come first, since they cost a stat each, and inputs must be
// read whole.
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

// folderStamps are what decides where imports lead: the folders of the inputs, and what stands above the file. Without
// the places above the file, an npm install next to the project would go unnoticed: the import would still lead to the
// old package.
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

// folderStamp is when a folder or a file changed last; empty where there is none.
func folderStamp(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return info.ModTime().UTC().Format(time.RFC3339Nano)
}

// sumOf is the SHA-256 of a file in hex; empty when it cannot be read, which never equals a
// stored sum, so the bundle is made anew.
func sumOf(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// changedSince reports whether a file was changed after t or has gone. A file system with coarse times may hide a change
// within the same tick.
func changedSince(paths []string, t time.Time) bool {
	for _, p := range paths {
		if info, err := os.Stat(p); err != nil || info.ModTime().After(t) {
			return true
		}
	}
	return false
}
