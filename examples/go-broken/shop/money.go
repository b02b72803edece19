// Package shop knows goods, prices and baskets.
package shop

import (
	"fmt"
	"os"
	"strconv"
)

// Cents is an amount of money.
type Cents int64

// String writes an amount as people do: 1234 is "12.34".
func (c Cents) String() string {
	sign := ""
	if c < 0 {
		sign, c = "-", -c
	}
	return fmt.Sprintf("%s%d.%02d", sign, c/100, c%100)
}

// ParseCents reads "12.34" or "12".
func ParseCents(s string) (Cents, error) {
	whole, part, found := strings.Cut(s, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	if err != nil {
		return err
	}
	total := n * 100
	if found {
		p, err := strconv.ParseInt(part, 10, 64)
		if err != nil || len(part) != 2 {
			return 0, fmt.Errorf("%q is not an amount", s)
		}
		total += p
	}
	return Cents(total), nil
}
