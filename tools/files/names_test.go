package files

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Rules are judged by name, so a path that Windows takes for another file than it names is refused.
func TestWindowsNames(t *testing.T) {
	const local, remote = `C:\project`, `\\Server\Share\project`
	for _, c := range []struct{ path, project, refused string }{
		{`a.txt`, local, ""}, {`src\a b.txt`, local, ""}, {`C:\project\a.txt`, local, ""}, {`c:/project/a.txt`, local, ""}, {`..\x\.\y`, local, ""},
		{`.gitignore`, local, ""}, {`a..b\..c`, local, ""}, {`console.log`, local, ""}, {`com10.txt`, local, ""}, {`coma`, local, ""}, {`lpt:`, local, `":"`}, {`lpt`, local, ""}, {`auxiliary`, local, ""},
		{`résumé\日本.go`, local, ""}, {`C:\`, local, ""}, {`C:`, local, ""}, {`PROGRA~1`, local, ""}, {``, local, ""},

		{`nul`, local, "device"}, {`NUL.txt`, local, "device"}, {`src\aux.go`, local, "device"}, {`Con`, local, "device"}, {`prn.tar.gz`, local, "device"},
		{`com1`, local, "device"}, {`LPT9.x`, local, "device"}, {`com¹.txt`, local, "device"}, {`C:\project\nul\x`, local, "device"}, {`nul .txt`, local, "device"}, {`conin$`, local, "device"},
		{`\\.\C:`, local, "device"}, {`\\?\C:\project\.env`, local, "device"}, {`//?/C:/x`, local, "device"}, {`\??\C:\x`, local, "device"},

		{`.env::$DATA`, local, `":"`}, {`.git:x`, local, `":"`}, {`.git::$INDEX_ALLOCATION\hooks`, local, `":"`}, {`a?.txt`, local, `"?"`}, {`a|b`, local, `"|"`}, {"a\x1fb", local, "contain"}, {`x\C:\y`, local, `":"`},
		{`.git.\hooks\pre-commit`, local, "drops"}, {`.env `, local, "drops"}, {`.env. .`, local, "drops"}, {`...`, local, "drops"},
		{`C:a.txt`, local, "relative to the current folder"}, {`\Windows\x`, local, "no drive"}, {`/etc/hosts`, local, "no drive"},

		{`\\evil\share\x`, local, "another machine"}, {`//evil/share/x`, local, "another machine"}, {`\\evil\share\x`, remote, "another machine"}, {`\\server`, remote, "another machine"},
		{`\\server\share\project\a.txt`, remote, ""}, {`//SERVER/share/a`, remote, ""}, {`\\server\share2\a`, remote, "another machine"}, {`\\server\share\nul`, remote, "device"},
		{`\\server\aux\a`, `\\server\aux\project`, ""}, {`1:\a`, local, `":"`},
	} {
		err := windowsName(c.path, c.project)
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%q in %q: %v", c.path, c.project, err)
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%q in %q: %v; want one that says %q", c.path, c.project, err, c.refused)
		}
	}
}

// Every name that Windows itself takes for another one leads to the file's own name, or is refused. scripts/windows-test.sh runs it.
func TestWindowsFindsTheProperName(t *testing.T) {
	if runtime.GOOS != "windows" {
		t.Skip("on Windows only")
	}
	// Not t.TempDir, whose clean-up fails under Wine: it cannot remove a folder as Go asks it to.
	dir, err := os.MkdirTemp("", "names")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "Secret.env"), []byte("KEY=1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"SECRET.ENV": "Secret.env", ".GIT": ".git", `.GIT\new`: `.git\new`, `.Git\a\b`: `.git\a\b`, "new": "new"} {
		got, err := Real(filepath.Join(dir, path))
		if err != nil || got != filepath.Join(dir, want) {
			t.Errorf("Real(%s) = %s, %v; want %s", path, got, err, want)
		}
	}
	for _, path := range []string{"nul", "Secret.env::$DATA", "Secret.env.", `.git \new`, `\\localhost\c$\x`} {
		if err := CheckName(path, dir); err == nil {
			t.Errorf("%s is not refused", path)
		}
		if path[0] != '\\' {
			if got, err := Real(dir + `\` + path); err == nil {
				t.Errorf("Real(%s) = %s", path, got)
			}
		}
	}
	long := filepath.Join(dir, strings.Repeat("long name of a folder\\", 20))
	if err := os.MkdirAll(long, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(long, "a.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	raw, err := OpenRaw(filepath.Join(long, "a.txt"))
	if err != nil {
		t.Fatalf("a path of %d characters: %v", len(long), err)
	}
	raw.Close()
}

func TestDrivesAreLetters(t *testing.T) {
	for c := range 256 {
		if got, want := drive(byte(c)), c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'; got != want {
			t.Errorf("%q: %t", rune(c), got)
		}
	}
}

// The ports of devices are numbered by one digit, also by a raised one.
func TestPortsAreDevices(t *testing.T) {
	for _, port := range []string{"COM", "lpt"} {
		for c := range 256 {
			if got, want := device(port+string(rune(c))), c >= '0' && c <= '9' || strings.ContainsRune("¹²³", rune(c)); got != want {
				t.Errorf("%s%c: %t", port, c, got)
			}
		}
		for _, name := range []string{port, port + "10", port + "1x", "x" + port + "1"} {
			if device(name) {
				t.Errorf("%s is a device", name)
			}
		}
	}
}
