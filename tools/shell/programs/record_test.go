package programs

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// every calls f for each record and each subcommand's.
func every(t *testing.T, f func(r *Record)) {
	t.Helper()
	seen := map[span]bool{}
	var walk func(r *Record)
	walk = func(r *Record) {
		f(r)
		for _, sub := range r.Sub {
			walk(sub)
		}
	}
	for _, s := range builtIn().at {
		if seen[s] {
			continue
		}
		seen[s] = true
		data, err := fs.ReadFile(recordFiles, "records/"+s.file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := parseRecord(string(data[s.from:s.to]), s)
		if err != nil {
			t.Errorf("%s: %s: %v", s.file, s.name, err)
			continue
		}
		walk(r)
	}
	if len(seen) < 300 {
		t.Errorf("only %d records", len(seen))
	}
}

// A record with a mistake knows nothing, so its program would only be asked more often: nobody would notice.
func TestRecordsAreWellFormed(t *testing.T) {
	every(t, func(r *Record) {
		seen := map[string]string{}
		for kind, list := range r.Options {
			if _, ok := optionKinds[kind]; !ok && kind != "first" && kind != "optional" {
				t.Errorf("%s: options have no kind %q", r.name, kind)
			}
			for _, o := range strings.Fields(list) {
				if !strings.HasPrefix(o, "-") {
					t.Errorf("%s: %s is no option", r.name, o)
				}
				if kind == "first" || kind == "optional" {
					continue
				}
				if have, ok := seen[o]; ok {
					t.Errorf("%s: %s is %s and %s", r.name, o, have, kind)
				}
				seen[o] = kind
			}
		}
		for _, kind := range []string{"first", "optional"} {
			for o := range strings.FieldsSeq(r.Options[kind]) {
				if seen[o] == "" {
					t.Errorf("%s: %s is %s, but of no kind", r.name, o, kind)
				}
			}
		}
		for class := range r.Effect {
			if !slices.Contains(effectClasses, class) {
				t.Errorf("%s: %q is no class of effects", r.name, class)
			}
		}
		if !slices.Contains([]string{"", "single", "driver"}, r.Style) || !slices.Contains([]string{"", "version", "machine"}, r.Variants) ||
			!slices.Contains([]string{"", "command", "script", "package"}, r.Runs) || r.Unlisted != "" && r.Unlisted != "text" || !slices.Contains([]string{"", "content", "sources"}, r.Keeps) || !slices.Contains([]string{"", "1", "2", "3", never, none}, r.Always) {
			t.Errorf("%s: style %q, variants %q, runs %q, keeps %q, always %q", r.name, r.Style, r.Variants, r.Runs, r.Keeps, r.Always)
		}
	})
}

// Two records of one name would hide each other.
func TestNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	files, _ := fs.Glob(recordFiles, "records/*.yaml")
	for _, file := range files {
		data, _ := fs.ReadFile(recordFiles, file)
		one := index{at: map[string]span{}}
		one.add(file, string(data))
		for name := range one.at {
			if other, ok := seen[name]; ok {
				t.Errorf("%s is in %s and %s", name, other, file)
			}
			seen[name] = file
		}
	}
}

func BenchmarkIndex(b *testing.B) {
	for b.Loop() {
		ix := index{at: map[string]span{}}
		files, _ := fs.Glob(recordFiles, "records/*.yaml")
		for _, file := range files {
			data, _ := fs.ReadFile(recordFiles, file)
			ix.add(file, string(data))
		}
	}
}

func BenchmarkRecord(b *testing.B) {
	s := builtIn().at["gcc"]
	data, _ := fs.ReadFile(recordFiles, "records/"+s.file)
	for b.Loop() {
		if _, err := parseRecord(string(data[s.from:s.to]), s); err != nil {
			b.Fatal(err)
		}
	}
}

// A person's record adds a program, or corrects what is known of one; a wrong one is said and leaves the others alone.
func TestOwnRecords(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := NewSet(map[string]string{
		"mytool": `{"options": {"write": "-o --output"}, "words": "read...", "always": "2"}`,
		"mylint": `{"names": "ml", "reads": true, "ends": "--fix", "words": "read..."}`,
		"curl":   `{"options": {"write": "--save-as"}}`,
		"broken": `{"word": "read..."}`,
	})
	if err == nil || !strings.Contains(err.Error(), "programs.broken") {
		t.Errorf("the wrong record: %v", err)
	}
	for command, want := range map[string]string{
		"mytool build -o ../x":            "write " + filepath.Join(filepath.Dir(dir), "x"),
		"mytool build ../x":               "read " + filepath.Join(filepath.Dir(dir), "x"),
		"curl --save-as ../x https://a":   "write " + filepath.Join(filepath.Dir(dir), "x"),
		"curl -so../x https://a":          "write " + filepath.Join(filepath.Dir(dir), "x"), // the rest of the record stays
		"mylint a":                        "silent",
		"ml a":                            "silent",
		"mylint --fix a":                  "",
		"env mylint a && mylint a --fi=1": "",
	} {
		a := s.Analyze(scan.Request{Command: command, Dir: dir, Root: dir, Home: dir})
		got := ""
		if a.ReadOnly {
			got = "silent"
		}
		for _, p := range a.External {
			got = string(p.Access) + " " + p.Path
		}
		if got != want {
			t.Errorf("%s: %q, want %q (%s)", command, got, want, a.Why)
		}
	}
	if a := s.Analyze(scan.Request{Command: "mytool build x", Dir: dir, Root: dir}); a.Calls[0].Record != "your configuration: mytool" || a.Calls[0].Always != "mytool build *" {
		t.Errorf("%+v", a.Calls[0])
	}
	if a := Analyze(scan.Request{Command: "mylint a", Dir: dir, Root: dir}); a.ReadOnly || a.Calls[0].Record != "" {
		t.Error("one person's record counts for another")
	}
}
