// Binaries that are missing, too old, broken or silent: the person is told what to do.
import { chmodSync, mkdtempSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { world } from "./world.mjs";

const w = world();
const { test } = w;

const bin = mkdtempSync(join(tmpdir(), "pillion-bin-"));
const program = (name, script) => {
  writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
  chmodSync(join(bin, name), 0o755);
  return join(bin, name);
};
const old = program("old", `read -r line; printf '%s\\n' '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"pillion","version":"0.0.1"},"agentCapabilities":{}}}'; cat >/dev/null`);
const broken = program("broken", "echo 'cannot open the store' >&2; exit 3");
const silent = program("silent", "cat >/dev/null");

async function fails(t, machine, said) {
  const p = await w.open(t, { "a.txt": "x\n" }, { machine });
  await p.bench.openFile("a.txt");
  await p.bench.command("Pillion: Restart Pillion");
  await p.bench.toast("Pillion does not run").waitFor();
  await p.page.locator(".notification-toast", { hasText: said }).first().waitFor();
  await p.page.locator(".notification-toast").getByRole("button", { name: "Show Log" }).first().click();
  await p.page.locator(".panel .view-line", { hasText: said.slice(0, 12) }).first().waitFor();
  await p.page.locator('.statusbar-item[id*="pillion"].error-kind, .statusbar-item.has-background-color[id*="pillion"]').first().waitFor();
  return p;
}

test("missing", async (t) => {
  const staged = join(w.server.home, "extensions", readdirSync(join(w.server.home, "extensions")).find((n) => n.startsWith("pillion-dev.")), "bin");
  renameSync(staged, `${staged}-away`);
  t.after(() => renameSync(`${staged}-away`, staged));
  const p = await fails(t, {}, "was not found");
  await p.bench.command("Pillion: Open Panel");
  const strip = p.bench.webview("pillion-dev.pillion").locator(".connection");
  await strip.getByText("Pillion is not running").waitFor();
  await strip.getByRole("button", { name: "Set the path" }).waitFor();
  renameSync(`${staged}-away`, staged); // what the person does about it
  await strip.getByRole("button", { name: "Start again" }).click();
  await strip.waitFor({ state: "hidden" });
  renameSync(staged, `${staged}-away`);
});

test("older", (t) => fails(t, { "pillion.binary.path": old }, "too old for this extension"));

test("crashing at its start", (t) => fails(t, { "pillion.binary.path": broken }, "cannot open the store"));

test("hanging at its start", (t) => fails(t, { "pillion.binary.path": silent }, "did not answer within 20 seconds"));
