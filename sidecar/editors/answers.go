package editors

import (
	"os"
	"sync"
	"time"
)

// answers are what an editor said of files within the last moment. A tool opens a file several times in one call (to
// judge it, to read it, to tell the language servers), and each time would be a request to the editor: ten for one read
// and one edit. What is compared before a write is always asked again, see fsWriter.
type answers struct {
	mu   sync.Mutex
	list map[string]answer // by path; guarded by mu
}

// answer is one text with what the disk held at that moment.
type answer struct {
	text    string
	changed time.Time // of the file on the disk then, with its size: another one may have another text in the editor
	size    int64
	at      time.Time
}

// answerFor is how long an answer is taken as it is: longer than one call of a tool needs, shorter than a person needs
// to type, look and ask.
const answerFor = 300 * time.Millisecond

// keep takes note of what the editor said just now of a file that is disk.
func (a *answers) keep(path, text string, disk os.FileInfo) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for p, x := range a.list {
		if now.Sub(x.at) > answerFor { // texts can be long: none is kept that cannot be used
			delete(a.list, p)
		}
	}
	if a.list == nil {
		a.list = map[string]answer{}
	}
	a.list[path] = answer{text, disk.ModTime(), disk.Size(), now}
}

// recent is what the editor said of a file a moment ago, while the disk is the same.
func (a *answers) recent(path string, disk os.FileInfo) (text string, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	x, ok := a.list[path]
	if !ok || time.Since(x.at) > answerFor || x.size != disk.Size() || !x.changed.Equal(disk.ModTime()) {
		return "", false
	}
	return x.text, true
}
