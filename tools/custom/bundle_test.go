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

// A package finds the files beside each of its modules by import.meta and __dirname, wherever the bundle lies. Texts that only mention
// the words stay, TypeScript and CommonJS included.
func TestModulesKnowTheirOwnPlace(t *testing.T) {
	p := newPlace(t, map[string]string{
		"tools/where.ts": `import { readFileSync } from "node:fs"
import { inner, says } from "../lib/deep/inner"
import common from "../lib/common.cjs"
export default { description: "d", args: {}, execute: async () => [
  readFileSync(new URL("./beside.txt", import.meta.url), "utf8"), inner(), common.read(), says, import.meta.dirname.endsWith("/tools"), import.meta.filename.endsWith("/tools/where.ts")].join("|") }`,
		"tools/beside.txt": "first",
		"lib/deep/inner.ts": `import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { join, dirname } from "node:path"
const here: string = dirname(fileURLToPath(import.meta.url))
export const inner = (): string => readFileSync(join(here, "beside.txt"), "utf8") + (import.meta.dir === here)
export const says = "import.meta.url and __dirname"`,
		"lib/deep/beside.txt": "second",
		"lib/common.cjs":      `exports.read = () => require("node:fs").readFileSync(__dirname + "/third.txt", "utf8") + __filename.endsWith("/lib/common.cjs")`,
		"lib/third.txt":       "third",
	})
	got, err := p.run(t.Context(), "where", `{}`, nil)
	if want := "first|secondtrue|thirdtrue|import.meta.url and __dirname|true|true"; err != nil || got.Output != want {
		t.Errorf("%q %v, want %q; %s", got.Output, err, want, p.said())
	}
}

// What there is of Bun works in Node; what there is not costs no other tool of its file.
func TestMoreOfBun(t *testing.T) {
	p := newPlace(t, map[string]string{
		"tools/bun.ts": `import { Database } from "bun:sqlite"
import { Glob, spawnSync } from "bun"
export const rest = { description: "d", args: {}, execute: async () => {
  const r = spawnSync(["sh", "-c", "echo out; exit 3"])
  let none = ""
  try { Bun.spawnSync(["/no/such/program"]) } catch (e) { none = e.code }
  return [r.exitCode, r.success, String(r.stdout).trim(), none, [...new Glob("src/**/*.{ts,js}").scanSync({ cwd: import.meta.dir + "/.." })].sort().join(","), new Bun.Glob("a[!b]c?").match("axcd"), new Glob("a.b").match("axb")].join("|")
} }
export const database = { description: "d", args: {}, execute: async () => new Database("x.db").filename }`,
		"src/a.ts": "", "src/deep/b.js": "", "src/deep/c.go": "", "src/.hidden/d.ts": "",
	})
	got, err := p.run(t.Context(), "bun_rest", `{}`, nil)
	if want := "3|false|out|ENOENT|src/a.ts,src/deep/b.js|true|false"; err != nil || got.Output != want {
		t.Errorf("%q %v, want %q; %s", got.Output, err, want, p.said())
	}
	if _, err := p.run(t.Context(), "bun_database", `{}`, nil); err == nil || !strings.Contains(err.Error(), "bun:sqlite is not here") {
		t.Errorf("%v", err)
	}
}
