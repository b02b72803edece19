// Package store keeps receipts in memory.
package store

import (
	"errors"
	"time"

	"example.com/till/shop"
)

// ErrNoReceipt is returned for a number that was never given out.
var ErrNoReceipt = errors.New("no such receipt")

// Receipt is a paid basket.
type Receipt struct {
	ID    int
	When  time.Time
	Total shop.Cents
}

// Store keeps receipts.
type Store interface {
	Save(r Receipt) (int, error)
	Load(id int) (Receipt, error)
	Len() int
}

// Memory is a Store that forgets everything at the end.
type Memory struct {
	receipts []Receipt
}

var _ Store = (*Memory)(nil)

// Save numbers a receipt and keeps it.
func (m *Memory) Save(r Receipt) (int, error) {
	r.ID = len(m.receipts) + 1
	m.receipts = append(m.receipts, r)
	return r.ID, nil
}

// Load finds a receipt by its number.
func (m *Memory) Load(id int) (Receipt, error) {
	if id < 1 || id > len(m.receipts) {
		return Receipt{}, ErrNoReceipt
	}
	return m.receipts[id-1], nil
}
