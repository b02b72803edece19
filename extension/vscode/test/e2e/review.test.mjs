import assert from "node:assert/strict";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { world } from "./world.mjs";

const w = world();
const { test } = w;
const read = (filePath) => ({ tool: "read", input: { filePath } });
const write = (filePath, content) => ({ tool: "write", input: { filePath, content } });
const long = Array.from({ length: 20 }, (_, i) => `line ${i + 1}\n`).join("");
const changed = long.replace("line 2\n", "LINE 2\n").replace("line 10\n", "LINE 10\nmore\n").replace("line 18\n", "");
/** What the model was told of its last call. */
const told = () => JSON.stringify(w.model.seen.at(-1).messages.at(-1));

/** Asks for the three hunks of `changed`, and waits until they are shown. */
async function proposed(p, steps = [read("a.txt"), write("a.txt", changed), "Done."]) {
  await p.bench.openFile("a.txt");
  await p.ask(steps);
  await p.lens("Accept").waitFor();
}

test("accept, reject and comment hunk by hunk: what was accepted is written, the model hears the rest", async (t) => {
  const p = await w.open(t, { "a.txt": long });
  await proposed(p);
  assert.equal(p.read("a.txt"), long, "written before it was accepted");
  await p.page.locator('[aria-label="Revert Block"]').first().waitFor({ state: "attached" });
  await p.accept(0).click();
  await p.lens("Accepted").waitFor();
  await p.lens("Comment", 1).click();
  await p.bench.quick.locator("input").first().fill("ten is fine as it is");
  await p.page.keyboard.press("Enter");
  await p.lens("ten is fine").waitFor();
  await p.reject(1).click();
  await p.lens("Rejected").waitFor();
  assert.equal(p.read("a.txt"), long, "written before all was decided");
  await p.accept(0).click();
  await p.onDisk("a.txt", long.replace("line 2\n", "LINE 2\n").replace("line 18\n", ""));
  await p.tab("Pillion proposes").waitFor({ state: "detached" });
  await p.status("waiting").waitFor({ state: "detached" });
  await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor(); // the turn is over: the model has heard it
  assert.match(told(), /ten is fine as it is/);
});

test("by keyboard: accept, reject, next; the edited right side is what is written", async (t) => {
  const p = await w.open(t, { "a.txt": long });
  await proposed(p);
  await p.page.keyboard.press("Control+Alt+o"); // to the first hunk
  await p.keys();
  await p.page.keyboard.press("End");
  await p.page.keyboard.type(" edited");
  await p.lens("Accept your version").waitFor();
  await p.page.keyboard.press("Control+Enter");
  await p.lens("Accepted as you edited it").waitFor();
  await p.page.keyboard.press("Control+Shift+Backspace"); // the second hunk: the cursor went there
  await p.lens("Rejected").waitFor();
  await p.page.keyboard.press("Control+Enter");
  await p.onDisk("a.txt", long.replace("line 2\n", "LINE 2 edited\n").replace("line 18\n", ""));
});

/** Closing a proposal must ask nothing: the window is watched for a dialog until the turn is over. */
async function quietEnd(p, name, wanted) {
  const dialog = p.page.locator(".monaco-dialog-box");
  await Promise.race([p.tab("Pillion proposes").waitFor({ state: "detached" }), dialog.waitFor()]);
  assert.equal(await dialog.count(), 0, "closing the proposal asked something");
  await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor(); // the turn is over: the model has heard the decision
  await p.page.locator(".tab.dirty").first().waitFor({ state: "detached" });
  await p.onDisk(name, wanted);
}

