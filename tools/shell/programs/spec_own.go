package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// The functions in this file analyze programs whose words do not fit a record.

// remote analyzes a call of scp, sftp or rsync: the last word is written, the others are read. A word with a colon before its first
// slash is on another machine (scp(1)). It is replaced by an empty word, so that the number of words stays the same.
func remote(c *scan.Visit, s spec) {
	c.Removes() // rsync --delete
	for i, a := range c.Args[1:] {
		if c.Args[0].Text != "rsync" || !strings.HasPrefix(a.Text, "-") || strings.HasPrefix(a.Text, "--") {
			continue
		}
		// These letters take values, so an e after one of the others is part of its value, and not the option -e.
		if at := strings.IndexAny(a.Text, "efTBM"); at > 1 && a.Text[at] == 'e' { // -ae 'ssh …'
			c.Opaque("rsync -e runs another program")
			if c.Salvage(a.Text[at+1:]); at+1 == len(a.Text) && i+2 < len(c.Args) {
				c.Salvage(c.Args[i+2].Text)
			}
		}
	}
	local := *c
	local.Args = nil
	for _, a := range c.Args {
		colon, slash := strings.IndexByte(a.Text, ':'), strings.IndexByte(a.Text, '/')
		if colon > 0 && (slash < 0 || colon < slash) && !strings.HasPrefix(a.Text, "-") {
			a = scan.Word{Values: []scan.Value{{}}, Text: "''", Source: a.Source}
		}
		local.Args = append(local.Args, a)
	}
	s.words, s.repeat = []kind{kindRead, kindWrite}, false
	applySpec(&local, s)
}

// dd analyzes a call of dd. Its words are key=value (dd(1)), and only if= and of= name files. A word with an unknown value may be of=.
func dd(c *scan.Visit) {
	for _, a := range c.Args[1:] {
		switch {
		case strings.HasPrefix(a.Text, "of="):
			c.Touch(a.Cut("="), scan.Write)
		case strings.HasPrefix(a.Text, "if="):
			c.Touch(a.Cut("="), scan.Read)
		case !a.Known():
			c.OpaqueBounded("it cannot be said which files dd is given")
		}
	}
}

// tar analyzes a call of tar in any of its three styles: tar -xzf a -C d, tar xzf a, tar --extract --file=a. Extracting counts as a
// write to the folder that -C names. tar itself keeps members with a leading slash or ".." from leaving it, unless -P is given.
func tar(c *scan.Visit) {
	args := append([]scan.Word(nil), c.Args...)
	if len(args) > 1 && !strings.HasPrefix(args[1].Text, "-") {
		old := args[1].Text
		// Old style: the letters take their values from the next words, in order.
		rest := args[2:]
		// It is rewritten with dashes, which the rest of this function and the record expect.
		args = []scan.Word{args[0], scan.Plain("-" + strings.NewReplacer("f", "", "C", "", "b", "").Replace(old))}
		for _, l := range old {
			if strings.ContainsRune("fCb", l) && len(rest) > 0 {
				args = append(args, scan.Plain("-"+string(l)), rest[0])
				rest = rest[1:]
			}
		}
		args = append(args, rest...)
	}
	// Long options may be abbreviated: --cre is --create.
	create, extract := false, false
	for _, a := range args[1:] {
		t := a.Text
		if strings.HasPrefix(t, "-") && !strings.HasPrefix(t, "--") {
			// c creates, r appends, u updates: each writes the archive and reads the files that the words name.
			create = create || strings.ContainsAny(t, "cru")
			extract = extract || strings.Contains(t, "x")
		}
		create = create || strings.HasPrefix(t, "--cre") || strings.HasPrefix(t, "--app") || strings.HasPrefix(t, "--upd")
		extract = extract || strings.HasPrefix(t, "--ext") || t == "--get"
		if strings.HasPrefix(t, "-") && !strings.HasPrefix(t, "--") && strings.Contains(tarFlags(t), "P") || strings.HasPrefix(t, "--absolute-n") {
			c.Opaque("tar " + t + " may write anywhere")
		}
	}
	if create {
		applySpec(c.With(args), archiveOnly.spec) // -C does not apply to the path of the archive
	}
	// The record has the two modes as subcommands: x to extract or list, c to create.
	r := recordOf(c, "tar")
	s, _ := r.sub([]string{"x"})
	if create {
		s, _ = r.sub([]string{"c"})
	}
	inner := c.Fork().With(args)
	if create {
		// -C applies to the names after it.
		for i, a := range args {
			dir := scan.Plain("")
			if a.Text == "-C" || a.Text == "--directory" {
				if i+1 < len(args) {
					dir = args[i+1]
				}
			} else if d, ok := strings.CutPrefix(a.Text, "--directory="); ok {
				dir = scan.Plain(d)
			} else if strings.HasPrefix(a.Text, "-C") {
				dir = scan.Plain(a.Text[2:])
			}
			if dir.Text == "" {
				continue
			}
			if !inner.MayMove(dir) {
				inner.Lose()
			}
		}
	}
	applySpec(inner, s.spec)
}

