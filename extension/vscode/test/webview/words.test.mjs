// Words going in and out of the panel: what is typed is never lost, what streams is read out once.
import assert from "node:assert/strict";
import test from "node:test";
import { panels } from "./setup.mjs";
import * as S from "./scenes.mjs";

const { open, panel } = panels();
const kept = (text, more = {}) => ({ text, mentions: [], attachments: [], ...more });
const picture = { id: "p1", name: "dot.png", mime: "image/png", size: 3, data: "AAAA" };

test("typed before the panel heard from its host: it stays, after what was kept, and the caret with it", async (t) => {
  const p = await open(t);
  await p.input.pressSequentially("new words");
  await p.input.press("Home");
  await p.settle();
  assert.deepEqual(p.sent.filter((m) => m.type === "draft"), [], "what was kept would be replaced by a half");
  await p.show({}, [], kept("old words", { attachments: [picture] }));
  await p.page.waitForFunction(() => document.querySelector("textarea.input").value === "old words\nnew words");
  await p.page.locator(".chip-thumb").waitFor();
  await p.page.keyboard.type("the ");
  assert.equal(await p.input.inputValue(), "old words\nthe new words");
  await p.heard("draft", (m) => m.draft.text === "old words\nthe new words" && m.draft.attachments.length === 1);
});

test("nothing typed: what was kept is there; a later snapshot, of another session, changes no letter", async (t) => {
  const p = await open(t);
  await p.show({}, [], kept("kept"));
  await p.page.waitForFunction(() => document.querySelector("textarea.input").value === "kept");
  await p.input.pressSequentially(" and typed");
  await p.show({ sessionId: "s2" }, [], kept("kept and"), 2); // the host's copy is a few keys behind
  await p.settle();
  assert.equal(await p.input.inputValue(), "kept and typed");
});

test("loaded anew before the host heard anything: what was typed is there, what it had before is not", async (t) => {
  const p = await open(t);
  await p.show({}, [], kept("", { at: 1 }));
  await p.settle();
  await p.input.pressSequentially("half a thou");
  await p.heard("draft", (m) => m.draft.text === "half a thou"); // the host of this test keeps nothing
  const heard = p.sent.findLast((m) => m.type === "draft").draft.at;
  await p.page.reload();
  await p.input.pressSequentially("ght"); // and this it could not even be told
  await p.page.reload();
  await p.show({}, [], kept("half", { at: heard - 1, attachments: [picture] }));
  await p.page.waitForFunction(() => document.querySelector("textarea.input").value === "half a thou\nght");
  assert.equal(await p.page.locator(".chip-thumb").count(), 0, "an attachment that was taken out comes back");
});

test("loaded anew on the way to the host: what was sent is not lost; what the host has since counts", async (t) => {
  const p = await open(t);
  await p.show({}, [], kept("", { at: 1 }));
  await p.input.fill("a long request");
  await p.page.keyboard.press("Enter");
  await p.input.pressSequentially("and");
  await p.page.reload();
  await p.show({}, [], kept("a long", { at: 2 }));
  await p.page.waitForFunction(() => document.querySelector("textarea.input").value === "a long request\nand");
  await p.page.reload();
  await p.show({}, [], kept("from another machine", { at: Date.now() + 60_000 })); // whose clock is ahead
  await p.page.waitForFunction(() => document.querySelector("textarea.input").value === "from another machine");
  await p.input.press("End");
  await p.input.pressSequentially("!");
  await p.page.reload();
  await p.show({}, [], kept("from another machine", { at: Date.now() + 50_000 }));
  await p.page.waitForFunction(() => document.querySelector("textarea.input").value === "from another machine!");
});

test("what could not be sent comes back before what was typed since", async (t) => {
  const p = await open(t);
  await p.show({});
  await p.input.fill("first");
  await p.input.press("Enter");
  await p.heard("send");
  await p.input.pressSequentially("second");
  await p.tell({ type: "draft", mode: "back", draft: kept("first") });
  await p.page.waitForFunction(() => document.querySelector("textarea.input").value === "first\nsecond");
  assert.equal(await p.input.evaluate((el) => el.selectionStart), "first\nsecond".length);
});

