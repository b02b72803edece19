package shell

import "strings"

// Programs whose words follow rules of their own.

// remote looks at scp and rsync: host:path is elsewhere, the last word is written.
func (w *walker) remote(c *call, s spec) {
	w.removes = true // rsync --delete
	for i, a := range c.args[1:] {
		if c.args[0].text != "rsync" || !strings.HasPrefix(a.text, "-") || strings.HasPrefix(a.text, "--") {
			continue
		}
		if at := strings.IndexAny(a.text, "efTBMsP"); at > 1 && a.text[at] == 'e' { // -ae 'ssh …'
			w.opaque("rsync -e runs another program")
			if w.salvage(a.text[at+1:]); at+1 == len(a.text) && i+2 < len(c.args) {
				w.salvage(c.args[i+2].text)
			}
		}
	}
	local := *c
	local.args = nil
	for _, a := range c.args {
		colon, slash := strings.IndexByte(a.text, ':'), strings.IndexByte(a.text, '/')
		if colon > 0 && (slash < 0 || colon < slash) && !strings.HasPrefix(a.text, "-") {
			a = arg{vals: []value{{}}, text: "''", src: a.src}
		}
		local.args = append(local.args, a)
	}
	s.words, s.repeat = []kind{kindRead, kindWrite}, false
	w.applySpec(&local, s)
}

func (w *walker) dd(c *call) {
	for _, a := range c.args[1:] {
		switch {
		case strings.HasPrefix(a.text, "of="):
			w.recordArg(a.cut("="), Write, c.st)
		case strings.HasPrefix(a.text, "if="):
			w.recordArg(a.cut("="), Read, c.st)
		case !a.known():
			w.opaque("it cannot be said which files dd is given")
		}
	}
}

// tar looks at tar's three styles: tar -xzf a -C d, tar xzf a, tar --extract --file=a.
func (w *walker) tar(c *call) {
	args := append([]arg(nil), c.args...)
	if len(args) > 1 && !strings.HasPrefix(args[1].text, "-") {
		old := args[1].text
		// Old style: the letters take their values from the words that follow, in order.
		rest := args[2:]
		args = []arg{args[0], plainArg("-" + strings.NewReplacer("f", "", "C", "", "b", "").Replace(old))}
		for _, l := range old {
			if strings.ContainsRune("fCb", l) && len(rest) > 0 {
				args = append(args, plainArg("-"+string(l)), rest[0])
				rest = rest[1:]
			}
		}
		args = append(args, rest...)
	}
	create, extract := false, false
	for _, a := range args[1:] {
		t := a.text
		if strings.HasPrefix(t, "-") && !strings.HasPrefix(t, "--") {
			create = create || strings.ContainsAny(t, "cru")
			extract = extract || strings.Contains(t, "x")
		}
		create = create || strings.HasPrefix(t, "--cre") || strings.HasPrefix(t, "--app") || strings.HasPrefix(t, "--upd")
		extract = extract || strings.HasPrefix(t, "--ext") || t == "--get"
		if strings.HasPrefix(t, "-") && !strings.HasPrefix(t, "--") && strings.Contains(tarFlags(t), "P") || strings.HasPrefix(t, "--absolute-n") {
			w.opaque("tar " + t + " may write anywhere")
		}
	}
	archive, into, words := "r", "w", "x*"
	if create {
		archive, into, words = "x", "r", "r*"
		own := *c // the archive stands where tar was started, whatever -C says
		own.args = args
		w.applySpec(&own, parseSpec("-f=w --file=w -C=x --directory=x -X=x -T=x -b=x -g=x -H=x -I=x -F=x | x*"))
	}
	line := "-f=" + archive + " --file=" + archive + " -C=" + into + " --directory=" + into + " --index-file=w -X=r --exclude-from=r -T=r --files-from=r -b=x --exclude=x --transform=x --strip-components=x --owner=x --group=x --mode=x --mtime=x -g=w --listed-incremental=w --one-top-level=w -H=x --format=x -s=x --xform=x --wildcards-match=x | " + words
	s := parseSpec(line)
	inner := *c
	inner.args = args
	st := *c.st
	inner.st = &st
	if create {
		// -C moves tar for the names that follow.
		for i, a := range args {
			dir := plainArg("")
			if a.text == "-C" || a.text == "--directory" {
				if i+1 < len(args) {
					dir = args[i+1]
				}
			} else if d, ok := strings.CutPrefix(a.text, "--directory="); ok {
				dir = plainArg(d)
			} else if strings.HasPrefix(a.text, "-C") {
				dir = plainArg(a.text[2:])
			}
			if dir.text == "" {
				continue
			}
			if dirs, _ := w.targets(dir, &st); dirs != nil {
				st.dirs = union(st.dirs, dirs)
			} else {
				st.unknown = true
			}
		}
	}
	w.applySpec(&inner, s)
}

// tarFlags are the letters of a cluster before the one that takes the rest of it.
func tarFlags(cluster string) string {
	if i := strings.IndexAny(cluster, "fCTXbgHIFKNVL"); i > 0 {
		return cluster[:i]
	}
	return cluster
}

// ln looks at links: a link that leads outside opens the outside to whoever follows it.
func (w *walker) ln(c *call) {
	symbolic := false
	into := ""
	var words []arg
	for i, a := range c.args[1:] {
		if strings.HasPrefix(a.text, "-") && len(a.text) > 1 {
			symbolic = symbolic || !strings.HasPrefix(a.text, "--") && strings.Contains(a.text, "s") || strings.HasPrefix(a.text, "--sym")
			if a.text == "-t" && i+2 < len(c.args) || strings.HasPrefix(a.text, "-t") || strings.HasPrefix(a.text, "--tar") {
				into = "?"
			}
			continue
		}
		words = append(words, a)
	}
	if !symbolic || len(words) < 2 || into != "" {
		w.applySpec(c, specOf("ln"))
		return
	}
	// A relative target counts from the folder of the link.
	last := words[len(words)-1]
	w.recordArg(last, Write, c.st)
	st := *c.st
	if name, ok := last.one(); ok {
		name = strings.TrimRight(name, "/")
		folder := name
		if i := strings.LastIndexByte(name, '/'); i > 0 {
			folder = name[:i]
		} else if !st.unknown && len(st.dirs) == 1 && !w.paths.stat(w.paths.real(st.dirs[0])+"/"+name).dir {
			folder = ""
		}
		if dirs, _ := w.targets(plainArg(folder), &st); folder != "" && dirs != nil {
			st.dirs = dirs
			if w.paths.stat(w.paths.real(dirs[0] + "/" + name[len(folder):])).dir {
				st.dirs = []string{dirs[0] + name[len(folder):]}
			}
		}
	}
	for _, target := range words[:len(words)-1] {
		w.recordArg(target, Write, &st)
	}
}

// jqArgs takes the options with two values out, and notes the files among them.
func (w *walker) jqArgs(c *call) *call {
	out := *c
	out.args = nil
	for i := 0; i < len(c.args); i++ {
		switch a := c.args[i]; a.text {
		case "--arg", "--argjson":
			i += 2
		case "--rawfile", "--slurpfile", "--argfile":
			if i += 2; i < len(c.args) {
				w.recordArg(c.args[i], Read, c.st)
			}
		default:
			out.args = append(out.args, a)
		}
	}
	return &out
}
