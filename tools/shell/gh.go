package shell

import "strings"

// gh looks at GitHub's and GitLab's command lines: what they upload, where they download to, and what they keep to run
// later.
func (w *walker) gh(c *call, entry *Call) {
	args := c.args[1:]
	words := gitWords(args)
	sub, verb := "", ""
	if len(words) > 0 {
		sub = words[0].text
	}
	if len(words) > 1 {
		verb = words[1].text
	}
	switch sub {
	case "alias", "extension", "extensions", "ext", "codespace", "cs":
		entry.NoGrant = true
		if sub == "alias" && (verb == "set" || verb == "import") {
			w.opaque(c.args[0].text + " alias makes a command that may run anything")
			if len(words) > 3 {
				w.salvage(strings.TrimPrefix(words[3].text, "!"))
			}
		}
	case "config":
		if verb == "set" {
			entry.NoGrant = true
			w.record(literal(w.req.Home+"/.config/"+c.args[0].text+"/config.yml"), Write, c.st)
		}
	case "auth":
		entry.NoGrant = entry.NoGrant || verb == "token" // prints a key
	}
	api := sub == "api"
	path := api // the first word of api is an address
	for i := 0; i < len(args); i++ {
		a := args[i]
		key, val, has := strings.Cut(a.text, "=")
		short := len(a.text) > 2 && a.text[0] == '-' && a.text[1] != '-'
		if short {
			key, val, has = a.text[:2], a.text[2:], true
		}
		value := plainArg(strings.TrimPrefix(val, "="))
		take := func() {
			if !has && i+1 < len(args) {
				i++
				value = args[i]
			}
		}
		switch {
		case a.text == "--":
			continue
		case !strings.HasPrefix(a.text, "-") || a.text == "-":
			if path && i > 0 && a.text != "api" {
				path = false
				continue
			}
			if a.known() {
				w.genericArg(a, ghAccess(sub, verb), c.st)
			}
		case api && (key == "-F" || key == "--field"): // name=@file
			take()
			if _, file, ok := strings.Cut(value.text, "=@"); ok {
				w.recordArg(plainArg(file), Read, c.st)
			}
		case ghText[key] && !(key == "-f" && sub == "secret"), api && (key == "-f" || key == "-q" || key == "-t"):
			take()
		case key == "-D" || key == "--dir" || key == "-O" || key == "--output":
			take()
			w.recordArg(value, Write, c.st)
		case key == "-F" || key == "-f" && (sub == "secret" || sub == "variable") || key == "--body-file" || key == "--notes-file" || key == "--input" || key == "--env-file" || key == "--template" && (sub == "pr" || sub == "issue"):
			take()
			w.recordArg(value, Read, c.st)
		case has:
			w.genericArg(value, Write, c.st)
		}
	}
}

// ghText are the options whose values are no paths, though they may look like them.
var ghText = map[string]bool{"--raw-field": true, "-q": true, "--jq": true, "-H": true, "--header": true, "-X": true, "--method": true, "-t": true, "--title": true, "-b": true, "--body": true, "-n": true, "--notes": true, "-R": true, "--repo": true, "--json": true, "-B": true, "--base": true, "--head": true, "-l": true, "--label": true, "-s": true, "--search": true, "-d": true, "--description": true, "-T": true, "-m": true, "--message": true, "-a": true, "--assignee": true, "-p": true, "--pattern": true}

// ghAccess is what happens to files among the words.
func ghAccess(sub, verb string) Access {
	if sub == "clone" || verb == "clone" || verb == "download" || verb == "create" && sub == "repo" || verb == "fork" {
		return Write
	}
	return Read
}
