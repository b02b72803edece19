package custom

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A bundle is made once for the same files, by whichever process; anything that would make another one is noticed.
func TestBundlesAreKept(t *testing.T) {
	p := &place{t: t, dir: t.TempDir()}
	host := t.TempDir()
	p.put("tools/a.ts", `import { word } from "./lib"; import { z } from "zod"; export default { word, z }`)
	p.put("tools/lib.ts", `export const word: string = "one"`)
	path := filepath.Join(p.dir, "tools", "a.ts")
	long := time.Now().Add(-time.Hour)
	settle := func() { // as if everything had been there for a while
		_ = filepath.WalkDir(p.dir, func(path string, _ os.DirEntry, _ error) error { return os.Chtimes(path, long, long) })
	}
	made := func() time.Time {
		t.Helper()
		b, err := bundleKept(path, host)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(b.code)
		if err != nil || b.passing {
			t.Fatal(err, b)
		}
		return info.ModTime()
	}
	holds := func(want string) {
		t.Helper()
		b, err := bundleKept(path, host)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := os.ReadFile(b.code); !strings.Contains(string(text), want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	settle()
	first := made()
	if again := made(); !again.Equal(first) {
		t.Error("bundled again without need")
	}
	holds(`"one"`)
	p.put("tools/lib.ts", `export const word: string = "two"`) // of the same length
	settle()
	holds(`"two"`)
	holds("zod.mjs")
	p.put("node_modules/zod/package.json", `{"name": "zod", "main": "x.js"}`) // from now on there is a zod of the person's
	p.put("node_modules/zod/x.js", `exports.z = "theirs"`)
	holds(`"theirs"`)
	p.put("tools/lib.js", "") // stands behind lib.ts, so nothing changes; but it is looked at
	holds(`"two"`)
	future := time.Now().Add(time.Hour)
	if err := os.Chtimes(path, future, future); err != nil {
		t.Fatal(err)
	}
	p.put("tools/lib.ts", `export const word: string = "four"`)
	if b, err := bundleKept(path, host); err != nil || !b.passing || b.stamp != "" { // it may be changing
		t.Errorf("%+v %v", b, err)
	}
}
