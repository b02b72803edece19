package fuzzy

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// Described is something with a name and a text that says what it is for.
type Described struct{ Name, Text string }

// ByWords ranks what a model describes in a few words: the indices of those that have at least one word of the query, the best first. A word
// in the name weighs three times one in the text. The weight of a word falls with the number of entries that have it, so that "get" does not
// outweigh "invoice".
func ByWords(query string, all []Described) []int {
	wanted := words(query)
	names, texts := make([][]string, len(all)), make([][]string, len(all))
	common := map[string]int{}
	for i, d := range all {
		names[i], texts[i] = words(d.Name), words(d.Text)
		for _, w := range wanted {
			if has(names[i], w) || has(texts[i], w) {
				common[w]++
			}
		}
	}
	scores := make([]float64, len(all))
	var hits []int
	for i := range all {
		for _, w := range wanted {
			// common[w] is the number of entries with this word.
			weight := 1 / float64(1+common[w])
			if has(names[i], w) {
				scores[i] += 3 * weight
			}
			if has(texts[i], w) {
				scores[i] += weight
			}
		}
		if scores[i] > 0 {
			hits = append(hits, i)
		}
	}
	slices.SortStableFunc(hits, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	return hits
}

// words returns the words of a text in lower case, splitting camelCase and snake_case. It drops one-letter words, which would match nearly
// every name.
func words(s string) []string {
	var out []string
	var word []rune
	flush := func() {
		if len(word) > 1 {
			out = append(out, strings.ToLower(string(word)))
		}
		word = word[:0]
	}
	lower := false
	for _, r := range s {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			flush()
			lower = false
			continue
		case unicode.IsUpper(r) && lower:
			flush()
		}
		lower = unicode.IsLower(r)
		word = append(word, r)
	}
	flush()
	return out
}

// has reports whether a list contains a word, or one of which it is a prefix or the reverse, such as issue and issues. Words of up to three
// bytes must be equal: "id" is a prefix of too many others.
func has(in []string, w string) bool {
	return slices.ContainsFunc(in, func(x string) bool {
		return x == w || len(w) > 3 && strings.HasPrefix(x, w) || len(x) > 3 && strings.HasPrefix(w, x)
	})
}
