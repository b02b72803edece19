//go:build !linux

package main

// giveBack does nothing where the program file's pages cannot be handed back.
func giveBack() {}
