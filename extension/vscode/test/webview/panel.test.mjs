// The panel's page in a headless Chromium: what it shows, what it sends, and that foreign text can do nothing.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { panels } from "./setup.mjs";
import * as S from "./scenes.mjs";

const { open, panel } = panels();

const said = "Fix the total in @cart.go";

test("bundle: at most 250 kB", () => {
  assert.ok(readFileSync(`${panel().out}/main.js`).length < 250_000);
});

const hostile = [
  "<script>document.title='pwned'</script>", "<img src=x onerror=\"document.title='pwned'\">", "![x](http://evil.test/a.png)", "![x](data:text/html,<script>1</script>)",
  "[click](javascript:document.title='pwned')", "<javascript:alert(1)>", "[x](vbscript:1)", "[x](command:workbench.action.quit)", "[x](vscode://file/etc/passwd)", "[x](\\\\evil\\share)",
  "<iframe src=http://evil.test></iframe>", "<link rel=stylesheet href=http://evil.test/x.css>", "<style>@import 'http://evil.test'</style>", "<svg onload=\"document.title='pwned'\">",
  "<div class=\"card permission\"><button class=primary>Allow once</button></div>", "```html\n<script>document.title='pwned'</script>\n```", "<form action=http://evil.test><input></form>",
  "<base href=http://evil.test>", "<meta http-equiv=refresh content='0;url=http://evil.test'>", "[a]: http://evil.test 'x'\n![a]", "| <img src=x onerror=1> |\n|--|\n| <b>1</b> |", "&lt;script&gt;", "\u0000\u202e<b>", "<a href=\"javascript:1\" onclick=1>x</a>",
  "```\" onmouseover=\"document.title='pwned'\nx\n```", "`<script>`", "<math><mtext><script>1</script></mtext></math>", "# <img src=http://evil.test/1>\n", "- <details open ontoggle=\"document.title='pwned'\">", "\u001b]8;;http://evil.test\u0007link\u001b]8;;\u0007",
];

test("hostile Markdown, titles, paths, outputs: nothing runs, nothing is fetched, no card is forged", async (t) => {
  const p = await open(t);
  // besides the list, pieces of it put together at random; the seed is in the message of a failure
  let seed = Number(process.env.SEED ?? 20261121);
  const random = (n) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
  const mixed = Array.from({ length: 300 }, () => Array.from({ length: 1 + random(4) }, () => {
    const s = hostile[random(hostile.length)];
    const cut = random(s.length);
    return random(3) ? s : s.slice(cut) + s.slice(0, cut);
  }).join(["\n", "\n\n", " ", "> ", "\n- "][random(5)]));
  const updates = [...hostile, ...mixed].flatMap((s, i) => [
    { sessionUpdate: "agent_message_chunk", messageId: `m${i}`, content: { type: "text", text: s } },
    { sessionUpdate: "agent_thought_chunk", messageId: `h${i}`, content: { type: "text", text: s } },
    ...(i < hostile.length ? [
      { sessionUpdate: "tool_call", toolCallId: `t${i}`, title: s, kind: "execute", status: "in_progress", locations: [{ path: s }], rawInput: { command: s }, content: [{ type: "content", content: { type: "text", text: s } }, { type: "diff", path: s, oldText: "", newText: s }, { type: "content", content: { type: "image", mimeType: "image/svg+xml", data: btoa("<svg onload='1'/>") } }] },
      { sessionUpdate: "notice", severity: s, title: s, description: s },
    ] : []),
  ]);
  const { state, list } = S.entries(panel(), updates, { said: hostile.join("\n") });
  await p.show({ title: hostile[0], running: true, plan: hostile.map((content) => ({ content, status: "pending", priority: "low" })), queue: hostile.map((text, i) => ({ id: String(i), text, attachments: 0 })), commands: [{ name: hostile[0], description: hostile[1] }], options: [{ ...S.options[0], name: hostile[1], options: [{ value: "build", name: hostile[0] }] }] }, list);
  for (let i = 0; i < hostile.length; i++) await p.tell({ type: "detail", id: `t${i}`, detail: state.details.get(`t${i}`) });
  // all of it is drawn once, in windows
  const heights = await p.page.evaluate(async () => {
    const el = document.querySelector(".transcript");
    let steps = 0;
    for (el.scrollTop = 0; el.scrollTop + el.clientHeight < el.scrollHeight - 5 && steps < 400; steps++) {
      el.scrollTop += el.clientHeight;
      await new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
      for (const b of document.querySelectorAll(".thought:not(.open) > .row, .tool:not(.open) > .row")) b.click();
    }
    return steps;
  });
  assert.ok(heights > 10, "nothing was drawn");
  const found = await p.page.evaluate(() => ({
    title: document.title,
    bad: [...document.querySelectorAll("script, iframe, object, embed, link, style, form, base, svg, math, [onerror], [onload], [onclick], [href], [srcset], [style*=url]")].filter((e) => !e.closest("head") && !(e.tagName === "SCRIPT" && e.src === "http://panel.test/main.js")).map((e) => e.outerHTML.slice(0, 200)),
    images: [...document.images].map((i) => i.src).filter((s) => s !== "" && !s.startsWith("data:image/png;") && !s.startsWith("data:image/jpeg;")),
    cards: document.querySelectorAll(".card").length, dock: document.querySelector(".dock").hidden,
  }));
  assert.deepEqual(found, { title: "Pillion", bad: [], images: [], cards: 0, dock: true }, `seed ${seed}`);
  assert.deepEqual(p.requests, [], "something was fetched");
  assert.deepEqual(p.errors, [], "something failed");
});

