package custom

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools"
)

// The examples of docs/extending.md do what the page says.
func TestTheExtendingPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/extending.md")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, m := range regexp.MustCompile("(?s)```(?:ts|js|json) (\\S+)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		files[m[1]] = m[2]
	}
	if len(files) != 3 {
		t.Fatalf("%v", files)
	}
	p := newPlace(t, files)
	if r, err := p.run(t.Context(), "words", `{"text":" one two  three"}`, nil); err != nil || r.Output != "3 words" {
		t.Errorf("%q %v", r.Output, err)
	}
	if r, err := p.run(t.Context(), "lines", `{"text":"a\nb\n"}`, nil); err != nil || strings.TrimSpace(r.Output) != "2" {
		t.Errorf("%q %v", r.Output, err)
	}
	if _, err := p.Hook().Before(t.Context(), &tools.Call{Tool: "read"}, json.RawMessage(`{"filePath":".env"}`)); err == nil || !strings.Contains(err.Error(), "secrets are not read") {
		t.Error(err)
	}
	if env := p.ShellEnv(t.Context(), p.dir, "s", "c"); env["PROJECT"] != p.dir {
		t.Errorf("%v", env)
	}
	for _, name := range known { // the table names every hook
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("%s is not on the page", name)
		}
	}
	if p.said() != "" {
		t.Error(p.said())
	}
}
