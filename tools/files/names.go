package files

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// CheckName reports why a path of the model must not be used on this system, before anything looks at it; project is the folder in
// which it works. The error says what to give instead. Only Windows has such paths; see windowsName.
func CheckName(path, project string) error {
	if runtime.GOOS != "windows" {
		return nil
	}
	return windowsName(path, project)
}

// windowsName refuses paths that Windows takes for something else than the file they name, because rules are judged by name: a device (NUL,
// com1.txt), a stream of a file (.env::$DATA), a name with a trailing dot or blank, which Windows drops (.git. is .git), and a share of another
// machine. Only looking at a share already sends that machine proof of who the user is, so it is refused unless the project is on it.
func windowsName(path, project string) error {
	p := strings.ReplaceAll(path, "/", `\`)
	switch {
	case strings.HasPrefix(p, `\\?\`), strings.HasPrefix(p, `\\.\`), strings.HasPrefix(p, `\??\`):
		return fmt.Errorf("%s names a device; give a path that begins with a drive, as in C:\\project", path)
	case strings.HasPrefix(p, `\\`):
		if share(p) == "" || !strings.EqualFold(share(p), share(strings.ReplaceAll(project, "/", `\`))) {
			return fmt.Errorf("%s is on another machine; only the share that holds the project can be used", path)
		}
		p = strings.TrimPrefix(p[len(share(p)):], `\`)
	case strings.HasPrefix(p, `\`):
		return fmt.Errorf("%s has no drive; give it, as in C:%s, or a path relative to the project", path, p)
	case len(p) >= 2 && p[1] == ':' && drive(p[0]):
		if p = p[2:]; p != "" && p[0] != '\\' {
			return fmt.Errorf("%s is relative to the current folder of a drive; give the whole path", path)
		}
	}
	for part := range strings.SplitSeq(p, `\`) {
		if part == "" || part == "." || part == ".." {
			continue
		}
		if i := strings.IndexFunc(part, func(r rune) bool { return r < ' ' || strings.ContainsRune(`<>:"|?*`, r) }); i >= 0 {
			return fmt.Errorf("%s: a name cannot contain %q on Windows; give another name", path, part[i:i+1])
		}
		if last := part[len(part)-1]; last == '.' || last == ' ' {
			return fmt.Errorf("%s: Windows drops the dot or blank at the end of %q; give the name without it", path, part)
		}
		if device(part) {
			return fmt.Errorf("%s: %s is the name of a device on Windows; give another name", path, part)
		}
	}
	return nil
}

func drive(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// share is \\host\share of a UNC path; "" when it has no share.
func share(unc string) string {
	rest, ok := strings.CutPrefix(unc, `\\`)
	if !ok {
		return ""
	}
	host, rest, _ := strings.Cut(rest, `\`)
	name, _, _ := strings.Cut(rest, `\`)
	if host == "" || name == "" {
		return ""
	}
	return unc[:len(`\\`)+len(host)+len(`\`)+len(name)]
}

// device reports a name that Windows gives to a device in every folder, with any extension ("Naming Files, Paths, and Namespaces" of the
// Windows documentation).
func device(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, ok := strings.CutPrefix(base, "COM")
	if !ok {
		port, ok = strings.CutPrefix(base, "LPT")
	}
	return ok && (len(port) == 1 && '0' <= port[0] && port[0] <= '9' || port == "¹" || port == "²" || port == "³")
}

// properNames returns path, which exists and has no links, with the names that the folders list: on Windows a file can also be named in other
// letter case and by its short name (GIT~1 is .git). Elsewhere it returns path.
func properNames(path string) string {
	if runtime.GOOS == "windows" {
		if r, err := filepath.EvalSymlinks(path); err == nil {
			return r
		}
	}
	return path
}
