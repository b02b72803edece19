package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// gh looks at GitHub's and GitLab's command lines: what they upload, where they download to, and what they keep to run
// later.
// What it sends to the server is the business of its record's class; here it is about files of this machine.
func gh(c *scan.Visit) {
	args := c.Args[1:]
	words := gitWords(args)
	sub, verb := "", ""
	if len(words) > 0 {
		sub = words[0].Text
	}
	if len(words) > 1 {
		verb = words[1].Text
	}
	switch sub {
	// Extensions are programs, and an alias that begins with "!" is a command for a shell.
	case "alias", "extension", "extensions", "ext", "codespace", "cs":
		c.NoGrant = true
		if sub == "alias" && (verb == "set" || verb == "import") {
			c.Opaque(c.Args[0].Text + " alias makes a command that may run anything")
			if len(words) > 3 {
				c.Salvage(strings.TrimPrefix(words[3].Text, "!"))
			}
		}
	case "config":
		if verb == "set" {
			c.NoGrant = true
			c.TouchValue(scan.Literal(c.Home()+"/.config/"+c.Args[0].Text+"/config.yml"), scan.Write)
		}
	case "auth":
		c.NoGrant = c.NoGrant || verb == "token" // prints a key
	}
	api := sub == "api"
	path := api // the first word of api is an address
	// Options may stand anywhere, and a short one may have its value glued on: -Fx=@file.
	for i := 0; i < len(args); i++ {
		a := args[i]
		key, val, has := strings.Cut(a.Text, "=")
		short := len(a.Text) > 2 && a.Text[0] == '-' && a.Text[1] != '-'
		if short {
			key, val, has = a.Text[:2], a.Text[2:], true
		}
		value := scan.Plain(strings.TrimPrefix(val, "="))
		take := func() {
			if !has && i+1 < len(args) {
				i++
				value = args[i]
			}
		}
		switch {
		case a.Text == "--":
			continue
		case !strings.HasPrefix(a.Text, "-") || a.Text == "-":
			if path && i > 0 && a.Text != "api" {
				path = false
				continue
			}
			if a.Known() {
				c.TouchIfPath(a, ghAccess(sub, verb))
			}
		case api && (key == "-F" || key == "--field"): // name=@file
			take()
			if _, file, ok := strings.Cut(value.Text, "=@"); ok {
				c.Touch(scan.Plain(file), scan.Read)
			}
		// The value is taken away with its option, so that a title such as "fix ../x" is not read as a path.
		case ghText[key] && !(key == "-f" && sub == "secret"), api && (key == "-f" || key == "-q" || key == "-t"):
			take()
		case key == "-D" || key == "--dir" || key == "-O" || key == "--output":
			take()
			c.Touch(value, scan.Write)
		case key == "-F" || key == "-f" && (sub == "secret" || sub == "variable") || key == "--body-file" || key == "--notes-file" ||
			key == "--input" || key == "--env-file" || key == "--template" && (sub == "pr" || sub == "issue"):
			take()
			c.Touch(value, scan.Read)
		case has:
			c.TouchIfPath(value, scan.Write)
		}
	}
}

// ghText are the options whose values are no paths, though they may look like them.
var ghText = map[string]bool{"--raw-field": true, "-q": true, "--jq": true, "-H": true, "--header": true, "-X": true, "--method": true,
	"-t": true, "--title": true, "-b": true, "--body": true, "-n": true, "--notes": true, "-R": true, "--repo": true, "--json": true, "-B": true,
	"--base": true, "--head": true, "-l": true, "--label": true, "-s": true, "--search": true, "-d": true, "--description": true, "-T": true,
	"-m": true, "--message": true, "-a": true, "--assignee": true, "-p": true, "--pattern": true}

// ghAccess is what happens to files among the words.
// Words of the other commands are files to upload.
func ghAccess(sub, verb string) scan.Access {
	if sub == "clone" || verb == "clone" || verb == "download" || verb == "create" && sub == "repo" || verb == "fork" {
		return scan.Write
	}
	return scan.Read
}