test("links: only through the host, only known schemes", async (t) => {
  const p = await open(t);
  await p.show({}, S.entries(panel(), [{ sessionUpdate: "agent_message_chunk", content: { type: "text", text: "[web](https://a.test/x) [js](javascript:alert) [cmd](command:x) [place](src/a.go#L12) `src/b.go:7`" } }]).list);
  await p.page.getByText("web", { exact: true }).click();
  assert.equal((await p.heard("link")).href, "https://a.test/x");
  await p.page.getByText("place", { exact: true }).click();
  assert.deepEqual(await p.heard("open"), { type: "open", path: "src/a.go", line: 12 });
  await p.page.getByText("src/b.go:7").click();
  assert.deepEqual(await p.heard("open", (m) => m.path === "src/b.go"), { type: "open", path: "src/b.go", line: 7 });
  assert.equal(await p.page.locator(".md [role=link]", { hasText: /^(js|cmd)$/ }).count(), 0, "a link that scripts or commands was drawn as one");
  assert.equal(p.page.url(), "http://panel.test/");
});

test("Enter, Escape and letters never decide: only the card's own buttons do", async (t) => {
  const p = await open(t);
  await p.show({ running: true }, S.entries(panel(), S.turn, { said }).list);
  await p.input.focus();
  await p.tell({ type: "head", head: { approvals: [S.commandApproval] } });
  await p.page.locator(".card.permission").waitFor();
  assert.equal(await p.page.evaluate(() => document.activeElement.className), "input", "the card took the focus");
  await p.input.pressSequentially("yes a y");
  await p.page.keyboard.press("Enter");
  assert.equal((await p.heard("send")).how, "queue");
  await p.page.keyboard.press("Enter");
  await p.page.keyboard.press("Control+Enter");
  await p.settle();
  assert.deepEqual(p.sent.filter((m) => m.type === "decide"), []);
  await p.page.locator(".decide .primary").click();
  assert.deepEqual(await p.heard("decide"), { type: "decide", requestId: "approval-2", optionId: "once" });
});

