// What a model may write to look like something else, or to be too much.
import assert from "node:assert/strict";
import test from "node:test";
import { panels } from "./setup.mjs";
import * as S from "./scenes.mjs";

const { open, panel } = panels();

test("what hides in a command, a name or a line is shown where the person decides by it", async (t) => {
  const p = await open(t);
  const bad = "rm -rf ~ \u202e# \u2066olleh ohce\u2069\r echo\u200b hello \u{1f469}\u200d\u{1f4bb}"; // a picture of two, joined, hides nothing
  const { list, state } = S.entries(panel(), [
    { sessionUpdate: "tool_call", toolCallId: "t1", title: bad, kind: "execute", status: "in_progress", rawInput: { command: bad } },
    { sessionUpdate: "tool_call", toolCallId: "t2", title: "edit", kind: "edit", status: "completed", content: [{ type: "diff", path: "/home/ada/shop/a\u202etxt.exe", oldText: "a\r\n", newText: "if admin \u202e} \u2066// check\u2069 \u2066 {\r\n" }] },
  ]);
  await p.show({ running: true, approvals: [
    { ...S.commandApproval, title: bad, command: bad, toolCallId: "t1", always: ["ec\u200bho *"], outside: ["/tmp/\u202ex"] },
  ] }, list);
  const card = p.page.locator(".card.permission");
  assert.equal(await card.locator(".command code").innerText(), "rm -rf ~ U+202E# U+2066olleh ohceU+2069U+000D echoU+200B hello \u{1f469}\u200d\u{1f4bb}");
  const shown = await card.evaluate((el) => [el.innerText, ...[...el.querySelectorAll("[aria-label], [title]"), el].map((e) => `${e.getAttribute("aria-label")} ${e.title}`)].join("\n"));
  assert.doesNotMatch(shown, /[\u200b\u202e\u2066\u2069\r]/);
  assert.match(shown, /\/tmp\/U\+202Ex/);
  assert.match(shown, /ecU\+200Bho \*/);
  await p.tell({ type: "detail", id: "t2", detail: state.details.get("t2") });
  await p.page.locator(".tool", { hasText: "edit" }).locator(".row").first().click();
  await p.tell({ type: "detail", id: "t2", detail: state.details.get("t2") });
  await p.page.locator(".dl.add", { hasText: "U+202E} U+2066// checkU+2069 U+2066 {" }).waitFor();
  assert.doesNotMatch(await p.page.locator(".transcript").innerText(), /[\u202e\u2066]/);
  assert.doesNotMatch(await p.page.locator(".diff").innerText(), /U\+000D/, "line ends are no secrets");
  if (process.env.PILLION_SHOTS) await p.page.screenshot({ path: `${process.env.PILLION_SHOTS}/hidden.png` });
});

test("a table and code without end: what is read is drawn, the rest when it is asked for", async (t) => {
  const p = await open(t);
  const table = `| a | b |\n|--|--|\n${Array.from({ length: 1203 }, (_, i) => `| ${String(i)} | x |\n`).join("")}`;
  const code = `\`\`\`js\n${"let x = 1;\n".repeat(4000)}\`\`\`\n`;
  await p.show({}, S.entries(panel(), [table, code].map((text, i) => ({ sessionUpdate: "agent_message_chunk", messageId: `m${String(i)}`, content: { type: "text", text } }))).list);
  await p.tell({ type: "focus", what: "transcript" });
  await p.page.keyboard.press("Home");
  const rows = p.page.locator(".md tbody tr");
  await rows.first().waitFor();
  const counts = [];
  for (const name of ["Show 500 more of 703 rows", "Show 203 more rows"]) {
    counts.push(await rows.count());
    await p.page.getByRole("button", { name }).click();
  }
  assert.deepEqual([...counts, await rows.count()], [500, 1000, 1203]);
  assert.equal(await rows.last().innerText(), "1202\tx");
  assert.equal(await p.page.getByRole("button", { name: /more/ }).count(), 0);
  await p.page.keyboard.press("End");
  await p.page.locator(".code .line").nth(3999).waitFor({ state: "attached" });
  assert.equal(await p.page.locator(".code .hl-keyword").count(), 2000);
  await p.page.locator(".code").hover();
  await p.page.getByRole("button", { name: "Copy" }).last().click();
  assert.equal((await p.heard("code")).text, "let x = 1;\n".repeat(4000));
});

test("Ctrl+Escape stops the turn wherever the focus is, without leave to wait for", async (t) => {
  const p = await open(t);
  await p.show({ running: true }, S.entries(panel(), S.turn, { said: "Fix it" }).list);
  await p.tell({ type: "focus", what: "transcript" });
  await p.page.waitForFunction(() => document.activeElement.classList.contains("entry"));
  await p.page.keyboard.press("Control+Escape");
  await p.heard("stop");
  await p.show({ running: false }, [], S.draft(), 2);
  await p.settle();
  await p.page.keyboard.press("Control+Escape");
  await p.settle();
  assert.equal(p.sent.filter((m) => m.type === "stop").length, 1, "nothing runs, and it was stopped");
});

test("files that are dropped: from the explorer as mentions, whatever their names; words as words", async (t) => {
  const p = await open(t);
  await p.show({});
  const drop = (data) => p.input.evaluate((el, d) => {
    const t2 = new DataTransfer();
    for (const [type, text] of Object.entries(d)) t2.setData(type, text);
    el.dispatchEvent(new DragEvent("drop", { dataTransfer: t2, bubbles: true, cancelable: true }));
  }, data);
  await drop({ "application/vnd.code.uri-list": "vscode-remote://host%2B1/home/ada/shop/a%20b.txt\r\nfile:///home/ada/100%.txt", "text/plain": "x" });
  assert.equal(await p.input.inputValue(), "@a b.txt @100%.txt ");
  const { draft } = await p.heard("draft", (m) => m.draft.mentions.length === 2);
  assert.deepEqual(draft.mentions.map((m) => [m.path, m.uri]), [["/home/ada/shop/a b.txt", "vscode-remote://host%2B1/home/ada/shop/a%20b.txt"], ["/home/ada/100%.txt", "file:///home/ada/100%.txt"]]);
  await drop({ "text/uri-list": "https://example.test/x", "text/plain": "https://example.test/x" });
  assert.equal(await p.input.inputValue(), "@a b.txt @100%.txt https://example.test/x");
});
