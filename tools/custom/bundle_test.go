package custom

import (
	"os"
	"os/exec"
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
		b, err := bundleKept(path, host, false)
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
		b, err := bundleKept(path, host, false)
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
	if b, err := bundleKept(path, host, false); err != nil || !b.passing || b.stamp != "" { // it may be changing
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
import umd from "both"
const required = import.meta.require("node:path").sep
export default { description: "d", args: {}, execute: async () => [umd, required,
  readFileSync(new URL("./beside.txt", import.meta.url), "utf8"), inner(), common.read(), says, import.meta.dirname.endsWith("/tools"), import.meta.filename.endsWith("/tools/where.ts")].join("|") }`,
		"node_modules/both/package.json": `{"main": "./umd.js", "module": "./esm.js"}`,
		"node_modules/both/umd.js":       `(function (factory) { module.exports = factory(require, exports) })(function (require) { return require("./part").default })`,
		"node_modules/both/part.js":      `exports.default = "umd"`,
		"node_modules/both/esm.js":       `export default "esm"`,
		"tools/beside.txt":               "first",
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
	if want := "esm|/|first|secondtrue|thirdtrue|import.meta.url and __dirname|true|true"; err != nil || got.Output != want {
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
	if _, err := p.run(t.Context(), "bun_database", `{}`, nil); err == nil || !strings.Contains(err.Error(), "bun:sqlite.Database is not here") {
		t.Errorf("%v", err)
	}
}

// Names of Bun's modules that Node has nothing for cost only the tools that use them, and say how Bun is had. What is imported as a file or
// as text, or has an ending that no JavaScript has, is loaded as Bun loads it.
func TestWhatOnlyBunHas(t *testing.T) {
	p := newPlace(t, map[string]string{
		"tools/ask.ts": `import { hash, semver, serve, YAML } from "bun"
import { dlopen, FFIType, suffix } from "bun:ffi"
import library from "../lib/native.dll" with { type: "file" }
import other from "../lib/data.bin"
import prompt from "../lib/prompt.md" with { type: "text" }
import script from "../lib/script.js" with { type: "text" }
const types = { add: { args: [FFIType.i32], returns: FFIType.ptr } }
export const files = { description: "d", args: {}, execute: async () => [library.endsWith("/lib/native.dll"), other.endsWith("/lib/data.bin"), prompt, script, typeof suffix, types.add.returns].join("|") }
export const hashes = { description: "d", args: {}, execute: async () => hash.wyhash("x") }
export const opens = { description: "d", args: {}, execute: async () => dlopen("x", types) }
export const orders = { description: "d", args: {}, execute: async () => semver.order("1.0.0", "2.0.0") + String(Bun.YAML.parse("a: 1")) + serve + YAML }`,
		"lib/native.dll": "MZ\x00\x01", "lib/data.bin": "\x00", "lib/prompt.md": "# Read this", "lib/script.js": "let not = valid(",
	})
	if got, err := p.run(t.Context(), "ask_files", `{}`, nil); err != nil || got.Output != "true|true|# Read this|let not = valid(|string|ptr" {
		t.Errorf("%q %v; %s", got.Output, err, p.said())
	}
	for tool, what := range map[string]string{"hashes": "Bun.hash.wyhash", "opens": "bun:ffi.dlopen", "orders": "Bun.semver.order"} {
		if _, err := p.run(t.Context(), "ask_"+tool, `{}`, nil); err == nil || !strings.Contains(err.Error(), what+` is not here: this runs in Node. Set js_runtime to "bun@`) {
			t.Errorf("%s: %v", tool, err)
		}
	}
}

// js_runtime may name a Bun that npm installs: programs that do not run on this machine are passed over. Where Bun itself is at hand, its
// own modules work.
func TestAnInstalledBun(t *testing.T) {
	p := newPlace(t, map[string]string{"tools/ask.ts": `import { hash, semver } from "bun"
import { Database } from "bun:sqlite"
export default { description: "d", args: {}, execute: async () => [typeof hash("x"), semver.order("1.0.0", "2.0.0"), new Database(":memory:").query("select 7 as n").get().n, Bun.version.length > 0].join("|") }`,
	}, func(o *Options) { o.Runtime = "bun@1.4.4" })
	installed := filepath.Join(p.o.CacheDir, "plugins", "bun@1_4_4", "node_modules")
	put := func(path, text string, mode os.FileMode) {
		t.Helper()
		path = filepath.Join(installed, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	put("bun/package.json", "{}", 0o644)
	put("@oven/bun-linux-other/bin/bun", "\x7fELF of another machine", 0o755)
	if _, _, err := p.found(t.Context()); err == nil || !strings.Contains(err.Error(), "1 tried") {
		t.Errorf("%v", err)
	}
	real, err := exec.LookPath("bun")
	if err != nil {
		real = os.Getenv("PILLION_TEST_BUN")
	}
	if real == "" {
		put("@oven/bun-this/bin/bun", "#!/bin/sh\necho 1.4.4\n", 0o755)
		if program, args, err := p.found(t.Context()); err != nil || program != filepath.Join(installed, "@oven/bun-this/bin/bun") || len(args) != 1 {
			t.Errorf("%s %q %v", program, args, err)
		}
		t.Skip("bun is not installed (PILLION_TEST_BUN names one)")
	}
	if err := os.MkdirAll(filepath.Join(installed, "@oven/bun-this/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, filepath.Join(installed, "@oven/bun-this/bin/bun")); err != nil {
		t.Fatal(err)
	}
	if got, err := p.run(t.Context(), "ask", `{}`, nil); err != nil || got.Output != "bigint|-1|7|true" {
		t.Errorf("%q %v; %s", got.Output, err, p.said())
	}
}
