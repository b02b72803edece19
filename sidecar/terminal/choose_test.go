package terminal

import (
	"slices"
	"testing"

	"github.com/pillion-dev/pillion/tools"
)

func TestChoose(t *testing.T) {
	options := []tools.Option{{Label: "Yes"}, {Label: "No"}, {Label: "Not now"}}
	only := false
	for name, tt := range map[string]struct {
		q      tools.Question
		answer string
		want   []string
		ok     bool
	}{
		"a number":                     {tools.Question{}, "2", []string{"No"}, true},
		"how an option begins":         {tools.Question{}, "y", []string{"Yes"}, true},
		"an option's words":            {tools.Question{}, "no", []string{"No"}, true},
		"how two begin":                {tools.Question{}, "n", []string{"n"}, true},
		"words that begin with digits": {tools.Question{}, "3 of them", []string{"3 of them"}, true},
		"several of one":               {tools.Question{}, "1,2", []string{"1,2"}, true},
		"several":                      {tools.Question{Multiple: true}, "1, not now", []string{"Yes", "Not now"}, true},
		"words where none count":       {tools.Question{Custom: &only}, "maybe", []string{"maybe"}, false},
		"a number too high":            {tools.Question{Custom: &only}, "4", []string{"4"}, false},
	} {
		tt.q.Options = options
		if got, ok := choose(tt.q, tt.answer); !slices.Equal(got, tt.want) || ok != tt.ok {
			t.Errorf("%s: %q %v", name, got, ok)
		}
	}
}
