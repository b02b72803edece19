// Asked where the work is: at the cursor, for the terminal's failed command, for a failed test.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import assert from "node:assert/strict";
import { world } from "./world.mjs";

const w = world();
const { test } = w;
const driven = world({ driver: true });
const read = (filePath) => ({ tool: "read", input: { filePath } });
const long = Array.from({ length: 20 }, (_, i) => `line ${i + 1}\n`).join("");
/** What the model was told last by the person. */
const asked = (of = w) => of.model.seen.at(-1).messages.filter((m) => m.role === "user").map((m) => JSON.stringify(m.content)).at(-1);

test("a change asked for at the selection is proposed in the editor, and is one undo step", async (t) => {
  const p = await w.open(t, { "a.txt": long }, { settings: { "pillion.review.open": "never" } });
  await p.bench.openFile("a.txt");
  await p.page.locator(".editor-instance .view-line", { hasText: /^line.5$/ }).first().click();
  await p.page.keyboard.press("Home");
  for (let i = 0; i < 2; i++) await p.page.keyboard.press("Shift+ArrowDown");
  w.steps.push(read("a.txt"), { tool: "edit", input: { filePath: "a.txt", oldString: "line 5\nline 6\n", newString: "LINE 5\nLINE 6\n" } }, "Done.");
  await p.page.keyboard.press("Control+Alt+k");
  await p.bench.quick.getByText("Change lines 5 to 6 of a.txt").waitFor();
  await p.shot("inline-prompt");
  await p.bench.quick.locator("input:visible").first().fill("shout");
  await p.page.keyboard.press("Enter");
  await p.lens("Accept").waitFor(); // though proposals open only when asked for: this one was
  assert.match(asked(), /Change a\.txt, lines 5 to 6: shout/);
  await p.keys();
  await p.page.keyboard.press("Control+Enter");
  await p.onDisk("a.txt", long.replace("line 5\nline 6\n", "LINE 5\nLINE 6\n"));
  await p.tab("Pillion proposes").waitFor({ state: "detached" });
  await p.page.locator(".editor-instance .view-line").first().click();
  await p.page.keyboard.press("Control+z");
  await p.page.locator(".editor-instance .view-line", { hasText: /LINE.5/ }).waitFor({ state: "detached" });
  assert.equal((await p.bench.lines()).join("\n").trim(), long.trim());
});

test("an answer without a change says so; what was typed is there again when it could not be sent", async (t) => {
  const p = await w.open(t, { "a.txt": long });
  await p.bench.openFile("a.txt");
  await p.page.locator(".editor-instance .view-line").first().click();
  w.steps.push("It is fine as it is.");
  await p.page.keyboard.press("Control+Alt+k");
  await p.bench.quick.getByText("Change line 1 of a.txt").waitFor();
  await p.bench.quick.locator("input:visible").first().fill("improve");
  await p.page.keyboard.press("Enter");
  await p.bench.toast("Pillion proposed no change to a.txt").getByRole("button", { name: "Show Answer" }).click();
  await p.bench.webview("pillion-dev.pillion").getByText("It is fine as it is.").first().waitFor();
});

test("the terminal's failed command is handed over with its exit code and the end of its output", async (t) => {
  const p = await w.open(t, { "a.txt": long }, { settings: { "terminal.integrated.shellIntegration.enabled": true, "terminal.integrated.defaultProfile.linux": "bash" } });
  await p.panel(); // Pillion is in use
  await p.bench.command("Terminal: Create New Terminal");
  await p.page.locator(".terminal-wrapper.active .xterm-rows").waitFor();
  await p.page.locator(".terminal-wrapper.active .xterm").click();
  await p.page.locator(".terminal-wrapper.active .terminal-command-decoration, .terminal-wrapper.active .xterm-rows > div", { hasText: /\$|#/ }).first().waitFor();
  // VS Code loses what a command prints in its very first moment: this one waits to be told
  await p.page.keyboard.type("echo begun-$((40+1)); read -r x; echo it-$((40+2)) && ls /no-such-place");
  await p.page.keyboard.press("Enter");
  await p.page.locator(".terminal-wrapper.active .xterm-rows").getByText("begun-41").first().waitFor();
  await p.page.keyboard.press("Enter");
  const item = p.page.locator('.statusbar-item[aria-label^="Fix failed command echo"]');
  await item.waitFor();
  await p.shot("failed-command");
  w.steps.push("I see what is wrong.");
  await item.click();
  await p.bench.webview("pillion-dev.pillion").getByText("I see what is wrong.").first().waitFor();
  assert.match(asked(), /failed with exit code [12].*ls \/no-such-place.*it-42.*No such file/s);
  await item.waitFor({ state: "detached" });
});

driven.test("a failed test is handed over with its message, what it expected and where it is", async (t) => {
  const host = `const vscode = require("vscode"), path = require("path"), fs = require("fs");
exports.run = async () => {
  // The model has nothing to say before the window is open: the request must not come earlier.
  while (!fs.existsSync(path.join(__dirname, "go"))) await new Promise((ok) => setTimeout(ok, 50));
  const uri = vscode.Uri.file(path.join(__dirname, "sum_test.txt"));
  const tests = vscode.tests.createTestController("probe", "Probe");
  const suite = tests.createTestItem("suite", "Sums", uri), item = tests.createTestItem("one", "adds two", uri);
  item.range = new vscode.Range(3, 0, 3, 5);
  tests.items.add(suite);
  suite.children.add(item);
  const message = vscode.TestMessage.diff("sums differ", "3", "4");
  message.location = new vscode.Location(uri, new vscode.Position(4, 0));
  await vscode.commands.executeCommand("pillion.fixTest", { test: item, message });
  await new Promise(() => {}); // the host lives as long as its window
};`;
  const p = await driven.open(t, { "sum_test.txt": long, "host.cjs": host }, { host: "host.cjs" });
  driven.steps.push("I see the test.");
  writeFileSync(join(p.folder, "go"), "");
  await p.bench.webview("pillion-dev.pillion").getByText("I see the test.").first().waitFor();
  assert.match(asked(driven), /The test Sums › adds two \(sum_test\.txt:4\) failed at sum_test\.txt:5:.*sums differ.*Expected:.*3.*Actual:.*4/s);
});