test("a review that ends in a Reject closes without a question: one hunk, several, after typing", async (t) => {
  const p = await w.open(t, { "a.txt": long, "b.txt": long });
  const one = long.replace("line 2\n", "LINE 2\n");
  await proposed(p, [read("a.txt"), write("a.txt", one)]); // a change that is rejected whole ends the turn: the model says no more
  await p.reject(0).click();
  await quietEnd(p, "a.txt", long);
  await proposed(p);
  await p.accept(0).click();
  await p.lens("Accepted").waitFor();
  await p.reject(1).click(); // 0 is the one of the hunk that is accepted
  await p.lens("Rejected").waitFor();
  await p.reject(1).click();
  await quietEnd(p, "a.txt", one);
  assert.match(told(), /LINE 10/, "the model hears which lines were rejected");
  // what was typed into a hunk goes with its rejection, and the tab is no dirtier for it
  await p.bench.openFile("b.txt");
  await p.ask([read("b.txt"), write("b.txt", one)]);
  await p.lens("Accept").waitFor();
  await p.page.locator(".editor.modified .view-line", { hasText: "LINE" }).first().click();
  await p.page.keyboard.press("End");
  await p.page.keyboard.type(" mine");
  await p.reject(0).click();
  await quietEnd(p, "b.txt", long);
});

test("a whole file and all files end in a Reject without a question", async (t) => {
  const p = await w.open(t, { "a.txt": long, "b.txt": long });
  await proposed(p, [read("a.txt"), write("a.txt", changed)]);
  await p.lens("Reject file").click();
  await quietEnd(p, "a.txt", long);
  await proposed(p, [read("a.txt"), write("a.txt", changed)]);
  await p.page.locator(".editor.modified .view-line", { hasText: "LINE" }).first().click();
  await p.page.keyboard.press("End");
  await p.page.keyboard.type("x");
  await p.bench.command("Pillion: Reject All…");
  await p.bench.quick.getByText("Tell Pillion why").waitFor();
  await p.page.keyboard.press("Enter");
  await quietEnd(p, "a.txt", long);
});

test("the built-in arrow rejects; undo takes that back; closing means later", async (t) => {
  const p = await w.open(t, { "a.txt": long });
  await proposed(p);
  await p.accept(0).click(); // focus and cursor in the second hunk, whose arrow shows
  await p.page.locator('[aria-label="Revert Block"]').first().click();
  await p.lens("Rejected").waitFor();
  await p.page.locator(".editor.modified .view-line", { hasText: "line 17" }).first().click();
  await p.page.keyboard.press("Control+z");
  await p.lens("Rejected").waitFor({ state: "detached" });
  // by the lens: it is undecided again, not accepted
  await p.reject(0).click();
  await p.lens("Undo rejection").click();
  await p.lens("1 decided").waitFor();
  await p.lens("Rejected").waitFor({ state: "detached" });
  await p.page.locator(".editor.modified .view-line", { hasText: "line 17" }).first().click();
  await p.page.keyboard.press("End");
  await p.page.keyboard.type("!"); // and closed at once: what was typed is kept all the same
  await p.page.keyboard.press("Control+w");
  await p.tab("Pillion proposes").waitFor({ state: "detached" });
  assert.equal(await p.page.locator(".monaco-dialog-box").count(), 0, "closing asked something");
  assert.equal(p.read("a.txt"), long);
  await p.status("1 waiting").click();
  await p.accept(0).waitFor();
  await p.bench.command("Pillion: Accept All");
  await p.onDisk("a.txt", changed);
  await p.page.locator(".editor-instance .view-line", { hasText: /line.17!/ }).waitFor(); // the person's own edit of the file, unsaved
});

