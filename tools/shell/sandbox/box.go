// Package sandbox restricts which files a command, and everything it starts, may write, and whether it has a network. It has
// two forms: Box, for any command, and Contained, which also restricts reading, for commands that run without approval.
// The package knows neither permission rules nor programs: the caller says which places are writable and which are protected.
// Package run starts the processes.
package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Arg is the first argument of the helper. To start a command in the sandbox, Pillion runs itself with Arg; the helper process
// restricts itself and then executes the shell. The program's main must call Main when its first argument is Arg.
const Arg = "__sandbox"

// Box says what a command may do besides reading. The restrictions apply to the command and everything it starts, and cannot be
// lifted.
//
//	box := sandbox.New(sandbox.Options{Root: root, Dir: dir, Home: home})
//	out, err := runner.Run(ctx, run.Command{Text: "make", Dir: dir, Sandbox: box})
//	if why := box.Stopped(out.ForSandbox()); why != "" { … }
type Box struct {
	Writable []string `json:"writable"` // files, and folders with everything below; absolute, links resolved
	ReadOnly []string `json:"readOnly"` // exceptions below Writable; without Mounts and Profile, Settle restores them instead
	Pinned   []string `json:"pinned"`   // folders that may not be renamed or removed, because a path in ReadOnly is below them
	Masked   []string `json:"masked"`   // listening sockets of programs that would act for the command outside the sandbox
	Hidden   []string `json:"hidden"`   // files and folders that may not be read; set with Support.Mounts only
	// Readable and Listed, if Confined: all that may be read besides Writable, and folders of which only the names may be read.
	Confined  bool     `json:"confined"`
	Readable  []string `json:"readable"`
	Listed    []string `json:"listed"`
	Network   bool     `json:"network"`   // the command has the network
	Processes int      `json:"processes"` // most processes and threads at the same time
	// Supervised is true when the process that starts the helper makes the command's connections for it, see Supervise.
	Supervised bool `json:"supervised"`

	Caches  []layer `json:"caches"` // overlays over the person's caches, mounted before anything is made read-only
	Private string  `json:"-"`      // without overlays: the folder for caches that Environ names to tools; empty: none
	Dir     string  `json:"dir"`
	Support Support `json:"support"`
	// New are protected paths that do not exist and must not be created; set with Support.Profile only.
	New        []string               `json:"-"`
	Quarantine string                 `json:"-"` // see Options
	Temp       string                 `json:"-"` // TMPDIR of the command; empty: not changed
	Made       []string               `json:"-"` // folders created for the command; Settle removes those that are empty
	before     *protectedState        // contents of protected files before the command; nil where they can be kept read-only
	terminals  bool                   // mounts gave the command pseudo terminals of its own
	Helper     []string               `json:"-"` // the program and first arguments of the helper; nil: this program
	look       func() protectedPlaces // finds the project's protected files; nil before New
	places     protectedPlaces        // what look found before the command
	isAllowed  func(path string) bool // reports whether the person has allowed this command to write a protected path
	unlock     func()                 // releases the private caches; may be called more than once; nil: nothing to release
	ours       *os.File               // Pillion's end of the socket pair over which the helper sends its listener; set by ForHelper
}

// Support says which means of restricting a process the system offers.
type Support struct {
	Landlock int    `json:"landlock"` // version of Landlock's interface; 0: none
	Mounts   bool   `json:"mounts"`   // a mount namespace: read-only paths inside the project; metadata cannot change either
	Userns   bool   `json:"userns"`   // namespaces need a user namespace
	Netns    bool   `json:"netns"`    // a network namespace that has only loopback
	Overlay  bool   `json:"overlay"`  // overlays for caches; only with Mounts
	Cgroup   string `json:"cgroup"`   // folder in which control groups that limit processes can be made; empty: RLIMIT_NPROC
	Profile  bool   `json:"profile"`  // macOS: sandbox-exec
	Why      string `json:"why"`      // why there is no sandbox
}

// maxHidden bounds Hidden: each is a mount, and its path a part of the helper's command line.
const maxHidden = 1000

// minLandlock is the first version that restricts truncation (Linux 6.2). Under an older one a command could empty any file that
// the person can write.
const minLandlock = 3

// Usable reports whether commands can run in a sandbox at all. Namespaces are not required: without Mounts, Settle restores
// protected files after the command.
func (s Support) Usable() bool { return s.Landlock >= minLandlock || s.Profile }

