package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// container looks at docker and the like: only the host's side of a mount is a path here.
// What happens in the container stays there, so the words behind the image are not looked at. Mounts, devices, copies and files
// that the client reads or writes are of this machine.
func container(name string, c *scan.Visit) {
	args := c.Args[1:]
	next := func(i int) scan.Word {
		if i+1 < len(args) {
			return args[i+1]
		}
		return scan.Plain("")
	}
	// host notes the part before the colon: -v /etc:/x. A name without a slash or dot in front is a volume of the engine's own.
	host := func(a scan.Word) {
		for _, v := range a.Values {
			s, _, _ := strings.Cut(v.Text, ":")
			if strings.HasPrefix(s, "/") || strings.HasPrefix(s, ".") || strings.HasPrefix(s, "~") || strings.Contains(s, scan.Wild) {
				c.TouchValue(scan.Literal(s), scan.Write)
			}
		}
	}
	for i, a := range args {
		s := a.Text
		switch {
		case s == "-v" || s == "--volume":
			host(next(i))
		// -vv and -vvv are levels of output, not mounts.
		case strings.HasPrefix(s, "--volume="), strings.HasPrefix(s, "-v") && len(s) > 2 && !strings.HasPrefix(s, "-vv"):
			trimmed := a
			trimmed.Values = nil
			for _, v := range a.Values {
				trimmed.Values = append(trimmed.Values, scan.Literal(strings.TrimPrefix(strings.TrimPrefix(v.Text, "--volume="), "-v")))
			}
			host(trimmed)
		// The value is a list of key=value; both source and src name the host's side.
		case s == "--mount" || strings.HasPrefix(s, "--mount="):
			m := s
			if s == "--mount" {
				m = next(i).Text
			}
			for f := range strings.SplitSeq(strings.TrimPrefix(m, "--mount="), ",") {
				if src, ok := strings.CutPrefix(f, "source="); ok {
					host(scan.Plain(src))
				} else if src, ok := strings.CutPrefix(f, "src="); ok {
					host(scan.Plain(src))
				}
			}
		// With the host's processes, devices or capabilities a container can do everything that root on this machine can.
		case s == "--privileged", hostView(s), (s == "--pid" || s == "--ipc" || s == "--userns" || s == "--uts" || s == "--cgroupns") &&
			next(i).Text == "host", (s == "--cap-add" || s == "--security-opt") && hostView(s+"="+next(i).Text):
			c.Opaque(name + " " + s + " gives the container the machine")
		case s == "--device":
			host(next(i))
		case strings.HasPrefix(s, "--device="):
			host(scan.Plain(s[len("--device="):]))
		case hostOptions[s], s == "-f" && (name == "kubectl" || name == "oc" || i > 0 && (args[0].Text == "build" || args[0].Text == "compose" ||
			args[0].Text == "buildx")):
			c.Touch(next(i), scan.Read)
		case hostWrites[s], s == "-o" && i > 0 && name != "kubectl" && name != "oc" && (args[0].Text == "save" || args[0].Text == "export" ||
			args[0].Text == "build" || args[0].Text == "buildx"):
			hostFile(next(i).Text, scan.Write, c)
		case s == "-i" && (args[0].Text == "load" || args[0].Text == "import"), s == "-c" && args[0].Text == "stack", s == "-k" &&
			(name == "kubectl" || name == "oc"):
			c.Touch(next(i), scan.Read)
		// They send a file or folder of this machine to the build.
		case s == "--secret" || s == "--build-context" || s == "--ssh":
			hostFile(next(i).Text, scan.Read, c)
		default:
			// The same options with their value behind "=".
			switch key, val, has := strings.Cut(s, "="); {
			case has && hostWrites[key]:
				hostFile(val, scan.Write, c)
			case has && (hostOptions[key] || key == "--secret" || key == "--build-context" || key == "--ssh"):
				hostFile(val, scan.Read, c)
			}
		}
	}
	if len(args) == 0 {
		return
	}
	containerCopy(args, c)
	if args[0].Text == "import" || args[0].Text == "load" {
		for _, a := range args[1:] {
			c.TouchIfPath(a, scan.Read)
		}
	}
	// The last word is the context: a folder that is sent to the engine. With a colon it is an address.
	if args[0].Text == "build" && len(args) > 1 {
		for i, a := range args[1:] {
			if !strings.HasPrefix(a.Text, "-") && !strings.Contains(a.Text, ":") && !strings.Contains(a.Text, "://") && i == len(args)-2 {
				c.Touch(a, scan.Read)
			}
		}
	}
}

// containerCopy looks at cp, of containers and pods, behind whatever options: name:path is elsewhere, the last word is
// written.
// Behind exec, run and create the word "cp" belongs to the command inside the container.
func containerCopy(args []scan.Word, c *scan.Visit) {
	at := -1
	for i, a := range args {
		if a.Text == "exec" || a.Text == "run" || a.Text == "create" {
			return
		}
		if a.Text == "cp" && (i == 0 || args[i-1].Text == "container" || args[i-1].Text == "compose" || strings.HasPrefix(args[0].Text, "-") ||
			args[0].Text == "compose") {
			at = i
			break
		}
	}
	if at < 0 {
		return
	}
	words := gitWords(args[at+1:])
	for i, a := range words {
		access := scan.Read
		if i == len(words)-1 {
			access = scan.Write
		}
		if !strings.Contains(a.Text, ":") {
			c.Touch(a, access)
		}
	}
}

// hostOptions name a file of this machine that is read, hostWrites one that is written.
var hostOptions = map[string]bool{"--env-file": true, "--file": true, "--label-file": true, "--config": true, "--project-directory": true,
	"--filename": true, "--kubeconfig": true, "--kustomize": true, "--from-file": true, "--from-env-file": true, "--certificate-authority": true,
	"--client-key": true, "--tlscacert": true, "--tlskey": true, "--www": true, "--compose-file": true, "--input": true}

// hostWrites name a file of this machine that is written.
var hostWrites = map[string]bool{"--cidfile": true, "--iidfile": true, "--metadata-file": true, "--output": true, "--destination": true,
	"--output-directory": true, "--output-dir": true}

// hostView reports an option that takes the wall between a container and the machine away.
// The SYS_ capabilities are those that lead out of a namespace: SYS_ADMIN, SYS_PTRACE, SYS_MODULE (capabilities(7)).
func hostView(s string) bool {
	key, val, _ := strings.Cut(s, "=")
	switch key {
	case "--pid", "--ipc", "--userns", "--uts", "--cgroupns":
		return val == "host"
	case "--cap-add":
		return strings.EqualFold(val, "all") || strings.Contains(strings.ToUpper(val), "SYS_")
	case "--security-opt":
		return strings.Contains(val, "unconfined") || strings.Contains(val, "disable")
	}
	return false
}

// hostFile notes the file in a value such as type=local,dest=../x or key=../x.
// The value is a list joined by commas, as in --output type=local,dest=out.
func hostFile(val string, access scan.Access, c *scan.Visit) {
	for f := range strings.SplitSeq(val, ",") {
		if _, file, ok := strings.Cut(f, "="); ok {
			f = file
		}
		c.TouchIfPath(scan.Plain(f), access)
	}
}
