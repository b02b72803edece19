package fuzzy

// maxSlips is the length in bytes of the longest names that Slips compares, and its result for longer ones, which means "not alike". With
// this bound the table of three rows fits on the stack.
const maxSlips = 255

// Slips is the number of typing mistakes between two names: bytes to insert, delete, replace or swap with their neighbour until one is the
// other (the restricted Damerau–Levenshtein distance). It compares bytes, so a non-ASCII letter can count as several mistakes. Case counts;
// callers fold both names first where it should not. If a name is longer than 255 bytes, the result is 255.
func Slips(a, b string) int {
	if len(a) > maxSlips || len(b) > maxSlips {
		return maxSlips
	}
	var cells [3 * (maxSlips + 1)]int
	n := len(b) + 1
	// A swap needs the row before the last, so three rows are reused in turn: row i of the table is rows[(i+1)%3].
	rows := [3][]int{cells[:n], cells[n : 2*n], cells[2*n : 3*n]}
	// Row 0: from an empty name to the first j bytes of b takes j insertions.
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		old, last, row := rows[(i-1)%3], rows[i%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j-1]+cost, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], old[j-2]+1)
			}
		}
	}
	return rows[(len(a)+1)%3][len(b)]
}
