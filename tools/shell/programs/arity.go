package programs

import (
	"strconv"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// alwaysOf is what "always" remembers of a call: its first words and " *", or the exact text when an option stands
// among those words, since git -c … * would allow anything. Empty when no pattern can say it.
// The number of words comes from the record: "git push *" is useful, "git *" would cover everything. A word that holds a path,
// a wildcard or "=" is never a part of the prefix, since the same pattern would then stand for one file only, or for many.
func alwaysOf(text string, args []scan.Word, name string, r *Record) string {
	words := []string{name}
	for _, a := range args[1:] {
		s, ok := a.One()
		if !ok || len(words) >= 3 {
			break
		}
		words = append(words, s)
	}
	// Without a number in the record the program's name alone is kept.
	n := 1
	if r.Always != "" {
		n, _ = strconv.Atoi(r.Always)
		if sub, used := r.sub(words[1:]); used > 0 && sub.Always != "" {
			n, _ = strconv.Atoi(sub.Always)
		}
	}
	// The toolchain in front of the subcommand takes one of the words.
	if len(words) > 2 && name == "cargo" && strings.HasPrefix(words[1], "+") {
		n = 3 // cargo +nightly build
	}
	// As in exactText: a pattern cannot quote these characters.
	exact := text
	if strings.ContainsAny(exact, "*?$`\\\n") || strings.HasPrefix(exact, "~") {
		exact = ""
	}
	first, _, _ := strings.Cut(text, " ")
	if len(args) < n || len(words) < n && len(args) > len(words) {
		if len(args) < n && exact != "" {
			return exact
		}
		return exact
	}
	// first is the program as the rules see it: with its folder, where it was started by a path of its own.
	prefix := []string{first}
	for _, word := range words[1:min(n, len(words))] {
		if strings.HasPrefix(word, "-") || strings.ContainsAny(word, " *?$`\\/=~\n") {
			return exact
		}
		prefix = append(prefix, word)
	}
	if strings.ContainsAny(first, "*?") {
		return ""
	}
	return strings.Join(prefix, " ") + " *"
}
