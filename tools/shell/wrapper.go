package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wrappers run the command that follows their own options. The text lists the options that take a value; "#n" says
// that n words come before the command, "!" that a string is given to a shell instead.
var wrappers = map[string]string{
	"sudo":    "-u -g -h -p -C -T -R -D -r -t -U --user --group --host --prompt --close-from --command-timeout --chroot --chdir --role --type --other-user",
	"doas":    "-u -C",
	"nohup":   " ",
	"timeout": "-s -k --signal --kill-after #1", "gtimeout": "-s -k --signal --kill-after #1",
	"nice": "-n --adjustment", "ionice": "-c -n -p -P -u --class --classdata",
	"time": "-f -o --format --output", "gtime": "-f -o --format --output",
	"command": " ", "builtin": " ", "exec": "-a",
	"stdbuf": "-i -o -e --input --output --error", "setsid": " ", "unbuffer": " ", "chronic": " ", "caffeinate": "-t -w",
	"strace": "-o -e -p -s -u -a -I -O -P -S -b -E -X --output --trace", "ltrace": "-o -e -p -s -u -n -a", "valgrind": "--log-file --xml-file",
	"chroot": "--userspec --groups #1", "unshare": "--map-user --map-group --setuid --setgid --root --wd -R -w -S -G", "nsenter": "-t -S -G --target --setuid --setgid",
	"flock": "-w -E --wait --timeout --conflict-exit-code #1", "taskset": "#1", "chrt": "#1", "numactl": "-C -N -m -p -i --cpunodebind --physcpubind --membind --interleave", "prlimit": " ",
	"watch": "-n --interval !", "busybox": " ", "toybox": " ", "pkexec": "--user", "runuser": "-u -g -G -c", "setpriv": "--reuid --regid --groups",
	"setarch": " ", "linux32": " ", "linux64": " ", "i386": " ", "x86_64": " ", "tini": " ", "dumb-init": " ", "catchsegv": " ", "proxychains": "-f", "proxychains4": "-f", "torsocks": " ", "firejail": " ", "bwrap": " ", "systemd-nspawn": " ", "proot": " ", "ssh-agent": "-a -P -t -O", "fakeroot": "-l -s -i -b --lib --faked", "systemd-run": "-p -u --unit --property", "systemd-inhibit": " ",
	"dbus-run-session": " ", "xvfb-run": "-s -n -e -f -p -w --server-args --server-num --error-file --auth-file", "faketime": "#1", "rlwrap": " ", "script": "-c -T -O -I -B -E !", "parallel": "-j --jobs -S -N -n -I --delay --timeout --joblog --results -a --arg-file -C --colsep !",
	"ccache": " ", "sccache": " ", "distcc": " ", "entr": " ", "hyperfine": "-w -r -m -M -p -c -s -n -N --warmup --runs --export-json --export-markdown --export-csv --export-asciidoc --export-orgmode --output --setup --conclude --prepare --cleanup !", "perf": "-o -e -p -F --output --event --pid --freq -C -t -r --repeat -I --call-graph #1",
	"npx": "-p --package -c --call", "pnpx": "-p --package", "bunx": "-p --package", "uvx": "--from --with -p --python", "pipx": "--spec --python #1",
	"xcrun": "-sdk --sdk -toolchain --toolchain", "shx": " ", "env-cmd": "-f --file -e --environments -r --rc-file", "watchexec": "-e --exts -w --watch -i --ignore -f --filter -d --debounce -s --signal --stop-signal --shell --delay-run --workdir --project-origin -W --watch-non-recursive --ignore-file", "reflex": "-r -g -R -G -t --regex --glob --shutdown-timeout", "run0": "-u -g -D --user --group --chdir --unit --property --description --nice --setenv --background", "rr": "#1", "onchange": "-i --initial", "libtool": "--mode --tag", "fakechroot": "-e -c", "cgexec": "-g", "dbus-launch": " ", "gtimelimit": " ", "systemd-cat": "-t -p", "scl": "#1", "aoss": " ", "primusrun": " ", "doppler": "-p -c -t", "direnv": "#2", "dotenv": "-f -e", "cross-env": " ", "cross-env-shell": "!", "concurrently": "-n -c -k --names --prefix-colors !", "nodemon": "-w -e --watch --ext --ignore -x --exec", "su": "-c -s -g -G --command --shell !", "coproc": " ",
}

