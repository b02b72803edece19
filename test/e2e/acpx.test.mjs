// acpx, a headless ACP client, as a person would call it.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import test from "node:test";
import { binary, world } from "./pillion.mjs";

const acpx = process.env.ACPX ?? join(dirname(createRequire(import.meta.url).resolve("acpx/package.json")), "dist", "cli.js");

const run = (w, ...args) =>
  new Promise((resolve) =>
    execFile(process.execPath, [acpx, "--agent", `${binary} acp`, "--cwd", w.project, "--timeout", "60", ...args], { env: w.env, cwd: w.project }, (error, stdout, stderr) =>
      resolve({ code: error ? error.code : 0, stdout, stderr }),
    ),
  );

test("exec: one prompt, one answer", async (t) => {
  const w = await world(t, ["Hello from the model."]);
  const r = await run(w, "--format", "quiet", "exec", "say hello");
  assert.equal(r.code, 0, r.stderr);
  assert.match(r.stdout, /Hello from the model\./);
});

test("approve-all writes, deny-all does not", async (t) => {
  for (const [flag, want] of [["--approve-all", "new\n"], ["--deny-all", "old\n"]]) {
    const w = await world(t, [{ tool: "read", input: { filePath: "a.txt" } }, { tool: "edit", input: { filePath: "a.txt", oldString: "old", newString: "new" } }, "Finished."], { "a.txt": "old\n" });
    const r = await run(w, flag, "--format", "json", "exec", "edit it");
    assert.equal(readFileSync(join(w.project, "a.txt"), "utf8"), want, `${flag}: ${r.stdout}${r.stderr}`);
  }
});

test("the JSON it prints holds the conversation", async (t) => {
  const w = await world(t, [{ tool: "read", input: { filePath: "a.txt" } }, "It says old."], { "a.txt": "old\n" });
  const r = await run(w, "--approve-reads", "--format", "json", "exec", "read it");
  assert.equal(r.code, 0, r.stderr);
  const text = r.stdout.split("\n").filter(Boolean).map((l) => JSON.parse(l));
  assert.ok(text.length > 2);
  assert.match(r.stdout, /tool_call/);
});
