//go:build !linux

package main

// dropFilePages does nothing where the program file's pages cannot be handed back.
func dropFilePages() {}
