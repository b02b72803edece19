// What goes along with a message: mentions and attachments. The scripted model's requests show what really arrived.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { world } from "./world.mjs";

const w = world();
const { test } = w;

test("@selection and @problems: the marked lines, and what the editor reports", async (t) => {
  const p = await w.open(t, { "a.txt": "one\ntwo\nthree\n", "bad.json": '{ "a": 1,, }\n' });
  await p.bench.openFile("bad.json");
  await p.page.locator(".squiggly-error").first().waitFor();
  await p.bench.openFile("a.txt");
  await p.page.locator(".editor-instance .view-line", { hasText: "two" }).click();
  await p.page.keyboard.press("Home");
  await p.page.keyboard.press("Shift+End");
  const c = await p.panel();
  await c.frame.locator(".chip.selection", { hasText: "a.txt:2" }).click(); // it is to go because it is mentioned, not by itself
  await c.frame.locator(".chip.selection.off").waitFor();
  await c.mention("see @sele", "selection");
  await c.mention("and @prob", "problems");
  assert.equal(await c.input.inputValue(), "see @selection and @problems ");
  w.steps.push("Both seen.");
  await c.input.press("Enter");
  await c.answer("Both seen.");
  const told = w.model.seen.at(-1).messages.filter((m) => m.role === "user").map((m) => JSON.stringify(m.content)).join("\n");
  assert.match(told, /a\.txt, line 2/);
  assert.equal(told.match(/two/g)?.length, 1, "the selection went along once");
  assert.doesNotMatch(told, /three/, "more than the selection was sent");
  assert.match(told, /bad\.json:1:\d+: error: /);
});

test("@diff: what changed since the last commit", async (t) => {
  const p = await w.open(t, { "a.txt": "committed\n" });
  const git = (...args) => execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@t.invalid", "-c", "commit.gpgsign=false", ...args], { cwd: p.folder });
  git("init", "-q");
  git("add", ".");
  git("commit", "-qm", "one");
  writeFileSync(join(p.folder, "a.txt"), "changed since\n");
  const c = await p.panel();
  await c.mention("review @dif", "diff");
  w.steps.push("Reviewed.");
  await c.input.press("Enter");
  await c.answer("Reviewed.");
  assert.match(c.told(), /-committed\\+n\+changed since/);
});

test("@ a folder, a symbol, a page and the terminal: the model is told which, and what the terminal shows", async (t) => {
  const p = await w.open(t, { "src/deep/alpha.go": "package deep\n\nfunc Needle() {}\n" });
  await p.bench.command("Terminal: Create New Terminal");
  const rows = p.page.locator(".terminal-wrapper.active .xterm-rows");
  await p.page.locator(".terminal-wrapper.active .xterm.focus, .terminal-wrapper.active .xterm").first().click();
  await p.page.keyboard.type("echo shown-$((40+2))");
  await p.page.keyboard.press("Enter");
  await rows.getByText("shown-42").first().waitFor();
  await p.page.evaluate(() => navigator.clipboard.writeText("mine"));
  const c = await p.panel();
  await c.mention("in @dee", "src/deep/");
  await c.mention("look at @Needl", "Needle"); // the index of symbols is made when first asked for
  await c.mention("and @https://example.invalid/page", "https://example.invalid/page");
  await c.mention("after @term", "terminal");
  assert.equal(await c.input.inputValue(), "in @src/deep/ look at @Needle and @https://example.invalid/page after @terminal ");
  w.steps.push("All seen.");
  await c.input.press("Enter");
  await c.answer("All seen.");
  const told = c.told();
  assert.match(told, /src\/deep/);
  assert.match(told, /alpha\.go/);
  assert.match(told, /https:\/\/example\.invalid\/page/);
  assert.match(told, /shown-42/);
  assert.equal(await p.page.evaluate(() => navigator.clipboard.readText()), "mine", "the person's clipboard was taken");
});

test("a PDF goes along: its very bytes reach the model", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await p.panel();
  const pdf = Buffer.from("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n").toString("base64");
  await c.paste("paper.pdf", "application/pdf", pdf);
  await c.frame.locator(".chip", { hasText: "paper.pdf" }).waitFor();
  await c.say("sum it up", ["An empty paper."]);
  await c.answer("An empty paper.");
  const said = w.model.seen.at(-1).messages.filter((m) => m.role === "user").at(-1).content;
  assert.deepEqual(said.filter((b) => b.type === "file").map((b) => b.file), [{ filename: "paper.pdf", file_data: `data:application/pdf;base64,${pdf}` }]);
});

test("code of an answer: inserted at the cursor; applied where it belongs, after a look, in one step", async (t) => {
  const p = await w.open(t, { "a.js": "function one() {\n  return 0;\n}\n\nlet end;\n" });
  await p.bench.openFile("a.js");
  await p.page.locator(".editor-instance .view-line", { hasText: "let end" }).click();
  await p.page.keyboard.press("End");
  const c = await p.panel();
  const block = (code) => `\`\`\`js\n${code}\n\`\`\``;
  await c.say("write it", [`${block("/* inserted */")}\n\nand\n\n${block("function one() {\n  return 1;\n}")}`]);
  await c.idle();
  const press = async (nth, name) => {
    const code = c.frame.locator(".code").nth(nth);
    await code.hover();
    await code.getByRole("button", { name }).click();
  };
  await press(0, "Insert at the cursor");
  const line = (text) => p.page.locator(".editor-instance .view-line", { hasText: text });
  await line("let end;/* inserted */").waitFor();
  await press(1, "Apply to the active file");
  await p.tab("code from the conversation").waitFor();
  await p.lens("Accept").waitFor();
  await p.shot("apply");
  await p.keys();
  await p.page.keyboard.press("Control+Enter"); // the diff has the focus: one key
  await p.tab("code from the conversation").waitFor({ state: "detached" });
  await line("return 1;").waitFor();
  assert.equal(p.read("a.js").includes("return 1"), false, "it was saved, though the file had unsaved changes");
  await p.typing();
  await p.page.keyboard.press("Control+z");
  await line("return 0;").waitFor();
  await line("let end;/* inserted */").waitFor();
  await press(1, "Apply to the active file");
  await p.keys();
  await p.page.keyboard.press("Control+w"); // closed: dropped, and nothing waits
  await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
  await line("return 0;").waitFor();
});
