package app

import (
	"maps"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools/paths"
)

// SettingsWatch applies changed settings while no turn runs. Added servers and plugins start; removed ones, and those of a folder that is
// no longer trusted, end; editors are told of changed commands. Where the system has no watches left, the same happens at the next step of
// a turn. A running turn keeps its agent, and a language server the settings with which it was started.
type SettingsWatch struct {
	App     *App
	Changed func(cwd string) // called after the settings of a directory may have changed

	// mu is not held while settings are read or applied.
	mu     sync.Mutex
	w      *fsnotify.Watcher         // guarded by mu; nil: not started, or closed
	dirs   map[string]*watchedFolder // guarded by mu; by path
	known  map[string]bool           // guarded by mu; directories passed to Follow
	due    map[string]bool           // guarded by mu; directories whose settings must be read again
	timer  *time.Timer               // guarded by mu
	closed bool                      // guarded by mu
	wg     sync.WaitGroup
}

// watchedFolder is a watched folder and the directories that it configures.
type watchedFolder struct {
	whole bool            // the folder holds only settings; otherwise only certain file names matter
	cwds  map[string]bool // the directories that it configures
}

// settleTime is how long files must be unchanged before they are read: editors write a file in several steps, and a half-written one would
// be reported as a mistake. A person does not notice a delay of 100 ms.
const settleTime = 100 * time.Millisecond

// Follow starts to watch a directory's settings.
func (s *SettingsWatch) Follow(cwd string) {
	s.mu.Lock()
	known := s.known[cwd]
	s.mu.Unlock()
	if !known {
		s.rewatch(cwd)
		s.App.Place.Config(cwd) // a change between the last load and the watch has no event
	}
}

// rewatch watches the existing folders of a directory's settings. Events of the folder above tell when a missing one is created.
func (s *SettingsWatch) rewatch(cwd string) {
	folders := s.App.Place.settingsFolders(cwd)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	if s.w == nil {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			s.App.O.Log.Warn("settings are not watched", "err", err)
			s.closed = true
			return
		}
		s.w, s.dirs, s.due, s.known = w, map[string]*watchedFolder{}, map[string]bool{}, map[string]bool{}
		s.wg.Go(func() { s.run(w) })
	}
	s.known[cwd] = true
	// A folder that is created just before the one above it is watched has no event. So repeat until a pass finds no more folders than the
	// one before.
	for last, there := -1, 0; there != last; {
		last, there = there, 0
		for path, whole := range folders {
			if s.w.Add(path) != nil {
				continue // it does not exist; the folder above it is watched
			}
			there++
			if s.dirs[path] == nil {
				s.dirs[path] = &watchedFolder{whole, map[string]bool{}}
			}
			s.dirs[path].cwds[cwd] = true
		}
	}
}

// run receives events until the watcher is closed.
func (s *SettingsWatch) run(w *fsnotify.Watcher) {
	for {
		select {
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			// A change of attributes alone changes no settings.
			if e.Op != fsnotify.Chmod {
				s.fileChanged(e.Name)
			}
		case err, ok := <-w.Errors:
			if !ok {
				return
			}
			s.App.O.Log.Warn("watching settings", "err", err)
		}
	}
}

// fileChanged records which directories a changed file configures, and restarts the pause before their settings are read. Folders of
// projects are full of other files; config.Concerns tells which names matter.
func (s *SettingsWatch) fileChanged(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.dirs[filepath.Dir(path)]
	if f == nil || !f.whole && !config.Concerns(filepath.Base(path)) {
		return
	}
	maps.Copy(s.due, f.cwds)
	if len(s.due) == 0 || s.closed {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(settleTime, s.applyDue)
}

// applyDue reads and applies the changed settings of each directory in due. It is counted in wg, so that Close waits for it.
func (s *SettingsWatch) applyDue() {
	s.mu.Lock()
	due := s.due
	s.due = map[string]bool{}
	over := s.closed
	if !over {
		s.wg.Add(1)
	}
	s.mu.Unlock()
	if over {
		return
	}
	defer s.wg.Done()
	for cwd := range due {
		s.rewatch(cwd) // folders may have been created
		s.App.applySettings(cwd)
		s.Changed(cwd)
	}
}

// Close ends the watch and waits until nothing is being applied. After it, Follow watches nothing.
func (s *SettingsWatch) Close() {
	s.mu.Lock()
	s.closed = true
	if s.timer != nil {
		s.timer.Stop()
	}
	w := s.w
	s.mu.Unlock()
	if w != nil {
		_ = w.Close()
	}
	s.wg.Wait()
}

// settingsFolders returns the folders whose files configure a directory; the value is true for a folder that holds nothing else.
func (p *Workplace) settingsFolders(cwd string) map[string]bool {
	out := map[string]bool{p.Trust.Dir: true}
	if _, err := os.Stat(p.Trust.Dir); err != nil {
		out[p.State] = false // the folder in which it will be created
	}
	own := []string{p.User, p.openCodeDir()}
	for _, dir := range config.Between(paths.Worktree(cwd), cwd) {
		out[dir] = false
		for _, name := range config.ProjectFolders {
			own = append(own, filepath.Join(dir, name))
		}
	}
	for _, dir := range own {
		out[dir] = true
		for _, name := range config.Folders {
			out[filepath.Join(dir, name)] = true
		}
	}
	return out
}

// applySettings starts what a directory's settings require, and ends what they no longer require.
func (a *App) applySettings(cwd string) {
	a.Place.Config(cwd) // reads the files instead of the cached configuration
	if set := a.MCP.of(cwd); set != nil {
		set.Start()
	}
	a.Plugins.refresh(cwd)
}
