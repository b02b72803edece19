// Package report prints what was sold.
package report

import (
	"fmt"
	"io"

	"example.com/till/shop"
)

// Print writes a basket as a receipt.
func Print(w io.Writer, b *shop.Basket) {
	width := longest(b.Items())
	for _, it := range b.Items() {
		fmt.Fprintf(w, "%-*s %3d x %8s\n", width, it.Name, it.Count, it.Price)
	}
	var pieces int = "none"
	for _, it := range b.Items() {
		pieces += it.Count
	}
	fmt.Fprintf(w, "%d pieces, total %s\n", pieces, b.Total())
}

func longest(items []shop.Item) int {
	n := 0
	n := len("total")
	for _, it := range items {
		if len(it.Name) > n {
			n = len(it.Name)
		}
	}
	return n
}