test("a letter typed where letters do nothing goes to the message; Enter and Space stay where they are", async (t) => {
  const p = await open(t);
  const { list } = S.entries(panel(), S.turn, { said: "Fix it" });
  await p.show({ running: true, approvals: [S.commandApproval] }, list);
  await p.page.waitForFunction(() => document.querySelector(".decide button")?.disabled === false);
  await p.tell({ type: "focus", what: "approval" });
  await p.page.waitForFunction(() => document.activeElement.closest(".decide"));
  await p.page.keyboard.type("yes");
  assert.equal(await p.input.inputValue(), "yes");
  await p.settle();
  assert.deepEqual(p.sent.filter((m) => m.type === "decide"), []);
  await p.tell({ type: "focus", what: "transcript" });
  await p.page.waitForFunction(() => document.activeElement.classList.contains("entry"));
  await p.page.keyboard.press("Space");
  await p.page.keyboard.type(" no");
  assert.equal(await p.input.inputValue(), "yesno");
});

/** What was read out since. */
const spoken = (p) => p.page.locator(".sr[role=log] > div").allInnerTexts();

test("an answer is read out by sentences, each once, code by its name; the rest at its end", async (t) => {
  const p = await open(t);
  const { state, list } = S.entries(panel(), []);
  await p.show({ running: true }, list);
  const words = "It **is** the total. Look:\n\n```go\nfunc total() int\n```\n\nThat is all. Half a sen";
  let at = 0;
  // many pieces in one message: an entry and what is added to it at once
  const say = async (to) => {
    for (; at < to; at += 3) state.apply({ sessionUpdate: "agent_message_chunk", messageId: "m1", content: { type: "text", text: words.slice(at, Math.min(at + 3, to)) } }, 1);
    at = to;
    await p.tell({ type: "ops", epoch: 1, ops: structuredClone(state.take().ops) });
  };
  await say(30);
  await say(45);
  await say(words.length);
  await p.page.waitForFunction(() => [...document.querySelectorAll(".sr[role=log] > div")].some((e) => e.textContent.includes("That is all.")));
  assert.doesNotMatch((await spoken(p)).join("\n"), /Half a sen/);
  state.endTurn("end_turn", 2);
  await p.tell({ type: "ops", epoch: 1, ops: structuredClone(state.take().ops) });
  await p.tell({ type: "head", head: { running: false } });
  await p.page.waitForFunction(() => [...document.querySelectorAll(".sr[role=log] > div")].some((e) => e.textContent === "Pillion is done"));
  const all = (await spoken(p)).join("\n");
  assert.equal(all.replace(/\s+/g, " "), "It is the total. Look: Code. That is all. Half a sen Pillion is done");
});

test("what a snapshot brings is not read out again; what follows is", async (t) => {
  const p = await open(t);
  const { state } = S.entries(panel(), [{ sessionUpdate: "agent_message_chunk", messageId: "m1", content: { type: "text", text: "Said before. " } }]);
  await p.show({ running: true }, structuredClone([...state.entries.values()]));
  state.take();
  state.apply({ sessionUpdate: "agent_message_chunk", messageId: "m1", content: { type: "text", text: "Said now. " } }, 1);
  await p.tell({ type: "ops", epoch: 1, ops: structuredClone(state.take().ops) });
  await p.tell({ type: "head", head: { running: false } });
  await p.page.waitForFunction(() => [...document.querySelectorAll(".sr[role=log] > div")].some((e) => e.textContent === "Pillion is done"));
  assert.deepEqual(await spoken(p), ["Said now.", "Pillion is done"]);
});

test("words that run from right to left: in the answer, in what was said and in what is typed; code among them is in one piece", async (t) => {
  const p = await open(t);
  const words = "שלום `a-1.txt` עולם!";
  const { list } = S.entries(panel(), [{ sessionUpdate: "agent_message_chunk", messageId: "m1", content: { type: "text", text: `${words}\n\n- ${words}\n\nplain words` } }], { said: words });
  await p.show({}, list, kept("שלום עולם!"));
  await p.page.locator(".md p", { hasText: "plain" }).waitFor();
  const startsRight = (el) => {
    const texts = document.createTreeWalker(el, NodeFilter.SHOW_TEXT);
    const found = [];
    while (texts.nextNode()) for (let i = 0; i < texts.currentNode.data.length; i++) found.push([texts.currentNode, i]);
    const left = ([node, i]) => {
      const r = document.createRange();
      r.setStart(node, i);
      r.setEnd(node, i + 1);
      return r.getBoundingClientRect().left;
    };
    return left(found[0]) > left(found.at(-1));
  };
  for (const [where, right] of [[".md p >> nth=0", true], [".md li", true], [".said", true], [".md p >> text=plain", false], [".md p code >> nth=0", false]]) {
    assert.equal(await p.page.locator(where).first().evaluate(startsRight), right, where);
  }
  assert.equal(await p.input.evaluate((el) => getComputedStyle(el).unicodeBidi), "plaintext");
});
