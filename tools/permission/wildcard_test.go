package permission

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	t.Setenv("HOME", "/home/me")
	for _, c := range []struct {
		name, pattern, text string
		want                bool
	}{
		{"everything", "*", "", true},
		{"home", "~/x", "/home/me/x", true},
		{"home with a backslash", `~\x`, "/home/me/x", true},
		{"home by its variable", "$HOME/x", "/home/me/x", true},
		{"somebody else's home", "~you/x", "/home/meyou/x", false},
		{"another variable", "$HOMEX/x", "/home/meX/x", false},
		{"slash", "src/*", "src/a/b.go", true},
		{"line end", "git commit *", "git commit -m a\nb", true},
		{"one character", "a?c", "abc", true},
		{"one character is a rune", "a?c", "aéc", true},
		{"one character is not none", "a?c", "ac", false},
		{"question mark takes a line end", "a?c", "a\nc", true},
		{"trailing blank star is optional", "ls *", "ls", true},
		{"trailing blank star with more", "ls *", "ls -la", true},
		{"not a longer word", "ls *", "lsof", false},
		{"star without blank", "ls*", "lsof", true},
		{"anchored left", "rm *", "sudo rm x", false},
		{"anchored right", "*.env", ".env.local", false},
		{"dot is a dot", "a.b", "axb", false},
		{"regular expression characters", "a+(b)[c]", "a+(b)[c]", true},
		{"backslash is slash", `src\*`, "src/a", true},
		{"backslash in text", "src/*", `src\a`, true},
		{"tilde", "~/x/*", "/home/me/x/y", true},
		{"tilde alone", "~", "/home/me", true},
		{"tilde of somebody", "~root/x", "/home/me/x", false},
		{"$HOME", "$HOME/x", "/home/me/x", true},
		{"$HOMER", "$HOMER/x", "/home/me/x", false},
		{"tilde in the middle stays", "a/~/b", "a/~/b", true},
		{"case matters", "Git *", "git status", false},
		{"two stars", "*.env.*", "a/.env.local", true},
		{"backtracks", "*ab*ac", "xabxabyac", true},
		{"empty pattern", "", "", true},
		{"empty pattern, text", "", "x", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Match(c.pattern, c.text); got != c.want {
				t.Errorf("Match(%q, %q) = %v", c.pattern, c.text, got)
			}
		})
	}
}

// What Windows and macOS do, on every system: their file systems ignore letter case, so .ENV must not be a way around a rule about .env.
func TestSpelling(t *testing.T) {
	for _, c := range []struct {
		text    string
		anyCase bool
		want    string
	}{
		{`Web\.ENV`, true, "web/.env"},
		{`Web\.ENV`, false, "Web/.ENV"},
	} {
		if got := spelling(c.text, c.anyCase); got != c.want {
			t.Errorf("%s, any case %t: %s, want %s", c.text, c.anyCase, got, c.want)
		}
	}
}

func BenchmarkMatchHostile(b *testing.B) {
	pattern, text := strings.Repeat("*a", 50)+"b", strings.Repeat("a", 10_000)
	for b.Loop() {
		Match(pattern, text)
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a*b?c *", "a/b\nc")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 200 || len(text) > 2000 {
			return
		}
		Match(pattern, text)
		if !strings.ContainsAny(text, `*?~$\`) && !Match(text, text) {
			t.Errorf("%q does not match itself", text)
		}
		if !Match("*"+text, "x"+text) && !strings.ContainsAny(text, `\?`) {
			t.Errorf("*%q does not match", text)
		}
	})
}