// String describes for a person what is restricted and what is not.
func (s Support) String() string {
	if !s.Usable() {
		return s.Why
	}
	if s.Profile {
		return "sandbox-exec: writes and network"
	}
	parts := []string{fmt.Sprintf("Landlock %d: writes only in the project, temporary folders and private caches", s.Landlock)}
	if s.Mounts {
		parts = append(parts, "protected files in the project are read-only")
		if s.Overlay {
			parts = append(parts, "each project has its own view of package caches")
		}
	} else {
		parts = append(parts, "protected files in the project are put back after a command that changed them (no user namespaces here)")
	}
	switch {
	case s.Netns:
		parts = append(parts, "no network but its own loopback")
	case s.Landlock >= 10:
		parts = append(parts, "no TCP and UDP")
	case s.Landlock >= 4:
		parts = append(parts, "no TCP (UDP is not covered)")
	default:
		parts = append(parts, "network not covered")
	}
	if s.Cgroup != "" {
		parts = append(parts, "process limit by control group")
	} else {
		parts = append(parts, "process limit by RLIMIT_NPROC")
	}
	return strings.Join(parts, "; ")
}

// Options are the input of New. Only Root and Dir are required.
type Options struct {
	Root  string   // worktree root, absolute
	Dir   string   // where the command runs
	Extra []string // more folders that belong to the project
	Home  string
	// Writable are more writable places, from the configuration or approved by the person for this command.
	Writable []string
	// Allowed are protected paths that the person has approved for this command.
	Allowed   []string
	Network   bool
	CacheDir  string                                     // folder for private caches; empty: ~/.cache/pillion/sandbox
	Processes int                                        // 0: see defaultProcesses
	Protected func(real string) (reason string, is bool) // nil: no path is protected
	// Hidden is set for a command that runs without approval: it may not read these files, nor keys in the home folder. nil: it may
	// read everything. It has an effect with Support.Mounts only.
	Hidden *HiddenOptions
	// ReadsLittle: the command reads what a contained command reads (see Contained), and nothing else outside the places that it may write.
	// It has an effect with Landlock only.
	ReadsLittle bool
	Quarantine  string                   // folder to which Settle moves new protected files; empty: it only reports them
	Getenv      func(name string) string // nil: os.Getenv
	Support     func() Support           // nil: Probe
}

// New returns the Box for a command. It searches the project for protected files (up to protectedEntries). It also changes the
// disk: it creates missing folders for hooks and caches, because only what exists can be mounted or made read-only.
func New(o Options) *Box {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	if o.Support == nil {
		o.Support = Probe
	}
	if o.Protected == nil {
		o.Protected = func(string) (string, bool) { return "", false }
	}
	b := &Box{Network: o.Network, Processes: o.Processes, Dir: o.Dir, Support: o.Support(), Quarantine: o.Quarantine}
	if b.Processes <= 0 {
		b.Processes = defaultProcesses()
	}
	project := existing(append([]string{o.Root}, o.Extra...))
	git := gitPlaces(o.Root)
	// Must come before git.readOnly is used: a missing hooks folder cannot be made read-only, and the command could create it.
	git.makeHooks()
	places := slices.Concat(project, git.writable, existing(tempPlaces(o.Getenv)), existing(expandHome(o.Writable, o.Home)))
	b.Writable = outermost(places, o.Home)
	if b.Temp = ownTemp(o.Home, b.Writable, o.Getenv); b.Temp != "" {
		b.Writable = outermost(append(b.Writable, b.Temp), o.Home)
	}
	caches := existing(cachePlaces(o.Home, o.Getenv))
	if o.CacheDir == "" && o.Home != "" {
		o.CacheDir = filepath.Join(realDir(o.Home), ".cache", "pillion", "sandbox")
	}
	b.privateCaches(o.CacheDir, realDir(o.Root), caches)
	b.Writable = outermost(b.Writable, o.Home)
	allowed := resolveAll(o.Allowed)
	isAllowed := func(p string) bool {
		return slices.ContainsFunc(allowed, func(a string) bool { return p == a || below(a, p) })
	}
	b.Pinned = append(b.Pinned, git.pinned...)
	for _, p := range git.readOnly {
		if !isAllowed(p) {
			b.ReadOnly = append(b.ReadOnly, p)
		}
	}
	// Settle calls look again after the command. What only the second search finds was created meanwhile.
	b.look = func() protectedPlaces { return findProtected(project, git.dirs, o.Protected) }
	b.isAllowed = isAllowed
	b.places = b.look()
	for _, p := range b.places.found {
		if info, err := os.Lstat(p); err != nil || info.Mode()&os.ModeSymlink != 0 {
			continue // a symbolic link cannot be made read-only
		}
		if isAllowed(p) || slices.ContainsFunc(allowed, func(a string) bool { return below(p, a) }) {
			continue
		}
		b.ReadOnly = append(b.ReadOnly, p)
	}
	if b.Support.Profile {
		for _, dir := range append(slices.Clone(project), realDir(o.Dir)) {
			for _, name := range protectedNew {
				p := filepath.Join(dir, name)
				if _, is := o.Protected(p); is && missing(p) && !isAllowed(p) && !slices.Contains(b.New, p) {
					b.New = append(b.New, p)
				}
			}
		}
	}
	b.ReadOnly = pinParents(b, project)
	b.Masked = sockets(b.Network, b.Writable)
	if o.Hidden != nil && b.Support.Mounts {
		b.Hidden = o.Hidden.places(project, o.Home, o.Getenv)
	}
	if o.ReadsLittle && b.Support.Landlock > 0 {
		b.confine(project, o)
	}
	if !b.Support.Mounts && !b.Support.Profile {
		b.before = keep(b.ReadOnly)
	}
	return b
}

