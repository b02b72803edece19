// Binaries that are missing, too old or broken: the person is told what to do.
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { world } from "./world.mjs";

const bin = mkdtempSync(join(tmpdir(), "pillion-bin-"));
const program = (name, script) => {
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, name), 0o755);
  return join(bin, name);
};
const old = program("old", `read -r line; printf '%s\\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"pillion","version":"0.0.1"},"agentCapabilities":{}}}'; cat >/dev/null`);
const broken = program("broken", "echo 'cannot open the store' >&2; exit 3");

async function fails(t, w, said) {
  const p = await w.open(t, { "a.txt": "x\n" });
  await p.bench.openFile("a.txt");
  await p.bench.command("Pillion: Restart Pillion");
  await p.bench.toast("Pillion does not run").waitFor();
  await p.page.locator(".notification-toast", { hasText: said }).first().waitFor();
  await p.page.locator(".notification-toast").getByRole("button", { name: "Show Log" }).first().click();
  await p.page.locator(".panel .output-view, .panel").getByText("starting").first().waitFor({ timeout: 10_000 }).catch(() => {});
  await p.page.locator('.statusbar-item[id*="pillion"].error-kind, .statusbar-item.has-background-color[id*="pillion"]').first().waitFor();
  return p;
}

const none = world({ binary: false, env: { PATH: "/nowhere" } });
test("missing", (t) => fails(t, none, "was not found"));

const outdated = world({ machine: { "pillion.binary.path": old } });
test("older", (t) => fails(t, outdated, "too old for this extension"));

const crashing = world({ machine: { "pillion.binary.path": broken } });
test("crashing at its start", (t) => fails(t, crashing, "cannot open the store"));
