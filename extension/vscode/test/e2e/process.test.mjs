import assert from "node:assert/strict";
import { world } from "./world.mjs";

const w = world();
const { test } = w;
const read = (filePath) => ({ tool: "read", input: { filePath } });

test("killed in mid-turn: it says so, starts again, and the session goes on", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  await p.bench.openFile("a.txt");
  const hanging = w.model.hanging();
  await p.ask([{ hang: true }]);
  await hanging;
  const [pid] = p.sidecars();
  process.kill(pid, "SIGKILL");
  await p.bench.webview("pillion-dev.pillion").getByText("Pillion stopped during the turn").first().waitFor(); // the status bar says it for a moment only
  while (p.sidecars().every((x) => x === pid)) await p.page.waitForTimeout(50); // the kernel tells nobody
  await p.status("restarts").waitFor({ state: "detached" });
  await p.ask([read("a.txt"), { tool: "edit", input: { filePath: "a.txt", oldString: "one", newString: "two" } }, "Done."]);
  await p.lens("Accept").waitFor();
  await p.accept(0).click();
  await p.onDisk("a.txt", "two\n");
  assert.notEqual(p.sidecars()[0], pid);
});

test("killed while a proposal waits: nothing is written, and the next process asks again", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  await p.bench.openFile("a.txt");
  await p.ask([read("a.txt"), { tool: "edit", input: { filePath: "a.txt", oldString: "one", newString: "two" } }]);
  await p.lens("Accept").waitFor();
  const pid = p.sidecars().at(-1);
  process.kill(pid, "SIGKILL");
  while (p.sidecars().every((x) => x === pid)) await p.page.waitForTimeout(50); // the kernel tells nobody
  await p.status("1 waiting").waitFor();
  await p.lens("Accept").waitFor();
  assert.equal(p.read("a.txt"), "one\n");
  while (p.read("a.txt") === "one\n") { // the old proposal's lenses may still be going
    await p.accept(0).click({ timeout: 2_000 }).catch(() => {});
    await p.page.waitForTimeout(100);
  }
  assert.equal(p.read("a.txt"), "two\n");
});

test("cancel ends the turn and takes the proposal away", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  await p.bench.openFile("a.txt");
  await p.ask([read("a.txt"), { tool: "edit", input: { filePath: "a.txt", oldString: "one", newString: "two" } }, "not reached"]);
  await p.lens("Accept").waitFor();
  await p.bench.command("Pillion: Stop");
  await p.tab("Pillion proposes").waitFor({ state: "detached" });
  await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
  assert.equal(p.read("a.txt"), "one\n");
});

test("stopped by keyboard while an answer is on its way: from the message, and from anywhere in the panel", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  await p.bench.openFile("a.txt");
  for (const key of ["Escape", "Control+Escape"]) {
    const hanging = w.model.hanging();
    await p.ask([{ hang: true }]);
    await hanging;
    const panel = p.bench.webview("pillion-dev.pillion");
    await panel.locator(".stop").waitFor();
    await p.page.keyboard.press("Control+Alt+KeyH"); // the transcript has the focus
    await panel.locator(".transcript .entry:focus").waitFor();
    if (key === "Escape") {
      await p.page.keyboard.press("Escape"); // back to the message
      await panel.locator("textarea.input:focus").waitFor();
    }
    await p.page.keyboard.press(key);
    await panel.locator(".send").waitFor();
    await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
  }
});

test("without a folder one can still talk", async (t) => {
  const p = await w.open(t, {}, { noFolder: true });
  w.steps.push("Hello there.");
  await p.bench.command("Pillion: New Session");
  await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
  await p.say("hello");
  await p.bench.webview("pillion-dev.pillion").getByText("Hello there.", { exact: true }).first().waitFor();
});

test("the processes end with their windows", async () => {
  const end = Date.now() + 60_000;
  while (w.sidecars().length > 0 && Date.now() < end) await new Promise((ok) => setTimeout(ok, 100)); // the kernel tells nobody
  assert.deepEqual(w.sidecars(), []);
});
