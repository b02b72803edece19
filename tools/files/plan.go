package files

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// The kinds of steps.
const (
	stepCreate  = "create"  // temp takes the free name
	stepReplace = "replace" // the old file is linked to backup, temp takes the name
	stepRemove  = "remove"  // the file is renamed to backup
	stepRename  = "rename"  // path becomes to
	stepLink    = "link"    // path becomes a symbolic link to Target
	stepInPlace = "inplace" // bytes are overwritten; Old and New are in the journal
)

// plan is what the journal keeps of a commit. It is JSON; fields are only ever added.
type plan struct {
	ID      string   `json:"id"`
	Host    string   `json:"host"`
	PID     int      `json:"pid"`
	Start   string   `json:"start"` // of the process, so that a reused pid is not taken for it
	Applied bool     `json:"applied,omitempty"`
	Dirs    []string `json:"dirs,omitempty"` // folders made for it, outermost first
	Steps   []step   `json:"steps"`
}

type step struct {
	Kind    string      `json:"kind"`
	Path    string      `json:"path"`
	To      string      `json:"to,omitempty"`
	Temp    string      `json:"temp,omitempty"`
	Backup  string      `json:"backup,omitempty"`
	OldHash string      `json:"oldHash,omitempty"`
	NewHash string      `json:"newHash,omitempty"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	Old     []byte      `json:"old,omitempty"`
	New     []byte      `json:"new,omitempty"`
	Target  string      `json:"target,omitempty"`

	data  []byte
	attrs string
	info  fs.FileInfo // of Path when the base was checked
}

func startPlan() *plan {
	var b [6]byte
	rand.Read(b[:])
	host, _ := os.Hostname()
	return &plan{ID: "w" + hex.EncodeToString(b[:]), Host: host, PID: os.Getpid(), Start: processStart(os.Getpid())}
}

// side is a name beside path for a temporary file or a backup.
func (p *plan) side(path string, n int, ext string) string {
	return filepath.Join(filepath.Dir(path), fmt.Sprintf(".pillion-%s-%d.%s", p.ID, n, ext))
}

// paths are the files a plan changes.
func (p *plan) paths() []string {
	var out []string
	for _, s := range p.Steps {
		out = append(out, s.Path)
		if s.To != "" {
			out = append(out, s.To)
		}
	}
	return out
}

// alive says whether the process that made the plan may still be working on it.
func (p *plan) alive() bool {
	host, _ := os.Hostname()
	if host != p.Host {
		return true // another machine's: not ours to judge
	}
	if p.PID == os.Getpid() {
		return p.Start == processStart(p.PID)
	}
	return processRuns(p.PID) && (p.Start == "" || p.Start == processStart(p.PID))
}
