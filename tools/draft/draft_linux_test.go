package draft

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/files"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Arg {
		os.Exit(Main(os.Args[2:]))
	}
	syscall.Umask(0o022)
	if dir := os.Getenv("PILLION_TEST_LAND"); dir != "" {
		n, _ := strconv.Atoi(os.Getenv("PILLION_TEST_POINT"))
		landUntil(dir, n)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// snapshot is all that a tree is: kinds, modes, contents, links. With times, for the same tree at two moments, also its times, inodes, numbers of
// hard links and extended attributes; without, for comparing two trees.
func snapshot(t testing.TB, root string, times bool) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		fi, err := e.Info()
		if err != nil {
			return err
		}
		s := fi.Mode().String()
		if times {
			s += " " + fi.ModTime().Format(time.RFC3339Nano) + attributesOf(path, fi)
		}
		switch {
		case fi.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil && os.Geteuid() == 0 {
				return err
			}
			// Quoting the 64 MB of a file that is too large to review takes a second, ten times that with the race detector.
			if len(b) > 1<<20 {
				s += fmt.Sprintf(" %d bytes, sha256 %x", len(b), sha256.Sum256(b))
			} else {
				s += fmt.Sprintf(" %q", b)
			}
		case fi.Mode()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(path)
			s = "link " + to
		}
		out[rel] = s
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// attributesOf is what else a file has besides its mode, time and content: inode, hard links, owner and extended attributes.
func attributesOf(path string, fi fs.FileInfo) string {
	st := fi.Sys().(*syscall.Stat_t)
	s := fmt.Sprintf(" %d %d %d:%d", st.Ino, st.Nlink, st.Uid, st.Gid)
	names := make([]byte, 4096)
	n, err := unix.Llistxattr(path, names)
	if err != nil {
		return s // a file system without extended attributes
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(names[:n]), "\x00"), "\x00") {
		value := make([]byte, 4096)
		if n, err := unix.Lgetxattr(path, name, value); err == nil {
			s += fmt.Sprintf(" %s=%q", name, value[:n])
		}
	}
	return s
}

