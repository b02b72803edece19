package sandbox

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Contained is what a command may do that runs without a question: read the project and the system, and write to a
// temporary folder of its own. It has no socket of any family, cannot change a file's metadata, does not see other
// programs' memory, environment or arguments, and its processor time, memory, files and processes are limited. It
// exists because the analysis of a command may miss something: these limits hold nevertheless.
//
//	out, err := runner.Run(ctx, run.Command{Text: "git log", Dir: dir, Contained: &sandbox.ContainOptions{Root: root, Dir: dir, Home: home}})
//
// Nothing but a thread that starts commands is restricted (guard.Thread), and it serves all commands that may read the same
// places (Same): containing one costs a few looks at the file system, where a Box costs a start of this program.
type Contained struct {
	readable []string // folders with all below, and files, besides the system's; absolute, some are not there
	hidden   []string // below readable, and not to be read; resolved
	unseen   []string // folders below readable in which hidden files were not looked for: not to be read either; resolved
	apart    []string // below the system's readable places, and not to be read as a part of them; resolved
	temp     string   // the private temporary folder
	dir      string

	asRestricted []rule // those that Restrict applied
}

// ContainOptions are what a Contained is made of. All paths are absolute.
// Root, Dir and Temp must be set.
type ContainOptions struct {
	Root  string   // worktree root
	Dir   string   // where the command runs
	Extra []string // more folders that belong to the project
	Read  []string // more places that may be read: long outputs that were kept in files
	Home  string
	// Hidden says whether a file (absolute, links resolved) may not be read without a question; nil: none.
	Hidden func(realPath string) bool
	// Quiet says of files that Hidden surely does not hold back, as long as Rules is the same text; nil: of none. It saves asking
	// Hidden about every file of the project before every command.
	Quiet  func(realPath string) bool
	Rules  string
	Files  *HiddenFiles             // remembers the look for hidden files; nil: nothing is remembered
	Getenv func(name string) string // nil: os.Getenv
	Temp   string                   // the private temporary folder; must exist
}

// Limits of a contained command, each for one process of it.
const (
	// setrlimit(2) counts these for each process, so a command with many processes gets them many times.
	containedCPU  = 10 * 60 // seconds
	containedData = 8 << 30 // bytes of private memory; address space is not a measure, runtimes reserve much of it
	containedFile = 1 << 30 // bytes of a file in its temporary folder
	// ContainedOutput is how much of a contained command's output is kept, in bytes.
	ContainedOutput = 256 << 20
)

// Contain works out what a command may read. Its only error is that this system cannot contain commands at all, with the
// reason of CanContain; no command is refused by itself.
func Contain(o ContainOptions) (*Contained, error) {
	if ok, why := CanContain(); !ok {
		return nil, fmt.Errorf("commands cannot be contained on this system: %s", why)
	}
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	c := &Contained{dir: o.Dir, temp: realDir(o.Temp)}
	project := existing(slices.Concat([]string{o.Root, o.Dir}, o.Extra))
	c.readable = slices.Concat(project, gitReadable(o.Root), o.Read, homeReadable(o.Home, o.Getenv))
	c.apart = apart(slices.Concat(project, existing([]string{o.Home})))
	if o.Hidden != nil {
		if o.Files == nil {
			o.Files = &HiddenFiles{}
		}
		c.hidden, c.unseen = o.Files.find(project, o.Hidden, o.Quiet, o.Rules)
	}
	c.hidden = append(c.hidden, homeSecrets(o.Home, o.Getenv)...)
	return c, nil
}

// Environ is the command's environment: without addresses of programs that would act for it, with its own TMPDIR.
func (c *Contained) Environ(env []string) []string {
	out := withoutAgents(env)
	return append(out, "TMPDIR="+c.temp, "TMP="+c.temp, "TEMP="+c.temp)
}

// Blamed is the place that containment kept a command from, by what the command printed; empty when it printed no such
// thing. Only a place counts that this program could read or write itself.
func (c *Contained) Blamed(r Result) string {
	if c == nil || r.Canceled {
		return ""
	}
	for line := range strings.Lines(r.Output) {
		low := strings.ToLower(line)
		if !slices.ContainsFunc(saysFiles, func(w string) bool { return strings.Contains(low, w) }) {
			continue
		}
		for _, name := range append(namedIn(line), beforeReason(line)) {
			if c.keepsFrom(name) {
				return name
			}
		}
	}
	return ""
}

// beforeReason is the part of a message in front of its last one: "bash: line 1: a: Permission denied" names a.
func beforeReason(line string) string {
	parts := strings.Split(strings.TrimSpace(line), ": ")
	if len(parts) < 2 {
		return ""
	}
	return parts[len(parts)-2]
}

