import assert from "node:assert/strict";
import { test } from "node:test";
import { applyOps, isDraft, parseToHost, type Op } from "../../src/common/messages";
import { SessionState } from "../../src/common/session";
import { fileDiff, slim, unfence } from "../../src/common/tool";
import type { Entry, ToolEntry } from "../../src/common/view";
import { diffTexts } from "../../src/common/diff";

const text = (words: string, messageId = "m1") => ({ sessionUpdate: "agent_message_chunk", messageId, content: { type: "text", text: words } });
const user = (words: string, messageId: string, own?: boolean) => ({ sessionUpdate: "user_message_chunk", messageId, content: { type: "text", text: words }, _meta: { pillion: { ...(own === undefined ? {} : { own }) } } });
const tool = (id: string, more: object = {}) => ({ sessionUpdate: "tool_call_update", toolCallId: id, ...more });
const kinds = (s: SessionState) => [...s.entries.values()].map((e) => e.kind);

test("pieces of one message join; another message, a call or the person ends it", () => {
  const s = new SessionState();
  for (const u of [text("a"), text("b"), tool("t1", { title: "read" }), text("c"), text("d", "m2")]) s.apply(u, 1);
  assert.deepEqual([...s.entries.values()].map((e) => ("text" in e ? e.text : "tool")), ["ab", "tool", "c", "d"]);
});

test("updates of a call change its card where it stands; content that is not named stays", () => {
  const s = new SessionState();
  s.apply(tool("t1", { title: "edit a.go", kind: "edit", status: "pending", content: [{ type: "diff", path: "/p/a.go", oldText: "1\n2\n", newText: "1\n3\n4\n" }] }), 1);
  s.apply(text("after"), 2);
  s.apply(tool("t1", { status: "failed", rawOutput: { error: { kind: "rejected", message: "no, thanks\nreally" } } }), 3);
  const e = s.entries.get("t1") as ToolEntry;
  assert.deepEqual(kinds(s), ["tool", "text"]);
  assert.equal(e.outcome, "rejected");
  assert.equal(e.error, "no, thanks");
  assert.deepEqual(e.files, [{ path: "/p/a.go", kind: "edit", added: 2, removed: 1 }]);
  assert.equal(s.details.get("t1")?.files[0]?.lines.filter((l) => l.sign === "+").length, 2, "what was rejected is gone");
});

test("an older state of a call changes nothing", () => {
  const s = new SessionState();
  const at = (seq: number, status: string) => tool("t1", { status, _meta: { pillion: { seq } } });
  for (const u of [at(5, "in_progress"), at(9, "completed"), at(7, "in_progress")]) s.apply(u, 1);
  assert.equal((s.entries.get("t1") as ToolEntry).status, "completed");
});

test("the person's words are shown once: the echo only brings their id, another's prompt is another entry", () => {
  const s = new SessionState();
  s.say("/fix", []);
  s.apply(user("fix all errors", "p1", true), 1);
  s.apply(user("of the queue", "p2", false), 2);
  s.apply(user("second part", "p2", false), 3);
  const all = [...s.entries.values()].filter((e) => e.kind === "user");
  assert.deepEqual(all.map((e) => [e.messageId, e.text]), [["p1", "/fix"], ["p2", "of the queue\nsecond part"]]);
});

test("taking back cuts from the prompt on; what follows comes after what is left", () => {
  const s = new SessionState();
  for (const u of [user("one", "p1"), text("1"), user("two", "p2"), tool("t1"), text("2", "m2")]) s.apply(u, 1, false);
  assert.equal(s.revert("p2"), 3);
  s.apply(text("3", "m3"), 2);
  assert.deepEqual([...s.entries.values()].map((e) => ("text" in e ? e.text : "")), ["one", "1", "3"]);
  assert.equal(s.revert("nobody"), 0);
});

test("the end of a turn: what ran has stopped, what streamed is whole", () => {
  const s = new SessionState();
  for (const u of [tool("t1", { status: "in_progress" }), text("half")]) s.apply(u, 1);
  s.endTurn("cancelled", 5);
  const [call, words, end] = [...s.entries.values()];
  assert.equal((call as ToolEntry).outcome, "cancelled");
  assert.equal(words?.kind === "text" && words.open, false);
  assert.equal(end?.kind, "turn");
});

