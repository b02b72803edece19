package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// Programs whose words follow rules of their own.

// remote looks at scp and rsync: host:path is elsewhere, the last word is written.
// A colon before the first slash makes a word remote (scp(1)); it is replaced by an empty word, which keeps the others in place.
func remote(c *scan.Visit, s spec) {
	c.Removes() // rsync --delete
	for i, a := range c.Args[1:] {
		if c.Args[0].Text != "rsync" || !strings.HasPrefix(a.Text, "-") || strings.HasPrefix(a.Text, "--") {
			continue
		}
		// An e counts only as the first of these letters: after one that takes a value it is a part of that value.
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

// dd looks at dd: its operands are key=value (dd(1)), and only if= and of= name files. An unknown word may become of=.
func dd(c *scan.Visit) {
	for _, a := range c.Args[1:] {
		switch {
		case strings.HasPrefix(a.Text, "of="):
			c.Touch(a.Cut("="), scan.Write)
		case strings.HasPrefix(a.Text, "if="):
			c.Touch(a.Cut("="), scan.Read)
		case !a.Known():
			c.Opaque("it cannot be said which files dd is given")
		}
	}
}

// tar looks at tar's three styles: tar -xzf a -C d, tar xzf a, tar --extract --file=a.
// Extracting counts as a write to the folder; tar itself takes leading slashes and ".." away unless -P is given.
func tar(c *scan.Visit) {
	args := append([]scan.Word(nil), c.Args...)
	if len(args) > 1 && !strings.HasPrefix(args[1].Text, "-") {
		old := args[1].Text
		// Old style: the letters take their values from the words that follow, in order.
		rest := args[2:]
		// The old style is rewritten to the one with dashes, which the rest of this function and the record understand.
		args = []scan.Word{args[0], scan.Plain("-" + strings.NewReplacer("f", "", "C", "", "b", "").Replace(old))}
		for _, l := range old {
			if strings.ContainsRune("fCb", l) && len(rest) > 0 {
				args = append(args, scan.Plain("-"+string(l)), rest[0])
				rest = rest[1:]
			}
		}
		args = append(args, rest...)
	}
	// Long options count in their abbreviations.
	create, extract := false, false
	for _, a := range args[1:] {
		t := a.Text
		if strings.HasPrefix(t, "-") && !strings.HasPrefix(t, "--") {
			// c creates, r appends, u updates: each writes the archive and reads the names that follow.
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
		applySpec(c.With(args), archiveOnly.spec) // the archive is where tar was started, whatever -C says
	}
	// The record holds the two modes as subcommands: x for extracting and listing, c for making an archive.
	r := recordOf(c, "tar")
	s, _ := r.sub([]string{"x"})
	if create {
		s, _ = r.sub([]string{"c"})
	}
	inner := c.Fork().With(args)
	if create {
		// -C moves tar for the names that follow.
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

// archiveOnly is the record by which tar looks for the archive alone: -f names it, and words are not looked at.
var archiveOnly = mustCompile(&Record{Words: "text...", Options: map[string]string{"write": "-f --file", "text": "-C --directory -X -T -b -g -H -I -F"}})

// mustCompile is compile for a record that is in the code: an error is a mistake in Pillion and shows at the start.
func mustCompile(r *Record) *Record {
	if err := r.compile(); err != nil {
		panic(err)
	}
	return r
}

// tarFlags are the letters of a cluster before the one that takes the rest of it.
func tarFlags(cluster string) string {
	if i := strings.IndexAny(cluster, "fCTXbgHIFKNVL"); i > 0 {
		return cluster[:i]
	}
	return cluster
}

// ln looks at links: a link that leads outside opens the outside to whoever follows it.
// The next command could write through it to a place that its own words do not name, so the target counts as written.
func ln(c *scan.Visit) {
	symbolic := false
	// -t names the folder before the words; the record knows that form.
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
	// A hard link is made of two ordinary paths, which the record describes, as it does -t and a single word.
	if !symbolic || len(words) < 2 || into != "" {
		applySpec(c, recordOf(c, "ln").spec)
		return
	}
	// A relative target counts from the folder of the link.
	// The last word is the link, or a folder in which it is made.
	last := words[len(words)-1]
	c.Touch(last, scan.Write)
	moved := c.Fork()
	if name, ok := last.One(); ok {
		name = strings.TrimRight(name, "/")
		folder := name
		dirs, placed := c.Dirs()
		if i := strings.LastIndexByte(name, '/'); i > 0 {
			folder = name[:i]
			// A bare name of no folder: the link is where the call runs, and so its target counts from there.
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

// jqArgs takes the options with two values out, and notes the files among them.
// The table of options knows options with one value only; --arg name value has two.
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

// testCall looks at test and [: the files they ask about.
// -a and -o are also "and" and "or", so a unary operator counts only at the beginning, after "!" or "(", or after one of them.
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