test("a card: why, what is outside, the pattern of always; by keyboard alone; reject with a message", async (t) => {
  const p = await open(t);
  await p.show({ running: true, approvals: [S.commandApproval, S.approval()] }, S.entries(panel(), S.turn, { said }).list);
  const card = p.page.locator(".card.permission");
  for (const text of ["rm -rf build && cp -r dist ../www", "Outside the project: /home/ada/www", "no rule allows rm *", "bash rm *", "1 of 2"]) await card.getByText(text).first().waitFor();
  await p.page.waitForFunction(() => !document.querySelector(".decide button").disabled);
  await p.tell({ type: "focus", what: "approval" });
  await p.page.waitForFunction(() => document.activeElement.closest(".decide"));
  for (let i = 0; i < 2; i++) await p.page.keyboard.press("ArrowRight");
  await p.page.keyboard.press("Enter");
  const menu = p.page.locator(".menu");
  await menu.getByText("In this project").waitFor();
  assert.match(await menu.innerText(), /bash rm \*, bash cp \*/);
  await menu.getByText("In every project").waitFor();
  await p.page.keyboard.press("ArrowDown");
  await p.page.keyboard.press("Enter");
  assert.equal((await p.heard("decide")).optionId, "always-project");
  await p.tell({ type: "head", head: { approvals: [S.approval()] } });
  await card.getByText("Fixes 1 error, introduces 0").waitFor();
  await p.page.getByRole("button", { name: "Reject with a message" }).click();
  await p.page.getByLabel("What to do instead").fill("leave it");
  await p.page.keyboard.press("Enter");
  assert.deepEqual(await p.heard("decide", (m) => m.requestId === "approval-1"), { type: "decide", requestId: "approval-1", optionId: "reject", comment: "leave it" });
});

test("the verdict comes in while one is about to decide: focus, words and buttons stay where they are", async (t) => {
  const p = await open(t);
  const pending = { certainty: "pending", reason: "gopls is starting", fixed: [], introduced: [] };
  const problem = (line) => ({ path: `${S.cwd}/cart/cart.go`, line, severity: "error", message: `undefined: x${line}` });
  await p.show({ running: true, approvals: [S.approval({ problems: pending })] }, S.entries(panel(), S.turn, { said }).list);
  const reject = p.page.locator(".dock .rejecter");
  await p.page.locator(".dock", { hasText: "Checking problems: gopls is starting" }).waitFor();
  await p.page.locator('.dock [aria-label="Reject with a message"]').click();
  await p.page.locator('.dock input[aria-label="What to do instead"]').fill("half a sen");
  await reject.focus();
  const before = await reject.boundingBox();
  await reject.evaluate((b) => (b.mark = "the same element"));
  await p.tell({ type: "head", head: { approvals: [S.approval({ decided: 1, problems: { certainty: "fresh", fixed: [], introduced: [problem(5), problem(9)] } })] } });
  await p.page.locator(".dock", { hasText: "introduces 2" }).waitFor();
  await p.settle();
  assert.deepEqual(await reject.boundingBox(), before, "the buttons moved under the pointer");
  assert.deepEqual(await reject.evaluate((b) => [document.activeElement === b, b.mark]), [true, "the same element"]);
  assert.equal(await p.page.locator('.dock input[aria-label="What to do instead"]').inputValue(), "half a sen");
  await p.page.locator(".dock .card-head", { hasText: "1 of 2 hunks decided" }).waitFor();
  await p.page.locator('[aria-live]', { hasText: "introduces 2" }).first().waitFor({ state: "attached" });
});

test("a star is said in words", async (t) => {
  const p = await open(t);
  await p.show({ running: true, approvals: [S.approval({ always: ["*"] })] });
  await p.page.getByText("“Always” would allow changes to any file").waitFor();
  await p.tell({ type: "head", head: { approvals: [S.approval({ requestId: "a3", permission: "weather_now", always: ["*"] })] } });
  await p.page.getByText("“Always” would allow any use of weather_now").waitFor();
  assert.equal(await p.page.getByText("*", { exact: true }).count(), 0);
});

