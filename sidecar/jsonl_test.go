package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// execLine runs a command line in this process.
func execLine(t *testing.T, stdin string, args ...string) (out string, err error) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	root := rootCommand()
	var b bytes.Buffer
	root.SetIn(strings.NewReader(stdin))
	root.SetOut(&b)
	root.SetErr(&b)
	root.SetArgs(args)
	err = root.ExecuteContext(t.Context())
	return b.String(), err
}

func TestBrokenLinesAreAnsweredInTheirPlaces(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/a.txt", "one\n")
	in := `not json
[1]
{"id":7,"tool":5}

{"id":8}
{"id":9,"tool":"read","input":{"filePath":"a.txt"}}`
	out, err := execLine(t, in, "tool", "call", "--jsonl", "--no-lsp", "-C", dir)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if len(lines) != 5 {
		t.Fatalf("%d answers:\n%s", len(lines), out)
	}
	for i, want := range []string{"invalid character", "it is a JSON array", "tool cannot be a number", "unavailable tool", "1: one"} {
		if !json.Valid([]byte(lines[i])) || !strings.Contains(lines[i], want) || strings.Contains(lines[i], "Go value") {
			t.Errorf("%s: %s", want, lines[i])
		}
	}
}
