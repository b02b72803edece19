package mcp

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// knownAge is how long a listing of resources counts without being looked at again. A person who types @ asks for every
// letter; a server that says that its list has changed ends the time at once.
const knownAge = 30 * time.Second

// knownResources is the last listing of a server's resources. It answers a person who types @ and cannot wait for the server.
type knownResources struct {
	read   func() ([]Resource, error) // asks the server; an error comes with what it listed before
	failed func(error)                // hears why a listing did not come to its end

	mu   sync.Mutex
	list []Resource    // guarded by mu; nil: no listing has come to an end, or it found nothing
	made time.Time     // guarded by mu; zero: to be made anew
	busy chan struct{} // guarded by mu; closed when the listing under way is over; nil: none is
}

// Known returns the resources of the ready servers from the last listing. It waits, until ctx ends, only for a server's
// first listing; an old one is renewed in the background after the answer.
func (s *Set) Known(ctx context.Context) []Resource {
	waits := make([]<-chan struct{}, len(s.servers))
	for i, v := range s.servers {
		if _, caps := v.listing(); caps != nil && caps.Resources != nil {
			waits[i] = v.known.refresh()
		}
	}
	var out []Resource
	for i, v := range s.servers {
		if waits[i] != nil {
			select {
			case <-waits[i]:
			case <-ctx.Done():
			}
		}
		v.mu.Lock()
		ready := v.session != nil
		v.mu.Unlock()
		if ready {
			out = append(out, v.known.last()...)
		}
	}
	return out
}

// refresh starts a listing in the background when the last one is too old. The channel is closed when the first listing is
// over; nil means that there is nothing to wait for. At most one listing of a server is under way. It does not run on the
// caller's context: the person who started it may have typed on.
func (k *knownResources) refresh() <-chan struct{} {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.busy == nil && time.Since(k.made) > knownAge {
		k.busy = make(chan struct{})
		go k.run(k.busy)
	}
	if k.list != nil || k.busy == nil {
		return nil
	}
	return k.busy
}

// run lists the resources and closes done. After an error the list is what came before it, so that the next listing waits
// for knownAge instead of asking a broken server for every letter typed.
func (k *knownResources) run(done chan struct{}) {
	list, err := k.read()
	if err != nil {
		k.failed(err)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.list, k.made, k.busy = list, time.Now(), nil
	close(done)
}

// last is what the last listing found.
func (k *knownResources) last() []Resource {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.list
}

// expire has the next Known list the resources anew: the server was lost, or has said that they changed.
func (k *knownResources) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made = time.Time{}
}

// Names are the servers' names, the longest first, so that a name that begins another does not hide it.
func (s *Set) Names() []string {
	var out []string
	for _, v := range s.servers {
		out = append(out, v.Name)
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}

// Holder is the server that has a resource: one that lists it, else one with a template that it fits. An exact resource
// wins over a template, however early the template's server comes.
func (s *Set) Holder(ctx context.Context, uri string) (server string, ok bool) {
	all := s.Known(ctx)
	for _, r := range all {
		if !r.Template && r.URI == uri {
			return r.Server, true
		}
	}
	for _, r := range all {
		if r.Template && fits(r.URI, uri) {
			return r.Server, true
		}
	}
	return "", false
}

// fits reports whether a URI could be made of a template: what stands outside of its {parts} is there, in order. The
// parts are those of RFC 6570, read loosely: what they expand to is not checked, because the server refuses what it does
// not know.
func fits(template, uri string) bool {
	if scheme, _, _ := strings.Cut(template, ":"); strings.Contains(scheme, "{") {
		return false // it would fit everything
	}
	var b strings.Builder
	for rest := template; rest != ""; {
		fixed, part, open := strings.Cut(rest, "{")
		b.WriteString(regexp.QuoteMeta(fixed))
		name, after, closed := strings.Cut(part, "}")
		switch {
		case open && !closed:
			return false
		case open && strings.HasPrefix(name, "?"): // a query may be left out
			b.WriteString(".*")
		case open:
			b.WriteString(".+")
		}
		rest = after
	}
	whole, err := regexp.Compile("^" + b.String() + "$")
	return err == nil && whole.MatchString(uri)
}