test("rejected text stays readable and copyable", async (t) => {
  const p = await open(t);
  const { state, list } = S.entries(panel(), [...S.turn, ...S.after], { said, end: "end_turn" });
  await p.show({}, list);
  const card = p.page.locator(".tool.rejected");
  await card.getByText("Rejected").waitFor();
  await card.locator(".row").click();
  await p.heard("unfold", (m) => m.id === "t6" && m.on);
  await p.tell({ type: "detail", id: "t6", detail: state.details.get("t6") });
  await card.locator(".dl.add", { hasText: "b := 3" }).waitFor();
  await card.getByText("leave the web part alone").waitFor();
  await card.locator(".diff-box").hover();
  await card.getByRole("button", { name: "Copy the new lines" }).click();
  assert.equal((await p.heard("copy")).text, "a := 2\nb := 3\n");
});

test("a command's output: colours, live while it runs, folded when done", async (t) => {
  const p = await open(t);
  const { state, list } = S.entries(panel(), S.turn.slice(4, 5));
  await p.show({ running: true }, list);
  await p.heard("unfold", (m) => m.id === "t3" && m.on);
  state.apply({ sessionUpdate: "tool_call_update", toolCallId: "t3", content: [{ type: "content", content: { type: "text", text: "plain \u001b[31mred\u001b[0m 10%\r20%\r100%" } }] }, Date.now());
  await p.tell({ type: "detail", id: "t3", detail: state.details.get("t3") });
  const out = p.page.locator(".output");
  await out.waitFor();
  assert.equal(await out.innerText(), "100%");
  state.apply(S.turn[5], Date.now());
  await p.tell({ type: "ops", epoch: 1, ops: state.take().ops.slice(-1) });
  await p.page.locator(".tool:not(.open)", { hasText: "exit 1" }).waitFor();
  await p.page.locator(".tool .row").click();
  await p.tell({ type: "detail", id: "t3", detail: state.details.get("t3") });
  assert.match(await p.page.locator(".output span", { hasText: "FAIL" }).first().getAttribute("style"), /terminal-ansiRed/);
});

test("sub-agents: their calls lie in the card of the task", async (t) => {
  const p = await open(t);
  await p.show({}, S.entries(panel(), [...S.turn, ...S.after], { said, end: "end_turn" }).list);
  const card = p.page.locator(".tool", { hasText: "Look for other callers" });
  await card.getByText("2 steps").waitFor();
  assert.equal(await p.page.locator(".entry .tool").count(), 6, "nested calls stand on their own");
  await card.locator("> .row").click();
  await card.locator(".nested .tool", { hasText: "checkout.go" }).waitFor();
});

test("@ finds and inserts, / completes, chips switch off, drafts go to the host", async (t) => {
  const p = await open(t);
  await p.show({ selection: { path: "cart/cart.go", name: "cart.go", startLine: 3, endLine: 9, empty: false } });
  await p.input.pressSequentially("look at @che");
  const request = (await p.heard("search", (m) => m.query === "che")).request;
  const item = (path) => ({ mention: { kind: "file", label: `@${path}`, uri: `file:///${path}`, path }, icon: "file", name: path, detail: "", hits: [4, 5, 6] });
  await p.tell({ type: "found", request: request - 1, items: [item("old/answer.go")] }); // an older question's answer
  await p.tell({ type: "found", request, items: [item("web/checkout.go"), item("web/checks.go")] });
  await p.page.locator(".suggest .menu-item").nth(1).waitFor();
  assert.equal(await p.page.locator(".suggest .menu-item.at b").innerText(), "che");
  await p.page.keyboard.press("ArrowDown");
  await p.page.keyboard.press("Tab");
  assert.equal(await p.input.inputValue(), "look at @web/checks.go ");
  await p.page.locator(".mirror mark", { hasText: "@web/checks.go" }).waitFor();
  await p.page.getByRole("button", { name: /Selection cart.go:3–9/ }).click();
  assert.equal((await p.heard("selection")).on, false);
  assert.equal((await p.heard("draft", (m) => m.draft.text.endsWith("checks.go "))).draft.mentions.length, 1);
  await p.input.press("Enter");
  assert.deepEqual((await p.heard("send")).draft.mentions.map((m) => m.uri), ["file:///web/checks.go"]);
  await p.input.pressSequentially("/ex");
  await p.page.locator(".suggest .menu-item", { hasText: "/explain" }).waitFor();
  await p.page.keyboard.press("Enter");
  assert.equal(await p.input.inputValue(), "/explain ");
});

