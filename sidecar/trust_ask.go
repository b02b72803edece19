package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/terminal"
	"github.com/pillion-dev/pillion/sidecar/trust"
	"github.com/pillion-dev/pillion/tools/paths"
)

// askTrust tells a person at a terminal what the project's configuration would do, and asks once whether to trust
// it. Without a keyboard, or after a no about the same settings, it only tells.
func askTrust(p *app.Workplace, cwd string, keyboardThere bool, out io.Writer) error {
	c, _ := p.Config(cwd)
	held := c.Held()
	if len(held) == 0 {
		return nil
	}
	root := trust.RealPath(paths.Worktree(cwd))
	trust.Warn(out, c, root)
	digest := trust.Digest(held)
	if r, ok := p.Trust.Record(root); !keyboardThere || ok && r.Refused == digest {
		return nil
	}
	tty := keyboard(isTerminal(os.Stdin))
	if tty == nil {
		return nil
	}
	if tty != os.Stdin {
		defer tty.Close()
	}
	terminal.TTY{File: tty}.Discard() // typed before the question was there
	yes, err := askYes(tty, out, "Trust "+root+" and let these settings count? [y/N] ")
	if err != nil {
		return nil // nobody answered: nothing is trusted, and nothing is remembered
	}
	record := trust.Record{Path: root, Trusted: yes, Created: time.Now().UTC()}
	if !yes {
		record.Refused = digest
	}
	if err := p.Trust.Write(record); err != nil {
		fmt.Fprintln(out, "pillion: the answer could not be stored, it counts for this run:", err)
		p.TrustFor(cwd, yes)
	}
	return nil
}

// askYes reads one line; only y and yes are a yes.
func askYes(in io.Reader, out io.Writer, question string) (bool, error) {
	fmt.Fprint(out, question)
	// One byte at a time: what is typed after the line belongs to the next question.
	line, err := bufio.NewReaderSize(oneByte{in}, 16).ReadString('\n')
	if err != nil && line == "" {
		return false, err
	}
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	return false, nil
}

type oneByte struct{ io.Reader }

func (o oneByte) Read(b []byte) (int, error) { return o.Reader.Read(b[:min(1, len(b))]) }
