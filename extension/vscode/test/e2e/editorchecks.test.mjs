// Problems that only VS Code's extensions know, shown before an edit is approved.
import assert from "node:assert/strict";
import { world } from "./world.mjs";

const w = world({ driver: true, spy: true });
const { test } = w;
const read = (filePath) => ({ tool: "read", input: { filePath } });
const edit = (filePath, oldString, newString) => ({ tool: "edit", input: { filePath, oldString, newString } });

/** An extension as others write them, in the extension host: a line of a .todo file with BAD in it is an error. */
const checker = `const vscode = require("vscode");
exports.run = async () => {
  await vscode.extensions.getExtension("pillion-dev.pillion").activate();
  const found = vscode.languages.createDiagnosticCollection("todo");
  const look = (d) => (d.uri.path.endsWith(".todo") || d.languageId === "python") && found.set(d.uri, d.getText().split("\\n").flatMap((text, n) => text.includes("BAD") ? [new vscode.Diagnostic(new vscode.Range(n, 0, n, text.length), "bad: " + text)] : []));
  vscode.workspace.onDidOpenTextDocument(look);
  vscode.workspace.onDidChangeTextDocument((e) => look(e.document));
  vscode.workspace.onDidCloseTextDocument((d) => found.delete(d.uri));
  vscode.workspace.textDocuments.forEach(look);
  await new Promise(() => {}); // the host lives as long as its window
};`;

test("an extension's own check of the proposal: the new problem alone is counted, and nothing stays in the list of problems", async (t) => {
  const text = "BAD old\ntwo\n";
  const p = await w.open(t, { "a.todo": text, "host.cjs": checker }, { host: "host.cjs" });
  await p.bench.openFile("a.todo");
  await p.page.locator(".squiggly-error").first().waitFor();
  const panel = await p.panel();
  await panel.say("go", [read("a.todo"), edit("a.todo", "two", "BAD two"), "Done."]);
  const card = panel.frame.locator(".dock .permission");
  await card.getByText("introduces 1").waitFor();
  await card.locator(".problem", { hasText: "bad: BAD two" }).waitFor();
  assert.equal(await card.locator(".problem", { hasText: "BAD old" }).count(), 0, "a problem that was there before is counted as new");
  await p.shot("editor-check");
  await p.reject(0).click();
  await p.onDisk("a.todo", text);
  // VS Code keeps a hidden document for minutes: emptied, it is not in the list of problems.
  await p.page.locator('[id="status.problems"]', { hasText: /^\s*1\s*0\s*$/ }).waitFor();
});

test("VS Code's own JSON checks, which look at tabs only, count once the review is open", async (t) => {
  const text = '{\n  "one": 1\n}\n';
  const p = await w.open(t, { "a.json": text }, { machine: { "pillion.lsp": { json: { disabled: true } } } });
  await p.bench.openFile("a.json");
  const panel = await p.panel();
  await panel.say("go", [read("a.json"), edit("a.json", '"one": 1', '"one": 1,\n  "two": oops'), "Done."]);
  const card = panel.frame.locator(".dock .permission");
  await card.getByText(/introduces [1-9]/).waitFor();
  await card.locator(".problem").first().waitFor();
  await p.reject(0).click();
  await p.onDisk("a.json", text);
});

test("problems of a notebook's cells: the agent has them at their lines of the file, and they can be fixed where they are", async (t) => {
  const cell = (source) => ({ cell_type: "code", execution_count: null, metadata: {}, outputs: [], source });
  const notebook = JSON.stringify({ cells: [cell(["x = 1"]), cell(["y = 2\n", "BAD = 3"])], metadata: { language_info: { name: "python" } }, nbformat: 4, nbformat_minor: 5 }, null, 1) + "\n";
  const p = await w.open(t, { "n.ipynb": notebook, "host.cjs": checker }, { host: "host.cjs" });
  await p.bench.openFile("n.ipynb");
  await p.page.locator(".notebookOverlay .squiggly-error").first().waitFor();
  await p.page.locator(".notebookOverlay .view-line", { hasText: "BAD" }).click();
  w.steps.push("I see.");
  await p.page.keyboard.press("Control+.");
  await p.page.locator(".action-widget").getByText("Fix with Pillion").first().click();
  await p.bench.webview("pillion-dev.pillion").getByText("I see.", { exact: true }).first().waitFor();
  const { prompt } = (await w.heard("session/prompt")).at(-1);
  assert.equal(prompt[0].text, "Fix this problem in n.ipynb, cell 2:\n- line 2: error: bad: BAD = 3");
  assert.match(prompt[1].uri, /n\.ipynb$/);
  const line = notebook.split("\n").findIndex((l) => l.includes("BAD"));
  const start = notebook.split("\n")[line].indexOf("BAD");
  await p.holds(async () => {
    const told = (await w.heard("_pillion/diagnostics/didChange")).findLast((d) => /^file:.*n\.ipynb$/.test(d.uri));
    assert.deepEqual(told?.diagnostics.map((d) => d.range), [{ start: { line, character: start }, end: { line, character: start + 7 } }]);
  });
});