test("a proposal stays as it is, whatever the editor does to files: their encoding, formatters and trimming when they are saved", async (t) => {
  const text = '{\n"name": "grün",  \n"b": 2,\n\n"c": [1,\n2],\n"d": 4\n}\n';
  const p = await w.open(t, { "a.json": text }, { settings: { "files.encoding": "windows1252", "editor.formatOnSave": true, "files.trimTrailingWhitespace": true, "json.format.enable": true } });
  writeFileSync(join(p.folder, "a.json"), text, "latin1");
  await p.bench.openFile("a.json");
  await p.ask([read("a.json"), write("a.json", text.replace("2,", "22,").replace("4", "44  ")), "Done."]);
  const lines = async () => (await p.bench.lines(".editor.modified")).join("\n");
  await p.lens("Accept").waitFor();
  await p.page.locator(".editor.modified .view-line", { hasText: '"grün"' }).waitFor(); // not read in the encoding of files
  await p.reject(0).click();
  await p.lens("Rejected").waitFor();
  await p.page.locator(".editor.modified .view-line", { hasText: "44" }).click();
  await p.page.keyboard.press("End");
  await p.page.keyboard.type("!");
  await p.lens("Accept your version").waitFor();
  await p.page.keyboard.press("Backspace");
  await p.lens("Accept your version").waitFor({ state: "detached" });
  await p.page.keyboard.press("Control+s");
  await p.page.locator(".tab.dirty").waitFor({ state: "detached" });
  await p.holds(async () => assert.equal(await lines(), text.replace("4", "44  ")));
  await p.accept(0).click();
  await p.tab("Pillion proposes").waitFor({ state: "detached" });
  await p.onDisk("a.json", () => /"name": "grün",\n +"b": 2,\n[^]* 2\n[^]*"d": 44\n}/.test(readFileSync(join(p.folder, "a.json"), "latin1"))); // the file itself is saved as the person has it set
});

test("a proposal is shown as text where another editor shows files of its kind", async (t) => {
  const p = await w.open(t, { "a.md": "# One\n\ntwo\n", "b.txt": "x\n" }, { settings: { "workbench.editorAssociations": { "*.md": "vscode.markdown.preview.editor" } } });
  await p.bench.openFile("b.txt");
  await p.ask([read("a.md"), { tool: "edit", input: { filePath: "a.md", oldString: "two", newString: "three" } }, "Done."]);
  await p.accept(0).click();
  await p.onDisk("a.md", "# One\n\nthree\n");
});

test("what the editor would not write is refused: a file it holds read-only", async (t) => {
  const p = await w.open(t, { "a.txt": "one\ntwo\n" }, { settings: { "files.readonlyInclude": { "**/a.txt": true } } });
  await p.bench.openFile("a.txt");
  await p.ask([read("a.txt"), { tool: "edit", input: { filePath: "a.txt", oldString: "two", newString: "TWO" } }, "Done."]);
  await p.accept(0).click();
  await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
  assert.match(told(), /a\.txt is read-only in VS Code/);
  await p.page.locator(".editor-instance .view-line", { hasText: /^two$/ }).waitFor(); // taken back
});

test("a notebook with unsaved cells: the agent reads them, an accepted edit goes into its cell, and undo is one step", async (t) => {
  const cell = (source) => ({ cell_type: "code", execution_count: null, metadata: {}, outputs: [], source });
  const notebook = JSON.stringify({ cells: [cell(["x = 2"]), cell(["y = 5\n", "print(y)"])], metadata: {}, nbformat: 4, nbformat_minor: 5 }, null, 1) + "\n";
  const p = await w.open(t, { "a.txt": "one\n", "n.ipynb": notebook });
  await p.bench.openFile("n.ipynb");
  await p.page.locator(".notebookOverlay .view-line", { hasText: /x.=.2/ }).click();
  await p.page.keyboard.press("Home");
  await p.page.keyboard.type("mine = 1\n");
  await p.page.locator(".tab.dirty", { hasText: "n.ipynb" }).waitFor();
  await p.bench.openFile("a.txt");
  await p.ask([read("n.ipynb"), { tool: "edit", input: { filePath: "n.ipynb", oldString: "y = 5", newString: "y = 6" } }, "Done."]);
  await p.status("1 waiting").click();
  await p.page.locator('.editor-actions .action-label[aria-label^="Open Text Diff Editor"]').click(); // of the cells
  await p.lens("Cell 2").waitFor();
  await p.shot("review-notebook-text");
  assert.match(told(), /mine = 1/, "the agent has read another text than the person sees");
  await p.accept(0).click();
  await p.tab("Pillion proposes").waitFor({ state: "detached" });
  await p.tab("n.ipynb").click();
  const line = (text) => p.page.locator(".notebookOverlay .view-line", { hasText: text });
  await line(/^y.=.6$/).waitFor();
  await line(/^mine.=.1$/).waitFor();
  await p.shot("notebook-accepted");
  await p.page.locator(".tab.dirty", { hasText: "n.ipynb" }).waitFor();
  assert.equal(p.read("n.ipynb"), notebook, "the unsaved notebook was written to disk");
  await line(/^y.=.6$/).click();
  await p.page.keyboard.press("Control+z");
  await line(/^y.=.5$/).waitFor();
  await line(/^mine.=.1$/).waitFor();
});

