package app

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/pillion-dev/pillion/lspbridge"
)

// Servers returns the folder of the language servers that Pillion has installed itself.
func (p *Workplace) Servers() string { return filepath.Join(p.State, "servers") }

// InstallServer installs a language server into the cache after the person has agreed. in is nil when there is no terminal; then it
// installs only with yes, which was given beforehand. It fails when the person declines or the package manager fails. It prints the package
// and the command before the question, because a program from the internet will run as this user.
func InstallServer(ctx context.Context, id, cache string, yes bool, in io.Reader, out io.Writer) error {
	plan, err := lspbridge.PlanInstall(id, cache)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "This fetches %s from the internet into %s:\n  %s\n", id, cache, plan)
	if !yes {
		switch approved, err := Confirm(in, out, "Install it?"); {
		case errors.Is(err, ErrNoTerminal):
			return errors.New("installing needs approval, but standard input is not a terminal; nothing was installed. Run it again with --yes")
		case err != nil:
			return err
		case !approved:
			return errors.New("nothing was installed")
		}
	}
	// The package manager writes to out, so the person sees what it does.
	program, err := lspbridge.Install(ctx, plan, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Installed: %s\nRunning Pillion processes find it as well; pillion doctor shows it.\n", program)
	return nil
}

// ErrNoTerminal means that there is no terminal to ask a question on.
var ErrNoTerminal = errors.New("standard input is not a terminal")

// Confirm asks a yes/no question; y or yes means yes, everything else no. in is nil when there is no terminal.
func Confirm(in io.Reader, out io.Writer, question string) (bool, error) {
	if in == nil {
		return false, ErrNoTerminal
	}
	fmt.Fprint(out, question+" [y/N] ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && answer == "" { // end of input: end the line of the question
		fmt.Fprintln(out)
	}
	a := strings.ToLower(strings.TrimSpace(answer))
	return a == "y" || a == "yes", nil
}
