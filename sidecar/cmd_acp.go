package main

import (
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

// acpCommand is `pillion acp`, which every editor starts.
func acpCommand() *cobra.Command {
	var shared bool
	c := &cobra.Command{
		Use:   "acp",
		Short: "Serve the Agent Client Protocol on stdin and stdout (editors start this)",
		Long:  "Serve the Agent Client Protocol on standard input and output. Standard output carries nothing else; logs go to a file under the state folder and warnings to standard error.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			// Ctrl-C in the terminal that runs the editor reaches this process too. Without a handler it would die
			// before the running turn is stored.
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
			defer stop()
			return serveACP(ctx, stdio{os.Stdin, os.Stdout}, shared)
		},
	}
	c.Flags().BoolVar(&shared, "share", false, "let your other editors join its sessions over a private socket (pillion attach)")
	return c
}

// stdio is the connection to the editor that started this process: standard input and output as one value.
type stdio struct {
	io.ReadCloser
	io.WriteCloser
}

// Close closes both directions, so that a reader that waits for input returns.
func (s stdio) Close() error {
	_ = s.ReadCloser.Close()
	return s.WriteCloser.Close()
}
