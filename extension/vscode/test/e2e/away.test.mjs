// What a person does with the window itself: looks elsewhere, moves the panel.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { newContext } from "./workbench.mjs";
import { world } from "./world.mjs";

const w = world();
const { test } = w;
/** A profile of its own: where a view is, VS Code keeps for all windows. */
const alone = async (t) => {
  await w.before();
  const context = await newContext(w.browser);
  t.after(() => context.close());
  return { context };
};
const bash = (command) => ({ tool: "bash", input: { command, description: command } });

test("nobody looks at the window: a question of a session behind another is told, and leads there", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  const questions = [{ question: "Which rounding?", header: "Rounding", options: [{ label: "Half up" }, { label: "To even" }] }];
  await c.say("ask me later", [bash("echo waits; until [ -e go ]; do sleep 0.1; done"), { tool: "question", input: { questions } }, "So be it."]);
  await c.frame.locator(".tool.running .output", { hasText: "waits" }).waitFor();
  await p.bench.command("Pillion: New Session");
  await c.frame.locator(".user .said").waitFor({ state: "detached" });

  // Another page in front, and no more pretending that each has the focus. A workbench in a browser notices only what happens to
  // itself, not to the panel's frame in it.
  await p.bench.openFile("a.txt");
  await p.page.locator(".monaco-editor.focused").first().waitFor();
  const cdp = await p.page.context().newCDPSession(p.page);
  await cdp.send("Emulation.setFocusEmulationEnabled", { enabled: false });
  const other = await p.page.context().newPage();
  t.after(() => other.close());
  await other.bringToFront();
  await p.page.waitForFunction(() => !document.hasFocus(), undefined, { polling: 100 }); // nothing is painted behind another page
  writeFileSync(join(p.folder, "go"), "");
  await p.bench.toast("Pillion asks: ").waitFor(); // it stays until somebody looks
  await p.status("1 waiting").waitFor();
  assert.equal(await c.frame.locator(".card.question").count(), 0, "it is another session's");

  await p.page.bringToFront();
  await cdp.send("Emulation.setFocusEmulationEnabled", { enabled: true });
  await p.status("1 waiting").click();
  const card = c.frame.locator(".card.question");
  await card.getByText("To even").click();
  await card.getByRole("button", { name: "Answer" }).click();
  await c.answer("So be it.");
  await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
});

test("the panel in the secondary side bar: words, session and draft move with it, and are there again after a reload", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" }, await alone(t));
  const c = await p.panel();
  await c.say("remember me", ["I will."]);
  await c.answer("I will.");
  await c.idle();
  await c.input.pressSequentially("half a thought");
  await p.bench.command("View: Move View");
  await p.bench.quick.locator(".monaco-list-row", { hasText: "Chat" }).filter({ hasText: /Pillion|Chat/ }).first().click();
  await p.bench.quick.locator(".monaco-list-row", { hasText: "New Secondary Side Bar Entry" }).first().click();
  const side = p.page.locator(".part.auxiliarybar");
  await side.getByText("Pillion").first().waitFor();
  const moved = await p.panel();
  await moved.answer("I will.");
  assert.equal(await moved.input.inputValue(), "half a thought");
  const box = async () => [await side.boundingBox(), await p.page.locator('iframe.webview[src*="extensionId=pillion-dev.pillion"]').boundingBox()];
  await p.holds(async () => { // VS Code lays the frame over its place a little later
    const [bar, frame] = await box();
    assert.ok(frame.x >= bar.x && frame.x + frame.width <= bar.x + bar.width + 1, "it is drawn elsewhere");
  });
  assert.equal(await moved.input.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth), false, "it does not fit");
  await p.shot("panel-secondary");
  await p.reload();
  const again = await p.panel();
  await again.answer("I will.");
  assert.equal(await again.input.inputValue(), "half a thought");
  await p.holds(async () => {
    const [bar, frame] = await box();
    assert.ok(frame.x >= bar.x, "it went back to the other side");
  });
  await again.input.fill("");
  await again.say("still there?", ["Still here."]);
  await again.answer("Still here.");
});
