package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pillion-dev/pillion/sidecar/app"
	"github.com/pillion-dev/pillion/sidecar/keys"
	"github.com/pillion-dev/pillion/sidecar/models"
	"github.com/pillion-dev/pillion/tools/fuzzy"
)

// authCommand is `pillion auth`. The order of precedence in its help is that of package models.
func authCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "auth", Short: "Store the API keys of model providers",
		Long: `Store the API keys of model providers, and sign in to accounts.

A key goes into the operating system's keyring where there is one, else into a file in your state folder that only you
can read. Variables such as ANTHROPIC_API_KEY take precedence over stored keys; a key in pillion.jsonc takes precedence over both.`,
	}
	c.AddCommand(authLogin(), authLogout(), authList())
	return c
}

// authLogin is `pillion auth login`. A provider that is not configured is accepted with a warning: keys are often
// stored before the configuration is written. A likely misspelling is refused, because the key would never be
// used. A key that is stored already is replaced.
func authLogin() *cobra.Command {
	var stdin bool
	var method string
	c := &cobra.Command{
		Use: "login PROVIDER", Short: "Store a provider's API key, or sign in", Args: cobra.ExactArgs(1),
		Long: `Store a provider's API key, or sign in.

Where there is a sign-in for the provider, by a code or with a plugin, you choose between it and a key; --method chooses beforehand.`,
		Example: "  pillion auth login anthropic\n  pass show openai | pillion auth login openai --stdin",
		RunE: func(c *cobra.Command, args []string) error {
			p := app.NewWorkplace(version)
			// Ephemeral and without language servers: only the list of providers is needed.
			a := app.New(app.Options{Place: p, Ephemeral: true, NoLSP: true})
			defer a.Close()
			dir, err := app.Directory("")
			if err != nil {
				return err
			}
			// Ids are lower case everywhere; people write "OpenAI".
			id := strings.ToLower(args[0])
			var known []string
			for _, x := range a.Models.Sources(dir) {
				known = append(known, x.ID)
			}
			if near := nearestProvider(id, known); near != "" {
				return usagef("unknown provider %q; did you mean %s? pillion auth list shows all", id, near)
			}
			if !stdin && (method != "" || isTerminal(os.Stdin)) {
				if done, err := signInTo(c, a, dir, id, method); done || err != nil {
					return err
				}
			}
			if !slices.Contains(known, id) {
				fmt.Fprintf(c.ErrOrStderr(), "pillion: unknown provider %q (known: %s); its key is used when you set provider.%s.baseURL in pillion.jsonc\n", id, strings.Join(known, ", "), id)
			}
			key, err := readKey(c, id, stdin)
			if err != nil {
				return err
			}
			where, err := p.Keys().Set(id, key)
			if err != nil {
				return err
			}
			// Set falls back to a file where there is no keyring; the person is told which it was.
			// The path of the file is printed, so that the person can look at its mode or move it.
			place := "your keyring"
			if where == keys.File {
				place = p.Keys().File
			}
			fmt.Fprintf(c.OutOrStdout(), "Stored the key of %s in %s.\n", id, place)
			return nil
		},
	}
	c.Flags().BoolVar(&stdin, "stdin", false, "read the key from standard input")
	c.Flags().StringVar(&method, "method", "", "how to sign in, where there are several ways: the number or the beginning of its name")
	return c
}

// signInTo signs in to a provider with a plugin, where one has a sign-in for it and the person wants it. done is false where a key is to be
// stored.
func signInTo(c *cobra.Command, a *app.App, dir, id, method string) (done bool, err error) {
	found, end := a.Plugins.SignIns(c.Context(), dir, id)
	defer end()
	var device *models.DeviceSignIn
	if in, ok := a.Models.Device(dir, id); ok {
		device = &in
	}
	all := ways(found, device)
	labels := make([]string, len(all))
	for i, w := range all {
		labels[i] = w.label
	}
	d := newDialogue(c)
	i := len(all) - 1
	switch {
	case method != "":
		if i = labelMeant(labels, method); i < 0 {
			return false, usagef("%s has no sign-in %q; it has: %s", id, method, strings.Join(labels, ", "))
		}
	case len(all) > 1:
		if i, err = d.choose("How do you sign in to "+id+"?", labels); err != nil {
			return false, err
		}
	}
	w := all[i]
	if w.device != nil {
		account, err := d.signInByCode(c.Context(), w.device)
		if err == nil {
			err = a.KeepAccount(id, models.DeviceOwner, account)
		}
		if err != nil {
			return false, err
		}
		fmt.Fprintf(c.OutOrStdout(), "Signed in to %s.\n", id)
		return true, nil
	}
	if w.method < 0 {
		return false, nil
	}
	if err := d.signIn(c.Context(), w); err != nil {
		return false, err
	}
	fmt.Fprintf(c.OutOrStdout(), "Signed in to %s with the plugin %s.\n", id, w.in.Owner)
	return true, nil
}