test("history at the edges; what was being written comes back; Shift+Enter is a line", async (t) => {
  const p = await open(t);
  await p.show({});
  await p.input.pressSequentially("half");
  await p.input.press("Home");
  await p.input.press("ArrowUp");
  assert.match(await p.input.inputValue(), /^Fix the discount/);
  await p.input.press("ArrowUp");
  assert.equal(await p.input.inputValue(), "Run the tests");
  await p.input.press("ArrowDown");
  await p.input.press("Control+End");
  await p.input.press("ArrowDown");
  assert.equal(await p.input.inputValue(), "half");
  await p.input.press("End");
  await p.input.press("Shift+Enter");
  assert.equal(await p.input.inputValue(), "half\n");
});

test("while a turn runs: Queue and Steer are two buttons; stop; the queue is edited and moved", async (t) => {
  const p = await open(t, { width: 300 });
  await p.show({ running: true, queue: [{ id: "a", text: "first", attachments: 0 }, { id: "b", text: "second", attachments: 0 }] });
  assert.equal(await p.page.getByRole("button", { name: "Queue" }).count(), 0, "nothing to queue yet");
  await p.input.fill("now");
  await p.page.getByRole("button", { name: "Steer", exact: true }).click();
  assert.equal((await p.heard("send")).how, "steer");
  await p.input.fill("later");
  await p.page.getByRole("button", { name: "Queue", exact: true }).click();
  await p.heard("send", (m) => m.how === "queue");
  await p.page.getByRole("button", { name: "Earlier" }).click();
  assert.deepEqual(await p.heard("queue"), { type: "queue", action: "up", id: "b" });
  await p.page.getByRole("button", { name: "Edit" }).first().click();
  await p.page.getByLabel("Edit the queued message").fill("first, better");
  await p.page.keyboard.press("Enter");
  assert.equal((await p.heard("queue", (m) => m.action === "edit")).text, "first, better");
  await p.input.press("Escape");
  await p.heard("stop");
  await p.tell({ type: "head", head: { queue: [{ id: "s", text: "in Go", attachments: 0, steer: true }, { id: "a", text: "first", attachments: 0 }] } });
  await p.page.locator(".queue li", { hasText: "at the next step" }).getByText("in Go").waitFor();
  assert.equal(await p.page.getByRole("button", { name: /^(Earlier|Later|Steer)/ }).count(), 1, "what is said at the next step has no place to move to");
});

test("pictures: pasted with a thumbnail; too large or of another kind is said", async (t) => {
  const p = await open(t);
  await p.show({});
  const paste = (type, size) => p.page.evaluate(([type, size]) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(size)], "shot", { type }));
    document.querySelector("textarea.input").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  }, [type, size]);
  await paste("image/png", 1000);
  await p.page.locator(".chip-thumb").waitFor();
  const first = await p.heard("draft", (m) => m.draft.attachments.length === 1);
  assert.ok(first.draft.attachments[0].data.length > 1000);
  await p.input.fill("see");
  const second = await p.heard("draft", (m) => m.draft.text === "see");
  assert.equal(second.draft.attachments[0].data, "", "the picture is sent with every keystroke");
  await paste("image/png", (5 << 20) + 1);
  await p.page.getByText("at most 5.0 MB").waitFor();
  await paste("text/plain", 10);
  await p.page.getByText("cannot be attached").waitFor();
});

