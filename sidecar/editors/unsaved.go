package editors

import (
	"os"
	"sync"
	"time"
)

// unsavedTexts are the unsaved texts of an editor that must be asked, as it answered last. Tools ask it of the file they are about; language
// servers, which have no session to ask in, are told what it said.
type unsavedTexts struct {
	mu    sync.Mutex
	texts map[string]shownText // by path; guarded by mu
}

// shownText is an unsaved text; session is the one in which the editor was asked, and can be asked again.
type shownText struct {
	session, text string
	changed       time.Time // of the file on disk then: once it is another, the text has been saved or overtaken
	size          int64     // of that file, in bytes
	asked         time.Time // when the editor answered
}

const (
	shownFor  = time.Second // how long an answer is taken as it is
	shownWait = time.Second // how long the editor may take for another one
)

// keep notes what the editor shows of a file, which was disk at that moment. dirty says that it is not the disk's text; without it the file
// is forgotten, and the other arguments do not matter.
func (k *unsavedTexts) keep(path, session, text string, disk os.FileInfo, dirty bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !dirty {
		delete(k.texts, path)
		return
	}
	if k.texts == nil {
		k.texts = map[string]shownText{}
	}
	k.texts[path] = shownText{session, text, disk.ModTime(), disk.Size(), time.Now()}
}

// has reports whether the editor showed unsaved text of a file when it was asked last.
func (k *unsavedTexts) has(path string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.texts[path]
	return ok
}

// paths are the files with such a text, in no order.
func (k *unsavedTexts) paths() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]string, 0, len(k.texts))
	for p := range k.texts {
		out = append(out, p)
	}
	return out
}