// pinParents adds the folders between the project and each read-only path to b.Pinned, and returns b.ReadOnly sorted, without
// duplicates. Without it, a command could replace read-only settings: mv .vscode x; mkdir .vscode.
func pinParents(b *Box, project []string) []string {
	for _, p := range b.ReadOnly {
		for dir := filepath.Dir(p); slices.ContainsFunc(project, func(root string) bool { return below(root, dir) }); dir = filepath.Dir(dir) {
			if !slices.Contains(b.Pinned, dir) {
				b.Pinned = append(b.Pinned, dir)
			}
		}
	}
	slices.Sort(b.ReadOnly)
	return slices.Compact(b.ReadOnly)
}

// Argv is the command line that runs name with args in the sandbox: that of the helper, or of sandbox-exec on macOS. It fails
// when the system has no sandbox, so that the command cannot run without one by mistake.
func (b *Box) Argv(name string, args []string) (string, []string, error) {
	if b.Support.Profile {
		return "/usr/bin/sandbox-exec", append([]string{"-p", b.Profile(), name}, args...), nil
	}
	if !b.Support.Usable() {
		return "", nil, fmt.Errorf("the command cannot be kept in a sandbox here: %s; set sandbox to off or ask in the configuration", b.Support.Why)
	}
	if len(b.Hidden) > maxHidden {
		return "", nil, fmt.Errorf("the command was not run: %d files may not be read without a question, and the sandbox hides at most %d; a rule that asks about all reading goes with no automatic approval of commands", len(b.Hidden), maxHidden)
	}
	spec, err := json.Marshal(b)
	if err != nil {
		return "", nil, err
	}
	helper := b.Helper
	if len(helper) == 0 {
		helper = []string{selfProgram(), Arg}
	}
	return helper[0], slices.Concat(helper[1:], []string{string(spec), name}, args), nil
}

// Environ is the environment of the command: env without the addresses of programs outside the sandbox (see withoutAgents),
// plus TMPDIR and the variables for private caches. Without a network it also stops package managers from retrying for a minute.
func (b *Box) Environ(env []string) []string {
	out := b.withPrivate(withoutAgents(env))
	if b.Temp != "" {
		out = append(out, "TMPDIR="+b.Temp)
	}
	if !b.Network {
		out = append(out, "npm_config_fetch_retries=0", "PIP_RETRIES=0", "CARGO_NET_RETRY=0")
	}
	return out
}

// withoutAgents removes the addresses of programs that could act for a command outside its restrictions: key agents, editors,
// display servers, container engines. With DOCKER_HOST, for one, it could start a container that mounts the whole disk.
func withoutAgents(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		switch name {
		case "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "NVIM", "NVIM_LISTEN_ADDRESS", "TMUX", "DOCKER_HOST", "GPG_AGENT_INFO":
			return true
		}
		return strings.HasPrefix(name, "VSCODE_IPC") || strings.HasPrefix(name, "VSCODE_GIT")
	})
}

// below reports whether path is below dir, and not dir itself. Both must be clean and have their links resolved.
func below(dir, path string) bool {
	return dir == "/" && path != "/" || strings.HasPrefix(path, dir+string(filepath.Separator))
}