test("going back: a choice of files, conversation or both; editing; redo", async (t) => {
  const p = await open(t);
  await p.show({}, S.entries(panel(), [...S.turn, ...S.after], { said, end: "end_turn" }).list);
  await p.page.locator(".user").hover();
  await p.page.getByRole("button", { name: "Restore to before this" }).click();
  const menu = p.page.locator(".menu");
  await menu.getByText("2 files changed since, +12 −3").first().waitFor();
  await menu.getByText("Only the files").click();
  assert.deepEqual(await p.heard("restore"), { type: "restore", entry: "#u1", scope: "files", edit: false });
  await p.page.locator(".user").hover();
  await p.page.getByRole("button", { name: "Edit and send again" }).click();
  await p.page.keyboard.press("Enter");
  assert.equal((await p.heard("restore", (m) => m.edit)).scope, "both");
  await p.tell({ type: "head", head: { reverted: { entries: 9, redo: "c9" } } });
  await p.page.getByRole("button", { name: "Redo" }).click();
  await p.heard("redo");
});

test("a question: choices, own words, skip", async (t) => {
  const p = await open(t);
  await p.show({ running: true, questions: [S.question] });
  await p.page.getByText("Half up").click();
  await p.page.getByRole("button", { name: "Answer" }).click();
  assert.deepEqual((await p.heard("answer")).values, { q1: "half" });
  await p.tell({ type: "head", head: { questions: [{ ...S.question, requestId: "q2" }] } });
  await p.page.getByLabel("In your own words").fill("truncate");
  await p.page.waitForFunction(() => !document.querySelector(".decide button").disabled);
  await p.page.getByLabel("In your own words").press("Enter");
  assert.deepEqual((await p.heard("answer", (m) => m.requestId === "q2")).values, { "q1-other": "truncate" });
});

test("what streams is what a whole drawing gives, however it is cut", async (t) => {
  const p = await open(t);
  const text = readFileSync(new URL("./sample.md", import.meta.url), "utf8");
  const whole = S.entries(panel(), [{ sessionUpdate: "agent_message_chunk", content: { type: "text", text } }]).list;
  await p.show({}, whole);
  const html = () => p.page.locator(".md").evaluate((el) => el.innerText.replace(/\s+/g, " "));
  await p.settle();
  const wanted = await html();
  for (const size of [1, 3, 7, 29]) {
    const { state } = S.entries(panel(), []);
    state.apply({ sessionUpdate: "agent_message_chunk", content: { type: "text", text: text.slice(0, size) } }, 1);
    await p.tell({ type: "snapshot", head: S.head({ running: true }), entries: [...state.entries.values()].map((e) => ({ ...e })), draft: S.draft(), epoch: 2 });
    state.take();
    await p.settle();
    await p.page.evaluate(async ([ops]) => {
      for (const [i, op] of ops.entries()) {
        window.postMessage({ type: "ops", epoch: 2, ops: [op] }, "*");
        if (i % 20 === 0) await new Promise((r) => setTimeout(r));
      }
      window.postMessage({ type: "ops", epoch: 2, ops: [{ op: "close", id: ops[0].id }] }, "*");
    }, [Array.from({ length: Math.ceil(text.length / size) - 1 }, (_, i) => ({ op: "append", id: [...state.entries.keys()][0], text: text.slice((i + 1) * size, (i + 2) * size) }))]);
    await p.page.waitForFunction((w) => document.querySelector(".md").innerText.replace(/\s+/g, " ") === w, wanted, { timeout: 60_000 }).catch(async () => assert.equal(await html(), wanted, `cut in ${size}s`));
  }
});

