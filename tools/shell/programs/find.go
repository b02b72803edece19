package programs

import (
	"path"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// find analyzes a call of find: where it searches, what it deletes or writes, and what it runs. Options such as -L come first, then
// the places to search, then the expression (find(1)).
func find(c *scan.Visit) {
	args := c.Args[1:]
	c.ReadOnly = true
	i := 0
	follow := false
	// The options before the places. The value of -D is the next word, that of -O is glued on.
	for ; i < len(args) && (args[i].Text == "-H" || args[i].Text == "-L" || args[i].Text == "-P" || strings.HasPrefix(args[i].Text, "-O") ||
		args[i].Text == "-D"); i++ {
		follow = follow || args[i].Text == "-L"
		if args[i].Text == "-D" {
			i++
		}
	}
	var roots []scan.Word
	for ; i < len(args); i++ {
		s := args[i].Text
		if strings.HasPrefix(s, "-") || s == "(" || s == "!" || s == "," || s == ")" {
			break
		}
		roots = append(roots, args[i])
	}
	// Without a place GNU find searches the current folder.
	if len(roots) == 0 {
		roots = []scan.Word{scan.Plain(".")}
	}
	// narrow: a test such as -name limits which files are changed, so the places are not changed as a whole (Deep).
	access, narrow := scan.Read, false
	for ; i < len(args); i++ {
		narrow = narrow || takesText(args[i].Text)
		switch s := args[i].Text; s {
		case "-delete":
			access, c.ReadOnly, c.Class = scan.Write, false, effectDeletes
		// These actions print to a file, which they create or truncate.
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			c.ReadOnly = false
			if i+1 < len(args) {
				c.Touch(args[i+1], scan.Write)
			}
		case "-follow":
			follow = true
		case "-newer", "-anewer", "-cnewer", "-samefile", "-files0-from":
			if i+1 < len(args) {
				c.Touch(args[i+1], scan.Read)
			}
			c.ReadOnly = c.ReadOnly && s != "-files0-from" // the file lists further places to search, which are not known
		case "-exec", "-execdir", "-ok", "-okdir":
			c.ReadOnly, c.NoGrant = false, true
			var inner []scan.Word
			// The inner call ends at ";" or "{} +" (POSIX, find).
			for i++; i < len(args) && args[i].Text != ";" && !(args[i].Text == "+" && args[i-1].Text == "{}"); i++ {
				inner = append(inner, args[i])
			}
			findExec(inner, roots, c)
			access = scan.Write
		default:
			// A word with an unknown value may become -delete or -exec, unless it is the value of a test.
			if !args[i].Known() && !strings.HasPrefix(s, "-") && i > 0 && !takesText(args[i-1].Text) {
				c.Opaque("an expression of find cannot be read off the command")
			}
		}
	}
	// With -L find follows links below the places. They may lead outside the project, and this function does not search for them.
	if follow {
		c.ReadOnly = false
	}
	c.Manner.Deep = access == scan.Write && !narrow
	defer func() { c.Manner.Deep = false }()
	for _, r := range roots {
		if !r.Known() {
			c.OpaqueBounded("it cannot be said where find searches")
		}
		c.Touch(r, access)
	}
}

// takesText reports a test, or -printf, whose value is only text: in find -name "$x", the value of $x cannot become an action.
func takesText(option string) bool {
	switch option {
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-type", "-mtime", "-size", "-maxdepth", "-mindepth", "-newermt",
		"-user", "-group", "-perm", "-mmin", "-printf":
		return true
	}
	return false
}

// findExec analyzes the call that find runs for -exec and the like. Each {} in it becomes the name of a file below roots, the places to
// search. Such a name begins with the place, so the program does not take it for an option.
func findExec(inner []scan.Word, roots []scan.Word, c *scan.Visit) {
	if len(inner) == 0 {
		return
	}
	shown := scan.TextOf(inner)
	// probe is a copy in which the possible names replace {}. The text for people keeps {}.
	probe := make([]scan.Word, len(inner))
	for i, a := range inner {
		probe[i] = a
		if !strings.Contains(a.Text, "{}") {
			continue
		}
		if i == 0 {
			// -exec {} \; starts every file as a program.
			c.Opaque("find runs the files it finds")
			return
		}
		probe[i].Static = false
		probe[i].Values = nil
		probe[i].Text = a.Text
		if a.Text != "{}" {
			// sh -c 'rm {}': the name becomes a part of the script.
			probe[i].Values = []scan.Value{{Text: strings.ReplaceAll(a.Text, "{}", scan.Wild), Pattern: scan.Wild}}
			continue
		}
		for _, r := range roots {
			for _, v := range r.Values {
				probe[i].Values = append(probe[i].Values, scan.Join(v, scan.Value{Text: "/" + scan.Hole, Pattern: "/" + scan.Hole}))
			}
		}
	}
	// RunWithMore analyzes the copy. Mention adds the call as it was typed, with {}, because rules are written for that text.
	c.RunWithMore(probe)
	c.Mention(shown, path.Base(inner[0].Text))
}
