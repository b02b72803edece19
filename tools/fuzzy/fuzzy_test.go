package fuzzy

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"
)

func TestBestFirst(t *testing.T) {
	names := []string{
		"sidecar/server.go", "sidecar/server_test.go", "agent/session.go", "docs/observer.md", "sidecar/", "src/components/UserCard.tsx",
		"src/components/user-card.css", "README.md", "lib/read_me_not.txt", "src/übung/Straße.go", "a/b/c/d/server.go", "cmd/s/e/r/v/x.go", "MyFooBar.java",
	}
	l := New(names)
	for query, want := range map[string]string{
		"server":     "sidecar/server.go",
		"server.go":  "sidecar/server.go",
		"srvtest":    "sidecar/server_test.go",
		"sid/serv":   "sidecar/server.go",
		"ucard":      "src/components/UserCard.tsx",
		"readme":     "README.md",
		"STRASSE":    "",
		"straße":     "src/übung/Straße.go",
		"Übung":      "src/übung/Straße.go",
		"mfb":        "MyFooBar.java",
		"go session": "agent/session.go",
		"sidecar":    "sidecar/",
		"zzz":        "",
		"card css":   "src/components/user-card.css",
	} {
		best, _ := l.Best(query, 3)
		got := ""
		if len(best) > 0 {
			got = l.Name(best[0].Index)
		}
		if got != want {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	if best, more := l.Best("", 2); len(best) != 2 || !more || strings.Count(l.Name(best[0].Index), "/") > 1 {
		t.Errorf("the empty query: %v", best)
	}
}

func TestPositionsNameTheLetters(t *testing.T) {
	l := New([]string{"src/😀/UserCard.tsx", "übung/Straße.go"})
	for query, i := range map[string]int{"ucard": 0, "usercard": 0, "stß": 1, "uc tsx": 0} {
		units := utf16.Encode([]rune(l.Name(i)))
		var got []uint16
		for _, at := range l.Positions(query, i) {
			got = append(got, units[at])
		}
		text := strings.ToLower(string(utf16.Decode(got)))
		want := strings.Split(strings.ReplaceAll(query, " ", ""), "")
		if utf8.RuneCountInString(text) != len(want) {
			t.Errorf("%q marks %q", query, text)
		}
		for _, letter := range want {
			if !strings.Contains(text, letter) {
				t.Errorf("%q marks %q", query, text)
			}
		}
	}
}

func FuzzBest(f *testing.F) {
	f.Add("a/b/Foo.go", "bf")
	f.Add("İstanbul/\xff", "i\xfe s")
	f.Add("ẞ/K", "ß k")
	f.Fuzz(func(t *testing.T, name, query string) {
		l := New([]string{name})
		best, _ := l.Best(query, 1)
		if len(best) == 0 {
			return
		}
		at := l.Positions(query, 0)
		if !slices.IsSorted(at) {
			t.Errorf("positions %v", at)
		}
		if n := len(utf16.Encode([]rune(name))); len(at) > 0 && at[len(at)-1] >= n {
			t.Errorf("position %d of %d", at[len(at)-1], n)
		}
		if utf8.ValidString(name) && strings.TrimSpace(strings.ToValidUTF8(query, "")) != "" && len(at) == 0 {
			t.Errorf("%q fits %q, but nowhere", query, name)
		}
	})
}

func BenchmarkFiftyThousand(b *testing.B) {
	names := make([]string, 50_000)
	for i := range names {
		names[i] = fmt.Sprintf("packages/module%d/src/components/Thing%dController%d.ts", i%97, i%1013, i)
	}
	l := New(names)
	for _, q := range []string{"t", "thingcontroller", "mod5thing77", "pkgsrcthctrl"} {
		b.Run(q, func(b *testing.B) {
			for b.Loop() {
				l.Best(q, 50)
			}
		})
	}
}

func TestSlips(t *testing.T) {
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		a, b string
		n    int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"read", "raed", 1}, {"read", "reads", 1}, {"edit", "exit", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3},
		{long[1:], long[2:], 1}, {long, long, 255}, {"a", long, 255}} {
		if got := Slips(c.a, c.b); got != c.n {
			t.Errorf("%.10q to %.10q: %d, want %d", c.a, c.b, got, c.n)
		}
	}
}