func diffOf(a, b map[string]string) string {
	var lines []string
	for k, v := range a {
		if b[k] != v {
			lines = append(lines, fmt.Sprintf("%s: %s | %s", k, v, b[k]))
		}
	}
	for k, v := range b {
		if _, ok := a[k]; !ok {
			lines = append(lines, fmt.Sprintf("%s: - | %s", k, v))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// project writes a small tree with everything that a tree can have.
func project(t testing.TB, dir string) {
	t.Helper()
	sh(t, dir, `
		mkdir -p a/b/c d/e empty "with blank" .git/refs/heads node_modules/x build
		for i in 1 2 3 4 5; do printf 'one\ntwo %s\nthree\n' $i > a/f$i.txt; printf 'x%s\n' $i > a/b/g$i; done
		echo deep > a/b/c/deep; printf '\000\001bin' > d/bin; printf '#!/bin/sh\necho hi\n' > d/run.sh; chmod 755 d/run.sh
		ln -s ../a/f1.txt d/link; ln -s nowhere d/dangling; ln -s a dirlink; echo ro > ro.txt; chmod 444 ro.txt
		printf 'no newline' > d/e/nonl; printf 'crlf\r\nend\r\n' > d/crlf; : > d/zero; echo 'ref: refs/heads/main' > .git/HEAD
		echo q > "with blank/a:b,c\\d"; echo m > node_modules/x/m.js; echo o > build/o
		printf 'node_modules/\nbuild/\n*.log\n' > .gitignore; echo secret > d/private; chmod 600 d/private
		mkfifo d/pipe
	`)
}

func sh(t testing.TB, dir, script string) {
	t.Helper()
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%v %s", script, err, out)
	}
}

// ignored is what .gitignore of project says.
func ignored(abs string, dir bool) bool {
	name := filepath.Base(abs)
	return dir && (name == "node_modules" || name == "build") || strings.HasSuffix(name, ".log")
}

// in runs a script in a draft. Its failure is its own matter: half of them fail on purpose.
func in(t testing.TB, d *Draft, script string) string {
	t.Helper()
	start := time.Now()
	cmd, err := d.Command("bash", "-c", script)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Dir = "/"
	if d.Head().View == Copy {
		cmd.Dir = d.Root()
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if strings.Contains(out.String(), "could not be entered") {
		t.Fatalf("%v: %s", err, out.String())
	}
	if err := d.Record(start, ignored); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// apply writes a proposal the plain way.
func apply(t testing.TB, d *Draft, p *Proposal) {
	t.Helper()
	for _, f := range p.Files {
		if f.Kind == change.Create || f.Kind == change.Delete {
			continue
		}
		checkOld(t, f)
	}
	for _, f := range p.Files {
		if f.Kind == change.Delete {
			checkOld(t, f)
			if err := os.Remove(f.Path); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, f := range p.Files {
		if f.Kind == change.Delete {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(f.Path), 0o755); err != nil {
			t.Fatal(err)
		}
		mode := fs.FileMode(0o644)
		if fi, err := os.Lstat(f.Path); err == nil && fi.Mode()&fs.ModeSymlink == 0 {
			mode = fi.Mode().Perm()
		}
		if f.Mode != 0 {
			mode = fs.FileMode(f.Mode)
		}
		_ = os.Remove(f.Path)
		if f.Encoding == change.Link {
			if err := os.Symlink(f.New, f.Path); err != nil {
				t.Fatal(err)
			}
			continue
		}
		text, enc := f.New, files.Encoding(f.Encoding)
		b, err := files.Encode(strings.TrimPrefix(text, "\ufeff"), enc)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(f.Path, b, mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(f.Path, mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.LandFolders(p.Folders); err != nil {
		t.Fatal(err)
	}
	if err := d.LandBulk(p.Bulk); err != nil {
		t.Fatal(err)
	}
}

func checkOld(t testing.TB, f change.File) {
	t.Helper()
	if f.Links() {
		return
	}
	b, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := files.Decode(b); text != f.Old {
		t.Fatalf("%s: the base is %q, the file %q", f.Path, f.Old, text)
	}
}

// steps are what commands do to trees; %s are paths.
var steps = []string{
	`sed -i 's/two/TWO/' %s`, `echo more >> %s`, `rm -f %s`, `rm -rf %s`, `mv %s %s`, `cp -r %s %s`, `chmod 755 %s`, `chmod u-w %s`, `chmod 700 %s`, `mkdir -p %s/new`,
	`ln -sf /etc/passwd %s`, `ln %s %s`, `: > %s`, `touch %s`, `printf '\x00\xff' > %s`, `mkdir -p %s; echo x > %s/f`, `rm -rf %s; mkdir %s; echo again > %s/y`,
	`echo l > %s.log`, `rm -rf node_modules; mkdir node_modules; echo n > node_modules/n`, `echo b >> build/o`, `rm -rf build`, `mv a a2`, `mv a2 a`, `find %s -type f -exec sh -c 'echo z >> "$1"' _ {} \;`,
	`tar cf t.tar %s && rm -rf %s && tar xf t.tar; rm -f t.tar`, `git init -q . 2>/dev/null`, `umask 077; echo p > %s`, `mkfifo %s`, `truncate -s 100 %s`, `dd if=/dev/zero of=%s bs=10 count=1 conv=notrunc 2>/dev/null`,
	`perl -pi -e 's/e/E/' %s`, `ln -sfn d %s`, `python3 -c "import os;os.rename('%s','%s')" 2>/dev/null`,
}

var places = []string{"a/f1.txt", "a/f2.txt", "a/b/g1", "a/b", "a/b/c", "a/b/c/deep", "d/bin", "d/run.sh", "d/link", "d/dangling", "d/e", "d/e/nonl", "d/crlf", "d/zero", "empty", "new", "new/sub", "z", "'with blank'", "ro.txt", "d/private", "a/new2", "node_modules/x", ".gitignore"}

func script(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(6) {
		step := steps[r.IntN(len(steps))]
		for strings.Contains(step, "%s") {
			step = strings.Replace(step, "%s", places[r.IntN(len(places))], 1)
		}
		b.WriteString(step + "\n")
	}
	return b.String()
}

// views are those that work for this user.
func views(t *testing.T) []View {
	s := Probe()
	t.Logf("%+v", s)
	switch s.View {
	case Overlay:
		return []View{Overlay, Bind, Copy}
	case Bind:
		return []View{Bind, Copy}
	}
	return []View{Copy}
}

// Whatever runs in a draft, the tree stays as it is, to the times; and what is proposed makes of it what the same commands
// make of a copy.
func TestADraftIsACopyAndTheTreeStays(t *testing.T) {
	rounds := 40
	if testing.Short() {
		rounds = 8
	}
	for _, view := range views(t) {
		t.Run(string(view), func(t *testing.T) {
			for seed := range uint64(rounds) {
				r := rand.New(rand.NewPCG(seed, 23))
				dir := t.TempDir()
				tree, twin := filepath.Join(dir, "tree"), filepath.Join(dir, "twin")
				if err := os.Mkdir(tree, 0o755); err != nil {
					t.Fatal(err)
				}
				project(t, tree)
				sh(t, dir, "cp -a tree twin")
				before := snapshot(t, tree, true)
				d, err := Create(t.Context(), Options{Dir: filepath.Join(dir, "drafts"), Project: tree, View: view, Ignored: ignored})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = d.Drop(); _ = exec.Command("chmod", "-R", "u+rwX", dir).Run() }) // scripts take modes away
				var all string
				for range 3 {
					s := script(r)
					all += s + "--\n"
					in(t, d, "cd "+d.Root()+"\n"+s)
					cmd := exec.Command("bash", "-c", s)
					cmd.Dir = twin
					_ = cmd.Run()
				}
				if diff := diffOf(before, snapshot(t, tree, true)); diff != "" {
					t.Fatalf("seed %d: the tree was changed by\n%s\n%s", seed, all, diff)
				}
				p, err := d.Propose(ignored, 0o022)
				if err != nil {
					t.Fatalf("seed %d: %v\n%s", seed, err, all)
				}
				if len(p.Left) > 0 && !strings.Contains(all, "mkfifo") {
					t.Logf("seed %d left: %v", seed, p.Left)
				}
				left := len(p.Left) > 0
				apply(t, d, p)
				if left {
					continue // said to the person; the rest cannot be compared as a whole
				}
				got, want := snapshot(t, tree, false), snapshot(t, twin, false)
				for k := range want {
					if inGit(k) {
						delete(want, k)
					}
				}
				for k := range got {
					if inGit(k) {
						delete(got, k)
					}
				}
				if diff := diffOf(want, got); diff != "" {
					t.Fatalf("seed %d: a copy | landed, after\n%s\n%s", seed, all, diff)
				}
				if err := d.Drop(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// hostile are attempts to reach the project behind the view. $TREE is its path, $HOST the process that made the draft, with its working
// directory and its descriptor 7 in the tree; $HANDLE is the handle of a/f1.txt below the view and $OUT a folder of the same file system outside.
// The only thing that counts is the tree; most of them fail, some change the draft.
var hostile = []string{
	`umount "$TREE"; umount -l "$TREE"; echo pwned > "$TREE/a/f1.txt"`,
	`mount -t tmpfs none "$TREE"; echo pwned > "$TREE/a/f1.txt"`,
	`unshare -Urm sh -c 'umount "$TREE"; umount -l "$TREE"; echo pwned > "$TREE/a/f1.txt"'`,
	`unshare -Urm sh -c 'mkdir -p /tmp/x.$$; mount --bind / /tmp/x.$$ && echo pwned > "/tmp/x.$$$TREE/a/f1.txt"'`,
	`unshare -Urmpf sh -c 'mount -t proc proc /proc; echo pwned > "/proc/1/root$TREE/a/f1.txt"'`,
	`echo pwned > "/proc/$HOST/root$TREE/a/f1.txt"`, `echo pwned > "/proc/$HOST/cwd/a/f1.txt"`, `echo pwned > "/proc/1/root$TREE/a/f1.txt"`,
	`for p in /proc/[0-9]*; do echo pwned > "$p/root$TREE/a/f1.txt"; done`,
	`for p in /proc/[0-9]*; do for f in "$p"/fd/*; do [ -d "$f/a" ] && echo pwned > "$f/a/f1.txt"; done; done`,
	`nsenter -t "$HOST" -m sh -c 'echo pwned > "$TREE/a/f1.txt"'`, `nsenter -t 1 -a sh -c 'echo pwned > "$TREE/a/f1.txt"'`,
	`perl -e 'rename($ENV{TREE}, "$ENV{TREE}.old"); mkdir $ENV{TREE}; unlink glob("$ENV{TREE}/a/*")'`, `(sleep 0.2; echo late > "$TREE/late") & kill -9 -1`,
	`unshare -Urm sh -c 'mount --make-rshared /; mount -o remount,rw "$TREE"; umount -R "$TREE"; mount -t overlay o -o "lowerdir=$TREE,upperdir=$TREE/a,workdir=$TREE/d" "$TREE"; echo pwned > "$TREE/a/f1.txt"'`,
	`python3 -c 'import ctypes,os
c=ctypes.CDLL(None,use_errno=True)
t=os.environ["TREE"].encode()
print(c.umount2(t,2), c.syscall(428,-100,t,1|0x80000), c.syscall(429,3,b"",-100,t,4), c.setns(os.open("/proc/1/ns/mnt",0),0), c.syscall(442,-100,t,0x8000,0,0))
open(t+b"/a/f1.txt","w").write("pwned")'`,
	`chmod -R 000 "$TREE"`, `rm -rf "$TREE"`, `rm -rf "$TREE"/* "$TREE"/.[a-z]*`, `cd /; mv "$TREE" "$TREE.gone"`, `chmod -R a-w .; chmod 0 a/f1.txt a/b`,
	// A folder above the project, which no layer covers.
	`cd /; mv "$(dirname "$TREE")" "/tmp/moved.$HOST"; rm -rf "/tmp/moved.$HOST"`,
	`cd /; mv "$(dirname "$(dirname "$TREE")")" "/tmp/moved.$HOST"; rm -rf "/tmp/moved.$HOST"`,
	`python3 -c 'import ctypes,os
c=ctypes.CDLL(None,use_errno=True); t=os.environ["TREE"]; up=os.path.dirname(t); other="/tmp/other."+os.environ["HOST"]
os.mkdir(other)
print(c.syscall(316,-100,up.encode(),-100,other.encode(),2), ctypes.get_errno()); os.rmdir(other)'`,
	`cd "$OUT" && mv ../../001 "/tmp/moved.$HOST"; mv "/proc/self/root$(dirname "$TREE")" "/tmp/moved.$HOST"; rm -rf "/tmp/moved.$HOST"`,
	`find "$TREE" -exec touch -d 2001-01-01 {} +`, `chown -R 1:1 "$TREE"`, `ln "$TREE/a/f1.txt" "$TREE/hard"; echo pwned >> "$TREE/hard"`,
	`exec 9<>"$TREE/a/f1.txt"; echo pwned >&9`, `python3 -c 'import mmap,os,sys
f=open(os.environ["TREE"]+"/a/f1.txt","r+b"); m=mmap.mmap(f.fileno(),0); m[0:3]=b"PWN"; m.flush()'`,
	`python3 -c 'import ctypes,os
c=ctypes.CDLL(None,use_errno=True)
b=bytes.fromhex(os.environ["HANDLE"])
def write(where):
  for at in where:
    try: m=os.open(at,os.O_RDONLY)
    except OSError: continue
    for flags in (1,2,0x200002):
      fd=c.open_by_handle_at(m,ctypes.create_string_buffer(b,len(b)),flags)
      if fd>=0:
        try: os.write(fd,b"pwned")
        except OSError as e: print(at,e)
write(["/",os.environ["OUT"],"/proc/self/root","/tmp","/usr"])
print(c.unshare(0x10000000|0x20000))
write(["/",os.environ["OUT"],"/tmp","/usr"])
c.mount(os.environ["OUT"].encode(),b"/mnt",None,4096,None)
write(["/","/mnt"])'`,
	// Another name of the file on the same file system, or of the whole file system.
	`ln "$TREE/a/f1.txt" "$OUT/hard" && echo pwned >> "$OUT/hard"`, `cp --reflink=always "$TREE/a/f1.txt" "$OUT/copy" && echo pwned >> "$OUT/copy"`,
	`mknod "$OUT/disk" b $(stat -c '%Hd %Ld' "$OUT") && debugfs -w -R "rm $TREE/a/f1.txt" "$OUT/disk"; for d in /dev/vd? /dev/sd? /dev/nvme*; do debugfs -w -R "rm $TREE/a/f1.txt" "$d"; done`,
	`mv "$TREE/a" "$OUT/moved"; rm -rf "$OUT/moved"`, `ln -s "$TREE" "$OUT/link"; echo pwned > "$OUT/link/a/f1.txt"`,
	// Attributes, flags and locks of files that no write changes.
	`setfattr -n user.overlay.opaque -v y "$TREE/a"; setfattr -n user.overlay.redirect -v /d "$TREE/a"; setfattr -n trusted.overlay.opaque -v y "$TREE/a"; setfattr -x user.overlay.origin "$TREE/a"`,
	`python3 -c 'import os
t=os.environ["TREE"]
for n in ("user.x","user.overlay.opaque","user.overlay.metacopy","user.overlay.redirect","trusted.x","security.capability","system.posix_acl_access"):
  for f in (t,t+"/a",t+"/a/f1.txt"):
    try: os.setxattr(f,n,b"y")
    except OSError as e: print(n,e)
os.utime(t+"/a/f1.txt",ns=(1,1)); os.chown(t+"/a/f1.txt",os.getuid(),os.getgid()); os.chmod(t+"/a/f1.txt",0o4777)'`,
	`chattr +i "$TREE/a/f1.txt"; chattr +a "$TREE/a"; chattr -R +A "$TREE"`,
	// Processes outside: their memory, descriptors and threads.
	`python3 -c 'import ctypes,os
c=ctypes.CDLL(None,use_errno=True); h=int(os.environ["HOST"])
print(c.ptrace(16,h,0,0), c.syscall(434,h,0), c.syscall(438,3,7,0), c.kill(h,9))
for p in os.listdir("/proc"):
  if p.isdigit() and int(p)!=os.getpid():
    c.ptrace(16,int(p),0,0)
    for n in ("mem","root"+os.environ["TREE"]+"/a/f1.txt","cwd/a/f1.txt","fd/7/a/f1.txt","map_files"):
      try: open("/proc/%s/%s"%(p,n),"r+b").write(b"pwned")
      except OSError: pass'`,
	`exec 8</; for up in .. ../.. ../../../../../../..; do echo pwned > "/proc/self/fd/8/$up/$TREE/a/f1.txt"; done; cd /proc/self/fd/8 && echo pwned > ".$TREE/a/f1.txt"`,
	// The mount interface of later kernels, and helpers that are set-user-ID.
	`python3 -c 'import ctypes,os
c=ctypes.CDLL(None,use_errno=True); t=os.environ["TREE"].encode(); o=os.environ["OUT"].encode()
f=c.syscall(430,b"overlay",0)
for k,v in ((b"lowerdir",t),(b"upperdir",o),(b"workdir",o)): c.syscall(431,f,1,k,v,0)
print(f, c.syscall(431,f,6,0,0,0), c.syscall(432,f,0,0))
print(c.syscall(433,-100,t,0), c.syscall(155,t,t), c.mount(o,t,None,4096|16384,None), c.chroot(o), c.syscall(467,-100,t,1,0,0))'`,
	`fusermount3 -u -z "$TREE"; fusermount -u -z "$TREE"; su -c "umount -l $TREE" </dev/null; sudo -n umount -l "$TREE"; pkexec umount -l "$TREE" </dev/null; echo pwned > "$TREE/a/f1.txt"`,
	`setfattr -n user.x -v 1 "$TREE/a/f1.txt"`, `truncate -s 0 "$TREE/a/f1.txt"`, `fallocate -p -o 0 -l 4 "$TREE/a/f1.txt"`,
	`kill -9 "$HOST"`, `rm -rf "$DRAFTS"`, `echo '{}' > "$DRAFTS"/*/draft.json`, `ls "$DRAFTS"/*/upper && echo pwned > "$DRAFTS"/*/base/x`,
}

// handleOf is the handle of a file as open_by_handle_at(2) reads it, in hexadecimal digits: the number of its bytes, its type, the bytes.
func handleOf(t *testing.T, path string) string {
	t.Helper()
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	if err != nil {
		t.Logf("%s has no handle: %v", path, err)
		return ""
	}
	b := binary.NativeEndian.AppendUint32(nil, uint32(h.Size()))
	b = binary.NativeEndian.AppendUint32(b, uint32(h.Type()))
	return hex.EncodeToString(append(b, h.Bytes()...))
}

func TestHostileCommandsDoNotReachTheTree(t *testing.T) {
	for _, view := range views(t) {
		if view == Copy {
			continue // nothing but the sandbox keeps a command from another path; SECURITY.md says so
		}
		t.Run(string(view), func(t *testing.T) {
			dir := t.TempDir()
			tree, drafts := filepath.Join(dir, "tree"), filepath.Join(dir, "drafts")
			if err := os.Mkdir(tree, 0o755); err != nil {
				t.Fatal(err)
			}
			project(t, tree)
			out := filepath.Join(dir, "out")
			if err := os.Mkdir(out, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("TREE", tree)
			t.Setenv("DRAFTS", drafts)
			t.Setenv("OUT", out)
			t.Setenv("HANDLE", handleOf(t, filepath.Join(tree, "a/f1.txt")))
			before := snapshot(t, tree, true)
			for _, script := range hostile {
				// A process of its own stands for the program that made the draft, so that killing it does not end the test.
				host := exec.Command("bash", "-c", "exec 7<.; exec sleep 1000")
				host.Dir = tree
				if err := host.Start(); err != nil {
					t.Fatal(err)
				}
				d, err := Create(t.Context(), Options{Dir: drafts, Project: tree, View: view, Ignored: ignored})
				if err != nil {
					t.Fatal(err)
				}
				said := in(t, d, fmt.Sprintf("export HOST=%d\ncd \"$TREE\"\n%s", host.Process.Pid, script))
				if diff := diffOf(before, snapshot(t, tree, true)); diff != "" {
					t.Errorf("%s\nchanged the tree:\n%s\nit said: %s", script, diff, said)
				}
				if _, err := Load(d.Dir); err != nil {
					t.Errorf("%s\nreached the draft's own data: %v", script, err)
				}
				if _, err := d.Propose(ignored, 0o022); err != nil {
					t.Errorf("%s\ncannot be proposed: %v", script, err)
				}
				_ = host.Process.Kill()
				_ = host.Wait()
				if err := d.Drop(); err != nil {
					t.Errorf("%s\ncannot be dropped: %v", script, err)
				}
			}
		})
	}
}

// The same project under another name, by a bind mount, is the draft there too.
func TestOtherNamesOfTheProjectShowTheDraft(t *testing.T) {
	if os.Geteuid() != 0 || Probe().View != Overlay {
		t.Skip("needs root, to mount")
	}
	dir := t.TempDir()
	tree, other, part := filepath.Join(dir, "tree"), filepath.Join(dir, "other"), filepath.Join(dir, "part")
	for _, at := range []string{tree, other, part} {
		if err := os.Mkdir(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	project(t, tree)
	for from, to := range map[string]string{dir: other, filepath.Join(tree, "a"): part} {
		if err := syscall.Mount(from, to, "", syscall.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(to, syscall.MNT_DETACH) })
	}
	before := snapshot(t, tree, true)
	d, err := Create(t.Context(), Options{Dir: filepath.Join(dir, "drafts"), Project: tree})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Drop()
	in(t, d, "echo x >> "+other+"/tree/a/f1.txt; echo y >> "+part+"/f2.txt")
	if diff := diffOf(before, snapshot(t, tree, true)); diff != "" {
		t.Errorf("written through another name:\n%s", diff)
	}
	list, err := d.Changes(ignored)
	if err != nil || len(list) != 2 {
		t.Errorf("%v %+v", err, list)
	}
}

// A file system that is mounted in the project is shown, and cannot be written: nothing would keep that from the project.
func TestMountsInTheProjectAreReadOnly(t *testing.T) {
	if os.Geteuid() != 0 || Probe().View != Overlay {
		t.Skip("needs root, to mount")
	}
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	if err := os.MkdirAll(filepath.Join(tree, "mnt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", filepath.Join(tree, "mnt"), "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(filepath.Join(tree, "mnt"), syscall.MNT_DETACH) })
	sh(t, tree, "echo seen > mnt/f")
	d, err := Create(t.Context(), Options{Dir: filepath.Join(dir, "drafts"), Project: tree})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Drop()
	if out := in(t, d, "cat "+tree+"/mnt/f; echo x > "+tree+"/mnt/f"); !strings.HasPrefix(out, "seen") || !strings.Contains(out, "Read-only") {
		t.Errorf("%q", out)
	}
}

// What a command leaves running ends with it: it is in the draft's namespace of processes.
func TestDaemonsEndWithTheDraft(t *testing.T) {
	if !Probe().PIDs {
		t.Skip("there is no namespace of processes here")
	}
	dir := t.TempDir()
	if _, err := Create(t.Context(), Options{Dir: filepath.Join(dir, "drafts"), Project: dir + "/"}); err == nil {
		t.Fatal("a project that holds its own drafts was taken")
	}
	tree := filepath.Join(dir, "tree")
	if err := os.Mkdir(tree, 0o755); err != nil {
		t.Fatal(err)
	}
	d, err := Create(t.Context(), Options{Dir: filepath.Join(dir, "drafts"), Project: tree})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Drop()
	mark := fmt.Sprintf("31%d", os.Getpid())
	in(t, d, "setsid nohup sleep "+mark+" >/dev/null 2>&1 & disown; sleep 0.1")
	out, _ := exec.Command("ps", "-eo", "args").Output()
	if strings.Contains(string(out), "sleep "+mark) {
		t.Errorf("it still runs")
	}
}

// An editor's unsaved text is what the draft begins from, and the file on the disk is not.
func TestUnsavedTextsAreTheBase(t *testing.T) {
	for _, view := range views(t) {
		dir := t.TempDir()
		tree := filepath.Join(dir, "tree")
		if err := os.Mkdir(tree, 0o755); err != nil {
			t.Fatal(err)
		}
		project(t, tree)
		d, err := Create(t.Context(), Options{Dir: filepath.Join(dir, "drafts"), Project: tree, View: view, Ignored: ignored})
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"a/b/g1", "d/crlf"} {
			if err := d.LayIn(filepath.Join(tree, path), []byte("typed\nnot saved\n")); err != nil {
				t.Fatal(err)
			}
		}
		in(t, d, "sed -i s/typed/TYPED/ "+d.Root()+"/a/b/g1")
		p, err := d.Propose(ignored, 0o022)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Files) != 1 || p.Files[0].Old != "typed\nnot saved\n" || p.Files[0].New != "TYPED\nnot saved\n" {
			t.Errorf("%s: %+v", view, p.Files)
		}
		_ = d.Drop()
	}
}

// The person writes the tree while the draft is there: what the draft began from is kept, and a file that was written while
// a command read it is said to be unsure.
func TestTheBaseIsKeptWhenTheTreeGoesOn(t *testing.T) {
	for _, view := range views(t) {
		dir := t.TempDir()
		tree := filepath.Join(dir, "tree")
		if err := os.Mkdir(tree, 0o755); err != nil {
			t.Fatal(err)
		}
		project(t, tree)
		d, err := Create(t.Context(), Options{Dir: filepath.Join(dir, "drafts"), Project: tree, View: view, Ignored: ignored})
		if err != nil {
			t.Fatal(err)
		}
		in(t, d, "cd "+d.Root()+"; sed -i 's/two 1/TWO/' a/f1.txt; rm a/f2.txt")
		sh(t, tree, "echo person >> a/f1.txt; echo person >> a/f2.txt")
		p, err := d.Propose(ignored, 0o022)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.Files) != 2 || p.Files[0].Old != "one\ntwo 1\nthree\n" || p.Files[1].Kind != change.Delete || p.Files[1].Old != "one\ntwo 2\nthree\n" || len(p.Notes) != 0 {
			t.Errorf("%s: %+v %v", view, p.Files, p.Notes)
		}
		// The next call begins before the person writes, and ends after.
		start := time.Now()
		cmd, err := d.Command("bash", "-c", "echo draft >> "+d.Root()+"/a/f3.txt")
		if err != nil {
			t.Fatal(err)
		}
		if view == Copy {
			cmd.Dir = d.Root()
		}
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		later := start.Add(time.Second)
		if err := os.Chtimes(filepath.Join(tree, "a/f3.txt"), later, later); err != nil {
			t.Fatal(err)
		}
		if err := d.Record(start, ignored); err != nil {
			t.Fatal(err)
		}
		if p, err = d.Propose(ignored, 0o022); err != nil || len(p.Notes) != 1 || !strings.Contains(p.Notes[0], "a/f3.txt") {
			t.Errorf("%s: %v %v", view, err, p.Notes)
		}
		// Nobody knows which text the draft began from: both are shown, and what was written meanwhile is no base that the draft goes back from.
		for _, f := range p.Files {
			if filepath.Base(f.Path) == "f3.txt" && (f.Kind != change.Create || f.Old != "" || f.New != "one\ntwo 3\nthree\ndraft\n") {
				t.Errorf("%s: %+v", view, f)
			}
		}
		_ = d.Drop()
	}
}

// What the person does to folders while the draft is there is theirs: modes, and files in a folder that the draft has removed.
func TestWhatThePersonDoesToFoldersStays(t *testing.T) {
	for _, view := range views(t) {
		dir := t.TempDir()
		tree := filepath.Join(dir, "tree")
		if err := os.Mkdir(tree, 0o755); err != nil {
			t.Fatal(err)
		}
		project(t, tree)
		d, err := Create(t.Context(), Options{Dir: filepath.Join(dir, "drafts"), Project: tree, View: view, Ignored: ignored})
		if err != nil {
			t.Fatal(err)
		}
		in(t, d, "cd "+d.Root()+"; chmod 700 a; chmod 750 empty; echo x >> d/e/nonl; rm -rf a/b; rm -rf 'with blank'; mkdir 'with blank'; echo new > 'with blank/n'")
		sh(t, tree, "chmod 711 a; chmod 711 d d/e; rmdir empty; echo mine > a/b/mine; echo mine > 'with blank/mine'")
		before := snapshot(t, tree, false)
		in(t, d, "true") // a second call records again
		p, err := d.Propose(ignored, 0o022)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range p.Files {
			if filepath.Base(f.Path) == "mine" {
				t.Errorf("%s: the person's file is in the proposal: %+v", view, f)
			}
		}
		for _, f := range p.Folders {
			if f.Rel == "d" || f.Rel == "d/e" || f.Rel == "a" && (f.Base.Mode != 0o755 || f.Mode != 0o700) || f.Rel == "empty" && f.Base.Mode != 0o755 {
				t.Errorf("%s: %+v", view, f)
			}
		}
		// The person's files would make checkOld fail; only the folders are landed.
		if err := d.LandFolders(p.Folders); err != nil {
			t.Fatal(err)
		}
		after := snapshot(t, tree, false)
		for _, rel := range []string{"a", "d", "d/e", "a/b/mine", "with blank/mine"} {
			if after[rel] != before[rel] {
				t.Errorf("%s: %s is %q, was %q", view, rel, after[rel], before[rel])
			}
		}
		_ = d.Drop()
	}
}

// A clone has the project as it was copied. What the person has written since is not the base of what the draft did: the proposal must not
// look like an edit of that, which takes the person's lines back.
func TestAClonesBaseIsWhatWasCopied(t *testing.T) {
	for _, view := range views(t) {
		if view == Overlay {
			continue // it shows the person's text to the draft
		}
		dir := t.TempDir()
		tree := filepath.Join(dir, "tree")
		if err := os.Mkdir(tree, 0o755); err != nil {
			t.Fatal(err)
		}
		project(t, tree)
		d, err := Create(t.Context(), Options{Dir: filepath.Join(dir, "drafts"), Project: tree, View: view, Ignored: ignored})
		if err != nil {
			t.Fatal(err)
		}
		sh(t, tree, "echo person >> a/f1.txt; echo person > n.txt; rm a/f5.txt; echo person >> a/f4.txt; ln -sfn /tmp d/link")
		in(t, d, "cd "+d.Root()+"; echo draft >> a/f1.txt; echo draft > n.txt; echo draft >> a/f5.txt; rm a/f4.txt; echo draft >> a/f2.txt; ln -sfn ../a/f2.txt d/link")
		p, err := d.Propose(ignored, 0o022)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]change.File{}
		for _, f := range p.Files {
			rel, _ := filepath.Rel(tree, f.Path)
			got[rel] = f
		}
		for rel, want := range map[string]change.File{
			"a/f1.txt": {Kind: change.Create, New: "one\ntwo 1\nthree\ndraft\n"},
			"n.txt":    {Kind: change.Create, New: "draft\n"},
			"a/f5.txt": {Kind: change.Create, New: "one\ntwo 5\nthree\ndraft\n"},
			"a/f4.txt": {Kind: change.Delete}, // landing deletes no text but Old
			"a/f2.txt": {Kind: change.Edit, Old: "one\ntwo 2\nthree\n", New: "one\ntwo 2\nthree\ndraft\n"},
			"d/link":   {Kind: change.Edit, Old: "../a/f1.txt", New: "../a/f2.txt"},
		} {
			if f := got[rel]; f.Kind != want.Kind || f.Old != want.Old || f.New != want.New || f.Mode != 0 {
				t.Errorf("%s: %s: %+v", view, rel, f)
			}
		}
		if len(got) != 6 {
			t.Errorf("%s: %d files", view, len(got))
		}
		_ = d.Drop()
	}
}

// As another user, without any right: everything again, and a tree with files of somebody else, over which no layer works.
func TestAsAnOrdinaryUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this user is an ordinary one already")
	}
	dir, err := os.MkdirTemp("/tmp", "draft-user-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	const uid = 12345
	tree := filepath.Join(dir, "foreign")
	if err := os.WriteFile(filepath.Join(dir, "test"), program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(tree, "sub"), 0o777); err != nil {
		t.Fatal(err)
	}
	sh(t, tree, "echo mine > a; echo theirs > sub/b; chmod 666 sub/b")
	for path, owner := range map[string]int{dir: uid, tree: uid, filepath.Join(tree, "a"): uid, filepath.Join(tree, "sub"): uid, filepath.Join(tree, "sub/b"): 777} {
		if err := os.Chown(path, owner, owner); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "test"), "-test.short", "-test.run", "^(TestADraftIsACopy|TestHostile|TestUnsaved|TestTheBase|TestDaemons|TestForeign|TestACommit|TestSubmodules|TestLinksOut|TestAnIgnored|TestTheProjectsBranch|TestADraftBelongs|TestTheSize)")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir, "HOME="+dir, "PILLION_FOREIGN="+tree)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func TestForeignOwnersAreFoundBeforeTheFirstCommand(t *testing.T) {
	tree := os.Getenv("PILLION_FOREIGN")
	if tree == "" {
		t.Skip("runs within TestAsAnOrdinaryUser")
	}
	before := snapshot(t, tree, true)
	d, err := Create(t.Context(), Options{Dir: filepath.Join(t.TempDir(), "drafts"), Project: tree})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Drop()
	h := d.Head()
	if h.View == Overlay || !strings.Contains(h.Why, "another user") {
		t.Fatalf("%+v", h)
	}
	// What a person is told beforehand is what Create does, and trying leaves nothing.
	above := filepath.Dir(d.Dir)
	s, err := SupportOf(t.Context(), Options{Dir: above, Project: tree})
	if err != nil || s.View != h.View || s.Why != h.Why {
		t.Errorf("%+v %v", s, err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(above), "draft-try-*")); len(left) > 0 {
		t.Errorf("%q stays", left)
	}
	if _, err := SupportOf(t.Context(), Options{Dir: filepath.Join(tree, "drafts"), Project: tree}); !errors.Is(err, ErrPlace) {
		t.Errorf("a project that contains the drafts: %v", err)
	}
	if out := in(t, d, "echo more >> "+d.Root()+"/sub/b && cat "+d.Root()+"/sub/b"); out != "theirs\nmore\n" {
		t.Errorf("%q", out)
	}
	if diff := diffOf(before, snapshot(t, tree, true)); diff != "" {
		t.Error(diff)
	}
}

// bigFile writes a file that is too large to be reviewed, with a text at its beginning. It has holes and uses little of the disk.
func bigFile(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, files.MaxText+4096); err != nil {
		t.Fatal(err)
	}
}

// A file that is too large to merge never takes the place of what the person has written meanwhile: both versions stay.
func TestABigFileThatBothChanged(t *testing.T) {
	begins := func(path string) string {
		f, err := os.Open(path)
		if err != nil {
			return ""
		}
		defer f.Close()
		b := make([]byte, 5)
		n, _ := f.Read(b)
		return strings.Trim(string(b[:n]), "\x00")
	}
	for _, view := range views(t) {
		tree := filepath.Join(t.TempDir(), "tree")
		if err := os.Mkdir(tree, 0o755); err != nil {
			t.Fatal(err)
		}
		at := func(name string) string { return filepath.Join(tree, name) }
		for _, name := range []string{"same", "theirs", "gone", "removed", "kept"} {
			bigFile(t, at(name), "start")
		}
		d := made(t, tree, view)
		in(t, d, "for f in same theirs gone; do printf draft | dd of=$f conv=notrunc status=none; done; rm removed kept; truncate -s 70M new; printf draft | dd of=new conv=notrunc status=none")
		bigFile(t, at("theirs"), "mine!")
		bigFile(t, at("kept"), "mine!")
		bigFile(t, at("new"), "mine!")
		if err := os.Remove(at("gone")); err != nil {
			t.Fatal(err)
		}
		_, p := changed(t, d)
		if notes := strings.Join(p.Notes, "\n"); !strings.Contains(notes, "theirs was changed in the project meanwhile") || strings.Contains(notes, "same was") {
			t.Errorf("%s: %s", view, notes)
		}
		said := ""
		for _, c := range p.Bulk {
			said += c.Summary() + "; "
		}
		if want := "gone (67 MB, changed); kept (removed); new (73 MB, new); removed (removed); same (67 MB, changed); theirs (67 MB, changed); "; said != want {
			t.Errorf("%s: %s", view, said)
		}
		err := d.LandBulk(p.Bulk)
		beside := "." + d.Head().ID
		for _, want := range []string{"theirs was changed in the project meanwhile and stays as it is; the draft's version is beside it as theirs" + beside, "new was changed", "kept is not removed: it was changed"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q is not in: %v", view, want, err)
			}
		}
		got := ""
		list, _ := os.ReadDir(tree)
		for _, e := range list {
			got += strings.ReplaceAll(e.Name(), beside, ".ID") + "=" + begins(at(e.Name())) + " "
		}
		if want := "gone=draft kept=mine! new=mine! new.ID=draft same=draft theirs=mine! theirs.ID=draft "; got != want {
			t.Errorf("%s: %s\nwant %s", view, got, want)
		}
	}
}

// Nothing lands through a link that took the place of a folder meanwhile, and nothing outside of the project changes.
func TestLandingIsHeldToTheProject(t *testing.T) {
	for _, view := range views(t) {
		dir := t.TempDir()
		tree, outside := filepath.Join(dir, "tree"), filepath.Join(dir, "outside")
		sh(t, dir, "mkdir -p tree/a/build tree/b tree/c tree/e outside/build outside/sub; echo keep > outside/keep; echo o > tree/a/build/o; chmod 755 outside tree/c")
		d := made(t, tree, view)
		in(t, d, "echo x > a/build/o; mkdir b/sub; chmod 700 c; rmdir e; mkdir -p build; echo y > build/y")
		_, p := changed(t, d)
		sh(t, dir, "for f in a b c e; do mv tree/$f old.$f; ln -s ../outside tree/$f; done; ln -s ../outside tree/build")
		before := snapshot(t, outside, false)
		if err := errors.Join(d.LandFolders(p.Folders), d.LandBulk(p.Bulk)); err == nil {
			t.Errorf("%s: no error", view)
		}
		if diff := diffOf(before, snapshot(t, outside, false)); diff != "" {
			t.Errorf("%s: outside of the project: %s", view, diff)
		}
	}
}

// A folder in place of a file, and the reverse, land as a whole, unless the person has changed what they replace.
func TestFilesInPlaceOfFolders(t *testing.T) {
	for _, view := range views(t) {
		for _, meanwhile := range []bool{false, true} {
			dir := t.TempDir()
			tree := filepath.Join(dir, "tree")
			sh(t, dir, "mkdir -p tree/f/sub tree/l/node_modules tree/n; echo 1 > tree/f/one; echo 2 > tree/f/sub/two; echo 3 > tree/l/three; echo m > tree/l/node_modules/m; echo file > tree/file; ln -s f tree/link; echo x > tree/n/x")
			d := made(t, tree, view)
			in(t, d, "rm -rf f; echo plain > f; rm -rf l; ln -s n l; rm file; mkdir -p file/a; echo new > file/a/b; rm link; mkdir link; chmod 700 link")
			sh(t, dir, "cp -a tree twin; cd twin; rm -rf f; echo plain > f; rm -rf l; ln -s n l; rm file; mkdir -p file/a; echo new > file/a/b; rm link; mkdir link; chmod 700 link")
			if meanwhile {
				sh(t, dir, "echo mine > tree/f/sub/mine; echo mine >> tree/l/three; echo mine > tree/file; ln -sfn n tree/link")
			}
			before := snapshot(t, tree, false)
			names, p := changed(t, d)
			if len(names) > 0 || len(p.Left) > 0 {
				t.Errorf("%s: %v %v", view, names, p.Left)
			}
			said := ""
			for i := range p.Bulk {
				said += p.Bulk[i].Summary() + "; "
			}
			if want := "f (6 bytes, in place of a folder); file (1 file, 4 bytes, in place of a file); l (a link to n, in place of a folder); link (0 files, 0 bytes, in place of a file); "; said != want {
				t.Errorf("%s: %s", view, said)
			}
			err := d.LandBulk(p.Bulk)
			want := snapshot(t, filepath.Join(dir, "twin"), false)
			got := snapshot(t, tree, false)
			if meanwhile {
				want = before
				for name := range got {
					if strings.Contains(name, d.Head().ID) {
						delete(got, name)
					}
				}
				if err == nil || strings.Count(err.Error(), "stays as it is") != 4 {
					t.Errorf("%s: %v", view, err)
				}
			} else if err != nil {
				t.Errorf("%s: %v", view, err)
			}
			if diff := diffOf(want, got); diff != "" {
				t.Errorf("%s, changed meanwhile %v: %s", view, meanwhile, diff)
			}
		}
	}
}

// The mode of the project's own folder is a change as well. The person's later change of it wins.
func TestTheModeOfTheProjectsFolder(t *testing.T) {
	for _, view := range views(t) {
		for _, mode := range []fs.FileMode{0o750, 0o711} {
			tree := filepath.Join(t.TempDir(), "tree")
			if err := os.Mkdir(tree, 0o755); err != nil {
				t.Fatal(err)
			}
			d := made(t, tree, view)
			if _, p := changed(t, d); !p.Empty() {
				t.Errorf("%s: changed before anything ran: %+v", view, p)
			}
			in(t, d, "chmod 750 .")
			_, p := changed(t, d)
			if len(p.Folders) != 1 || p.Folders[0].Summary() != "./ (mode 0750)" {
				t.Fatalf("%s: %+v", view, p.Folders)
			}
			if mode != 0o750 {
				if err := os.Chmod(tree, mode); err != nil {
					t.Fatal(err)
				}
			}
			if err := d.LandFolders(p.Folders); err != nil {
				t.Error(err)
			}
			if fi, err := os.Stat(tree); err != nil || fi.Mode().Perm() != mode {
				t.Errorf("%s: %v %v, want %v", view, fi.Mode(), err, mode)
			}
		}
	}
}