test("stays at the end only when it was there", async (t) => {
  const p = await open(t);
  const { state, list } = S.entries(panel(), Array.from({ length: 60 }, (_, i) => ({ sessionUpdate: "tool_call", toolCallId: `t${i}`, title: `call ${i}`, kind: "read", status: "completed" })));
  state.take();
  await p.show({ running: true }, list);
  await p.settle();
  const fromEnd = () => p.page.evaluate(() => { const el = document.querySelector(".transcript"); return el.scrollHeight - el.scrollTop - el.clientHeight; });
  const more = async (n) => {
    state.apply({ sessionUpdate: "tool_call", toolCallId: `n${n}`, title: `new ${n}`, kind: "read", status: "completed" }, 1);
    await p.tell({ type: "ops", epoch: 1, ops: state.take().ops });
    await p.settle();
  };
  await more(1);
  assert.ok((await fromEnd()) < 3, "left the end");
  await p.page.locator(".transcript").hover();
  await p.page.mouse.wheel(0, -600);
  await p.page.locator(".jump").waitFor();
  await p.settle(); // the wheel scrolls for some frames
  const top = () => p.page.evaluate(() => [...document.querySelectorAll(".entry")].find((e) => e.getBoundingClientRect().top > 40)?.textContent);
  const reading = await top();
  await more(2);
  assert.ok((await fromEnd()) > 300, "was dragged to the end");
  assert.equal(await top(), reading);
  await p.page.locator(".jump").click();
  await p.page.locator(".entry", { hasText: "new 2" }).waitFor();
  await p.settle();
  assert.ok((await fromEnd()) < 3);
});

test("follows on after a card has closed and what it covered is back; sending goes to the message", async (t) => {
  const p = await open(t);
  const calls = Array.from({ length: 60 }, (_, i) => ({ sessionUpdate: "tool_call", toolCallId: `t${i}`, title: `call ${i}`, kind: "read", status: "completed" }));
  const { state, list } = S.entries(panel(), calls);
  state.take();
  const fromEnd = () => p.page.evaluate(() => { const el = document.querySelector(".transcript"); return el.scrollHeight - el.scrollTop - el.clientHeight; });
  await p.show({ running: true, approvals: [S.approval(), S.commandApproval] }, list);
  await p.settle();
  assert.ok((await fromEnd()) < 3);
  for (let n = 0; n < 8; n++) {
    // the card goes, an output above folds and the next words come, in one go and in pieces
    await p.tell({ type: "head", head: { approvals: n % 2 ? [S.approval()] : [] } });
    if (n % 3 === 0) await p.settle();
    state.apply({ sessionUpdate: "agent_message_chunk", messageId: `m${n}`, content: { type: "text", text: "word ".repeat(300) } }, 1);
    await p.tell({ type: "ops", epoch: 1, ops: state.take().ops });
    // the browser moves what is shown when the view gets taller: that is nobody's scrolling
    await p.page.evaluate(() => { const el = document.querySelector(".transcript"); el.scrollTop -= 40; el.style.paddingBottom = el.style.paddingBottom ? "" : "90px"; });
    await p.settle();
    await p.settle();
    assert.ok((await fromEnd()) < 3, `not at the end after ${n}`);
  }
  await p.page.locator(".transcript").hover();
  await p.page.mouse.wheel(0, -900);
  await p.page.locator(".jump").waitFor();
  await p.settle();
  state.apply({ sessionUpdate: "user_message_chunk", messageId: "other", content: { type: "text", text: "said in another editor" } }, 1);
  await p.tell({ type: "ops", epoch: 1, ops: state.take().ops });
  await p.settle();
  assert.ok((await fromEnd()) > 300, "another editor's message moved what is read here");
  state.say("what I have just sent", []);
  await p.tell({ type: "ops", epoch: 1, ops: state.take().ops });
  await p.page.locator(".user", { hasText: "what I have just sent" }).waitFor();
  await p.settle();
  assert.ok((await fromEnd()) < 3);
});

test("5,000 entries: only what is near exists; keys walk through; the first and last are reached", async (t) => {
  const p = await open(t);
  const list = Array.from({ length: 5000 }, (_, i) => (i % 3 ? { kind: "tool", id: `t${i}`, title: `read file${i}.go`, toolKind: "read", status: "completed", locations: [], files: [], detail: false } : { kind: "text", id: `m${i}`, text: `Answer **${i}** with some words in it.` }));
  await p.show({}, list);
  await p.page.locator(".entry", { hasText: "file4999" }).waitFor();
  assert.ok((await p.page.locator(".entry").count()) < 120);
  await p.page.locator(".transcript").focus();
  await p.page.keyboard.press("Home");
  await p.page.locator(".entry.active", { hasText: "Answer 0" }).waitFor();
  await p.page.keyboard.press("ArrowDown");
  await p.page.locator(".entry.active", { hasText: "file1.go" }).waitFor();
  assert.equal(await p.page.locator(".entry.active").getAttribute("aria-posinset"), "2");
  await p.page.keyboard.press("End");
  await p.page.locator(".entry.active", { hasText: "file4999" }).waitFor();
  await p.page.keyboard.press("Escape");
  assert.equal(await p.page.evaluate(() => document.activeElement.className), "input");
});

