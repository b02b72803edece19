package programs

import (
	"path"
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// find looks at find: where it searches, what it deletes or writes, what it runs.
// The words are places up to the first that begins an expression (find(1)); options such as -L are before the places.
func find(c *scan.Visit) {
	args := c.Args[1:]
	c.ReadOnly = true
	i := 0
	follow := false
	// These are before the places; -D takes its value from the next word, -O has it glued on.
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
	// GNU find searches the current folder then.
	if len(roots) == 0 {
		roots = []scan.Word{scan.Plain(".")}
	}
	// narrow: a test such as -name limits what is deleted, so that not the whole folder goes.
	access, narrow := scan.Read, false
	for ; i < len(args); i++ {
		narrow = narrow || takesText(args[i].Text)
		switch s := args[i].Text; s {
		case "-delete":
			access, c.ReadOnly, c.Class = scan.Write, false, effectDeletes
		// They print to a file that they make or empty.
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
			c.ReadOnly = c.ReadOnly && s != "-files0-from" // the file lists further places, and is not read here
		case "-exec", "-execdir", "-ok", "-okdir":
			c.ReadOnly, c.NoGrant = false, true
			var inner []scan.Word
			// The command ends at ";" or at "{} +" (POSIX, find).
			for i++; i < len(args) && args[i].Text != ";" && !(args[i].Text == "+" && args[i-1].Text == "{}"); i++ {
				inner = append(inner, args[i])
			}
			findExec(inner, roots, c)
			access = scan.Write
		default:
			// What is not known may expand to -delete or -exec, unless it is the value of a test.
			if !args[i].Known() && !strings.HasPrefix(s, "-") && i > 0 && !takesText(args[i-1].Text) {
				c.Opaque("an expression of find cannot be read off the command")
			}
		}
	}
	// Links below the places may lead outside the project, and this look does not go through the folders.
	if follow {
		c.ReadOnly = false
	}
	c.Manner.Deep = access == scan.Write && !narrow
	defer func() { c.Manner.Deep = false }()
	for _, r := range roots {
		if !r.Known() {
			c.Opaque("it cannot be said where find searches")
		}
		c.Touch(r, access)
	}
}

// takesText reports a test whose value is text: find -name "$x" matches names, whatever $x holds, and cannot become an action.
// -printf is an action with a text; it prints to standard output.
func takesText(option string) bool {
	switch option {
	case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-type", "-mtime", "-size", "-maxdepth", "-mindepth", "-newermt",
		"-user", "-group", "-perm", "-mmin", "-printf":
		return true
	}
	return false
}

// findExec looks at what find runs: its {} are names below the places it searches.
// A name that find puts there begins with one of the places, so it cannot be taken for an option.
func findExec(inner []scan.Word, roots []scan.Word, c *scan.Visit) {
	if len(inner) == 0 {
		return
	}
	shown := scan.TextOf(inner)
	// A copy with {} replaced by what the names can be; the text that a person sees keeps {}.
	probe := make([]scan.Word, len(inner))
	for i, a := range inner {
		probe[i] = a
		if !strings.Contains(a.Text, "{}") {
			continue
		}
		if i == 0 {
			// -exec {} \; starts each file, whose contents may be anything.
			c.Opaque("find runs the files it finds")
			return
		}
		probe[i].Static = false
		probe[i].Values = nil
		probe[i].Text = a.Text
		if a.Text != "{}" {
			// sh -c 'rm {}': file names become part of a script.
			probe[i].Values = []scan.Value{{Text: strings.ReplaceAll(a.Text, "{}", scan.Wild), Pattern: scan.Wild}}
			continue
		}
		for _, r := range roots {
			for _, v := range r.Values {
				probe[i].Values = append(probe[i].Values, scan.Join(v, scan.Value{Text: "/" + scan.Hole, Pattern: "/" + scan.Hole}))
			}
		}
	}
	// The copy is walked for its paths; the text with {} is listed as well, since rules and grants are written for what was typed.
	c.RunWithMore(probe)
	c.Mention(shown, path.Base(inner[0].Text))
}
