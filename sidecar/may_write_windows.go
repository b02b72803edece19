package main

// mayWrite is true: pillion upgrade only shows commands on Windows, where package managers ask for more rights themselves.
func mayWrite(string) bool { return true }
