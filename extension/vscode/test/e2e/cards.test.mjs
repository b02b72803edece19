// Cards of the transcript, with the real tools of the real binary: questions, sub-agents, commands, changes.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { world } from "./world.mjs";

const w = world();
const { test } = w;
const read = (filePath) => ({ tool: "read", input: { filePath } });
const write = (filePath, content) => ({ tool: "write", input: { filePath, content } });
const bash = (command) => ({ tool: "bash", input: { command, description: command } });

test("the agent asks: a choice and own words are what the model hears", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  const questions = [
    { question: "Which rounding?", header: "Rounding", options: [{ label: "Half up", description: "as now" }, { label: "To even" }] },
    { question: "How shall it be called?", header: "Name" },
  ];
  await c.say("round it", [{ tool: "question", input: { questions } }, "So be it."]);
  const card = c.frame.locator(".card.question");
  await card.getByText("To even").click();
  await card.getByLabel("Name", { exact: false }).last().fill("roundEven");
  await card.getByRole("button", { name: "Answer" }).click();
  await c.answer("So be it.");
  await c.idle();
  const heard = w.model.seen.at(-1).messages.filter((m) => m.role === "tool").at(-1).content;
  assert.match(JSON.stringify(heard), /To even/);
  assert.match(JSON.stringify(heard), /roundEven/);
  assert.equal(await card.count(), 0);
});

test("a sub-agent: its calls lie in its card, its answer reaches the model", async (t) => {
  const p = await w.open(t, { "a.txt": "needle\n" });
  const c = await p.panel();
  await c.say("look around", [
    { tool: "task", input: { description: "Find the needle", prompt: "Where is it?", subagent_type: "general" } },
    read("a.txt"), "It is in a.txt.", "Found by the sub-agent.",
  ]);
  await c.answer("Found by the sub-agent.");
  await c.idle();
  const card = c.frame.locator(".entry > .tool, .tool", { hasText: "Find the needle" }).first();
  await card.getByText("1 step").waitFor();
  await card.locator("> .row").click();
  await card.locator(".nested .tool", { hasText: "a.txt" }).waitFor();
  await card.locator(".nested .md", { hasText: "It is in a.txt." }).waitFor();
  assert.equal(await card.getByText("It is in a.txt.").count(), 1, "said twice");
  assert.doesNotMatch(await card.innerText(), /<task/);
  assert.match(c.told(), /It is in a\.txt\./);
});

test("a command prints into its card while it runs, in its colours", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  await c.say("run it", [bash("printf 'plain \\033[31mred\\033[0m\\n'; until [ -e go ]; do sleep 0.1; done; printf '\\033[32mgreen\\033[0m\\n'"), "It ran."]);
  await c.frame.locator(".tool.running .output, .card.permission").first().waitFor();
  const ask = c.frame.locator(".card.permission").getByRole("button", { name: "Allow once" });
  if (await ask.count()) await ask.click();
  const piece = (word) => c.frame.locator(".tool .output span", { hasText: word });
  await c.frame.locator(".tool.running .output", { hasText: "plain red" }).waitFor();
  await piece("red").waitFor();
  assert.match(await piece("red").getAttribute("style"), /ansiRed/);
  assert.equal(await piece("green").count(), 0);
  writeFileSync(join(p.folder, "go"), "");
  await c.answer("It ran.");
  await c.idle();
  const done = c.frame.locator(".tool.k-execute.done");
  await done.locator("> .row").click(); // folded when it was done
  await piece("green").waitFor();
  assert.match(await piece("green").getAttribute("style"), /ansiGreen/);
  assert.doesNotMatch(c.told(), /\\u001b/, "the model was given control codes");
});

test("a change's card opens it: as a review while it waits, against the text before the turn once it is written", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n", "b.txt": "two\n" });
  const c = await p.panel();
  await c.say("change it", [read("a.txt"), write("a.txt", "ONE\n"), "Changed."]);
  const card = c.frame.locator(".card.permission");
  await card.locator(".file").click();
  await p.tab("a.txt").waitFor();
  await card.getByRole("button", { name: "Accept" }).click();
  await p.onDisk("a.txt", "ONE\n");
  await c.answer("Changed.");
  await c.idle();
  await c.frame.locator(".tool.k-edit .place", { hasText: "a.txt" }).click();
  await p.tab("before the turn").waitFor();
  await p.page.locator(".diff-editor, .monaco-diff-editor").locator(".view-line", { hasText: "one" }).first().waitFor();
  await p.page.locator(".diff-editor, .monaco-diff-editor").locator(".view-line", { hasText: "ONE" }).first().waitFor();
});
