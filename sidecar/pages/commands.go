package pages

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandsPage is the command line as Markdown: the text of --help, on one page.
func commandsPage(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# Commands\n\n" + generated)
	b.WriteString("Exit codes: 0 done, 1 failed, 2 the command line is wrong, 130 cancelled. Every command has `--help`.\n\n")
	b.WriteString("| command | does |\n|---|---|\n")
	// Twice over the commands: first the table of contents, then a section for each, to which it links.
	visitCommands(root, func(c *cobra.Command) {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s |\n", c.CommandPath(), anchor(c.CommandPath()), cell(c.Short))
	})
	visitCommands(root, func(c *cobra.Command) {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", c.CommandPath(), prose(cmp.Or(c.Long, c.Short)+finalDot(c)))
		// A command that only holds others has no usage line of its own.
		if c.Runnable() && !(c.HasSubCommands() && c.Args == nil) {
			fmt.Fprintf(&b, "\n```\n%s\n```\n", c.UseLine())
		}
		if rows := flagRows(c); len(rows) > 0 {
			b.WriteString("\n| flag | does |\n|---|---|\n")
			for _, r := range rows {
				fmt.Fprintf(&b, "| `%s` | %s |\n", r[0], cell(r[1]))
			}
		}
		if c.Example != "" {
			fmt.Fprintf(&b, "\n```sh\n%s\n```\n", unindent(c.Example))
		}
	})
	return b.String()
}

// visitCommands visits the visible commands below one, depth first, in the order of --help. help and completion
// are cobra's own and the same in every program.
func visitCommands(c *cobra.Command, do func(*cobra.Command)) {
	for _, sub := range c.Commands() {
		if sub.Hidden || sub.Name() == "help" || sub.Name() == "completion" {
			continue
		}
		do(sub)
		visitCommands(sub, do)
	}
}

// flagRows are the flags of a command with their descriptions. A default is shown unless it is the zero value,
// which says no more than leaving the flag out.
func flagRows(c *cobra.Command) (rows [][2]string) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		kind, text := pflag.UnquoteUsage(f)
		if kind != "" {
			name += " " + kind
		}
		switch f.DefValue {
		case "", "false", "[]", "0":
		default:
			text += " (default: " + f.DefValue + ")"
		}
		rows = append(rows, [2]string{name, text})
	})
	return rows
}

// finalDot ends a short description, which has no dot in --help.
// Long descriptions are whole sentences already.
func finalDot(c *cobra.Command) string {
	if c.Long == "" {
		return "."
	}
	return ""
}

// prose escapes a help text for Markdown; its paragraphs stay. A "<" would begin HTML, and a pair of "*" would
// print in italics.
func prose(s string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`).Replace(strings.TrimSpace(s))
}

// cell escapes a text for a row of a table, which ends at a line end and is divided at each "|".
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "\n", " ").Replace(s)
}

// anchor is the id that GitHub gives a heading of words, in lower case with hyphens.
func anchor(heading string) string { return strings.ReplaceAll(strings.ToLower(heading), " ", "-") }

// unindent removes cobra's indentation of examples.
// On a page the code block does that.
func unindent(s string) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

// Manual is pillion(1), in man's own macros (man(7)), so that no other tool is needed to build a package.
func Manual(root *cobra.Command) string {
	var b strings.Builder
	// In roff a backslash escapes, a "-" may print as a hyphen that cannot be copied, and a line that begins with
	// "." or "'" is a request: \& before it makes it text.
	roff := strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n.", "\n\\&.", "\n'", "\n\\&'")
	fmt.Fprintf(&b, ".TH PILLION 1 \"\" \"pillion %s\" \"\"\n.SH NAME\npillion \\- %s\n", roff.Replace(root.Version), roff.Replace(root.Short))
	b.WriteString(".SH SYNOPSIS\n.B pillion\n.I command\n[\n.I options\n]\n.SH DESCRIPTION\n")
	b.WriteString(paragraphs(roff.Replace(root.Long)) + "\n.SH COMMANDS\n")
	visitCommands(root, func(c *cobra.Command) {
		fmt.Fprintf(&b, ".SS %s\n%s\n", roff.Replace(c.UseLine()), paragraphs(roff.Replace(cmp.Or(c.Long, c.Short)+finalDot(c))))
		for _, r := range flagRows(c) {
			fmt.Fprintf(&b, ".TP\n.B %s\n%s\n", roff.Replace(r[0]), roff.Replace(r[1]))
		}
		if c.Example != "" {
			fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n", roff.Replace(c.Example))
		}
	})
	b.WriteString(".SH FILES\n.TP\n.I ~/.config/pillion/pillion.jsonc\nyour settings\n.TP\n.I pillion.jsonc\nthe project's settings\n.TP\n.I ~/.local/state/pillion\nsessions, stored keys, trust, logs\n")
	return b.String()
}

// paragraphs marks paragraphs for man: an empty line divides them in our texts, the request .PP in man(7).
func paragraphs(s string) string { return strings.ReplaceAll(s, "\n\n", "\n.PP\n") }
