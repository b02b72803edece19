package main

import (
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"
)

func acpCommand() *cobra.Command {
	var shared bool
	c := &cobra.Command{
		Use:   "acp",
		Short: "Serve the Agent Client Protocol on stdin and stdout (editors start this)",
		Long:  "Serve the Agent Client Protocol on standard input and output. Standard output carries nothing else; logs go to a file under the state folder and warnings to standard error.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			// A terminal's Ctrl-C reaches us with the editor: what runs is ended and stored then, too.
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
			defer stop()
			return serveACP(ctx, stdio{os.Stdin, os.Stdout}, shared)
		},
	}
	c.Flags().BoolVar(&shared, "share", false, "let your other editors join its sessions over a private socket (pillion attach)")
	return c
}

type stdio struct {
	io.ReadCloser
	io.WriteCloser
}

func (s stdio) Close() error {
	_ = s.ReadCloser.Close()
	return s.WriteCloser.Close()
}
