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

// Contained restricts a command that runs without approval: it may read the project and the system, and write to a
// temporary folder of its own. It has no sockets, cannot change a file's metadata, and does not see the memory, environment or
// arguments of other programs; its processor time, memory, files and processes are limited. It
// exists because package scan may miss something that a command does; the kernel enforces these limits all the same.
//
//	out, err := runner.Run(ctx, run.Command{Text: "git log", Dir: dir, Contained: &sandbox.ContainOptions{Root: root, Dir: dir, Home: home}})
//
// Only the thread that starts the command is restricted (guard.Thread), not a helper process. The thread can start further
// commands that may read the same places (Same), so containing a command costs a few system calls, where a Box costs the start of
// a process.
type Contained struct {
	readable []string // files, and folders with everything below, besides systemReadable; absolute, may not exist
	hidden   []string // exceptions below readable; links resolved
	unseen   []string // folders below readable that were not searched for hidden files, so exceptions too; links resolved
	apart    []string // exceptions below systemReadable; links resolved
	temp     string   // the private temporary folder
	dir      string

	asRestricted []rule // the rules of the project that Restrict applied, for Same
}

// ContainOptions are the input of Contain. All paths are absolute. Root, Dir and Temp are required.
type ContainOptions struct {
	Root  string   // worktree root
	Dir   string   // where the command runs
	Extra []string // more folders that belong to the project
	Read  []string // more places that may be read, such as files with long tool output
	Home  string
	// Hidden reports whether reading a file (absolute, links resolved) needs approval; nil: no file does.
	Hidden func(realPath string) bool
	// Quiet reports true only for files for which Hidden is certain to report false as long as Rules is the same text. It saves
	// calling Hidden for every file of the project before every command. nil: Hidden is called for all.
	Quiet  func(realPath string) bool
	Rules  string
	Files  *HiddenFiles             // caches the search for hidden files; nil: no cache
	Getenv func(name string) string // nil: os.Getenv
	Temp   string                   // the private temporary folder; must exist
}

// Limits of a contained command.
const (
	// These three count for each process (setrlimit(2)), so a command with several processes may use more in total.
	containedCPU  = 10 * 60 // seconds
	containedData = 8 << 30 // bytes of RLIMIT_DATA; RLIMIT_AS would be wrong, since runtimes reserve address space that they never use
	containedFile = 1 << 30 // bytes of one file
	// ContainedOutput is how much of a contained command's output is kept, in bytes.
	ContainedOutput = 256 << 20
)

// Contain works out what a command may read. It fails only if this system cannot contain commands at all, with the reason from
// CanContain.
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

// Environ is the environment of the command: env without the variables that withoutAgents removes, with a TMPDIR of its own.
func (c *Contained) Environ(env []string) []string {
	out := withoutAgents(env)
	return append(out, "TMPDIR="+c.temp, "TMP="+c.temp, "TEMP="+c.temp)
}

// Blamed is the path that containment kept a command from using, found in the command's output; empty when the output names
// none. A path counts only if this program itself could read or write it.
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

// beforeReason is the second to last part of a message with ": " between its parts, which is often a path:
// "bash: line 1: a: Permission denied" names a.
func beforeReason(line string) string {
	parts := strings.Split(strings.TrimSpace(line), ": ")
	if len(parts) < 2 {
		return ""
	}
	return parts[len(parts)-2]
}

// keepsFrom reports whether containment is the only thing that keeps a command from reading or writing a path.
func (c *Contained) keepsFrom(name string) bool {
	if name == "" || len(name) > 4096 || strings.Contains(name, "://") {
		return false
	}
	real := resolvedOrNew(c.dir, name)
	within := func(list []string) bool {
		return slices.ContainsFunc(list, func(p string) bool { return real == p || below(p, real) })
	}
	if within(c.hidden) {
		return false // a permission rule hides it, so running without containment would not help
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
	// Messages begin with the path of a program, which root could write, so system places do not count.
	return !system && mayWrite(at)
}

// systemReadable are the places of the system with programs, their shared files and their configuration. Data of other
// programs (/var, /srv, /mnt, /run) and home folders are missing on purpose. Of /proc it has only the files about the machine,
// because the folders of processes show arguments, which may be passwords. A rule for the command's own folder in /proc is
// impossible, since that folder does not exist yet when the rules are made; so df without a path and findmnt fail.
var systemReadable = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu", "/snap", "/sys", "/run/current-system",
	"/proc/cpuinfo", "/proc/crypto", "/proc/devices", "/proc/diskstats", "/proc/filesystems", "/proc/interrupts", "/proc/loadavg", "/proc/meminfo", "/proc/modules", "/proc/partitions", "/proc/pressure", "/proc/slabinfo", "/proc/stat", "/proc/swaps", "/proc/sys", "/proc/uptime", "/proc/version", "/proc/version_signature", "/proc/vmstat", "/proc/zoneinfo",
	"/var/lib/dpkg", "/var/lib/rpm", "/var/cache/man", "/home/linuxbrew/.linuxbrew",
}

