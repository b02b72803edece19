// Package sandbox restricts a command, and all it starts, to what it may write and reach. It knows neither permission rules nor
// programs: the caller says which places are writable and which are protected, the package works out the rest of the boundary
// and restricts a process to it. Package run starts the processes.
package sandbox

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Arg is the first argument of the helper that a command in the sandbox starts as: the program runs itself
// again with it, restricts that process, and becomes the shell. The program's main hands over to Main.
const Arg = "__sandbox"

// Box is what a command may do besides reading. It holds for the command and all it starts, for good.
//
//	box := sandbox.New(sandbox.Options{Root: root, Dir: dir, Home: home})
//	out, err := runner.Run(ctx, run.Command{Text: "make", Dir: dir, Sandbox: box})
//	if why := box.Stopped(out.ForSandbox()); why != "" { … }
type Box struct {
	Writable  []string `json:"writable"`  // folders with all below, and files; absolute, resolved
	ReadOnly  []string `json:"readOnly"`  // below Writable, but not to be changed; where the system can (Support.Mounts)
	Pinned    []string `json:"pinned"`    // folders that may not be moved away, because of what is in them
	Masked    []string `json:"masked"`    // sockets of programs that would act for the command outside
	Hidden    []string `json:"hidden"`    // files and folders that may not be read; where the system can (Support.Mounts)
	Network   bool     `json:"network"`   // the network is open
	Processes int      `json:"processes"` // how many processes and threads there may be at once
	// Supervised: the program that started the helper carries out the command's connections, see Supervise.
	Supervised bool `json:"supervised"`

	Caches  []layer `json:"caches"` // private views of the person's caches, mounted before anything is made read-only
	Private string  `json:"-"`      // the folder that tools are sent to where there is no overlay; empty: they are not
	Dir     string  `json:"dir"`
	Support Support `json:"support"`
	// New are names that must not come into being, where the system can forbid it (Support.Profile).
	New        []string               `json:"-"`
	Quarantine string                 `json:"-"`
	Temp       string                 `json:"-"` // TMPDIR of the command; empty: as it is
	Made       []string               `json:"-"` // folders made for the command, which go again when it leaves them empty
	before     *protectedState        // protected paths, where they cannot be kept read-only
	Helper     []string               `json:"-"` // the program and first arguments of the helper; nil: this program
	look       func() protectedPlaces // finds the project's protected files; nil before New
	places     protectedPlaces        // what look found before the command
	isAllowed  func(path string) bool // the person has just allowed the command to write it
	unlock     func()                 // gives the private caches free, once however often it is called; nil: there are none
	ours       *os.File               // our end of the pair over which the helper sends the listener; nil before ForHelper
}

// Support is what the system offers.
type Support struct {
	Landlock int    `json:"landlock"` // version of Landlock's interface; 0: none
	Mounts   bool   `json:"mounts"`   // a view of the file system of its own: read-only places inside the project, metadata too
	Userns   bool   `json:"userns"`   // by a user namespace
	Netns    bool   `json:"netns"`    // a network of its own, with nothing but loopback
	Overlay  bool   `json:"overlay"`  // private views of caches; with Mounts
	Cgroup   string `json:"cgroup"`   // folder for control groups that limit processes; empty: RLIMIT_NPROC
	Profile  bool   `json:"profile"`  // macOS: sandbox-exec
	Why      string `json:"why"`      // why there is no sandbox
}

// maxHidden bounds Hidden: each is a mount, and its path a part of the helper's command line.
const maxHidden = 1000

// minLandlock has file truncation (Linux 6.2): before it a command could empty any file of the person's.
const minLandlock = 3

// Usable reports whether commands can be kept in a sandbox at all.
// Mounts and networks of its own are extras: without them Settle puts protected files back after the command.
func (s Support) Usable() bool { return s.Landlock >= minLandlock || s.Profile }

// String says for a person what is and what is not restricted.
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

// Options are what a Box is made of.
// Only Root and Dir must be set.
type Options struct {
	Root  string   // worktree root, absolute
	Dir   string   // where the command runs
	Extra []string // more folders that belong to the project
	Home  string
	// Writable are more places, from the configuration, or because the person has just allowed them for this command.
	Writable []string
	// Allowed are protected paths that the person has just allowed for this command.
	Allowed   []string
	Network   bool
	CacheDir  string                                     // private caches are made below it; empty: in the person's cache folder
	Processes int                                        // 0: enough for a build
	Protected func(real string) (reason string, is bool) // nil: none
	// Hidden are files that may not be read without a question, since nobody was asked about the command; nil: it reads everything.
	// Keys in the home folder are hidden with them.
	Hidden     *HiddenOptions
	Quarantine string                   // folder for protected files that came into being; empty: they are only reported
	Getenv     func(name string) string // nil: os.Getenv
	Support    func() Support           // nil: Probe
}

// New works out what a command may write. It looks at the project for protected files, within bounds.
// It is not free of effects: it makes missing hook folders and cache folders, so that they can be mounted or made read-only.
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
	// Before places are worked out: a folder that is not there cannot be made read-only, and the command could make it.
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
	// The same look runs again in Settle; what only the second one finds came into being during the command.
	b.look = func() protectedPlaces { return findProtected(project, git.dirs, o.Protected) }
	b.isAllowed = isAllowed
	b.places = b.look()
	for _, p := range b.places.found {
		if info, err := os.Lstat(p); err != nil || info.Mode()&os.ModeSymlink != 0 {
			continue // a link cannot be made read-only; what it leads to decides
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
	if !b.Support.Mounts && !b.Support.Profile {
		b.before = keep(b.ReadOnly)
	}
	return b
}

// pinParents names the folders between the project and what is read-only in it: moved away, they would take it along
// and leave its name free. Returns ReadOnly without repetitions.
// Without this, mv .vscode x; mkdir .vscode would leave the way free for new settings beside the read-only ones.
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

// Argv is the command line of the helper that becomes name with args.
// It fails where there is no sandbox: a command that was promised one must not run without.
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

// Environ takes out what leads to programs that would act outside of the sandbox for the command. Without a network
// package managers are told not to try again for a minute.
// DOCKER_HOST, for one, would let the command start a container that mounts the whole disk.
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

// withoutAgents takes out the addresses of programs that would act for a command outside of its bounds: agents with keys,
// editors, display servers, container engines.
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

// below reports whether path is below dir; both are clean.
func below(dir, path string) bool {
	return dir == "/" && path != "/" || strings.HasPrefix(path, dir+string(filepath.Separator))
}
