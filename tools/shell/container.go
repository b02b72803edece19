package shell

import "strings"

// container looks at docker and the like: only the host's side of a mount is a path here.
func (w *walker) container(name string, c *call) {
	args := c.args[1:]
	next := func(i int) arg {
		if i+1 < len(args) {
			return args[i+1]
		}
		return plainArg("")
	}
	host := func(a arg) {
		for _, v := range a.vals {
			s, _, _ := strings.Cut(v.s, ":")
			if strings.HasPrefix(s, "/") || strings.HasPrefix(s, ".") || strings.HasPrefix(s, "~") || strings.Contains(s, wild) {
				w.record(literal(s), Write, c.st)
			}
		}
	}
	for i, a := range args {
		s := a.text
		switch {
		case s == "-v" || s == "--volume":
			host(next(i))
		case strings.HasPrefix(s, "--volume="), strings.HasPrefix(s, "-v") && len(s) > 2 && !strings.HasPrefix(s, "-vv"):
			trimmed := a
			trimmed.vals = nil
			for _, v := range a.vals {
				trimmed.vals = append(trimmed.vals, literal(strings.TrimPrefix(strings.TrimPrefix(v.s, "--volume="), "-v")))
			}
			host(trimmed)
		case s == "--mount" || strings.HasPrefix(s, "--mount="):
			m := s
			if s == "--mount" {
				m = next(i).text
			}
			for f := range strings.SplitSeq(strings.TrimPrefix(m, "--mount="), ",") {
				if src, ok := strings.CutPrefix(f, "source="); ok {
					host(plainArg(src))
				} else if src, ok := strings.CutPrefix(f, "src="); ok {
					host(plainArg(src))
				}
			}
		case s == "--privileged", hostView(s), (s == "--pid" || s == "--ipc" || s == "--userns" || s == "--uts" || s == "--cgroupns") && next(i).text == "host", (s == "--cap-add" || s == "--security-opt") && hostView(s+"="+next(i).text):
			w.opaque(name + " " + s + " gives the container the machine")
		case s == "--device":
			host(next(i))
		case strings.HasPrefix(s, "--device="):
			host(plainArg(s[len("--device="):]))
		case hostOptions[s], s == "-f" && (name == "kubectl" || name == "oc" || i > 0 && (args[0].text == "build" || args[0].text == "compose" || args[0].text == "buildx")):
			w.recordArg(next(i), Read, c.st)
		case hostWrites[s], s == "-o" && i > 0 && name != "kubectl" && name != "oc" && (args[0].text == "save" || args[0].text == "export" || args[0].text == "build" || args[0].text == "buildx"):
			w.hostFile(next(i).text, Write, c.st)
		case s == "-i" && (args[0].text == "load" || args[0].text == "import"), s == "-c" && args[0].text == "stack", s == "-k" && (name == "kubectl" || name == "oc"):
			w.recordArg(next(i), Read, c.st)
		case s == "--secret" || s == "--build-context" || s == "--ssh":
			w.hostFile(next(i).text, Read, c.st)
		default:
			switch key, val, has := strings.Cut(s, "="); {
			case has && hostWrites[key]:
				w.hostFile(val, Write, c.st)
			case has && (hostOptions[key] || key == "--secret" || key == "--build-context" || key == "--ssh"):
				w.hostFile(val, Read, c.st)
			}
		}
	}
	if len(args) == 0 {
		return
	}
	w.containerCopy(args, c.st)
	if args[0].text == "import" || args[0].text == "load" {
		for _, a := range args[1:] {
			w.genericArg(a, Read, c.st)
		}
	}
	if args[0].text == "build" && len(args) > 1 {
		for i, a := range args[1:] {
			if !strings.HasPrefix(a.text, "-") && !strings.Contains(a.text, ":") && !strings.Contains(a.text, "://") && i == len(args)-2 {
				w.recordArg(a, Read, c.st)
			}
		}
	}
}

// containerCopy looks at cp, of containers and pods, behind whatever options: name:path is elsewhere, the last word is
// written.
func (w *walker) containerCopy(args []arg, st *state) {
	at := -1
	for i, a := range args {
		if a.text == "exec" || a.text == "run" || a.text == "create" {
			return
		}
		if a.text == "cp" && (i == 0 || args[i-1].text == "container" || args[i-1].text == "compose" || strings.HasPrefix(args[0].text, "-") || args[0].text == "compose") {
			at = i
			break
		}
	}
	if at < 0 {
		return
	}
	words := gitWords(args[at+1:])
	for i, a := range words {
		access := Read
		if i == len(words)-1 {
			access = Write
		}
		if !strings.Contains(a.text, ":") {
			w.recordArg(a, access, st)
		}
	}
}

// hostOptions name a file of this machine that is read, hostWrites one that is written.
var hostOptions = map[string]bool{"--env-file": true, "--file": true, "--label-file": true, "--config": true, "--project-directory": true, "--filename": true, "--kubeconfig": true, "--kustomize": true, "--from-file": true, "--from-env-file": true, "--certificate-authority": true, "--client-key": true, "--tlscacert": true, "--tlskey": true, "--www": true, "--compose-file": true, "--input": true}

var hostWrites = map[string]bool{"--cidfile": true, "--iidfile": true, "--metadata-file": true, "--output": true, "--destination": true, "--output-directory": true, "--output-dir": true}

// hostView reports an option that takes the wall between a container and the machine away.
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
func (w *walker) hostFile(val string, access Access, st *state) {
	for f := range strings.SplitSeq(val, ",") {
		if _, file, ok := strings.Cut(f, "="); ok {
			f = file
		}
		w.genericArg(plainArg(f), access, st)
	}
}
