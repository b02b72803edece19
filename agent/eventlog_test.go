package agent

import (
	"encoding/json"
	"testing"
)

// A change set is not read again to be written into its event, and the event says the same.
func TestChangeEventIsWrittenAroundItsSet(t *testing.T) {
	for _, c := range []ChangeData{
		{CallID: "c<1>\"", State: "applied", Set: encode(map[string]string{"text": "a < b && \"c\"\n\u2028"})},
		{CallID: "c", State: "proposed", Set: json.RawMessage(`null`)},
		{CallID: "c", State: "failed"},
	} {
		want, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if got := encode(c); string(got) != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