test("evidence of a draft: a tree on top of the files, unfolded where it failed, worked by keys", async (t) => {
  const p = await open(t);
  const evidence = [
    { command: "go test of what the change affects", status: "failed", exitCode: 1, seconds: 2.31, stale: false, tests: [
      { name: "TestGood", suite: "shop/cart", status: "passed", seconds: 0.01 },
      { name: "TestTotal", suite: "shop/cart", status: "failed", output: "cart_test.go:11: got 30, want 60\u202e", before: "failed" },
      { name: "TestWeb", suite: "shop/web", status: "passed", before: "failed" },
    ] },
    { command: "make lint", status: "notRun", reason: "it was not allowed", stale: false, tests: [] },
  ];
  await p.show({ running: true, approvals: [S.approval({ draft: true, evidence, files: [1, 2].map((n) => ({ path: `${S.cwd}/f${n}.go`, kind: "edit", added: 1, removed: 1 })) })] }, []);
  const card = p.page.locator(".card.permission");
  await card.getByText("Write the draft to 2 files?").waitFor();
  const tree = card.getByRole("tree");
  const rows = () => tree.getByRole("treeitem").evaluateAll((all) => all.map((r) => `${r.getAttribute("aria-level")} ${r.getAttribute("aria-expanded") ?? "-"} ${r.getAttribute("aria-label")}`));
  const whole = [
    "1 true go test of what the change affects, 1 failed, 2 passed · exit 1 · 2.3 s",
    "2 true shop/cart, 1 failed, 1 passed",
    "3 true TestTotal, failed · failed before too",
    "3 - TestGood, passed",
    "2 false shop/web, 1 passed",
    "1 - make lint, not run · it was not allowed",
  ];
  assert.deepEqual(await rows(), whole);
  assert.equal(await tree.locator("pre").innerText(), "cart_test.go:11: got 30, want 60U+202E");
  const top = await tree.evaluate((el) => el.getBoundingClientRect().bottom);
  assert.ok(top <= await card.locator(".files").evaluate((el) => el.getBoundingClientRect().top), "the evidence stands above the files");
  if (process.env.PILLION_SHOTS) await p.page.screenshot({ path: `${process.env.PILLION_SHOTS}/evidence.png` });
  const here = () => p.page.evaluate(() => document.activeElement.getAttribute("aria-label"));
  await tree.getByRole("treeitem").first().focus();
  await p.page.keyboard.press("ArrowLeft");
  assert.deepEqual(await rows(), [whole[0].replace("true", "false"), whole[5]]);
  await p.page.keyboard.press("End");
  assert.match(await here(), /^make lint/);
  await p.page.keyboard.press("Home");
  for (const key of ["ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "ArrowDown"]) await p.page.keyboard.press(key);
  assert.match(await here(), /^shop\/web/);
  await p.page.keyboard.press("Enter");
  assert.match((await rows()).join("\n"), /3 - TestWeb, passed · failed before/);
  await p.page.keyboard.press("ArrowDown");
  await p.page.keyboard.press("ArrowLeft"); // to its parent
  assert.match(await here(), /^shop\/web/);
  await p.page.keyboard.press("Tab"); // out of the tree: one stop, besides the output that scrolls
  assert.equal(await p.page.evaluate(() => document.activeElement.closest("[role=tree]")?.getAttribute("role") ?? ""), "");
  await card.locator(".file", { hasText: "f2.go" }).click();
  assert.deepEqual(await p.heard("review"), { type: "review", requestId: "approval-1", path: `${S.cwd}/f2.go` });
});
