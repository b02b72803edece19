package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// realVim is a Vim or Neovim that takes Ex commands from a test.
type realVim struct {
	t   *testing.T
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func openVim(t *testing.T, program, dir string) *realVim {
	t.Helper()
	// -es writes no swap file by itself; 'updatecount' brings it back.
	v := &realVim{t: t, cmd: exec.Command(program, "-u", "NONE", "-i", "NONE", "-es", "--cmd", "set nocompatible")}
	v.cmd.Dir = dir
	in, err := v.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := v.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	v.in, v.out = in, bufio.NewScanner(out)
	t.Cleanup(func() { _ = v.cmd.Process.Kill(); _ = v.cmd.Wait() })
	return v
}

// do runs Ex commands and waits until the last has been carried out.
func (v *realVim) do(commands ...string) {
	v.t.Helper()
	for _, c := range append(commands, "call writefile(['done'], '/dev/stdout', 'a')") {
		if _, err := fmt.Fprintln(v.in, c); err != nil {
			v.t.Fatal(err)
		}
	}
	for v.out.Scan() {
		if strings.Contains(v.out.Text(), "done") {
			return
		}
	}
	v.t.Fatal("the editor ended")
}

// Clients that hide unsaved text from us, or have no file methods at all: the mark that the person's editor leaves
// beside the file is read before anything is asked.
func TestUnsavedChangesInAnotherEditorAreFoundBeforeAsking(t *testing.T) {
	found := 0
	for _, name := range []string{"vim", "nvim", "../.cache/nvim-0.12/nvim"} {
		program, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		found++
		editor := "Vim"
		if strings.HasSuffix(name, "nvim") {
			editor = "Neovim"
		}
		if program, err = filepath.Abs(program); err != nil {
			t.Fatal(err)
		}
		for _, setting := range []string{"", "set directory=.", "set directory=$HOME/swaps//", "set directory=$HOME/swaps", "silent! set cryptmethod=blowfish2 key=secret"} {
			t.Run(strings.ReplaceAll(name+" "+setting, "/", "|"), func(t *testing.T) {
				if strings.Contains(setting, "swaps") && runtime.GOOS != "linux" {
					t.Skip("a swap file in a folder of the person's own is found on Linux only")
				}
				home := t.TempDir()
				if err := os.Mkdir(filepath.Join(home, "swaps"), 0o700); err != nil {
					t.Fatal(err)
				}
				for _, v := range []string{"HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"} {
					t.Setenv(v, home)
				}
				store := testStore(t)
				cwd := t.TempDir()
				path := filepath.Join(cwd, "a.txt")
				write(t, path, "a\nb\n")
				edit := func() (*rig, genericEditor) {
					r := newRig(t, store, cwd)
					g := genericEditor{name: "codecompanion.nvim", readsDisk: true}
					g.run(t, r, "b", "B")
					return r, g
				}

				v := openVim(t, program, cwd)
				v.do("set swapfile updatecount=200")
				if strings.Contains(setting, "key") { // of the buffer
					v.do("edit a.txt", setting, "normal! otyped")
				} else {
					v.do(setting, "edit a.txt", "normal! otyped")
				}
				r, g := edit()
				if want := fmt.Sprintf("a.txt has unsaved changes in %s (process %d). Save them there, then repeat", editor, v.pid()); !r.told(want) || g.asked != 0 {
					t.Fatalf("asked %d times, want none and the model told %q", g.asked, want)
				}
				if got := read(t, path); got != "a\nb\n" {
					t.Errorf("written behind the unsaved buffer: %q", got)
				}

				if strings.Contains(setting, "key") {
					return // what it writes is encrypted
				}
				v.do("write") // the swap file stays, without the flag
				if _, g := edit(); g.asked != 1 || !strings.Contains(read(t, path), "B") {
					t.Errorf("after the save: asked %d times, the file is %q", g.asked, read(t, path))
				}
			})
		}
	}
	if found == 0 {
		t.Skip("no Vim or Neovim is installed")
	}
}

// pid is the editor's own: .cache/nvim-0.12/nvim is a script that starts it.
func (v *realVim) pid() (pid int) {
	v.t.Helper()
	file := filepath.Join(v.t.TempDir(), "pid")
	v.do("call writefile([getpid()], '" + file + "')")
	b, err := os.ReadFile(file)
	if err != nil {
		v.t.Fatal(err)
	}
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		v.t.Fatal(err)
	}
	return pid
}