test("a proposal for a notebook is shown as cells: a cell that is reverted is not written, the rest is", async (t) => {
  const cell = (source, outputs = []) => ({ cell_type: "code", execution_count: null, metadata: {}, outputs, source });
  const text = (...cells) => JSON.stringify({ cells, metadata: { language_info: { name: "python" } }, nbformat: 4, nbformat_minor: 5 }, null, 1) + "\n";
  const p = await w.open(t, { "a.txt": "one\n", "n.ipynb": text(cell(["x = 1\n", "y = 2"]), cell(["print(x)"]), cell(["print(y)"])) });
  const button = (label) => p.page.locator(`.editor-actions .action-label[aria-label^="${label}"]`);
  await p.bench.openFile("a.txt");
  await p.ask([read("n.ipynb"), { tool: "multiedit", input: { filePath: "n.ipynb", edits: [{ oldString: "x = 1", newString: "x = 10" }, { oldString: "print(x)", newString: "print(-x)" }] } }, "Done."]);
  const right = (line) => p.page.locator(".notebook-text-diff-editor .editor.modified .view-line", { hasText: line });
  await right(/^x.=.10$/).waitFor();
  await right(/^print\(-x\)$/).waitFor();
  await p.shot("review-notebook");
  // the text and back: nothing is decided by looking
  await button("Open Text Diff Editor").click();
  await p.lens("Cell 2").waitFor();
  await p.lens("2 hunks").waitFor();
  await button("Show Notebook as Cells").click();
  await right(/^print\(-x\)$/).waitFor();
  assert.equal(await p.page.locator(".tab", { hasText: "Pillion proposes" }).count(), 1, "the review has two tabs");
  // the diff editor's own arrow
  await p.page.locator(".notebook-text-diff-editor .cell-diff-editor-container", { hasText: "print" }).locator('[aria-label^="Revert Input"]').click();
  await right(/^print\(x\)$/).waitFor();
  await p.bench.webview("pillion-dev.pillion").getByText("1 of 2 hunks decided").waitFor();
  await button("Accept File").click();
  await p.onDisk("n.ipynb", text(cell(["x = 10\n", "y = 2"]), cell(["print(x)"]), cell(["print(y)"])));
  await p.tab("Pillion proposes").waitFor({ state: "detached" });
  assert.equal(await p.page.locator(".monaco-dialog-box").count(), 0);
});

test("the last cell that is reverted rejects the proposal", async (t) => {
  const text = JSON.stringify({ cells: [{ cell_type: "markdown", metadata: {}, source: "# One" }], metadata: {}, nbformat: 4, nbformat_minor: 5 }, null, 2);
  const p = await w.open(t, { "a.txt": "one\n", "n.ipynb": text });
  await p.bench.openFile("a.txt");
  await p.ask([read("n.ipynb"), { tool: "edit", input: { filePath: "n.ipynb", oldString: "# One", newString: "# Two" } }, "Done."]);
  await p.page.locator('.notebook-text-diff-editor [aria-label^="Revert Input"]').click();
  await p.tab("Pillion proposes").waitFor({ state: "detached" });
  await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
  assert.equal(p.read("n.ipynb"), text);
  assert.equal(await p.page.locator(".monaco-dialog-box").count(), 0);
});

