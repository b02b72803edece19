// The first run: no key, no network, the built-in model on the broken example, until there is no problem left.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, mkdtempSync } from "node:fs";
import { dirname, join } from "node:path";
import { root } from "../../stage.mjs";
import { world } from "./world.mjs";

// VS Code takes the PATH from the login shell, so a test's own goes through the setting.
const go = (name) => execFileSync("go", ["env", name], { encoding: "utf8" }).trim();
const env = { PATH: `${join(root, ".cache", "bin")}:${process.env.PATH}`, GOCACHE: go("GOCACHE"), GOPATH: go("GOPATH"), GOPLSCACHE: join(dirname(go("GOCACHE")), "gopls") };
const cold = { timeout: 150_000 }; // what gopls may need that has seen no standard library yet
const w = world({ machine: { "pillion.model": "builtin/quickfix", "pillion.env": env } });
const { test } = w;

test("fix all errors of examples/go-broken, accepting each proposal in the editor", { limit: 400_000 }, async (t) => {
  const folder = mkdtempSync(join(w.scratch, "ride-"));
  cpSync(join(root, "examples/go-broken"), folder, { recursive: true });
  const p = await w.open(t, {}, { folder });
  await p.bench.command("Pillion: Open Panel");
  await p.say("fix all errors");
  let accepted = 0;
  const idle = p.page.locator('.statusbar-item[aria-label="Pillion"]');
  await p.status("waiting").waitFor(cold);
  // Nobody else looks after Go here: what gopls says to Pillion is in VS Code's own list.
  await p.page.locator('.statusbar-item[id="status.problems"]', { hasText: /[1-9]/ }).waitFor();
  for (;;) {
    await p.status("waiting").or(idle).first().waitFor(cold);
    if ((await idle.count()) > 0) break;
    if (accepted === 0) await p.lens("Fixes").waitFor(cold);
    // A proposal of several files shows one after the other; one that was decided meanwhile has no button left.
    if (await p.accept(0).click({ timeout: 5_000 }).then(() => true, () => false)) accepted++;
    else await p.status("waiting").click({ timeout: 1_000 }).catch(() => {}); // as one does who has lost sight of it
  }
  assert.ok(accepted > 0);
  await p.bench.webview("pillion-dev.pillion").getByText(/errors fixed, none left/).last().waitFor();
  execFileSync("go", ["vet", "./..."], { cwd: folder }); // fails while a problem is left
});

test("a language server that is missing can be installed from its notice: the terminal says what is fetched, and asks", async (t) => {
  const p = await w.open(t, { "go.mod": "module a\n", "a.go": "package a\n\nfunc F() int { return \"\" }\n" }, { machine: { "pillion.model": "openai/scripted", "pillion.env": { ...env, PATH: "/usr/bin:/bin" } } });
  await p.bench.openFile("a.go");
  const panel = await p.panel();
  await panel.say("go", [{ tool: "read", input: { filePath: "a.go" } }, { tool: "edit", input: { filePath: "a.go", oldString: "int", newString: "string" } }, "Done."]);
  const notice = panel.frame.locator(".notice", { hasText: "gopls" });
  await p.shot("install-server");
  await notice.getByRole("button", { name: "Install gopls" }).click();
  const rows = p.page.locator(".terminal-wrapper.active .xterm-rows");
  await rows.getByText("go install golang.org/x/tools/gopls").first().waitFor();
  await rows.getByText("Install it?").first().waitFor();
  await p.page.locator(".terminal-wrapper.active .xterm").click();
  await p.page.keyboard.type("n");
  await p.page.keyboard.press("Enter");
  await rows.getByText("nothing was installed").first().waitFor(); // what it said stays readable, as it would after a download that failed
});
