package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/tools/custom"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// termsPage says what a person should know before they sign in with a plugin.
const termsPage = "https://github.com/pillion-dev/pillion/blob/main/docs/extending.md#sign-ins"

// dialogue asks a person at a terminal, or a script that pipes its answers in, one line each.
type dialogue struct {
	in     *bufio.Reader
	out    io.Writer
	hidden bool // what is typed at secret questions is not shown: standard input is a terminal
}

func newDialogue(c *cobra.Command) *dialogue {
	return &dialogue{bufio.NewReader(c.InOrStdin()), c.ErrOrStderr(), isTerminal(c.InOrStdin())}
}

// say prints a line that somebody else has written, without what would move or hide text on a screen.
func (d *dialogue) say(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintln(d.out, visible.Printable(strings.TrimRight(line, "\r\n")))
	}
}

// line asks for one line.
func (d *dialogue) line(question string) (string, error) {
	fmt.Fprintf(d.out, "%s ", visible.Printable(question))
	text, err := d.in.ReadString('\n')
	if err == io.EOF && text != "" {
		err = nil
	}
	if !d.hidden {
		fmt.Fprintln(d.out)
	}
	return strings.TrimSpace(text), err
}

// secret is line, with what is typed not shown.
func (d *dialogue) secret(question string) (string, error) {
	if !d.hidden {
		return d.line(question)
	}
	fmt.Fprintf(d.out, "%s ", visible.Printable(question))
	b, err := term.ReadPassword(int(os.Stdin.Fd()))
	fmt.Fprintln(d.out)
	return strings.TrimSpace(string(b)), err
}

// choose asks for one of several. A number or the beginning of a label is an answer.
func (d *dialogue) choose(question string, labels []string) (int, error) {
	for {
		for i, label := range labels {
			fmt.Fprintf(d.out, "  %d  %s\n", i+1, visible.Printable(label))
		}
		text, err := d.line(question)
		if i := labelMeant(labels, text); i >= 0 {
			return i, nil
		}
		if err != nil {
			return 0, err
		}
	}
}

// labelMeant is the label that a text means by its number or its beginning; -1 if it means none.
func labelMeant(labels []string, text string) int {
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(labels) {
		return n - 1
	}
	for i, label := range labels {
		if text != "" && strings.HasPrefix(strings.ToLower(label), strings.ToLower(text)) {
			return i
		}
	}
	return -1
}

// way is a way to sign in to a provider: with a method of a plugin, by a code, or with a key.
type way struct {
	label  string
	in     custom.SignIn
	method int                  // of in; -1: none
	device *models.DeviceSignIn // nil: none
}

// ways are the ways that there are for a provider, and last the key.
func ways(found []custom.SignIn, device *models.DeviceSignIn) []way {
	var out []way
	if device != nil {
		out = append(out, way{"Code in a browser", custom.SignIn{}, -1, device})
	}
	for _, in := range found {
		for i, m := range in.Methods {
			out = append(out, way{fmt.Sprintf("%s (plugin %s)", m.Label, in.Owner), in, i, nil})
		}
	}
	return append(out, way{"API key", custom.SignIn{}, -1, nil})
}

// signInByCode shows a code and waits until the person has typed it into a browser.
func (d *dialogue) signInByCode(ctx context.Context, in *models.DeviceSignIn) (account json.RawMessage, err error) {
	if in.Settings.Terms != "" {
		d.say("Terms and scopes: " + in.Settings.Terms)
	}
	code, err := in.Begin(ctx)
	if err != nil {
		return nil, err
	}
	d.say(fmt.Sprintf("Open %s and type the code %s", code.URL, code.Code))
	_ = app.OpenBrowser(cmp.Or(code.Complete, code.URL)) // the address is printed
	d.say("Waiting for the sign-in; Ctrl-C stops it …")
	return in.Wait(ctx, code)
}

// signIn takes a person through a plugin's method.
func (d *dialogue) signIn(ctx context.Context, w way) error {
	m := w.in.Methods[w.method]
	d.say(fmt.Sprintf("The plugin %s signs in under its own name. Whether your account may be used so is in its maker's terms; see %s", w.in.Owner, termsPage))
	inputs := map[string]string{}
	for i, p := range m.Prompts {
		wanted, err := w.in.Wanted(ctx, w.method, i, inputs)
		if err != nil {
			return err
		}
		if !wanted {
			continue
		}
		if inputs[p.Key], err = d.prompt(ctx, w, i, p); err != nil {
			return err
		}
	}
	if m.Type != "oauth" {
		key := ""
		if !m.Authorize {
			var err error
			if key, err = d.secret("Key of " + w.in.Provider + " (not shown):"); err != nil {
				return err
			}
		}
		return w.in.Finish(ctx, w.method, inputs, key)
	}
	a, err := w.in.Authorize(ctx, w.method, inputs)
	if err != nil {
		return err
	}
	if a.URL != "" {
		d.say("Open " + a.URL)
		_ = app.OpenBrowser(a.URL) // the address is printed
	}
	if a.Instructions != "" {
		d.say(a.Instructions)
	}
	code := ""
	if a.Method == "code" {
		if code, err = d.secret("Code:"); err != nil {
			return err
		}
	} else {
		d.say("Waiting for the sign-in; Ctrl-C stops it …")
	}
	return w.in.Finish(ctx, w.method, inputs, code)
}

// prompt asks one question of a plugin until the plugin accepts the answer.
func (d *dialogue) prompt(ctx context.Context, w way, i int, p custom.SignInPrompt) (string, error) {
	if p.Type == "select" {
		labels := make([]string, len(p.Options))
		for k, o := range p.Options {
			labels[k] = strings.TrimSpace(o.Label + "  " + o.Hint)
		}
		k, err := d.choose(p.Message, labels)
		if err != nil {
			return "", err
		}
		return p.Options[k].Value, nil
	}
	question := p.Message
	if p.Placeholder != "" {
		question += " (" + p.Placeholder + ")"
	}
	for {
		value, err := d.line(question)
		if err != nil {
			return "", err
		}
		problem, err := w.in.Problem(ctx, w.method, i, value)
		if err != nil {
			return "", err
		}
		if problem == "" {
			return value, nil
		}
		d.say(problem)
	}
}