test("a buffer with unsaved lines keeps them, stays unsaved, and undo is one step", async (t) => {
  const p = await w.open(t, { "a.txt": long });
  await p.bench.openFile("a.txt");
  await p.page.locator(".view-line", { hasText: "line 20" }).first().click();
  await p.page.keyboard.press("Control+End");
  await p.page.keyboard.type("unsaved");
  await p.ask([read("a.txt"), { tool: "edit", input: { filePath: "a.txt", oldString: "line 2\n", newString: "LINE 2\n" } }, "Done."]);
  await p.status("1 waiting").click(); // no proposal comes in front of somebody who types
  await p.lens("Accept").waitFor();
  await p.accept(0).click();
  await p.tab("Pillion proposes").waitFor({ state: "detached" });
  const edited = p.page.locator(".editor-instance .view-line", { hasText: /LINE.2/ });
  await edited.waitFor();
  assert.match((await p.bench.lines()).join("\n"), /unsaved/);
  assert.equal(p.read("a.txt"), long, "the unsaved buffer was written to disk");
  await p.tab("a.txt").and(p.page.locator(".dirty")).waitFor();
  await p.page.locator(".editor-instance .view-line").first().click();
  await p.page.keyboard.press("Control+z");
  await edited.waitFor({ state: "detached" });
  assert.match((await p.bench.lines()).join("\n"), /line 2\n[^]*unsaved/);
});

test("accepted in files that were closed: Ctrl+Z takes it back when they are opened; what saving would change is written as it was proposed", async (t) => {
  const open = { "a.txt": "x\n", "b.txt": long, "c.md": "one  \ntwo", "d.txt": "one\r\ntwo\n" };
  const p = await w.open(t, open, { settings: { "[markdown]": { "files.trimTrailingWhitespace": true, "files.insertFinalNewline": true } } });
  await p.bench.openFile("a.txt");
  const edit = (filePath, oldString, newString) => [read(filePath), { tool: "edit", input: { filePath, oldString, newString } }];
  await p.ask([...edit("b.txt", "line 2\n", "LINE 2\n"), ...edit("c.md", "two", "TWO"), ...edit("d.txt", "two", "TWO"), "Done."]);
  for (const [name, wanted] of [["b.txt", long.replace("line 2\n", "LINE 2\n")], ["c.md", "one  \nTWO"], ["d.txt", "one\r\nTWO\n"]]) {
    await p.tab(`${name} — Pillion proposes`).waitFor();
    await p.accept(0).click();
    await p.onDisk(name, wanted);
    await p.tab(`${name} — Pillion proposes`).waitFor({ state: "detached" });
  }
  await p.page.locator('.statusbar-item[aria-label="Pillion"]').waitFor();
  await p.bench.openFile("b.txt");
  const line = p.page.locator(".editor-instance .view-line", { hasText: /LINE.2$/ });
  await line.click();
  await p.page.keyboard.press("Control+z");
  await line.waitFor({ state: "detached" });
  await p.page.locator(".editor-instance .view-line", { hasText: /^line.2$/ }).waitFor();
});

test("lines typed into the file after it was proposed are merged with what is accepted, and stay unsaved", async (t) => {
  const p = await w.open(t, { "a.txt": long });
  await proposed(p);
  await p.tab("a.txt").click();
  await p.page.locator(".editor-instance .view-line", { hasText: /^line.15$/ }).first().click();
  await p.page.keyboard.press("End");
  await p.page.keyboard.type(" mine");
  await p.page.locator(".tab.dirty", { hasText: "a.txt" }).waitFor();
  await p.status("1 waiting").click();
  await p.accept(0).waitFor();
  await p.bench.command("Pillion: Accept All");
  await p.tab("Pillion proposes").waitFor({ state: "detached" });
  await p.page.locator(".editor-instance .view-line", { hasText: /LINE.2/ }).waitFor();
  await p.holds(async () => assert.equal((await p.bench.lines()).join("\n").trim(), changed.replace("line 15", "line 15 mine").trim()));
  assert.equal(p.read("a.txt"), long, "the unsaved buffer was written to disk");
  await p.page.locator(".editor-instance .view-line").first().click();
  await p.page.keyboard.press("Control+z");
  await p.page.locator(".editor-instance .view-line", { hasText: /LINE.2/ }).waitFor({ state: "detached" });
  assert.match((await p.bench.lines()).join("\n"), /line 15 mine/, "one undo step took more than the agent's lines");
});