// archiveOnly is a record by which applySpec notes only the archive, the value of -f, and no other file.
var archiveOnly = mustCompile(&Record{Words: "text...", Options: map[string]string{"write": "-f --file", "text": "-C --directory -X -T -b -g -H -I -F"}})

// mustCompile compiles a record that is written in Go. It panics on an error, at the start of the program.
func mustCompile(r *Record) *Record {
	if err := r.compile(); err != nil {
		panic(err)
	}
	return r
}

// tarFlags returns a cluster of tar up to its first letter with a value: the rest is that value.
func tarFlags(cluster string) string {
	if i := strings.IndexAny(cluster, "fCTXbgHIFKNVL"); i > 0 {
		return cluster[:i]
	}
	return cluster
}

// ln analyzes a call of ln. The target of a link counts as written: a later command can write through the link to a file outside the
// project that its own words do not name.
func ln(c *scan.Visit) {
	symbolic := false
	// Not empty: -t names the folder for the links.
	into := ""
	var words []scan.Word
	for i, a := range c.Args[1:] {
		if strings.HasPrefix(a.Text, "-") && len(a.Text) > 1 {
			symbolic = symbolic || !strings.HasPrefix(a.Text, "--") && strings.Contains(a.Text, "s") || strings.HasPrefix(a.Text, "--sym")
			if a.Text == "-t" && i+2 < len(c.Args) || strings.HasPrefix(a.Text, "-t") || strings.HasPrefix(a.Text, "--tar") {
				into = "?"
			}
			continue
		}
		words = append(words, a)
	}
	// The record describes hard links, links with -t, and a single word.
	if !symbolic || len(words) < 2 || into != "" {
		applySpec(c, recordOf(c, "ln").spec)
		return
	}
	// The last word is the link, or a folder in which links are made. A relative target starts at the folder that holds the link.
	last := words[len(words)-1]
	c.Touch(last, scan.Write)
	moved := c.Fork()
	if name, ok := last.One(); ok {
		name = strings.TrimRight(name, "/")
		folder := name
		dirs, placed := c.Dirs()
		if i := strings.LastIndexByte(name, '/'); i > 0 {
			folder = name[:i]
			// A name without a slash that is not a folder: the link is made where the call runs, and its target starts there.
		} else if placed && len(dirs) == 1 && !isFolder(c, c.Real(dirs[0])+"/"+name) {
			folder = ""
		}
		if in := c.Fork(); folder != "" && in.Move(scan.Plain(folder)) {
			moved = in
			if below := name[len(folder):]; below != "" {
				if into, _ := in.Dirs(); isFolder(c, c.Real(into[0]+"/"+below)) {
					moved.Move(scan.Plain(into[0] + below))
				}
			}
		}
	}
	for _, target := range words[:len(words)-1] {
		moved.Touch(target, scan.Write)
	}
}

// jqArgs returns the call without the options of jq that have two values, such as --arg NAME VALUE, because a record can only describe
// options with one. It notes the files among these values.
func jqArgs(c *scan.Visit) *scan.Visit {
	out := *c
	out.Args = nil
	for i := 0; i < len(c.Args); i++ {
		switch a := c.Args[i]; a.Text {
		case "--arg", "--argjson":
			i += 2
		case "--rawfile", "--slurpfile", "--argfile":
			if i += 2; i < len(c.Args) {
				c.Touch(c.Args[i], scan.Read)
			}
		default:
			out.Args = append(out.Args, a)
		}
	}
	return &out
}

// testCall notes the files that test or [ checks. -a and -o also mean "and" and "or". So a word counts as an operator with one operand
// only if it is the first word, or follows "!", "(", -a or -o.
func testCall(c *scan.Visit) {
	for i, a := range c.Args[1:] {
		rest := c.Args[i+2:]
		switch a.Text {
		case "-a", "-b", "-c", "-d", "-e", "-f", "-g", "-h", "-k", "-p", "-r", "-s", "-u", "-w", "-x", "-G", "-L", "-N", "-O", "-S":
			if len(rest) > 0 && (i == 0 || c.Args[i].Text == "!" || c.Args[i].Text == "(" || c.Args[i].Text == "-a" || c.Args[i].Text == "-o") {
				c.Touch(rest[0], scan.Read)
			}
		case "-nt", "-ot", "-ef":
			if len(rest) > 0 && i > 0 {
				c.Touch(c.Args[i], scan.Read)
				c.Touch(rest[0], scan.Read)
			}
		}
	}
}