// wrapper looks at a program that runs another one: both get a pattern, and nothing that is remembered covers it.
func (w *walker) wrapper(name string, c *call, entry *Call) {
	entry.NoGrant = true
	args := c.args[1:]
	switch name {
	case "env":
		w.env(args, c, entry)
		return
	case "xargs":
		w.xargs(args, c)
		return
	case "bwrap", "proot", "setarch", "systemd-nspawn":
		w.opaque(name + " runs something in another view of the system")
		w.salvage(textOf(args))
		return
	case "sudo", "doas":
		for i, a := range args {
			if !strings.HasPrefix(a.text, "-") {
				break
			}
			if name == "sudo" && (a.text == "-e" || strings.HasPrefix(a.text, "--edit")) {
				w.opaque("sudo -e runs an editor")
				for _, f := range args[i+1:] {
					w.recordArg(f, Write, c.st)
				}
				return
			}
		}
	case "command":
		for _, a := range args {
			if strings.HasPrefix(a.text, "-") && strings.ContainsAny(a.text, "vV") {
				entry.ReadOnly, entry.NoGrant = true, false // says where a program is
				return
			}
			if !strings.HasPrefix(a.text, "-") {
				break
			}
		}
	case "exec":
		if len(args) == 0 {
			entry.ReadOnly, entry.NoGrant, entry.Silent = true, false, true
			return // redirections only
		}
	}
	if name == "su" || name == "runuser" && (strings.Contains(" "+textOf(args), " -c") || strings.Contains(" "+textOf(args), " --command")) { // its options may stand behind the user's name
		found := false
		for i, a := range args {
			switch {
			case (a.text == "-c" || a.text == "--command") && i+1 < len(args):
				w.nested(args[i+1], c.st, name)
				found = true
			case strings.HasPrefix(a.text, "--command="):
				w.nested(plainArg(a.text[len("--command="):]), c.st, name)
				found = true
			}
		}
		if !found {
			w.opaque(name + " starts a shell")
		}
		return
	}
	takes, skip, shell := splitWrapper(wrappers[name])
	rest, strs := w.ownOptions(name, args, takes, c.st)
	for _, s := range strs {
		w.nested(s, c.st, name)
	}
	if name == "script" && len(strs) > 0 && len(rest) > 0 { // script -c command log
		w.recordArg(rest[0], Write, c.st)
	}
	if len(strs) > 0 && name != "sudo" && name != "hyperfine" {
		return
	}
	for ; skip > 0 && len(rest) > 0; skip-- {
		if name == "chroot" || name == "flock" {
			w.recordArg(rest[0], Write, c.st)
		}
		rest = rest[1:]
	}
	if name == "sudo" || name == "doas" || name == "cross-env" {
		rest = w.assignments(rest)
	}
	if name == "perf" { // its subcommand's options
		if len(args) > 0 && !hasField("stat record trace mem c2c lock sched kmem", args[0].text) {
			w.pathArgs(c, specOf(name))
			return
		}
		rest, _ = w.ownOptions(name, rest, takes, c.st)
	}
	if name == "onchange" || name == "reflex" || name == "env-cmd" {
		if behind := behindWord(args, "--"); behind != nil {
			rest = behind
		}
	}
	if name == "entr" && len(rest) > 0 && len(args) > 0 && strings.HasPrefix(args[0].text, "-") && strings.Contains(args[0].text, "s") {
		w.nested(rest[0], c.st, name)
		return
	}
	if name == "flock" && len(rest) > 1 && (rest[0].text == "-c" || rest[0].text == "--command") {
		w.nested(rest[1], c.st, name)
		return
	}
	if name == "parallel" {
		w.parallel(rest, c)
		return
	}
	if len(rest) == 0 {
		if name == "sudo" || name == "doas" || name == "su" || name == "parallel" {
			w.opaque(name + " starts a shell")
		}
		return
	}
	if shell {
		if name == "script" { // a log file, and elsewhere than on Linux the command
			w.recordArg(rest[0], Write, c.st)
			if len(rest) > 1 {
				w.run(&call{args: rest[1:], st: c.st, in: c.in, wrapped: true})
			} else {
				w.opaque("script starts a shell")
			}
			return
		}
		s, ok := expandedText(rest)
		if name == "concurrently" || name == "hyperfine" {
			for _, a := range rest {
				if s, ok := strings.CutPrefix(a.text, "npm:"); ok && name == "concurrently" {
					a = plainArg("npm run " + s)
				}
				w.nested(a, c.st, name)
			}
			return
		}
		if !ok {
			w.opaque(name + " runs a string that cannot be read off the command")
			return
		}
		w.nested(plainArg(s), c.st, name)
		return
	}
	switch name {
	case "npx", "pnpx", "bunx", "uvx", "pipx":
		w.packageCall(rest, c)
		return
	}
	// timeout 5 ls changes as little as ls does.
	before := len(w.a.Calls)
	w.run(&call{args: rest, st: c.st, in: c.in, wrapped: true})
	switch name {
	case "timeout", "nice", "command", "builtin", "time", "stdbuf":
		entry.ReadOnly = len(w.a.Calls) > before
		for _, inner := range w.a.Calls[before:] {
			entry.ReadOnly = entry.ReadOnly && inner.ReadOnly
		}
		if entry.ReadOnly {
			entry.NoGrant = false
		}
	}
}

