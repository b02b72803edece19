package editors

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
)

// A generic client cannot be asked for a list of unsaved buffers; some read the disk where they should read the buffer,
// and the file may be open in another editor altogether. Editors leave a mark on the disk when a buffer has unsaved
// changes, and remove it when it is saved: Vim and Neovim a swap file, nano a lock in its format, Emacs a lock or an
// auto-save file, VS Code a backup. These marks are read here. JetBrains IDEs and Zed leave none.

// holder is an editor that has unsaved changes of a file.
type holder struct {
	editor string // its name for people
	pid    int    // 0: not known
	host   string // empty: this machine
	mark   string // a file that keeps saying so after a crash, for the person to delete; empty: it goes by itself
}

// String names the process where it is known, so that a person with ten terminals finds it.
func (h holder) String() string {
	switch {
	case h.pid == 0:
		return h.editor
	case h.host != "":
		return fmt.Sprintf("%s (process %d on %s)", h.editor, h.pid, h.host)
	}
	return fmt.Sprintf("%s (process %d)", h.editor, h.pid)
}

// refuse is the error that keeps a change from being proposed or written. Its first sentences are for people too, see
// WhatIsUnsaved.
func (h holder) refuse(path string) error {
	text := fmt.Sprintf("%s has unsaved changes in %s. Save them there, then repeat.", path, h)
	if h.mark != "" {
		text = fmt.Sprintf("%s has unsaved changes in %s. Save them there, or delete %s if they are not wanted, then repeat.", path, h, h.mark)
	}
	return &tools.Error{Kind: KindUnsaved, Message: text + untilForModel + " Tell the user, who has to save."}
}

// KindUnsaved is the kind of error of a change that was refused because an editor has unsaved changes of its file.
const KindUnsaved = "unsaved"

// untilForModel divides an error's text: people are shown what comes before it, the model reads all of it.
const untilForModel = " Nothing was written."

// WhatIsUnsaved is the part of an error of KindUnsaved that says to a person which file has to be saved where.
func WhatIsUnsaved(message string) string {
	text, _, _ := strings.Cut(message, untilForModel)
	return text
}

// refuseUnsavedElsewhere fails for a set with a file that another editor has unsaved. A file that does not exist yet counts
// too: its buffer would be written over what a change creates.
func refuseUnsavedElsewhere(set *change.Set) error {
	for _, f := range set.Files {
		for _, path := range []string{f.Path, f.NewPath} {
			if path == "" {
				continue
			}
			if h, ok := unsavedElsewhere(path); ok {
				return h.refuse(path)
			}
		}
	}
	return nil
}

// unsavedElsewhere finds the editor that has unsaved changes of a file, by its absolute path. Vim names its swap file
// after the file that a symbolic link leads to, Emacs its lock after the name it was given.
func unsavedElsewhere(path string) (holder, bool) {
	names := []string{path}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		names = append(names, real)
	} else if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil && dir != filepath.Dir(path) { // it does not exist yet
		names = append(names, filepath.Join(dir, filepath.Base(path)))
	}
	for _, name := range names {
		for _, swap := range swapFiles(name) {
			if h, _, ok := dirtySwap(swap); ok {
				return h, true
			}
		}
		if h, ok := emacsLock(name); ok {
			return h, true
		}
		if h, ok := emacsAutoSave(name); ok {
			return h, true
		}
	}
	if h, ok := openSwap(names); ok {
		return h, true
	}
	return codeBackup(names)
}

// swapFiles are the swap files of path that exist where Vim and Neovim put them by default ('directory'): Vim's is beside the file, Neovim's
// in its state folder (data folder before 0.8) with the whole path in the name. A second editor of the same file takes .swo, a third .swn
// (:help swap-file). Where 'directory' names a place of the person's own, openSwap finds it.
func swapFiles(path string) (found []string) {
	dir, base := filepath.Split(path)
	if !strings.HasPrefix(base, ".") {
		base = "." + base
	}
	look := func(stem string) {
		for last := 'p'; last >= 'a'; last-- {
			if name := stem + ".sw" + string(last); exists(name) {
				found = append(found, name)
			}
		}
	}
	look(dir + base)
	whole := strings.NewReplacer(string(filepath.Separator), "%", ":", "%").Replace(path)
	for _, state := range neovimFolders() {
		if swaps := filepath.Join(state, "swap"); exists(swaps) {
			look(filepath.Join(swaps, whole))
		}
	}
	return found
}

// exists reports whether something has this name, a broken link too.
func exists(path string) bool {
	there, _ := files.Look(path)
	return there
}

