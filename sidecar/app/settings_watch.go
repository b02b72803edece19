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

// SettingsWatch applies changed settings while no turn runs. Servers and plugins that were added start; those that
// were removed, or whose folder is no longer trusted, end; editors are told of other commands. Without it (the system
// has no more watches) the same happens at the next step of a turn. A running turn keeps its agent, and a language
// server the settings it was started with.
type SettingsWatch struct {
	App     *App
	Changed func(cwd string) // called after the settings of a directory may have changed

	// mu is not held while settings are read or applied.
	mu     sync.Mutex
	w      *fsnotify.Watcher         // guarded by mu; nil: not started, or closed
	dirs   map[string]*watchedFolder // guarded by mu; by path
	known  map[string]bool           // guarded by mu; directories that are followed
	due    map[string]bool           // guarded by mu; directories whose settings are to be read
	timer  *time.Timer               // guarded by mu
	closed bool                      // guarded by mu
	wg     sync.WaitGroup
}

// watchedFolder is a folder that is watched, and what for.
type watchedFolder struct {
	whole bool            // it holds only settings; otherwise only files of certain names matter
	cwds  map[string]bool // directories that it configures
}

// settleTime is how long files must be unchanged before they are read: editors write a file in several steps, and a
// half-written one would be reported as a mistake. A tenth of a second is less than a person notices.
const settleTime = 100 * time.Millisecond

// Follow watches a directory's settings from now on.
func (s *SettingsWatch) Follow(cwd string) {
	s.mu.Lock()
	known := s.known[cwd]
	s.mu.Unlock()
	if !known {
		s.rewatch(cwd)
		s.App.Place.Config(cwd) // a change between the last load and the watch has no event
	}
}

// rewatch watches the folders of a directory's settings that exist now. A missing folder is noticed through the one
// above it.
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
	// A folder may be created just before the one above it is watched, and has no event then. The loop ends when a pass
	// finds no more folders than the one before.
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
			// A change of attributes alone is not a change of settings.
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

// fileChanged notes which directories a changed file concerns, and restarts the pause before their settings are read. Folders
// of projects are full of other files; config.Concerns tells which names matter.
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

// applyDue reads and applies the settings that have changed, for each directory in due. It counts in wg, so that Close waits for it.
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

// Close ends the watch and waits until nothing is being applied. Follow watches nothing afterwards.
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

// settingsFolders are the folders whose files configure a directory; the value is true where a folder holds nothing
// else.
func (p *Workplace) settingsFolders(cwd string) map[string]bool {
	out := map[string]bool{p.Trust.Dir: true}
	if _, err := os.Stat(p.Trust.Dir); err != nil {
		out[p.State] = false // where it will be created
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

// applySettings starts what a directory's settings ask for now and ends what they no longer ask for.
func (a *App) applySettings(cwd string) {
	a.Place.Config(cwd) // not the cached one
	if set := a.MCP.of(cwd); set != nil {
		set.Start()
	}
	a.Plugins.refresh(cwd)
}
