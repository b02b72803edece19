package main

import (
	"context"
	"testing"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/tools/permission"
)

// What was allowed for good counts in `pillion tool call` too, and is kept when it is allowed there.
func TestGrantsOutliveThrowAwaySessions(t *testing.T) {
	atHome(t)
	first := app.New(app.Options{Place: app.NewWorkplace(version), Asker: yes{}, Ephemeral: true, NoLSP: true})
	g, err := first.Grants.Add(context.Background(), permission.Grant{Project: "/p", Permission: "bash", Pattern: "make *"})
	first.Close()
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []app.Options{{Ephemeral: true, Asker: yes{}}, {}} {
		o.Place, o.NoLSP = app.NewWorkplace(version), true
		a := app.New(o)
		list, err := a.Grants.List(context.Background(), "/p")
		a.Close()
		if err != nil || len(list) != 1 || list[0].Pattern != g.Pattern {
			t.Errorf("grants are %+v, %v", list, err)
		}
	}
}
