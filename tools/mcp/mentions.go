package mcp

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"
)

// knownAge is how long a listing of resources counts without being looked at again; a server that says that its list
// changed ends that at once.
const knownAge = 30 * time.Second

// known are a server's resources as they were listed last, for who types and cannot wait.
type known struct {
	list []Resource
	made time.Time     // zero: to be made anew
	busy chan struct{} // closed when the listing under way is over; nil: none is
}

// Known are the resources of the ready servers as they were listed lately. Only a first listing is waited for, until
// ctx ends; an old one is made anew behind the answer.
func (s *Set) Known(ctx context.Context) []Resource {
	waits := make([]<-chan struct{}, len(s.servers))
	for i, v := range s.servers {
		waits[i] = v.relist()
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
		if v.session != nil {
			out = append(out, v.known.list...)
		}
		v.mu.Unlock()
	}
	return out
}

// relist lists the server's resources anew when that is due. The channel tells when there is something to see; nil: now.
func (v *server) relist() <-chan struct{} {
	_, caps := v.listing()
	v.mu.Lock()
	defer v.mu.Unlock()
	k := &v.known
	switch {
	case caps == nil || caps.Resources == nil:
		return nil
	case k.busy == nil && time.Since(k.made) > knownAge:
		k.busy = make(chan struct{})
		go v.list(k.busy)
	}
	if k.list != nil || k.busy == nil {
		return nil
	}
	return k.busy
}

// list lists the resources and closes done. After an error the list is what came before it, so that the next listing waits
// for knownAge instead of asking a broken server for every letter typed.
func (v *server) list(done chan struct{}) {
	list, err := v.resources(v.set.ctx)
	if err != nil {
		v.set.o.Log.Debug("mcp: resources", "server", v.Name, "err", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known = known{list: list, made: time.Now()}
	close(done)
}

// relisted records that the server's resources have changed; the next Known lists them.
func (v *server) relisted() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.known.made = time.Time{}
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

// Holder is the server that has a resource: one that lists it, else one with a template that it fits.
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

// fits reports whether a URI could be made of a template: what stands outside of its {parts} is there, in order.
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
