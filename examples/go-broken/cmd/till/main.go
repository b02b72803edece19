// Command till sells three things and prints the receipt.
package main

import (
	"fmt"
	"os"
	"time"

	"example.com/till/report"
	"example.com/till/shop"
	"example.com/till/store"
)

func main() {
	var b shop.Basket
	b.Add("bread", 350, 2)
	b.Add("honey", 899, 1)
	report.Print(os.Stdout, &b)

	var s store.Store = &store.Memory{}
	id, err := s.Save(store.Receipt{When: time.Now(), Total: b.Total()})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := shop.ParseCents("3.50"); err != nil {
		log.Fatal(err)
	}
	coupon := shop.Cents(350)
	fmt.Println("receipt", id, "of", s.Len(), "with tax", tax(b.Total()))
}
