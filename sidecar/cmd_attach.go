package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pillion-dev/pillion/sidecar/acp"
	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/share"
)

// attachCommand is `pillion attach`: it connects standard input and output with the private socket of a sidecar that
// runs already (package share).
func attachCommand() *cobra.Command {
	var list bool
	c := &cobra.Command{
		Use:   "attach [session]",
		Short: "Join a running session of an editor from another editor or a script",
		Long: `Join a live session. This command speaks the Agent Client Protocol on standard input and output, and passes the messages on to
the sidecar that has the session open. That sidecar must have been started with "pillion acp --share", or with "attachable": true in
your own pillion.jsonc.

Both editors see the same events; both can send prompts and answer approval requests, and the first answer is used. If you name a
session (the beginning or the end of its id is enough), the first session/new joins it. Without a name, it joins the only live session
of this directory or, if there is none, the only live session. An editor may also use session/load.`,
		Example: "  pillion attach --list\n  pillion attach ses_01JX",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			want := ""
			if len(args) > 0 {
				want = args[0]
			}
			if list {
				return listShared(c.Context(), c.OutOrStdout())
			}
			cwd, err := app.Directory("")
			if err != nil {
				return err
			}
			conn, err := dialShared(c.Context(), want, cwd)
			if err != nil {
				return err
			}
			return relayBytes(c.Context(), conn, os.Stdin, c.OutOrStdout())
		},
	}
	c.Flags().BoolVarP(&list, "list", "l", false, "list the sessions that can be joined")
	return c
}

// joinable is a live session and the process that has it open: the same process must be dialled again to join it.
type joinable struct {
	share.Session
	of share.Process
}

// joinables asks every sidecar of this person for its live sessions. A sidecar without a session is in processes
// only. The answers are those of the moment: a session may end before it is joined.
func joinables(ctx context.Context) (all []joinable, processes []share.Process) {
	for _, p := range share.List() {
		if p.AsksOnly {
			continue
		}
		c, w, err := share.Dial(ctx, p, share.Hello{List: true})
		if err != nil {
			continue // it has just ended, or is of another version
		}
		// The sidecar answers with its sessions and the connection is of no more use.
		_ = c.Close()
		processes = append(processes, p)
		for _, s := range w.Sessions {
			all = append(all, joinable{s, p})
		}
	}
	return all, processes
}

// listShared prints one line for each session that can be joined; nothing where sidecars run without a session.
func listShared(ctx context.Context, out io.Writer) error {
	all, processes := joinables(ctx)
	if len(processes) == 0 {
		return errNothingShared
	}
	for _, s := range all {
		fmt.Fprintf(out, "%s  %-7s  %s  %s\n", s.ID, s.State, s.Cwd, s.Title)
	}
	return nil
}

// errNothingShared says how sharing is turned on: it is off by default, because a joined editor can approve changes.
var errNothingShared = fmt.Errorf("no running Pillion can be joined; start one with `pillion acp --share`, or set \"attachable\": true in your own pillion.jsonc")

// dialShared finds the process to join and connects to it. want is a session id, its beginning or its end; a complete
// id wins over a partial match. With "" the sessions of cwd are preferred. It fails with the list of candidates when
// more than one fits, because joining the wrong one would send prompts to it.
func dialShared(ctx context.Context, want, cwd string) (net.Conn, error) {
	all, processes := joinables(ctx)
	if len(processes) == 0 {
		return nil, errNothingShared
	}
	fits := all
	if want != "" {
		fits = nil
		for _, s := range all {
			// A complete id is exact, however many others begin or end like it.
			if s.ID == want {
				fits = []joinable{s}
				break
			}
			if strings.HasPrefix(s.ID, want) || strings.HasSuffix(s.ID, want) {
				fits = append(fits, s)
			}
		}
		if len(fits) == 0 {
			return nil, fmt.Errorf("no live session %q; the live sessions are: %s", want, choices(all))
		}
		// Several editors of one person often work on different projects.
	} else if here := inDir(all, cwd); len(here) > 0 {
		fits = here
	}
	switch {
	case len(fits) == 1:
		c, _, err := share.Dial(ctx, fits[0].of, share.Hello{Session: fits[0].ID})
		return c, err
	case len(fits) == 0 && len(processes) == 1: // it has no session yet; the joining editor can create one
		c, _, err := share.Dial(ctx, processes[0], share.Hello{})
		return c, err
	case len(fits) == 0:
		return nil, fmt.Errorf("%d sidecars are running, but none has a session; open one in an editor first", len(processes))
	}
	return nil, fmt.Errorf("more than one session can be joined; name one of them: %s", choices(fits))
}

// inDir are the sessions of a directory; links and case are compared as the system does, because editors spell the
// same folder in several ways.
func inDir(all []joinable, cwd string) (out []joinable) {
	for _, s := range all {
		if acp.SameDir(s.Cwd, cwd) {
			out = append(out, s)
		}
	}
	return out
}

// choices lists sessions for an error message, with what tells them apart for a person.
func choices(all []joinable) string {
	if len(all) == 0 {
		return "none"
	}
	var out []string
	for _, s := range all {
		out = append(out, fmt.Sprintf("%s (%s, %s)", s.ID, s.Title, s.Cwd))
	}
	return strings.Join(out, "; ")
}

// relayBytes moves bytes both ways until the sidecar ends the connection. The end of in means that the editor has no
// more requests: only the writing half is closed then, so that the answers still arrive.
// No bytes are interpreted: what the editor and the sidecar speak is between them.
func relayBytes(ctx context.Context, conn net.Conn, in io.Reader, out io.Writer) error {
	defer conn.Close()
	// A signal ends the relay: closing the connection ends both copies.
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	go func() {
		_, _ = io.Copy(conn, in)
		// A Unix socket can be closed in one direction; a connection that cannot is closed as a whole.
		if half, ok := conn.(interface{ CloseWrite() error }); ok {
			_ = half.CloseWrite()
		} else {
			_ = conn.Close()
		}
	}()
	_, err := io.Copy(out, conn)
	// After a signal, the error of the copy says only that the connection was closed.
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}