// keepsFrom reports whether containment, and nothing else, keeps a command from reading or writing a path.
func (c *Contained) keepsFrom(name string) bool {
	if name == "" || len(name) > 4096 || strings.Contains(name, "://") {
		return false
	}
	real := resolvedOrNew(c.dir, name)
	within := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return real == p || below(p, real) })
	}
	if within(c.hidden) {
		return false // the rules say so, not the containment
	}
	at := real
	if missing(at) {
		at = filepath.Dir(at)
	}
	system := within(systemPlaces()) && !within(c.apart)
	if (!within(existing(c.readable)) && !system || within(c.unseen)) && !missing(real) && mayRead(real) {
		return true
	}
	if real == c.temp || below(c.temp, real) || strings.HasPrefix(real, "/dev/") {
		return false
	}
	// The name of a program stands before its message, and root could write to it.
	return !system && mayWrite(at)
}

// systemReadable are the places of the system that hold programs, their data and their configuration. Other programs'
// data (/var, /srv, /mnt, /run) and home folders are not among them. Of /proc only what is about the machine: what it
// shows of processes are their arguments, with the passwords in them. Landlock cannot tell a command's own folder there
// from others', since it is not there yet, so a command cannot read that either (df without a path, findmnt).
var systemReadable = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap", "/sys", "/run/current-system",
	"/proc/cpuinfo", "/proc/crypto", "/proc/devices", "/proc/diskstats", "/proc/filesystems", "/proc/interrupts", "/proc/loadavg", "/proc/meminfo", "/proc/modules", "/proc/partitions", "/proc/pressure", "/proc/slabinfo", "/proc/stat", "/proc/swaps", "/proc/sys", "/proc/uptime", "/proc/version", "/proc/version_signature", "/proc/vmstat", "/proc/zoneinfo",
	"/var/lib/dpkg", "/var/lib/rpm", "/var/cache/man", "/home/linuxbrew/.linuxbrew",
}

// systemSecrets are keys among the system's configuration. An ordinary user cannot read most of them anyway; root can.
// Those that this program cannot read need no rule: the kernel refuses them.
var systemSecrets = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt", "/etc/wireguard", "/etc/openvpn", "/etc/ipsec.secrets", "/etc/ipsec.d",
	"/etc/krb5.keytab", "/etc/NetworkManager/system-connections", "/etc/ppp", "/etc/wpa_supplicant", "/etc/docker", "/etc/containerd", "/etc/kubernetes", "/etc/rancher", "/etc/vault.d", "/etc/consul.d", "/etc/nomad.d", "/etc/cloud", "/etc/mysql/debian.cnf",
	"/etc/postgresql-common/pg_service.conf", "/etc/netrc", "/etc/apt/auth.conf", "/etc/apt/auth.conf.d", "/etc/pve", "/etc/samba", "/etc/polkit-1", "/etc/security/opasswd", "/etc/credstore", "/etc/credstore.encrypted", "/etc/environment.d", "/etc/msmtprc", "/etc/exim4/passwd.client", "/etc/postfix/sasl",
}

// systemPlaces are those of systemReadable that are there. They are looked up once: a look at each before every command takes
// longer than starting the command does.
var systemPlaces = sync.OnceValue(func() []string { return existing(systemReadable) })

// keptSecrets are the keys of the system that this program could read: systemSecrets, and below /etc whatever the system shows to
// its owner or group only. Configuration that is meant for everybody is readable by everybody.
var keptSecrets = sync.OnceValue(func() (out []string) {
	for _, s := range existing(systemSecrets) {
		if mayRead(s) {
			out = append(out, s)
		}
	}
	_ = filepath.WalkDir("/etc", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if d.Type()&fs.ModeSymlink != 0 {
			return nil // where it leads decides
		}
		info, err := d.Info()
		if err != nil || info.Mode().Perm()&0o004 != 0 || !mayRead(path) {
			return nil
		}
		if out = append(out, path); d.IsDir() {
			return filepath.SkipDir
		}
		return nil
	})
	return out
})