// nearestProvider is the known provider that id is probably a misspelling of; "" when id is known, or is like none
// and may be one that is configured later. Both are compared in lower case, as ids are.
func nearestProvider(id string, known []string) string {
	best, slips := "", 3 // at most two letters differ, and less than a third of the name: more makes another name
	for _, k := range known {
		switch n := fuzzy.Slips(id, k); {
		case n == 0:
			return ""
		case n < slips && 3*n <= len(k):
			best, slips = k, n
		}
	}
	return best
}

// readKey reads a key that is typed without being shown, or piped. It is never an argument: other users of the
// machine can list those.
// Without --stdin a pipe is accepted as well: the check for a terminal decides.
func readKey(c *cobra.Command, id string, stdin bool) (string, error) {
	if !stdin && isTerminal(os.Stdin) {
		fmt.Fprintf(c.ErrOrStderr(), "Key of %s (not shown): ", id)
		b, err := term.ReadPassword(int(os.Stdin.Fd()))
		// The line end that the person typed is not echoed either.
		fmt.Fprintln(c.ErrOrStderr())
		return strings.TrimSpace(string(b)), err
	}
	// 16 KiB is far more than any key; a wrong file in the pipe is not stored as a whole.
	b, err := io.ReadAll(io.LimitReader(c.InOrStdin(), 16<<10))
	if err != nil {
		return "", err
	}
	// An empty key would be stored and fail later, far from its cause.
	if len(b) == 0 {
		return "", usagef("pipe the key in: … | pillion auth login %s --stdin", id)
	}
	return strings.TrimSpace(string(b)), nil
}

// authLogout is `pillion auth logout`. Keys from the environment and from the configuration are not touched: they
// are not Pillion's to delete.
func authLogout() *cobra.Command {
	return &cobra.Command{
		Use: "logout PROVIDER", Short: "Delete a provider's stored key", Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			err := app.NewWorkplace(version).Keys().Remove(args[0])
			if errors.Is(err, keys.ErrNone) {
				return fmt.Errorf("no key is stored for %s; pillion auth list shows where keys come from", args[0])
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "Deleted the key of %s.\n", args[0])
			return nil
		},
	}
}

// authList is `pillion auth list`. It prints where each key comes from, never the key, not even a part of it.
func authList() *cobra.Command {
	var asJSON, local bool
	var cwd string
	c := &cobra.Command{
		Use: "list", Short: "List providers and where their keys come from; keys are not shown", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			dir, err := app.Directory(cwd)
			if err != nil {
				return err
			}
			a := app.New(app.Options{Place: app.NewWorkplace(version), Ephemeral: true, NoLSP: true})
			defer a.Close()
			all := providers(c.Context(), a.Models, dir, local)
			if asJSON {
				return writeLines(c.OutOrStdout(), all)
			}
			return writeTable(c.OutOrStdout(), all, func(w io.Writer, x models.Source) {
				from := x.Source
				if x.Origin != "" {
					from += " (" + x.Origin + ")"
				}
				// The providers without a key are listed too: the line says how to get them to work.
				if x.Source == "none" {
					from = "no key; " + x.Missing
				}
				fmt.Fprintf(w, "%s\t%s\t%s\n", x.ID, x.Name, from)
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON lines")
	c.Flags().BoolVar(&local, "local", true, "look for model servers on this machine")
	c.Flags().StringVarP(&cwd, "cwd", "C", "", "project directory (default: this one)")
	return c
}

// providers are those of a directory's configuration and, with local, the model servers that answer on this
// machine. Editors get the same list (appAuth).
func providers(ctx context.Context, m *models.Models, cwd string, local bool) []models.Source {
	all := m.Sources(cwd)
	if local {
		for _, s := range m.LocalServers(ctx) {
			all = append(all, models.Source{ID: s.ID, Name: s.ID, Source: "none", Origin: s.BaseURL, BaseURL: s.BaseURL, Local: true})
		}
	}
	return all
}