// neovimFolders are where Neovim keeps what it remembers (:help standard-path). A client may start us with PATH alone,
// so that the XDG variables of the person are not known; then it is the default below HOME.
func neovimFolders() []string {
	app := os.Getenv("NVIM_APPNAME")
	if app == "" {
		app = "nvim"
	}
	home, _ := os.UserHomeDir()
	var out []string
	add := func(dir string) {
		if dir = filepath.Join(dir, app); !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	for variable, fallback := range map[string]string{"XDG_STATE_HOME": ".local/state", "XDG_DATA_HOME": ".local/share"} {
		if dir := os.Getenv(variable); filepath.IsAbs(dir) {
			add(dir)
		}
		if home != "" {
			add(filepath.Join(home, fallback))
		}
	}
	if dir := os.Getenv("LOCALAPPDATA"); dir != "" { // Windows
		out = append(out, filepath.Join(dir, app+"-data"))
	}
	return out
}

// The first block of a swap file, struct block0 in Vim's memline.c, as byte offsets. Numbers are little-endian on every
// machine. The dirty flag has taken the last byte of the file name's 900 since Vim 3, so that the layout never moved.
const (
	swapPID     = 24
	swapHost    = 68 // NUL-terminated, cut at 40 bytes
	swapName    = 108
	swapDirtyAt = 1007
	swapHead    = swapDirtyAt + 1 // bytes to read

	swapDirty = 0x55 // B0_DIRTY; else 0
)

// dirtySwap reads whether a swap file belongs to a running editor whose buffer has unsaved changes, and of which file,
// by its absolute path. After a crash a swap file keeps its flag: nobody could save in that Vim, and the text stays in
// the swap file whatever we write, so that it does not count. A process of another machine (a shared folder, a
// container) cannot be looked for and counts.
func dirtySwap(path string) (h holder, file string, dirty bool) {
	// The name may be taken by a named pipe, which must not keep us waiting.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return holder{}, "", false
	}
	defer f.Close()
	head := make([]byte, swapHead)
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return holder{}, "", false
	}
	if _, err := io.ReadFull(f, head); err != nil {
		return holder{}, "", false
	}
	// "b0" is a plain swap file; c, C, d, S and s in the second place are Vim's encryptions, which leave this block readable.
	if head[0] != 'b' || !strings.ContainsRune("0cCdSs", rune(head[1])) || head[swapDirtyAt] != swapDirty {
		return holder{}, "", false
	}
	host, _, _ := strings.Cut(string(head[swapHost:swapName]), "\x00")
	name, _, _ := strings.Cut(string(head[swapName:swapDirtyAt-1]), "\x00")
	h = holder{pid: int(binary.LittleEndian.Uint32(head[swapPID:]))}
	h.editor = swapOwner(path, string(head[2:12]), h.pid)
	if !onThisMachine(host) {
		h.host, h.mark = host, path
	}
	return h, fromHome(name), mayRun(h.pid, host)
}

// swapOwner names the editor that wrote a swap file. Neovim writes Vim's version into its swap files, so it is recognised by
// their folder or by its process. nano uses the format of swap files for its locks.
func swapOwner(path, version string, pid int) string {
	for _, state := range neovimFolders() {
		if filepath.Dir(path) == filepath.Join(state, "swap") {
			return "Neovim"
		}
	}
	program, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid)) // Linux; elsewhere it is called Vim
	switch {
	case strings.HasPrefix(string(program), "nvim"):
		return "Neovim"
	case strings.HasPrefix(version, "nano"):
		return "nano"
	}
	return "Vim"
}

// fromHome resolves "~/x" and "~name/x", as which Vim stores names of files below a home folder.
func fromHome(name string) string {
	who, rest, ok := strings.Cut(strings.TrimPrefix(name, "~"), "/")
	if !strings.HasPrefix(name, "~") || !ok {
		return name
	}
	u, err := user.Current()
	if who != "" {
		u, err = user.Lookup(who)
	}
	if err != nil {
		return name
	}
	return filepath.Join(u.HomeDir, rest)
}

// emacsLock reads the lock that Emacs sets beside a file when its buffer gets unsaved changes and removes when it is
// saved: a symbolic link .#NAME to USER@HOST.PID[:BOOT] that leads nowhere (Emacs manual, "Protection against
// Simultaneous Editing"; the format is in filelock.c). Where links are not possible it is a file with that text.
func emacsLock(path string) (holder, bool) {
	lock := filepath.Join(filepath.Dir(path), ".#"+filepath.Base(path))
	text, err := os.Readlink(lock)
	if err != nil {
		fi, err := os.Lstat(lock)
		if err != nil || !fi.Mode().IsRegular() || fi.Size() > 4096 {
			return holder{}, false
		}
		b, err := os.ReadFile(lock)
		if err != nil {
			return holder{}, false
		}
		text = string(b)
	}
	text, _, _ = strings.Cut(text, ":") // the time of boot, in seconds
	_, at, isLock := strings.Cut(text, "@")
	dot := strings.LastIndexByte(at, '.')
	if !isLock || dot < 0 {
		return holder{}, false
	}
	pid, err := strconv.Atoi(strings.TrimSpace(at[dot+1:]))
	h := holder{editor: "Emacs", pid: pid}
	if !onThisMachine(at[:dot]) {
		h.host, h.mark = at[:dot], lock
	}
	return h, err == nil && mayRun(pid, at[:dot])
}

// emacsAutoSave finds #NAME#, in which Emacs saves a changed buffer from time to time and which it deletes when the
// buffer is saved: the only mark where locks are switched off (create-lockfiles nil). Emacs offers to recover from it
// while it is newer than the file, also after a crash; written over, the file would be the newer one and the offer gone.
func emacsAutoSave(path string) (holder, bool) {
	mark := filepath.Join(filepath.Dir(path), "#"+filepath.Base(path)+"#")
	saved, err := os.Lstat(mark)
	if err != nil || !saved.Mode().IsRegular() {
		return holder{}, false
	}
	if file, err := os.Stat(path); err == nil && !saved.ModTime().After(file.ModTime()) {
		return holder{}, false
	}
	return holder{editor: "Emacs", mark: mark}, true
}

// mayRun reports whether an editor may still run: false only when it ran on this machine and its process has ended.
func mayRun(pid int, host string) bool {
	return pid <= 0 || !onThisMachine(host) || files.ProcessRuns(pid)
}

// onThisMachine compares a host name from a mark with ours. A home folder on the network has marks of other machines, whose processes
// cannot be looked for here.
func onThisMachine(host string) bool {
	here, err := os.Hostname()
	cut := len(host) == swapName-swapHost-1 && strings.HasPrefix(here, host) // Vim keeps 39 bytes of a longer name
	return err == nil && (host == here || cut)
}
