package tools

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestOtherNamesOfParameters(t *testing.T) {
	tool := New("look", "Looks.", func(_ context.Context, p struct {
		Symbol   string `json:"symbol"`
		FilePath string `json:"filePath,omitempty"`
		NewName  string `json:"newName,omitempty"`
		How      string `json:"how,omitempty" enum:"goThere,stay"`
	}, _ *Call) (Result, error) {
		return Result{Output: strings.Join([]string{p.Symbol, p.FilePath, p.NewName, p.How}, "|")}, nil
	}, WithNames(map[string][]string{"symbol": {"name", "namePath"}, "filePath": {"path"}, "newName": {"name"}}), WithIgnored())
	for _, c := range []struct{ input, want string }{
		{`{"symbol":"a","filePath":"b"}`, "a|b||"},
		{`{"name":"a","path":"b"}`, "a|b||"},
		{`{"name_path":"a","file_path":"b"}`, "a|b||"},
		{`{"symbol":"a","name":"c"}`, "a||c|"},
		{`{"symbol":"a","filePath":"b","path":"c"}`, "a|b||\n\n(Ignored: \"path\". look takes symbol, filePath, newName, how.)"}, // there already
		{`{"symbol":"a","depth":1,"why":"x"}`, "a|||\n\n(Ignored: \"depth\", \"why\". look takes symbol, filePath, newName, how.)"},
		{`{"symbol":"a","path":null}`, "a|||"},
		{`{"symbol":"a","how":"go_there"}`, "a|||goThere"},
	} {
		r, err := Invoke(context.Background(), tool, json.RawMessage(c.input), &Call{}, CapOptions{})
		if err != nil || r.Output != c.want {
			t.Errorf("%s: %q %v, want %q", c.input, r.Output, err, c.want)
		}
	}
	_, err := Invoke(context.Background(), tool, json.RawMessage(`{"path":"b","depth":1}`), &Call{}, CapOptions{})
	var bad *InvalidInput
	if !errors.As(err, &bad) || len(bad.Fields) != 1 || !strings.Contains(bad.Fields[0].Problem, `unknown key "depth"`) {
		t.Error(err)
	}
}
