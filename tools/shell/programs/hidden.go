package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// hiddenPrograms looks at values in which programs stand where nobody looks for them: ssh -o ProxyCommand=…, java
// -XX:OnError=…, go build -ldflags "-extld …".
func hiddenPrograms(name string, c *scan.Visit) {
	found := func(what string) {
		c.Opaque(name + " " + what + " may run another program")
		c.NoGrant = true
	}
	for i, a := range c.Args[1:] {
		s := a.Text
		low := strings.ToLower(s)
		switch name {
		case "go":
			if strings.Contains(s, "extld") && !strings.Contains(strings.ReplaceAll(s, "-extldflags", ""), "extld") {
				if strings.Contains(s, "-B") || strings.Contains(s, "wrapper") || strings.Contains(s, "plugin") || strings.Contains(s, "fuse-ld=/") || strings.Contains(s, "specs") {
					found("-extldflags")
				}
			} else if strings.Contains(s, "extld") || strings.HasPrefix(strings.TrimLeft(s, "-"), "gccgoflags") {
				found("-extld")
			}
		case "rustc":
			if strings.Contains(s, "linker=") || strings.HasPrefix(s, "-Zcodegen-backend") || strings.HasPrefix(s, "codegen-backend") {
				found("-C linker")
				_, val, _ := strings.Cut(s, "linker=")
				c.Salvage(val)
			}
		case "java", "kotlin", "scala":
			switch {
			case strings.HasPrefix(s, "@"):
				c.Opaque(name + " takes options from a file")
			case strings.HasPrefix(s, "-XX:OnError=") || strings.HasPrefix(s, "-XX:OnOutOfMemoryError="):
				found(s[:strings.IndexByte(s, '=')])
				_, val, _ := strings.Cut(s, "=")
				c.Salvage(val)
			case strings.HasPrefix(s, "-javaagent:"), strings.HasPrefix(s, "-agentpath:"), strings.HasPrefix(s, "-Xbootclasspath"):
				_, file, _ := strings.Cut(s, ":")
				file, _, _ = strings.Cut(file, "=")
				c.Touch(scan.Plain(strings.TrimPrefix(file, "/a:")), scan.Read)
			}
			c.NoGrant = true
		case "mvn", "mvnw", "gradle", "gradlew":
			if strings.HasPrefix(s, "-Dexec.executable") || strings.HasPrefix(s, "-Dexec.args") && strings.Contains(scan.TextOf(c.Args), "exec:exec") {
				found("-Dexec.executable")
				_, val, _ := strings.Cut(s, "=")
				if strings.HasPrefix(s, "-Dexec.executable") {
					c.Salvage(val)
				}
			}
		case "scp", "sftp", "ssh", "mosh", "autossh", "sshfs":
			if sshRuns(low) {
				found("-o")
				_, val, _ := strings.Cut(s, "=")
				c.Salvage(val)
			}
		case "apt", "apt-get", "apt-cache", "aptitude":
			if strings.Contains(low, "invoke") || strings.Contains(low, "dir::bin") || strings.Contains(low, "::command") || strings.Contains(low, "proxy-auto-detect") {
				found("-o")
				_, val, _ := strings.Cut(s, "=")
				c.Salvage(val)
			}
		case "rpm", "rpmbuild":
			if s == "-E" || s == "-D" || strings.HasPrefix(s, "--eval") || strings.HasPrefix(s, "--define") && strings.Contains(scan.TextOf(c.Args[i+1:]), "%(") || strings.HasPrefix(s, "--pipe") {
				found(s)
			}
		case "wget":
			if strings.Contains(low, "askpass") && !strings.HasPrefix(low, "--use") || strings.HasPrefix(low, "-e") && strings.Contains(low, "config") {
				found("-e")
			}
			if i > 0 && (c.Args[i].Text == "-e" || c.Args[i].Text == "--execute") || strings.HasPrefix(s, "--execute=") { // output_document=../x
				_, val, _ := strings.Cut(strings.TrimPrefix(s, "--execute="), "=")
				c.TouchIfPath(scan.Plain(strings.TrimSpace(val)), scan.Write)
			}
		case "aria2c":
			if strings.HasPrefix(s, "--on-") {
				found("--on-…")
			}
		case "less", "more":
			if strings.HasPrefix(s, "+") && strings.ContainsAny(s, "!|v:") {
				found("+" + "…")
			}
		case "strace", "ltrace":
			if t := strings.TrimPrefix(s, "-o"); strings.HasPrefix(t, "|") || strings.HasPrefix(t, "!") {
				found("-o")
				c.Salvage(t[1:])
			}
		case "openssl":
			if s == "engine" || s == "-engine" || s == "-provider" || s == "-provider-path" || s == "-config" {
				found(s)
			}
		case "helm":
			if strings.HasPrefix(s, "--post-renderer") {
				found("--post-renderer")
			}
		case "kustomize":
			if s == "--enable-exec" || s == "--enable-alpha-plugins" || s == "--enable-helm" {
				found(s)
			}
		case "pdflatex", "xelatex", "lualatex", "latex", "tex", "pdftex":
			if strings.Contains(s, "shell-escape") && !strings.Contains(s, "no-shell") || strings.Contains(s, "write18") {
				found(s)
			}
		case "latexmk":
			if s == "-e" || s == "-r" || strings.HasPrefix(s, "-pdflatex=") || strings.HasPrefix(s, "-latex=") {
				found(s)
			}
		case "gcc", "g++", "cc", "c++", "clang", "clang++", "ld":
			if strings.HasPrefix(s, "-fuse-ld=") && strings.Contains(s, "/") || strings.HasPrefix(s, "--ld-path") || strings.HasPrefix(s, "-Wl,") && strings.Contains(s, "plugin") || s == "-load" {
				found(s)
			}
		case "make", "gmake", "bmake":
			v, sure := a.One()
			key, val, ok := strings.Cut(v, "=")
			if !sure || !ok || strings.HasPrefix(key, "-") {
				continue
			}
			if strings.ContainsAny(val, "$`;|&<>\n(") {
				c.Opaque(name + " is given " + key + ", in which commands may stand")
				c.NoGrant = true
			}
			for word := range strings.FieldsSeq(val) { // a word may become one of a command
				c.TouchIfPath(scan.Plain(word), scan.Write)
			}
			if strings.HasSuffix(key, "FLAGS") && riskyFlags(val) {
				found(key)
			}
		case "cmake":
			key, val, ok := strings.Cut(strings.TrimPrefix(s, "-D"), "=")
			if key, _, _ = strings.Cut(key, ":"); ok && (strings.HasSuffix(key, "_COMPILER") || strings.HasSuffix(key, "_LAUNCHER") || key == "CMAKE_MAKE_PROGRAM" || key == "CMAKE_LINKER") && strings.Contains(val, "/") && !scan.SystemDir(val[:strings.LastIndexByte(val, '/')]) {
				found("-D" + key)
			}
		}
	}
}

// sshRuns reports an option of ssh, in small letters, that starts a program here or loads a library.
func sshRuns(option string) bool {
	for _, key := range [...]string{"proxycommand", "localcommand", "knownhostscommand", "pkcs11provider", "securitykeyprovider", "xauthlocation", "include ", "include=", "match "} {
		if strings.Contains(option, key) && (strings.HasPrefix(option, "-o") || strings.HasPrefix(option, key) || strings.HasPrefix(strings.TrimLeft(option, " \t"), key)) {
			return true
		}
	}
	return false
}

// riskyFlags reports flags of a compiler that make it start or load something of the person's choice.
func riskyFlags(val string) bool {
	for f := range strings.FieldsSeq(val) {
		if strings.HasPrefix(f, "-fplugin") || strings.HasPrefix(f, "-B") || strings.HasPrefix(f, "-wrapper") || strings.HasPrefix(f, "-specs") || strings.HasPrefix(f, "--specs") || strings.HasPrefix(f, "-fuse-ld=/") || f == "-load" || strings.HasPrefix(f, "@") {
			return true
		}
	}
	return false
}
