import assert from "node:assert/strict";
import { delimiter, join } from "node:path";
import test from "node:test";
import { Backoff } from "../../src/common/backoff";
import { patience, Watch } from "../../src/common/watch";
import { compareReleases } from "../../src/common/releases";
import { explainPrompt, fixPrompt } from "../../src/common/ask";
import { findBinary } from "../../src/host/binary";

const search = (o: Partial<Parameters<typeof findBinary>[0]>, there: string[]) =>
  findBinary({ setting: "", extensionPath: "/ext", platform: "linux", arch: "x64", installed: "/storage/program", path: ["/usr/bin", "relative", "/opt"].join(delimiter), runnable: (p) => there.includes(p), ...o });

test("the setting wins over the bundled program, and that over the PATH", () => {
  const bundled = join("/ext", "bin", "pillion");
  assert.deepEqual(search({ setting: "/my/pillion" }, ["/my/pillion", bundled]), { path: "/my/pillion", from: "setting" });
  assert.deepEqual(search({}, [bundled, "/opt/pillion"]), { path: bundled, from: "bundled" });
  const npm = "/storage/program/node_modules/@pillion-dev/linux-x64/bin/pillion";
  assert.deepEqual(search({}, ["/opt/pillion", npm]), { path: npm, from: "npm" });
  assert.equal(search({}, [npm, bundled]).from, "bundled");
  assert.deepEqual(search({ arch: "arm64" }, [npm, "/opt/pillion"]).from, "PATH");
  assert.deepEqual(search({}, ["/opt/pillion", "relative/pillion"]), { path: "/opt/pillion", from: "PATH" });
  assert.equal(search({ platform: "win32" }, [join("/ext", "bin", "pillion.exe")]).from, "bundled");
});

test("what is wrong is said with what to do", () => {
  assert.throws(() => search({ setting: "pillion" }, []), /absolute path/);
  assert.throws(() => search({ setting: "/gone" }, ["/opt/pillion"]), /names \/gone/);
  assert.throws(() => search({}, ["relative/pillion"]), /set pillion.binary.path/);
});

test("releases are compared by major and minor; a patch, a build and a name that is none do not count", () => {
  const told = (program: string) => compareReleases(program, "0.10.2");
  assert.deepEqual(["0.9.9", "0.9.9-dev.g0", "0.2.0", "0.11.0", "1.0.0", "v1.0.0+x"].map(told), ["older", "older", "older", "newer", "newer", "newer"]);
  assert.deepEqual(["0.10.0", "0.10.9", "0.10.2-dev.g1a2b3c.dirty", "unknown", "", "0.9", "x0.9.0"].map(told), Array(7).fill(undefined));
  assert.equal(compareReleases("0.9.0", "unknown"), undefined);
});

test("deaths wait longer each time and then no more; a long life forgives", () => {
  const b = new Backoff();
  assert.deepEqual([1, 2, 3, 4, 5, 6].map(() => b.next(0)), [250, 1000, 4000, 10000, 30000, undefined]);
  assert.equal(b.next(60_000), 250);
});

test("prompts name the problems, and how many more there are", () => {
  const problem = (line: number) => ({ line, severity: "error", message: "undefined:\n  x", source: "compiler" });
  assert.equal(fixPrompt("a.go", [problem(3)]), "Fix this problem in a.go:\n- line 3: error: undefined: x (compiler)");
  assert.match(fixPrompt("a.go", Array.from({ length: 30 }, (_, i) => problem(i))), /and 10 more$/);
  assert.equal(explainPrompt("a.go", 2, 4, []), "Explain lines 2 to 4 of a.go. Change nothing.");
});

test("a process that says nothing is asked whether it lives, and doubted when that is not answered either", () => {
  const on = { oldest: undefined as { method: string; since: number } | undefined, heardAt: 0, asked: 0, request: () => (on.asked++, Promise.resolve()) };
  const watch = new Watch(on);
  assert.equal(watch.look(patience * 5), undefined);
  assert.equal(on.asked, 0, "nothing is waited for: nothing is asked");
  let now = patience * 10;
  on.oldest = { method: "session/prompt", since: now };
  assert.equal(watch.look(now + patience - 1), undefined);
  assert.equal(on.asked, 0);
  watch.look((now += patience));
  watch.look(now + 1);
  assert.equal(on.asked, 1, "asked once");
  on.heardAt = now + 2; // it lives
  assert.equal(watch.look(now + patience), undefined);
  watch.look((now = on.heardAt + patience));
  assert.equal(on.asked, 2);
  assert.equal(watch.look(now + patience - 1), undefined);
  assert.equal(watch.look(now + patience), "session/prompt");
  on.heardAt = now + patience + 1;
  assert.equal(watch.look(now + patience + 2), undefined, "it is back");
});