// systemSecrets are files and folders below systemReadable that may hold keys. Most of them are readable for root only, so this
// matters when Pillion runs as root.
var systemSecrets = []string{
	"/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d", "/etc/ssh", "/etc/ssl/private", "/etc/pki/tls/private", "/etc/letsencrypt", "/etc/wireguard", "/etc/openvpn", "/etc/ipsec.secrets", "/etc/ipsec.d",
	"/etc/krb5.keytab", "/etc/NetworkManager/system-connections", "/etc/ppp", "/etc/wpa_supplicant", "/etc/docker", "/etc/containerd", "/etc/kubernetes", "/etc/rancher", "/etc/vault.d", "/etc/consul.d", "/etc/nomad.d", "/etc/cloud", "/etc/mysql/debian.cnf",
	"/etc/postgresql-common/pg_service.conf", "/etc/netrc", "/etc/apt/auth.conf", "/etc/apt/auth.conf.d", "/etc/pve", "/etc/samba", "/etc/polkit-1", "/etc/security/opasswd", "/etc/credstore", "/etc/credstore.encrypted", "/etc/environment.d", "/etc/msmtprc", "/etc/exim4/passwd.client", "/etc/postfix/sasl",
}

// systemPlaces are the places in systemReadable that exist. It is computed once, since checking all of them takes longer than
// starting a command.
var systemPlaces = sync.OnceValue(func() []string { return existing(systemReadable) })

// keptSecrets are the secrets of the system that this program could read: systemSecrets, and everything below /etc that is not
// readable by all users. Those that this program cannot read need no exception, since the kernel refuses them anyway.
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
			return nil // the target has a mode of its own
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

// apart lists the exceptions below systemReadable: keptSecrets, and for each of own (the project, the home folder) that is
// below a system place, the first folder on the way to it. For /opt/team/project that is /opt/team: what is next to the project
// belongs to people too, not to the system.
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

// homeReadable are the toolchains in the home folder and on PATH, and the settings of git and search tools. Keys, shell histories
// and other programs' data are often in the same folders and must stay unreadable.
func homeReadable(home string, getenv func(string) string) []string {
	var places []string
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		// A PATH that names the home folder, or one above it, must not make all of it readable.
		if dir = filepath.Clean(dir); !filepath.IsAbs(dir) || dir == "/" || home != "" && (dir == home || below(dir, home)) {
			continue
		}
		places = append(places, dir)
		// The libraries of a toolchain are next to its bin folder. But the parents of ~/bin and ~/.local/bin hold everything.
		up := filepath.Dir(dir)
		if filepath.Base(dir) != "bin" || up == "/" || up == home || up == filepath.Join(home, ".local") {
			continue
		}
		// A hidden folder such as ~/.cargo, ~/.docker or ~/.fly may hold the program's tokens next to its bin folder.
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

// homeSecrets are the files with keys below the places that homeReadable allows.
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

// includedByGit are the files that a person's git configuration at path names, at most 32: git fails when it cannot read them.
// It reads line by line and ignores sections, so it may add a file that git does not need; that one is also named in the person's
// own configuration.
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

// gitReadable are the folders outside a worktree in which git keeps its objects: the repository of a linked worktree or of a
// submodule, and the repositories in objects/info/alternates (gitrepository-layout(5)).
func gitReadable(root string) []string {
	g := gitPlaces(root)
	out := slices.Clone(g.dirs)
	for _, dir := range g.dirs {
		text, err := os.ReadFile(filepath.Join(dir, "objects", "info", "alternates"))
		if err != nil || len(text) > 16<<10 {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if p := strings.TrimSpace(line); p != "" && filepath.Base(p) == "objects" { // alternates always name objects folders
				if !filepath.IsAbs(p) {
					p = filepath.Join(dir, "objects", p)
				}
				out = append(out, p)
			}
		}
	}
	return existing(out)
}

// resolvedOrNew resolves a path that a command in dir uses. For a file that does not exist it is the path at which it would be
// created.
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