test("a line whose indentation alone changes is marked; the proposal's encoding is the file's", async (t) => {
  const p = await w.open(t, { "a.txt": long });
  await proposed(p, [read("a.txt"), write("a.txt", long.replace("line 2\n", "LINE 2\n").replace("line 3\nline 4\n", "  line 3\n\tline 4\n")), "Done."]);
  await p.accept(0).waitFor();
  const editor = p.page.locator(".editor.modified");
  const tinted = () => editor.locator(".view-overlays .cdr").evaluateAll((all) => all.filter((e) => getComputedStyle(e).backgroundColor.startsWith("rgba") && getComputedStyle(e).backgroundColor !== "rgba(0, 0, 0, 0)").length);
  for (const end = Date.now() + 60_000; (await tinted()) < 3 && Date.now() < end; ) await p.page.waitForTimeout(50); // decorations tell nobody
  assert.ok((await tinted()) >= 3, "lines 2, 3 and 4 are marked");
  await p.shot("review-blanks");
  await editor.locator(".view-line").first().click();
  await p.page.locator(".statusbar-item", { hasText: /^UTF-8$/ }).waitFor();
  await p.bench.command("Pillion: Reject All…");
  await p.bench.quick.getByText("Tell Pillion why").waitFor();
  await p.page.keyboard.press("Enter");
  await quietEnd(p, "a.txt", long);
});

test("files deleted, renamed and edited during the review lose nothing", async (t) => {
  const p = await w.open(t, { "a.txt": long });
  await proposed(p);
  writeFileSync(join(p.folder, "a.txt"), "other\n");
  await p.bench.command("Pillion: Accept All");
  await p.status("waiting").waitFor({ state: "detached" });
  assert.equal(p.read("a.txt"), "other\n", "an edit of the person's was overwritten");

  writeFileSync(join(p.folder, "a.txt"), long);
  await p.ask([read("a.txt"), write("a.txt", changed), "Done."]);
  await p.status("1 waiting").click();
  await p.lens("Accept").waitFor();
  renameSync(join(p.folder, "a.txt"), join(p.folder, "b.txt"));
  await p.bench.command("Pillion: Accept All");
  await p.status("waiting").waitFor({ state: "detached" });
  assert.equal(p.read("b.txt"), long);
  rmSync(join(p.folder, "b.txt"));
});

test("a file that moves on under its proposal: the diff says so, and the next one says that it was made anew", async (t) => {
  const p = await w.open(t, { "a.txt": long });
  await proposed(p, [read("a.txt"), write("a.txt", changed), read("a.txt"), { tool: "edit", input: { filePath: "a.txt", oldString: "line 2\n", newString: "LINE 2\n" } }, "Done."]);
  writeFileSync(join(p.folder, "a.txt"), long.replace("line 20\n", "line 20\ntheirs\n"));
  await p.lens("a.txt has changed since the proposal").waitFor();
  writeFileSync(join(p.folder, "a.txt"), long);
  await p.lens("a.txt has changed since the proposal").waitFor({ state: "detached" }); // it is the same again
  writeFileSync(join(p.folder, "a.txt"), long.replace("line 20\n", "line 20\ntheirs\n"));
  await p.lens("a.txt has changed since the proposal").waitFor();
  await p.shot("review-moved");
  await p.lens("a.txt has changed since the proposal").click();
  await p.lens("New proposal for the current text").waitFor();
  await p.accept(0).click();
  await p.onDisk("a.txt", long.replace("line 2\n", "LINE 2\n").replace("line 20\n", "line 20\ntheirs\n"));
});

test("five megabytes: nothing opens by itself, and it can be reviewed when asked for", async (t) => {
  const big = Array.from({ length: 120_000 }, (_, i) => `a line of some forty characters, number ${i}\n`).join("");
  const p = await w.open(t, { "big.txt": big, "a.txt": "x\n" });
  await p.bench.openFile("a.txt");
  await p.ask([write("new.txt", big), "Done."]);
  await p.status("1 waiting").waitFor();
  assert.equal(await p.page.locator(".tab", { hasText: "Pillion proposes" }).count(), 0);
  await p.status("1 waiting").click();
  await p.lens("Accept file").waitFor();
  await p.lens("Accept file").click();
  await p.onDisk("new.txt", big);
});
