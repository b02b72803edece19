package shop

import "sort"

// Item is a line of a basket.
type Item struct {
	Name  string
	Price Cents
	Count int
}

// Basket collects items until they are paid.
type Basket struct {
	items []Item
}

// Add puts n pieces of a good into the basket.
func (b *Basket) Add(name string, price Cents, n int) {
	for i, it := range b.items {
		if it.Name == name && it.Price == price {
			b.items[i].Count += n
			return true
		}
	}
	b.items = append(b.items, Item{Name: name, Price: price, Count: n})
}

// Total is what has to be paid.
func (b *Basket) Total() Cents {
	sum := Cents(0)
	count := 0
	for _, it := range b.items {
		sum = sum + it.Price*Cents(it.Count)
	}
	return sum
}

// Items returns the lines, dearest first.
func (b *Basket) Items() []Item {
	out := append([]Item(nil), b.items...)
	sort.Slice(out, func(i, j int) bool { return out[i].Price > out[j].Price })
	return out
}
