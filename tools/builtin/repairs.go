package builtin

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Repairs remembers which changes went back to the model because they introduce errors: each goes back once, and then a
// person is asked. One belongs to a session, and its zero value is ready.
type Repairs struct {
	mu   sync.Mutex
	back map[string]bool // guarded by mu; paths of changes that went back and were not proposed again
}

// IntroducedErrors is the kind of the error with which a change goes back to the model.
const IntroducedErrors = "introduces_errors"

// earlier counts the attempts before this one at the same files, and forgets them: whatever comes next is asked about. An
// attempt that the model gave up is forgotten with the next change of one of its files, in a later turn perhaps; the person is
// then asked without a repair, which is the mistake that costs less.
func (r *Repairs) earlier(set *change.Set) int {
	if r == nil {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, p := range set.Paths() {
		if r.back[p] {
			n = 1
			delete(r.back, p)
		}
	}
	return n
}

// sendBack is the error for the model where a change is to go back: made by a model, of a fresh verdict with new errors, and
// not seen before. Only a fresh one counts: a server that has not finished would send the model after errors that are none.
func (r *Repairs) sendBack(call *tools.Call, set *change.Set, name func(string) string) error {
	v := set.Verdict
	if r == nil || call.MessageID == "" || v == nil || v.Certainty != change.Fresh {
		return nil
	}
	n, _ := v.Errors()
	if n == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.back == nil {
		r.back = map[string]bool{}
	}
	for _, p := range set.Paths() {
		r.back[p] = true
	}
	return &tools.Error{Kind: IntroducedErrors, Message: fmt.Sprintf("The user was not asked yet and nothing was written: the language servers have checked this change, and it introduces %s:\n%s\nPropose it again with what mends them, in one call where the tool takes several edits. If they are meant to be there for now, because the next change mends them, make the same call again and say why in one sentence before it: the user sees the errors and that sentence.",
		textutil.Plural(n, "error"), ErrorList(v, name))}
}

// maxErrorList is how many errors go into the context of the model: enough to begin with.
const maxErrorList = 20

// ErrorList is the errors that a verdict says a change introduces, a line each; name prints a path for the reader.
func ErrorList(v *change.Verdict, name func(string) string) string {
	errors := slices.DeleteFunc(slices.Clone(v.Introduced), func(p change.Problem) bool { return !p.IsError() })
	var b strings.Builder
	for i, x := range errors {
		if i == maxErrorList {
			fmt.Fprintf(&b, "… and %d more\n", len(errors)-i)
			break
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s\n", name(x.Path), x.Line, x.Column, x.Message)
	}
	return b.String()
}

// Reason is the reason of a model that proposes what it was told to be wrong, from the words it said: their first characters, in
// one line.
func Reason(words string) string {
	if words = strings.Join(strings.Fields(words), " "); words == "" {
		return "no reason was given"
	}
	return textutil.Shorten(words, 300)
}
