package programs

import (
	"github.com/pillion-dev/pillion/tools/shell/scan"
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
func wrapper(name string, c *scan.Visit) {
	c.NoGrant = true
	args := c.Args[1:]
	switch name {
	case "env":
		env(args, c)
		return
	case "xargs":
		xargs(args, c)
		return
	case "bwrap", "proot", "setarch", "systemd-nspawn":
		c.Opaque(name + " runs something in another view of the system")
		c.Salvage(scan.TextOf(args))
		return
	case "sudo", "doas":
		for i, a := range args {
			if !strings.HasPrefix(a.Text, "-") {
				break
			}
			if name == "sudo" && (a.Text == "-e" || strings.HasPrefix(a.Text, "--edit")) {
				c.Opaque("sudo -e runs an editor")
				for _, f := range args[i+1:] {
					c.Touch(f, scan.Write)
				}
				return
			}
		}
	case "command":
		for _, a := range args {
			if strings.HasPrefix(a.Text, "-") && strings.ContainsAny(a.Text, "vV") {
				c.ReadOnly, c.NoGrant = true, false // says where a program is
				return
			}
			if !strings.HasPrefix(a.Text, "-") {
				break
			}
		}
	case "exec":
		if len(args) == 0 {
			c.ReadOnly, c.NoGrant, c.Silent = true, false, true
			return // redirections only
		}
	}
	if name == "su" || name == "runuser" && (strings.Contains(" "+scan.TextOf(args), " -c") || strings.Contains(" "+scan.TextOf(args), " --command")) { // its options may stand behind the user's name
		found := false
		for i, a := range args {
			switch {
			case (a.Text == "-c" || a.Text == "--command") && i+1 < len(args):
				c.Script(args[i+1], name)
				found = true
			case strings.HasPrefix(a.Text, "--command="):
				c.Script(scan.Plain(a.Text[len("--command="):]), name)
				found = true
			}
		}
		if !found {
			c.Opaque(name + " starts a shell")
		}
		return
	}
	takes, skip, shell := splitWrapper(wrappers[name])
	rest, strs := ownOptions(name, args, takes, c)
	for _, s := range strs {
		c.Script(s, name)
	}
	if name == "script" && len(strs) > 0 && len(rest) > 0 { // script -c command log
		c.Touch(rest[0], scan.Write)
	}
	if len(strs) > 0 && name != "sudo" && name != "hyperfine" {
		return
	}
	for ; skip > 0 && len(rest) > 0; skip-- {
		if name == "chroot" || name == "flock" {
			c.Touch(rest[0], scan.Write)
		}
		rest = rest[1:]
	}
	if name == "sudo" || name == "doas" || name == "cross-env" {
		rest = assignments(rest, c)
	}
	if name == "perf" { // its subcommand's options
		if len(args) > 0 && !hasField("stat record trace mem c2c lock sched kmem", args[0].Text) {
			pathArgs(c, specOf(name))
			return
		}
		rest, _ = ownOptions(name, rest, takes, c)
	}
	if name == "onchange" || name == "reflex" || name == "env-cmd" {
		if behind := behindWord(args, "--"); behind != nil {
			rest = behind
		}
	}
	if name == "entr" && len(rest) > 0 && len(args) > 0 && strings.HasPrefix(args[0].Text, "-") && strings.Contains(args[0].Text, "s") {
		c.Script(rest[0], name)
		return
	}
	if name == "flock" && len(rest) > 1 && (rest[0].Text == "-c" || rest[0].Text == "--command") {
		c.Script(rest[1], name)
		return
	}
	if name == "parallel" {
		parallel(rest, c)
		return
	}
	if len(rest) == 0 {
		if name == "sudo" || name == "doas" || name == "su" || name == "parallel" {
			c.Opaque(name + " starts a shell")
		}
		return
	}
	if shell {
		if name == "script" { // a log file, and elsewhere than on Linux the command
			c.Touch(rest[0], scan.Write)
			if len(rest) > 1 {
				c.Run(rest[1:])
			} else {
				c.Opaque("script starts a shell")
			}
			return
		}
		s, ok := scan.Expanded(rest)
		if name == "concurrently" || name == "hyperfine" {
			for _, a := range rest {
				if s, ok := strings.CutPrefix(a.Text, "npm:"); ok && name == "concurrently" {
					a = scan.Plain("npm run " + s)
				}
				c.Script(a, name)
			}
			return
		}
		if !ok {
			c.Opaque(name + " runs a string that cannot be read off the command")
			return
		}
		c.Script(scan.Plain(s), name)
		return
	}
	switch name {
	case "npx", "pnpx", "bunx", "uvx", "pipx":
		packageCall(rest, c)
		return
	}
	// timeout 5 ls changes as little as ls does.
	readOnly := c.Run(rest)
	switch name {
	case "timeout", "nice", "command", "builtin", "time", "stdbuf":
		c.ReadOnly, c.NoGrant = readOnly, !readOnly
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
func ownOptions(name string, args []scan.Word, takes map[string]bool, c *scan.Visit) (rest, strs []scan.Word) {
	for len(args) > 0 {
		a := args[0]
		s, ok := a.One()
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
				c.TouchIfPath(scan.Plain(val), scan.Write)
			}
			continue
		}
		value := scan.Plain(val)
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
			moveTo(value, c)
		case (name == "time" || name == "gtime" || name == "strace" || name == "ltrace" || name == "perf") && (key == "-o" || key == "--output"):
			c.Touch(value, scan.Write)
			c.Writes()
		case name == "hyperfine" && strings.HasPrefix(key, "--export"), name == "script" && (key == "-T" || key == "-O" || key == "-I" || key == "-B"), name == "valgrind" && key == "--log-file":
			c.Touch(value, scan.Write)
		case hasField("-a --arg-file -f --file --rc-file", key) && (name == "parallel" || name == "env-cmd" || name == "dotenv"):
			c.Touch(value, scan.Read)
		case len(key) > 2 || !has:
			c.TouchIfPath(value, scan.Write)
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
func moveTo(a scan.Word, c *scan.Visit) {
	c.Touch(a, scan.Write)
	if !c.MayMove(a) {
		c.Opaque("it cannot be said in which directory it runs")
	}
}

// loader looks at the dynamic loader, which runs the program it is given.
func loader(c *scan.Visit) {
	c.NoGrant = true
	rest := c.Args[1:]
	for len(rest) > 0 && strings.HasPrefix(rest[0].Text, "-") {
		switch rest[0].Text {
		case "--library-path", "--preload", "--audit", "--inhibit-rpath", "--argv0", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask":
			if rest[0].Text != "--argv0" {
				c.Opaque("the loader's " + rest[0].Text + " changes what the program loads")
			}
			rest = rest[min(2, len(rest)):]
		default:
			rest = rest[1:]
		}
	}
	if len(rest) > 0 {
		c.Run(rest)
	}
}

// assignments skips NAME=value words in front of a command, and looks at them.
func assignments(args []scan.Word, c *scan.Visit) []scan.Word {
	for len(args) > 0 {
		a := args[0]
		name, _, ok := strings.Cut(a.Text, "=")
		if !ok || !syntax.ValidName(name) {
			break
		}
		var vals []scan.Value
		for _, v := range a.Values {
			_, val, _ := strings.Cut(v.Text, "=")
			vals = append(vals, scan.Literal(val))
		}
		c.Sets(name, vals)
		args = args[1:]
	}
	return args
}

// env looks at env: options, assignments, command.
func env(args []scan.Word, c *scan.Visit) {
	moved := c.Fork()
	for len(args) > 0 && strings.HasPrefix(args[0].Text, "-") {
		s, ok := args[0].One()
		args = args[1:]
		switch {
		case !ok:
			c.Opaque("an option of env cannot be read off the command")
		case s == "-u" || s == "--unset":
			if len(args) > 0 {
				args = args[1:]
			}
		case s == "-C" || s == "--chdir":
			if len(args) > 0 {
				moveTo(args[0], moved)
				args = args[1:]
			}
		case strings.HasPrefix(s, "--chdir="):
			moveTo(scan.Plain(s[len("--chdir="):]), moved)
		case strings.HasPrefix(s, "-C"):
			moveTo(scan.Plain(s[2:]), moved)
		case strings.HasPrefix(s, "-S") || strings.HasPrefix(s, "--split-string") || !strings.HasPrefix(s, "--") && strings.ContainsRune(s, 'S'):
			c.Opaque("env -S takes a string apart by its own rules")
			for _, a := range args {
				c.Salvage(a.Text)
			}
			c.Salvage(strings.TrimPrefix(strings.TrimPrefix(s, "-S"), "--split-string="))
			return
		}
	}
	rest := assignments(args, c)
	if len(rest) == 0 {
		return // prints the environment, keys included: not read-only
	}
	moved.Run(rest)
	c.ReadOnly = false
}
