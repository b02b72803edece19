// The verdict of a proposal follows the check, however long that takes: it is held here until the test lets it go.
import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { world } from "./world.mjs";

const w = world();
const { test } = w;
const read = (filePath) => ({ tool: "read", input: { filePath } });
const edit = (filePath, oldString, newString) => ({ tool: "edit", input: { filePath, oldString, newString } });

/** A window whose language server for .held answers for a proposal once `open` was called. */
async function held(t, files, options = {}) {
  await w.before();
  const gate = join(mkdtempSync(join(w.scratch, "gate-")), "open");
  const server = fileURLToPath(new URL("./heldserver.mjs", import.meta.url));
  const p = await w.open(t, files, { ...options, machine: { "pillion.lsp": { held: { command: [process.execPath, server, gate], extensions: [".held"] } }, ...options.machine } });
  return { p, open: () => writeFileSync(gate, "") };
}

test("the check ends after the question was asked: card, lens and squiggles say so, and nothing moves", async (t) => {
  const { p, open } = await held(t, { "a.held": "one\ntwo\nthree\n" });
  await p.bench.openFile("a.held");
  const panel = await p.panel();
  await panel.say("go", [read("a.held"), edit("a.held", "two", "BAD two"), "Done."]);
  const card = panel.frame.locator(".dock .permission");
  await card.getByText("Checking problems").waitFor();
  await p.lens("Checking problems").waitFor();
  const reject = card.locator(".rejecter");
  const before = await reject.boundingBox();
  await p.shot("verdict-held");
  open();
  await card.getByText("Fixes 0 errors, introduces 1").waitFor();
  await card.locator(".problem", { hasText: "bad: BAD two" }).waitFor();
  await p.lens("Introduces 1").waitFor();
  await p.page.locator(".editor.modified .squiggly-error").first().waitFor();
  assert.deepEqual(await reject.boundingBox(), before, "the buttons moved when the verdict came");
  await p.shot("verdict-came");
  await p.accept(0).click();
  await p.onDisk("a.held", "one\nBAD two\nthree\n");
});

test("the verdict follows decisions and typing, and says what each hunk does", async (t) => {
  const text = Array.from({ length: 12 }, (_, i) => `line ${i + 1}\n`).join("");
  // asked about at once, though it is certain to bring an error: the scripted model does not propose it twice
  const { p, open } = await held(t, { "a.held": text, "pillion.jsonc": '{"repair_rounds":0}' });
  open();
  await p.bench.openFile("a.held");
  const panel = await p.panel();
  await panel.say("go", [read("a.held"), { tool: "write", input: { filePath: "a.held", content: text.replace("line 2\n", "BAD 2\n").replace("line 10\n", "ten\n") } }, "Done."]);
  const card = panel.frame.locator(".dock .permission");
  await card.getByText("introduces 1").waitFor();
  // the first hunk alone introduces it: the lens in its row says so, the other row does not
  await p.lens(/^\s*Introduces 1$/, 1).waitFor();
  await p.shot("verdict-hunks");
  // rejecting it takes the problem out of the verdict, the squiggle out of the proposal
  await p.reject(0).click();
  await p.lens("Rejected").waitFor();
  await card.getByText("introduces 0").waitFor();
  await p.lens("No new problems").waitFor();
  await p.page.locator(".editor.modified .squiggly-error").first().waitFor({ state: "detached" });
  // and what the person types counts at once
  await p.page.locator(".editor.modified .view-line", { hasText: "ten" }).first().click();
  await p.page.keyboard.press("End");
  await p.page.keyboard.type(" BAD");
  await card.getByText("introduces 1").waitFor();
  await p.page.locator(".editor.modified .squiggly-error").first().waitFor();
  await p.shot("verdict-typed");
  for (let i = 0; i < 4; i++) await p.page.keyboard.press("Backspace");
  await card.getByText("introduces 0").waitFor();
  await p.accept(0).click();
  await p.onDisk("a.held", text.replace("line 10\n", "ten\n"));
});

test("hunks that only make sense together say so, with what a rejection would introduce", async (t) => {
  const text = ["def old", ...Array.from({ length: 10 }, (_, i) => `line ${i + 1}`), "use old", ""].join("\n");
  const { p, open } = await held(t, { "a.held": text });
  open();
  await p.bench.openFile("a.held");
  const panel = await p.panel();
  await panel.say("go", [read("a.held"), { tool: "write", input: { filePath: "a.held", content: text.replaceAll("old", "new") } }, "Done."]);
  await p.lens("Hunk 1 needs hunk 2 · If rejected: introduces 1").waitFor();
  await p.lens("Hunk 2 needs hunk 1 · If rejected: introduces 1").waitFor();
  await p.shot("verdict-needs");
  await p.reject(0).click();
  await p.lens("Rejected").waitFor(); // until then the first "Reject" is still that hunk's
  await panel.frame.locator(".dock .permission").getByText("introduces 1").waitFor();
  await p.lens(/Hunk 2 needs hunk 1$/).waitFor(); // it holds for the whole review
  await p.reject(0).click();
  await panel.idle();
  assert.equal(p.read("a.held"), text);
});