func splitWrapper(spec string) (takes map[string]bool, skip int, shell bool) {
	takes = map[string]bool{}
	for f := range strings.FieldsSeq(spec) {
		switch {
		case f[0] == '#':
			skip = int(f[1] - '0')
		case f == "!":
			shell = true
		default:
			takes[f] = true
		}
	}
	return takes, skip, shell
}

// ownOptions skips a wrapper's own options. strs are the strings among them that a shell will run.
func (w *walker) ownOptions(name string, args []arg, takes map[string]bool, st *state) (rest, strs []arg) {
	for len(args) > 0 {
		a := args[0]
		s, ok := a.one()
		if !ok || s == "" || s[0] != '-' && !(name == "nice" && s[0] == '+') || s == "-" {
			break
		}
		args = args[1:]
		if s == "--" {
			break
		}
		key, val, has := strings.Cut(s, "=")
		if !strings.HasPrefix(s, "--") {
			// The last letter of a cluster may take the next word; an earlier one takes the rest of this word.
			key, val, has = "-"+s[len(s)-1:], "", false
			for i := 1; i < len(s)-1; i++ {
				if takes["-"+s[i:i+1]] {
					key, val, has = "-"+s[i:i+1], s[i+1:], true
					break
				}
			}
		} else if !takes[key] && !has {
			for long := range takes {
				if strings.HasPrefix(long, key) && len(key) > 3 {
					key = long // GNU programs take abbreviations
				}
			}
		}
		if !takes[key] {
			if has {
				w.genericArg(plainArg(val), Write, st)
			}
			continue
		}
		value := plainArg(val)
		if !has {
			if len(args) == 0 {
				break
			}
			value, args = args[0], args[1:]
		}
		switch {
		case runsString(name, key):
			strs = append(strs, value)
		case name == "sudo" && (key == "-D" || key == "--chdir" || key == "-R" || key == "--chroot"), name == "unshare" && (key == "-R" || key == "-w" || key == "--root" || key == "--wd"):
			w.moveTo(value, st)
		case (name == "time" || name == "gtime" || name == "strace" || name == "ltrace" || name == "perf") && (key == "-o" || key == "--output"):
			w.recordArg(value, Write, st)
			w.writes = true
		case name == "hyperfine" && strings.HasPrefix(key, "--export"), name == "script" && (key == "-T" || key == "-O" || key == "-I" || key == "-B"), name == "valgrind" && key == "--log-file":
			w.recordArg(value, Write, st)
		case hasField("-a --arg-file -f --file --rc-file", key) && (name == "parallel" || name == "env-cmd" || name == "dotenv"):
			w.recordArg(value, Read, st)
		case len(key) > 2 || !has:
			w.genericArg(value, Write, st)
		}
	}
	return args, strs
}

