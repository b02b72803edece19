package mcp

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// knownAge is how long a listing of resources is used before it is renewed: a person who types @ causes a request with every letter. When a
// server announces a change, its listing expires at once.
const knownAge = 30 * time.Second

// knownResources is the last listing of a server's resources. It completes @ for a person who types and cannot wait for the server.
type knownResources struct {
	read   func() ([]Resource, error) // requests the list; with an error it also returns what it got before the error
	failed func(error)                // is called with the error of a listing

	mu   sync.Mutex
	list []Resource    // guarded by mu; nil: no listing has been completed, or it found nothing
	made time.Time     // guarded by mu; when list was made; zero: it must be renewed
	busy chan struct{} // guarded by mu; closed at the end of the running listing; nil: none is running
}

// Known returns the resources of the connected servers from their last listings. It waits only for a server's first listing, at most until
// ctx ends; an expired listing is returned as it is and renewed in the background.
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

// refresh starts a listing in the background when the last one has expired. The channel is closed when the first listing is finished; nil
// means that there is nothing to wait for. At most one listing of a server runs. It does not use the caller's context: the person who
// caused it may have typed on.
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

// run lists the resources and closes done. After an error it stores what it got before, with the time, so that a broken server is asked
// again only after knownAge and not for every typed letter.
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

// last returns the last listing.
func (k *knownResources) last() []Resource {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.list
}

// expire makes the next Known renew the listing: the server was lost, or has announced that its resources changed.
func (k *knownResources) expire() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made = time.Time{}
}

// Names returns the servers' names, the longest first, so that a name that is a prefix of another does not hide it.
func (s *Set) Names() []string {
	var out []string
	for _, v := range s.servers {
		out = append(out, v.Name)
	}
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}

// Holder returns the server that has a resource: one that lists its URI, else one with a template that matches it. An exact URI of any
// server wins over a template.
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

// fits reports whether a URI could be an expansion of a template (RFC 6570): it must contain the text outside the {parts}, in order. The
// parts match any text, because the server refuses a URI that it does not know.
func fits(template, uri string) bool {
	if scheme, _, _ := strings.Cut(template, ":"); strings.Contains(scheme, "{") {
		return false // the template would match every URI
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
