package main

import (
	"encoding/json"
	"io"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/external"
)

// acpCommand is `pillion acp`, which every editor starts.
func acpCommand() *cobra.Command {
	var shared bool
	var agentCommand string
	c := &cobra.Command{
		Use:   "acp",
		Short: "Serve the Agent Client Protocol on stdin and stdout (editors start this)",
		Long:  "Serve the Agent Client Protocol on standard input and output. Standard output carries nothing else; logs go to a file under the state folder and warnings to standard error.",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if agentCommand != "" {
				if err := rideWith(agentCommand); err != nil {
					return err
				}
			}
			// Ctrl-C in the terminal that runs the editor reaches this process too. Without a handler it would die
			// before the running turn is stored.
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
			defer stop()
			return serveACP(ctx, stdio{os.Stdin, os.Stdout}, shared)
		},
	}
	c.Flags().StringVar(&agentCommand, "agent-command", "", "`command line` of another ACP agent that works in Pillion's place, under its review; for a row in the settings see pillion agents")
	c.Flags().BoolVar(&shared, "share", false, "let your other editors join its sessions over a private socket (pillion attach)")
	return c
}

// rideWith makes the agent that a command line starts the model of all new sessions, as settings of this process.
func rideWith(line string) error {
	for _, name := range []string{"PILLION_CONFIG_CONTENT", "PILLION_MODEL"} {
		if os.Getenv(name) != "" {
			return usagef("--agent-command and the variable %s exclude each other", name)
		}
	}
	row := map[string]any{"acp": external.ShellCommand(line)}
	if _, known := external.Running(external.ShellCommand(line)); !known {
		row["name"] = line
	}
	content, err := json.Marshal(map[string]any{"agents": map[string]any{"command": row}, "model": external.ProviderID + "/command"})
	if err != nil {
		return err
	}
	return os.Setenv("PILLION_CONFIG_CONTENT", string(content))
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
