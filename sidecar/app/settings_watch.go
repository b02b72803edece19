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

// SettingsWatch makes changed settings count while nothing is asked: servers and plugins that were added start, those
// that were taken away, or whose folder is trusted no longer, end, and editors hear of other commands. Without it (no
// more watches to be had) the same happens at the next step of a turn. What runs stays: a turn ends with its agent,
// language servers with the settings that they were started with.
type SettingsWatch struct {
	App     *App
	Changed func(cwd string) // told after what was configured in a directory may have changed

	mu    sync.Mutex
	w     *fsnotify.Watcher         // guarded by mu; nil: not started, or closed
	dirs  map[string]*watchedFolder // guarded by mu; by path
	known map[string]bool           // guarded by mu; directories that are followed
	due   map[string]bool           // guarded by mu; directories to be looked at
	timer *time.Timer               // guarded by mu
	over  bool                      // guarded by mu
	wg    sync.WaitGroup
}

// watchedFolder is a folder that is watched.
type watchedFolder struct {
	whole bool            // nothing but settings is in it; else only files of certain names count
	cwds  map[string]bool // directories it matters to
}

// settleTime is how long files must rest before they are read: editors write them in several steps.
const settleTime = 100 * time.Millisecond

// Follow watches what is configured for a directory from now on.
func (s *SettingsWatch) Follow(cwd string) {
	s.mu.Lock()
	known := s.known[cwd]
	s.mu.Unlock()
	if !known {
		s.rewatch(cwd)
		s.App.Place.Config(cwd) // nobody says what changed before it was watched
	}
}

// rewatch looks for folders that are not watched yet.
func (s *SettingsWatch) rewatch(cwd string) {
	folders := s.App.Place.settingsFolders(cwd)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if s.w == nil {
		w, err := fsnotify.NewWatcher()
		if err != nil {
			s.App.O.Log.Warn("settings are not watched", "err", err)
			s.over = true
			return
		}
		s.w, s.dirs, s.due, s.known = w, map[string]*watchedFolder{}, map[string]bool{}, map[string]bool{}
		s.wg.Go(func() { s.run(w) })
	}
	s.known[cwd] = true
	// A folder may come just before the one above it is watched: then nobody says so, and it is seen at the second look.
	for last, there := -1, 0; there != last; {
		last, there = there, 0
		for path, whole := range folders {
			if s.w.Add(path) != nil {
				continue // it is not there; the folder above it is watched
			}
			there++
			if s.dirs[path] == nil {
				s.dirs[path] = &watchedFolder{whole, map[string]bool{}}
			}
			s.dirs[path].cwds[cwd] = true
		}
	}
}

func (s *SettingsWatch) run(w *fsnotify.Watcher) {
	for {
		select {
		case e, ok := <-w.Events:
			if !ok {
				return
			}
			if e.Op != fsnotify.Chmod {
				s.touched(e.Name)
			}
		case err, ok := <-w.Errors:
			if !ok {
				return
			}
			s.App.O.Log.Warn("watching settings", "err", err)
		}
	}
}

// touched notes the directories that a file may matter to. Folders of projects are full of other files.
func (s *SettingsWatch) touched(path string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.dirs[filepath.Dir(path)]
	if f == nil || !f.whole && !config.Concerns(filepath.Base(path)) {
		return
	}
	maps.Copy(s.due, f.cwds)
	if len(s.due) == 0 || s.over {
		return
	}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.timer = time.AfterFunc(settleTime, s.look)
}

// look reads what rests now.
func (s *SettingsWatch) look() {
	s.mu.Lock()
	due := s.due
	s.due = map[string]bool{}
	over := s.over
	if !over {
		s.wg.Add(1)
	}
	s.mu.Unlock()
	if over {
		return
	}
	defer s.wg.Done()
	for cwd := range due {
		s.rewatch(cwd) // folders may have come
		s.App.resettle(cwd)
		s.Changed(cwd)
	}
}

func (s *SettingsWatch) Close() {
	s.mu.Lock()
	s.over = true
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

// settingsFolders are the folders whose files say what is configured for a directory, and whether they hold nothing else.
func (p *Workplace) settingsFolders(cwd string) map[string]bool {
	out := map[string]bool{p.Trust.Dir: true}
	if _, err := os.Stat(p.Trust.Dir); err != nil {
		out[p.State] = false // where it will appear
	}
	own := []string{p.User, filepath.Join(p.Home, ".config", "opencode")}
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

// resettle starts what a directory's settings ask for now and ends what they ask for no longer.
func (a *App) resettle(cwd string) {
	a.Place.Config(cwd) // as it is now, not as it was a moment ago
	if set := a.MCP.of(cwd); set != nil {
		set.Start()
	}
	a.Plugins.lookAgain(cwd)
}
