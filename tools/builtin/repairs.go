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

// Repairs returns a change to the model if it introduces errors. It does so once for the same files; if the model proposes
// a change of them again, the person is asked. Each session has its own Repairs. The zero value is ready for use.
type Repairs struct {
	mu   sync.Mutex
	back map[string]bool // guarded by mu; paths of changes that were returned and not proposed again
}

// IntroducedErrors is the kind of the error that returns a change to the model.
const IntroducedErrors = "introduces_errors"

// earlier returns 1 if a change of one of these files was returned before, else 0, and forgets it. If the model gave up its first
// attempt, the next change of one of its files, perhaps in a later turn, counts as the second attempt. The person is then asked
// although the model was not; that is better than returning a change twice.
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

// sendBack returns the error for the model if it should repair the change first; nil otherwise. It does so only for a change that a
// model made and whose verdict is fresh and names introduced errors. With other verdicts a server may not have finished, and the
// model would repair errors that do not exist.
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
	return &tools.Error{Kind: IntroducedErrors, Message: fmt.Sprintf("Nothing was written, and the user was not asked yet: the language servers have checked this change, and it introduces %s:\n%s\nPropose the change again with the errors fixed, in one call if the tool takes several edits. If you want these errors for now, because your next change fixes them, make the same call again and first say why in one sentence: the user sees the errors and that sentence.",
		textutil.Plural(n, "error"), ErrorList(v, name))}
}

// maxErrorList limits how many errors are added to the model's context. The model sees the others after it has fixed these.
const maxErrorList = 20

// ErrorList lists the errors that a change introduces according to its verdict, one per line; name prints a path for the reader.
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

// Reason is what the person reads when a model proposes a returned change again: the text that the model wrote before its call, on
// one line and shortened.
func Reason(words string) string {
	if words = strings.Join(strings.Fields(words), " "); words == "" {
		return "no reason was given"
	}
	return textutil.Shorten(words, 300)
}
