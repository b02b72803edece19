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
// it. Without a keyboard it only tells; so it does when the person has said no to exactly these settings before
// (trust.Digest). Settings that are added later are asked about again. "No" is not an error: the run continues without
// the settings.
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
	// Standard input may be the prompt, so the answer is read from the terminal itself.
	tty := keyboard(isTerminal(os.Stdin))
	if tty == nil {
		return nil
	}
	if tty != os.Stdin {
		defer tty.Close()
	}
	question := "Trust " + root + " and use these settings?"
	fmt.Fprint(out, question)
	terminal.TTY{File: tty}.Discard() // what was typed before the question could be read is not an answer
	yes, err := askYes(tty, out, " [y/N] ")
	if err != nil {
		return nil // the input ended without an answer: nothing is trusted and nothing is remembered
	}
	record := trust.Record{Path: root, Trusted: yes, Created: time.Now().UTC()}
	if !yes {
		record.Refused = digest
	}
	if err := p.Trust.Write(record); err != nil {
		// The decision holds for this run at least: asking again would not help a full disk.
		fmt.Fprintln(out, "pillion: the answer could not be stored and applies to this run only:", err)
		p.TrustFor(cwd, yes)
	}
	return nil
}

// askYes reads one line; only "y" and "yes" mean yes. It fails when the input ends before a line.
func askYes(in io.Reader, out io.Writer, question string) (bool, error) {
	fmt.Fprint(out, question)
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

// oneByte reads one byte at a time: a larger read would swallow what is typed after the line, which belongs to the
// next question.
type oneByte struct{ io.Reader }

// Read implements io.Reader.
func (o oneByte) Read(b []byte) (int, error) { return o.Reader.Read(b[:min(1, len(b))]) }
