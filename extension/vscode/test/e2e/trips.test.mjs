// What people tripped over once: each where it happened.
import assert from "node:assert/strict";
import { world } from "./world.mjs";

const w = world();
const { test } = w;
const read = (filePath) => ({ tool: "read", input: { filePath } });
const edit = (filePath, oldString, newString) => ({ tool: "edit", input: { filePath, oldString, newString } });

test("a proposal accepted after the window was loaded again: it counts as applied, and the turn goes on", async (t) => {
  const p = await w.open(t, { "a.txt": "one\ntwo\n" });
  await p.bench.openFile("a.txt");
  const c = await p.panel();
  await c.say("say two loudly", [read("a.txt"), edit("a.txt", "two", "TWO")]);
  await p.accept(0).waitFor();
  await p.reload();
  const again = await p.panel();
  await p.accept(0).waitFor();
  w.steps.push("It is loud now.");
  await p.accept(0).click();
  await p.onDisk("a.txt", "one\nTWO\n");
  await again.frame.locator(".notice", { hasText: "You accepted this change; it is written." }).waitFor();
  await again.answer("It is loud now.");
  await again.idle();
  const card = again.frame.locator(".tool.k-edit").first();
  await card.waitFor();
  assert.doesNotMatch(await card.innerText(), /Stopped|Rejected|Failed/);
  await p.shot("trips-reload");
});

test("a message typed after the key that opens the panel is sent, also from within the quick-fix menu", async (t) => {
  const p = await w.open(t, { "bad.json": '{\n  "a": ,\n}\n' });
  await p.bench.openFile("bad.json");
  const c = await p.panel();
  await p.tab("bad.json").click();
  await p.page.locator(".editor-instance .squiggly-error").first().waitFor();
  await p.typing();
  await p.page.keyboard.press("F8");
  const peek = p.page.locator(".marker-widget, .peekview-widget").first();
  await peek.waitFor();
  await p.page.keyboard.press("Escape");
  await peek.waitFor({ state: "detached" });
  await p.page.keyboard.press("Control+.");
  await p.page.locator(".action-widget").getByText("Fix with Pillion").first().waitFor();
  await p.page.keyboard.press("Escape");
  await p.page.keyboard.press("Control+Alt+p");
  await c.frame.locator("textarea.input:focus").waitFor();
  w.steps.push("I heard you.");
  await p.page.keyboard.type("do you hear me?");
  await p.page.keyboard.press("Enter");
  await c.answer("I heard you.");
  await c.frame.locator(".user", { hasText: "do you hear me?" }).first().waitFor();
});

test("a fork says that it is one, and leads back; a plan goes with its turn", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  const todo = (status) => ({ tool: "todowrite", input: { todos: [{ id: "1", content: "Look at it", status, priority: "high" }, { id: "2", content: "Never done", status: "pending", priority: "low" }] } });
  await c.say("plan it", [todo("in_progress"), "The answer is forty-two."]);
  await c.answer("forty-two");
  await c.idle();
  await c.frame.locator("section.plan", { hasText: "Plan 0/2" }).waitFor();
  await c.say("something else", ["Else."]);
  await c.answer("Else.");
  await c.frame.locator("section.plan").waitFor({ state: "hidden" });
  await p.bench.command("Pillion: Fork Session");
  const toast = p.bench.toast("Forked");
  await toast.waitFor();
  await c.answer("forty-two");
  await p.shot("trips-fork");
  await toast.getByRole("button", { name: "Back to the Original" }).click();
  await p.bench.command("Pillion: Sessions…");
  await p.bench.quick.locator(".monaco-list-row", { hasText: "In the panel" }).waitFor();
});

test("questions by effect, chosen in the panel: what stays in the project runs, the network is asked about; the review offers a draft", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  await c.frame.getByRole("button", { name: /^Review: / }).click();
  await c.frame.locator(".menu-item", { hasText: /draft/i }).waitFor();
  await p.page.keyboard.press("Escape");
  await c.frame.getByRole("button", { name: "Commands: Ask" }).click();
  await p.shot("trips-auto-menu");
  await c.frame.locator(".menu-item", { hasText: "Auto" }).first().click();
  await c.say("run it", [{ tool: "bash", input: { command: "echo hi > made.txt", description: "makes a file" } }, { tool: "bash", input: { command: "curl -s https://example.com", description: "fetches a page" } }, "Done."]);
  const card = c.frame.locator(".card.permission");
  await card.locator(".command", { hasText: "curl" }).waitFor(); // the first one ran, or could not: see below
  await p.shot("trips-auto");
  assert.equal(p.read("made.txt"), "hi\n", "a command that stays in the project was not run without a question");
  await card.getByRole("button", { name: "Reject", exact: true }).click();
  await c.idle();
});
