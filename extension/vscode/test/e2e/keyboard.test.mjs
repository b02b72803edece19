// A whole review without a mouse, and what a screen reader has of it: names and states of what takes the focus, as Chromium's
// accessibility tree has them, and the words that are announced.
import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { world } from "./world.mjs";

const w = world();
const { test } = w;
const read = (filePath) => ({ tool: "read", input: { filePath } });
const write = (filePath, content) => ({ tool: "write", input: { filePath, content } });
const text = Array.from({ length: 20 }, (_, i) => `line ${i + 1}\n`).join("");
const changed = text.replace("line 2\n", "BAD 2\n").replace("line 10\n", "LINE 10\n").replace("line 18\n", "LINE 18\n");

/** Role, name and states of what has the focus, wherever it is: frames have trees of their own. */
async function focused(p) {
  for (const frame of p.page.frames()) {
    const found = await frame.evaluate(() => {
      const el = document.activeElement;
      return el && el !== document.body && el.tagName !== "IFRAME" && document.hasFocus() ? { role: el.getAttribute("role") ?? el.tagName.toLowerCase(), name: el.getAttribute("aria-label") ?? el.textContent.trim(), expanded: el.getAttribute("aria-expanded") ?? "" } : undefined;
    }).catch(() => undefined); // a frame that is being replaced
    if (found) return found;
  }
  return undefined;
}

/** Presses a key until the focus is on something with this name; fails when it has been everywhere. */
async function reach(p, key, name, most = 40) {
  const seen = [];
  for (let n = 0; n < most; n++) {
    const at = await focused(p);
    if (at && name.test(at.name)) return at;
    seen.push(at?.name);
    await p.page.keyboard.press(key);
  }
  throw new Error(`${key} never reached ${name}; it was at ${JSON.stringify(seen)}`);
}

/** Nodes of the accessibility tree of the panel: Chromium's own, as a screen reader gets them. */
async function panelTree(p) {
  const outer = p.page.frames().find((f) => f.url().includes("extensionId=pillion-dev.pillion"));
  const frame = p.page.frames().find((f) => f.parentFrame() === outer);
  const body = await frame.locator("body").ariaSnapshot();
  return body;
}

test("the whole review by keys alone, from the prompt to the file on the disk", async (t) => {
  const gate = join(mkdtempSync(join((await w.before(), w.scratch), "gate-")), "open");
  const server = fileURLToPath(new URL("./heldserver.mjs", import.meta.url));
  const p = await w.open(t, { "a.held": text }, { settings: { "editor.accessibilitySupport": "on" }, machine: { "pillion.lsp": { held: { command: [process.execPath, server, gate], extensions: [".held"] } } } });
  const key = (k) => p.page.keyboard.press(k);
  await p.bench.openFile("a.held");

  // the prompt: a key opens the panel with the caret in the composer
  await key("Control+Alt+p");
  const frame = p.bench.webview("pillion-dev.pillion");
  await frame.locator(".picker.p-model").waitFor();
  await frame.locator("textarea.input:focus").waitFor();
  assert.deepEqual(await focused(p), { role: "combobox", name: "Message to Pillion", expanded: "false" });
  w.steps.push(read("a.held"), write("a.held", changed), "Done.");
  await p.page.keyboard.type("change three lines");
  await key("Enter");

  // it is announced, and a key leads to the card
  const said = frame.locator('[role="log"][aria-live="polite"]');
  await said.getByText("Permission needed").first().waitFor();
  await frame.locator(".decide button:not(:disabled)").first().waitFor();
  await key("Control+Alt+y");
  await frame.locator(".decide button:focus").waitFor();
  const card = await panelTree(p);
  assert.match(card, /region "Waiting for you"/);
  assert.match(card, /group "Permission needed: .*a\.held"/);
  assert.match(card, /toolbar "Decide"/);
  for (const name of ["Accept", "Review 3 hunks", "Reject", "Show the change here", "Reject with a message"]) assert.match(card, new RegExp(`button "${name}"`), `a button named ${name}`);
  assert.doesNotMatch(card, /button:? *$|button ""/m, "a button without a name");
  // the verdict comes later, and is read out
  await frame.locator(".dock").getByText("Checking problems").waitFor();
  writeFileSync(gate, "");
  await said.getByText("introduces 1").first().waitFor();

  // from the card into the editor
  await reach(p, "ArrowRight", /Review 3 hunks$/);
  await key("Enter");
  await p.lens("Accept").waitFor();
  const editor = p.page.locator(".editor.modified textarea, .editor.modified .native-edit-context, .editor.modified [role=textbox]").first();
  await p.page.waitForFunction(() => document.activeElement?.closest(".editor.modified") !== null && document.activeElement?.tagName !== "BODY");
  assert.ok(await editor.count(), "the proposal has an edit field");
  // VS Code names a diff's editor after its help alone; the tab in front is what says which file it is
  await p.page.locator('.tab.active.selected[aria-label*="a.held — Pillion proposes"]').waitFor();

  // the first hunk is rejected, the second accepted, the third accepted after looking at it
  await p.keys();
  await key("Control+Shift+Backspace");
  await p.lens("Rejected").waitFor();
  await said.getByText("introduces 0").first().waitFor(); // the verdict follows, in words
  await key("Control+Enter");
  await p.lens("Accepted").waitFor();
  await p.page.locator('.editor.modified .view-line', { hasText: /LINE.18/ }).waitFor();
  await key("Shift+Alt+F5");
  await key("Alt+F5");
  await key("Control+Enter");
  await p.onDisk("a.held", text.replace("line 10\n", "LINE 10\n").replace("line 18\n", "LINE 18\n"));
  await p.tab("Pillion proposes").waitFor({ state: "detached" });

  // the answer is announced, and the conversation can be walked
  await said.getByText("Done.").first().waitFor();
  await key("Control+Alt+h");
  await frame.locator(".transcript :focus, .transcript:focus").first().waitFor();
  await key("Control+Alt+p");
  await frame.locator("textarea.input:focus").waitFor();
  assert.equal(await p.page.locator(".monaco-dialog-box").count(), 0);
});

test("all of it is rejected with a reason by keys; the status bar says what waits", async (t) => {
  const p = await w.open(t, { "a.txt": text });
  await p.bench.openFile("a.txt");
  await p.page.keyboard.press("Control+Alt+p");
  const frame = p.bench.webview("pillion-dev.pillion");
  await frame.locator(".picker.p-model").waitFor();
  await frame.locator("textarea.input:focus").waitFor();
  w.steps.push(read("a.txt"), write("a.txt", changed), "Understood.");
  await p.page.keyboard.type("change");
  await p.page.keyboard.press("Enter");
  await p.page.locator('.statusbar-item[aria-label="Pillion: 1 waiting"]').waitFor();
  await frame.locator(".decide button:not(:disabled)").first().waitFor();
  await p.page.keyboard.press("Control+Alt+y");
  await frame.locator(".decide button:focus").waitFor();
  await reach(p, "ArrowRight", /^Reject with a message$/);
  await p.page.keyboard.press("Enter");
  await frame.locator(".reject-with input:focus").waitFor();
  assert.equal((await focused(p)).name, "What to do instead");
  await p.page.keyboard.type("leave it");
  await p.page.keyboard.press("Enter");
  await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
  assert.equal(p.read("a.txt"), text);
  assert.match(JSON.stringify(w.model.seen.at(-1).messages), /leave it/);
});
