package main

import (
	"context"
	"testing"

	"github.com/pillion-dev/pillion/tools/permission"
)

// What was allowed for good counts in `pillion tool call` too, and is kept when it is allowed there.
func TestGrantsOutliveThrowAwaySessions(t *testing.T) {
	atHome(t)
	first := newApp(appOptions{place: newWorkplace(version), asker: yes{}, ephemeral: true, noLSP: true})
	g, err := first.grants.Add(context.Background(), permission.Grant{Project: "/p", Permission: "bash", Pattern: "make *"})
	first.close()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []appOptions{{ephemeral: true, asker: yes{}}, {}} {
		o.place, o.noLSP = newWorkplace(version), true
		a := newApp(o)
		list, err := a.grants.List(context.Background(), "/p")
		a.close()
		if err != nil || len(list) != 1 || list[0].Pattern != g.Pattern {
			t.Errorf("grants are %+v, %v", list, err)
		}
	}
}
