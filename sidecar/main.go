// Command pillion is the coding agent that rides behind your editor.
package main

func main() {}