test("calls of a sub-agent belong to its task; a call is never its own parent", () => {
  const s = new SessionState();
  const child = (id: string, parentToolCallId: string) => tool(id, { title: id, _meta: { pillion: { parentToolCallId } } });
  for (const u of [tool("t1"), child("t2", "t1"), child("t3", "t3")]) s.apply(u, 1);
  assert.equal(s.entries.get("t2")?.parent, "t1");
  assert.equal(s.entries.get("t3")?.parent, undefined);
});

test("a call whose id looks like one of ours does not take an entry over", () => {
  const s = new SessionState();
  s.say("hello", []);
  for (const id of ["u1", "m1", "t1", "#u1"]) s.apply(tool(id, { title: "x" }), 1);
  assert.equal(s.entries.get("#u1")?.kind, "user");
});

test("anything may come: nothing throws, and ops make a copy equal, in whatever pieces they are taken", () => {
  let seed = Number(process.env["SEED"] ?? 7);
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
  const pick = <T>(list: readonly T[]): T => list[random(list.length)] as T;
  const junk = [null, undefined, 5, "x", [], {}, { type: "diff" }, [{ type: "diff", path: 3 }], [null], { text: 1 }];
  for (let round = 0; round < 200; round++) {
    const s = new SessionState();
    const copy = new Map<string, Entry>();
    const drain = () => applyOps(copy, structuredClone<Op[]>(s.take().ops));
    for (let i = 0; i < 60; i++) {
      const id = `t${String(random(6))}`;
      const u: unknown = pick<() => unknown>([
        () => text(`w${String(i)} `, `m${String(random(3))}`),
        () => ({ ...text("think"), sessionUpdate: "agent_thought_chunk" }),
        () => user("said", `p${String(random(4))}`, pick([true, false, undefined])),
        () => tool(id, { status: pick(["pending", "in_progress", "completed", "failed", 3]), content: pick(junk), rawInput: pick(junk), rawOutput: pick(junk), locations: pick(junk), _meta: { pillion: { seq: random(50), parentToolCallId: pick([undefined, "t0", "t1"]) } } }),
        () => ({ sessionUpdate: pick(["plan", "notice", "usage_update", "compaction_update", "config_option_update", "nonsense"]), entries: pick(junk), severity: pick(junk), title: pick(junk), compactionId: "c", configOptions: pick(junk) }),
        () => pick(junk),
      ])();
      s.apply(u, i, random(2) === 0);
      if (random(12) === 0) s.revert(`p${String(random(4))}`);
      if (random(12) === 0) s.endTurn(pick(["end_turn", "cancelled"] as const), i);
      if (random(12) === 0) s.say("mine", []);
      if (random(4) === 0) drain();
    }
    drain();
    const plain = (m: { values(): Iterable<Entry> }) => JSON.parse(JSON.stringify([...m.values()])) as unknown;
    assert.deepEqual(plain(copy), plain(s.entries), `round ${String(round)}, seed ${String(seed)}`);
  }
});

test("a diff: the lines that changed, with what is around them; bounded", () => {
  const lines = Array.from({ length: 30 }, (_, i) => `line ${String(i + 1)}`);
  const after = [...lines];
  after[4] = "LINE 5";
  after.splice(20, 1);
  const d = diffTexts(`${lines.join("\n")}\n`, `${after.join("\n")}\n`);
  assert.deepEqual([d.added, d.removed, d.more], [1, 2, 0]);
  assert.deepEqual(d.lines.filter((l) => l.sign !== " ").map((l) => l.sign + l.text), ["@@@ line 2 @@", "-line 5", "+LINE 5", "@@@ line 18 @@", "-line 21"]);
  assert.equal(diffTexts("a", "a").lines.length, 0);
  assert.deepEqual(fileDiff({ path: "n", newText: "x\ny\n" }).kind, "create");
});

test("a diff of anything gives back what was taken and put", () => {
  let seed = 3;
  const random = (n: number) => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % n;
  for (let i = 0; i < 300; i++) {
    const make = () => Array.from({ length: random(12) }, () => `${"abc"[random(3)] ?? ""}\n`).join("");
    const [a, b] = [make(), make()];
    const d = diffTexts(a, b);
    const count = (x: string) => x.split("\n").length - 1;
    assert.equal(count(a) - d.removed + d.added, count(b), JSON.stringify([a, b]));
    assert.equal(d.lines.filter((l) => l.sign === "+").length, d.added);
    const has = d.lines.filter((l) => l.sign === "-").map((l) => `${l.text}\n`).join("");
    assert.ok(has.length <= a.length);
  }
});