// apart are the places below the system's readable ones that are not the system's: of a project or home folder in /opt
// the folder that /opt holds, since its neighbours are the person's too; and keys that this program could read.
func apart(own []string) []string {
	out := slices.Clone(keptSecrets())
	for _, p := range systemPlaces() {
		for _, o := range own {
			if rest, ok := strings.CutPrefix(o, p+string(filepath.Separator)); ok {
				first, _, _ := strings.Cut(rest, string(filepath.Separator))
				out = append(out, filepath.Join(p, first))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// homeReadable are the toolchains in the home folder, and what git and search tools are configured by. Keys, histories
// and the data of other programs are beside them and stay out.
func homeReadable(home string, getenv func(string) string) []string {
	var places []string
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		// A PATH that names the home folder, or one above it, must not make all of it readable.
		if dir = filepath.Clean(dir); !filepath.IsAbs(dir) || dir == "/" || home != "" && (dir == home || below(dir, home)) {
			continue
		}
		places = append(places, dir)
		// A toolchain's libraries lie beside its bin. Above ~/bin and ~/.local/bin lies everything.
		up := filepath.Dir(dir)
		if filepath.Base(dir) != "bin" || up == "/" || up == home || up == filepath.Join(home, ".local") {
			continue
		}
		// In a folder such as ~/.cargo, ~/.docker or ~/.fly the program's tokens lie beside its bin as well.
		if rest, ok := strings.CutPrefix(up, home+string(filepath.Separator)); ok && home != "" && slices.ContainsFunc(strings.Split(rest, string(filepath.Separator)), func(part string) bool { return part[0] == '.' }) {
			for _, part := range [...]string{"lib", "lib64", "libexec", "share", "include", "src", "pkg", "versions", "toolchains", "VERSION", "go.env", "release", "pyvenv.cfg"} {
				places = append(places, filepath.Join(up, part))
			}
			continue
		}
		places = append(places, up)
	}
	for _, name := range []string{"GOROOT", "GOPATH", "GOMODCACHE", "GOCACHE", "RUSTUP_HOME", "NVM_DIR", "VOLTA_HOME", "PYENV_ROOT", "RBENV_ROOT", "ASDF_DIR", "ASDF_DATA_DIR", "SDKMAN_DIR", "JAVA_HOME", "BUN_INSTALL", "DENO_INSTALL", "CONDA_PREFIX", "VIRTUAL_ENV", "PNPM_HOME", "RIPGREP_CONFIG_PATH"} {
		for _, v := range filepath.SplitList(getenv(name)) {
			if filepath.IsAbs(v) && v != home && v != "/" && !below(v, home) {
				places = append(places, v)
			}
		}
	}
	if home == "" {
		return places
	}
	config := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		config = filepath.Join(home, ".config")
	}
	own := []string{filepath.Join(config, "git"), filepath.Join(config, "ripgrep"), filepath.Join(config, "bat"), filepath.Join(config, "fd"), filepath.Join(config, "go")}
	for _, name := range []string{
		".gitconfig", ".ripgreprc", ".inputrc", ".editrc", ".dircolors", ".jq", ".local/lib", ".nix-profile", ".linuxbrew", ".rustup", ".cargo/bin", ".cargo/registry", ".nvm", ".volta", ".fnm", ".pyenv", ".rbenv", ".asdf", ".sdkman",
		".local/share/mise", ".local/share/fnm", ".local/share/uv", ".local/share/pnpm", ".bun", ".deno", "go", "sdk", ".cache/go-build", ".tool-versions", ".terminfo",
	} {
		own = append(own, filepath.Join(home, name))
	}
	return slices.Concat(places, own, includedByGit(home, filepath.Join(home, ".gitconfig")), includedByGit(home, filepath.Join(config, "git", "config")))
}

// homeSecrets are the keys that lie below what homeReadable allows.
func homeSecrets(home string, getenv func(string) string) []string {
	config := getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		config = filepath.Join(home, ".config")
	}
	if home == "" {
		return nil
	}
	return existing([]string{
		filepath.Join(config, "git", "credentials"), // git-credential-store(1)
		filepath.Join(home, ".cargo", "credentials"), filepath.Join(home, ".cargo", "credentials.toml"),
		filepath.Join(home, ".bun", ".npmrc"), filepath.Join(home, ".bunfig.toml"),
	})
}

// includedByGit are the files that a person's git configuration names: without them git ends with an error.
// The file is read line by line, not parsed: a wrong match adds a file that the person's own configuration names anyway.
// At most 32 count.
func includedByGit(home, path string) (files []string) {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan() && len(files) < 32; {
		key, value, ok := strings.Cut(s.Text(), "=")
		if !ok {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "path", "excludesfile", "attributesfile", "templatedir", "allowedsignersfile", "blame.ignorerevsfile", "ignorerevsfile":
		default:
			continue
		}
		value = strings.Trim(strings.TrimSpace(value), `"`)
		if rest, ok := strings.CutPrefix(value, "~/"); ok {
			value = filepath.Join(home, rest)
		} else if !filepath.IsAbs(value) {
			value = filepath.Join(filepath.Dir(path), value)
		}
		if info, err := os.Stat(value); err == nil && info.Mode().IsRegular() { // a folder could be the home folder
			files = append(files, value)
		}
	}
	return files
}

// gitReadable is where git keeps a worktree's objects when that is outside the worktree: the repository of a linked
// worktree or of a submodule, and repositories whose objects it borrows.
func gitReadable(root string) []string {
	g := gitPlaces(root)
	out := slices.Clone(g.dirs)
	for _, dir := range g.dirs {
		text, err := os.ReadFile(filepath.Join(dir, "objects", "info", "alternates"))
		if err != nil || len(text) > 16<<10 {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if p := strings.TrimSpace(line); p != "" && filepath.Base(p) == "objects" { // nothing else is borrowed from
				if !filepath.IsAbs(p) {
					p = filepath.Join(dir, "objects", p)
				}
				out = append(out, p)
			}
		}
	}
	return existing(out)
}

// resolvedOrNew is the real path of what a command calls name; of something that is not there, where it would be made.
func resolvedOrNew(dir, name string) string {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	path = filepath.Clean(path)
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Join(realDir(filepath.Dir(path)), filepath.Base(path))
}
