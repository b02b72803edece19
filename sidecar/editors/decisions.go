package editors

import "sync"

// decisions keep decisions about a session's changes apart, whichever editors they come from.
type Decisions struct {
	mu sync.Mutex
	by map[string]*sync.Mutex // by session: held while somebody decides about its changes; guarded by mu
}

func (d *Decisions) Of(session string) *sync.Mutex {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by == nil {
		d.by = map[string]*sync.Mutex{}
	}
	m := d.by[session]
	if m == nil {
		m = new(sync.Mutex)
		d.by[session] = m
	}
	return m
}