test("5 MB of changes: a summary at once, the lines bounded", () => {
  const big = Array.from({ length: 100_000 }, (_, i) => `this is line number ${String(i)} of a long file`);
  const started = Date.now();
  const d = diffTexts(big.join("\n"), big.map((l) => `${l}!`).join("\n"));
  assert.deepEqual([d.added, d.removed], [100_000, 100_000]);
  assert.ok(d.lines.length <= 600 && d.more > 100_000);
  assert.ok(Date.now() - started < 60_000, "the search has no end");
});

test("long output: the card gets its end, and how much is missing", () => {
  const d = slim({ files: [], images: [], output: Array.from({ length: 20_000 }, (_, i) => `line ${String(i)}`).join("\n") });
  assert.ok((d.output?.length ?? 0) <= 64 << 10);
  assert.match(d.output ?? "", /^line \d+\n/);
  assert.ok((d.omitted ?? 0) > 100_000);
  assert.equal(unfence("````\na\n```\nb\n````"), "a\n```\nb");
});

test("messages of the panel are looked at before they are believed", () => {
  for (const bad of [null, 3, "ready", {}, { type: "nope" }, { type: "toString" }, { type: "open" }, { type: "open", path: 3 }, { type: "send", draft: { text: 1 }, how: "prompt" }, { type: "decide", requestId: "a", optionId: null }]) assert.equal(parseToHost(bad), undefined, JSON.stringify(bad));
  assert.ok(parseToHost({ type: "open", path: "a" }));
  assert.ok(isDraft({ text: "", mentions: [], attachments: [] }));
  assert.ok(!isDraft({ text: "", mentions: [null], attachments: [] }));
});

test("a plan goes with the turn it was made for: when all of it is done, or with the next prompt", () => {
  const s = new SessionState();
  const plan = (...statuses: string[]) => s.apply({ sessionUpdate: "plan", entries: statuses.map((status) => ({ content: status, status, priority: "medium" })) }, 1);
  plan("completed", "in_progress");
  s.endTurn("end_turn", 2);
  assert.equal(s.head.plan.length, 2, "what was not done stays");
  s.say("steered", [], true);
  assert.equal(s.head.plan.length, 2);
  s.say("another thing", []);
  assert.deepEqual(s.head.plan, []);
  plan("completed", "completed");
  assert.equal(s.head.plan.length, 2, "while the turn runs it is shown");
  s.endTurn("end_turn", 3);
  assert.deepEqual(s.head.plan, []);
});

test("the time of a call is its own: what it waited for the person is known", () => {
  const s = new SessionState();
  s.apply({ sessionUpdate: "tool_call", toolCallId: "c", title: "edit", kind: "edit", status: "pending" }, 1);
  s.waited("c", 4000);
  s.waited("c", 500);
  s.waited("nobody", 1);
  s.apply({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed" }, 9);
  const e = s.entries.get("c");
  assert.equal(e?.kind === "tool" && e.waited, 4500);
});

test("a notice of a missing language server offers to install it; a name that is none goes nowhere", () => {
  const s = new SessionState();
  s.apply({ sessionUpdate: "notice", severity: "warning", title: "gopls not found", _meta: { pillion: { install: "gopls" } } }, 1);
  const e = [...s.entries.values()][0];
  assert.deepEqual(e?.kind === "notice" && e.actions, [{ id: "install", label: "Install gopls", about: "gopls" }]);
  assert.ok(parseToHost({ type: "action", id: "install", about: "gopls" }));
  for (const about of ["a b", "", "$(x)", "x;y", 7, "../x y"]) assert.equal(parseToHost({ type: "action", id: "install", about }), undefined, String(about));
});

test("a call that was cut off and is applied after all is no longer called stopped, whether it goes on first or ends at once", () => {
  for (const between of [[], [{ sessionUpdate: "tool_call_update", toolCallId: "c", status: "in_progress" }]]) {
    for (const live of [true, false]) {
      const s = new SessionState();
      s.apply({ sessionUpdate: "tool_call", toolCallId: "c", title: "edit a.txt", kind: "edit", status: "in_progress" }, 1, false);
      s.endTurn("cancelled", 2);
      const card = () => s.entries.get("c") as { status: string; outcome?: string };
      assert.deepEqual([card().status, card().outcome], ["failed", "cancelled"]);
      for (const u of between) s.apply(u, 3, live);
      s.apply({ sessionUpdate: "tool_call_update", toolCallId: "c", status: "completed" }, 4, live);
      assert.deepEqual([card().status, card().outcome], ["completed", undefined]);
    }
  }
});