// runsString names the options whose value is a command line.
func runsString(name, key string) bool {
	switch name {
	case "su", "runuser", "script":
		return key == "-c" || key == "--command"
	case "npx":
		return key == "-c" || key == "--call"
	case "hyperfine":
		return key == "-p" || key == "-c" || key == "-s" || key == "--prepare" || key == "--cleanup" || key == "--setup" || key == "--conclude"
	case "nodemon":
		return key == "-x" || key == "--exec"
	}
	return false
}

// moveTo is a wrapper's option that changes the directory for what it runs.
func (w *walker) moveTo(a arg, st *state) {
	w.recordArg(a, Write, st)
	inner, _ := w.targets(a, st)
	if inner == nil {
		w.opaque("it cannot be said in which directory it runs")
		return
	}
	st.dirs = union(st.dirs, inner)
}

// nested is a string that some program gives to a shell.
func (w *walker) nested(a arg, st *state, by string) {
	s, ok := a.one()
	if !ok {
		w.opaque(by + " runs a string that cannot be read off the command")
		if !a.static {
			w.salvage(a.text)
		}
		return
	}
	inner := *st
	inner.funcs = nil // another shell
	w.script(s, &inner)
}

// loader looks at the dynamic loader, which runs the program it is given.
func (w *walker) loader(c *call, entry *Call) {
	entry.NoGrant = true
	rest := c.args[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0].text, "-") {
		switch rest[0].text {
		case "--library-path", "--preload", "--audit", "--inhibit-rpath", "--argv0", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask":
			if rest[0].text != "--argv0" {
				w.opaque("the loader's " + rest[0].text + " changes what the program loads")
			}
			rest = rest[min(2, len(rest)):]
		default:
			rest = rest[1:]
		}
	}
	if len(rest) > 0 {
		w.run(&call{args: rest, st: c.st, in: c.in, wrapped: true})
	}
}

// assignments skips NAME=value words in front of a command, and looks at them.
func (w *walker) assignments(args []arg) []arg {
	for len(args) > 0 {
		a := args[0]
		name, _, ok := strings.Cut(a.text, "=")
		if !ok || !syntax.ValidName(name) {
			break
		}
		var vals []value
		for _, v := range a.vals {
			_, val, _ := strings.Cut(v.s, "=")
			vals = append(vals, literal(val))
		}
		w.dangerousName(name, vals)
		args = args[1:]
	}
	return args
}

// env looks at env: options, assignments, command.
func (w *walker) env(args []arg, c *call, entry *Call) {
	st := *c.st
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		s, ok := args[0].one()
		args = args[1:]
		switch {
		case !ok:
			w.opaque("an option of env cannot be read off the command")
		case s == "-u" || s == "--unset":
			if len(args) > 0 {
				args = args[1:]
			}
		case s == "-C" || s == "--chdir":
			if len(args) > 0 {
				w.moveTo(args[0], &st)
				args = args[1:]
			}
		case strings.HasPrefix(s, "--chdir="):
			w.moveTo(plainArg(s[len("--chdir="):]), &st)
		case strings.HasPrefix(s, "-C"):
			w.moveTo(plainArg(s[2:]), &st)
		case strings.HasPrefix(s, "-S") || strings.HasPrefix(s, "--split-string") || !strings.HasPrefix(s, "--") && strings.ContainsRune(s, 'S'):
			w.opaque("env -S takes a string apart by its own rules")
			for _, a := range args {
				w.salvage(a.text)
			}
			w.salvage(strings.TrimPrefix(strings.TrimPrefix(s, "-S"), "--split-string="))
			return
		}
	}
	rest := w.assignments(args)
	if len(rest) == 0 {
		return // prints the environment, keys included: not read-only
	}
	w.run(&call{args: rest, st: &st, in: c.in, wrapped: true})
	entry.ReadOnly = false
}
