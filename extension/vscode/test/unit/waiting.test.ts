// What waits for the person, and when they are told of it.
import assert from "node:assert/strict";
import test from "node:test";
import { permissionOf } from "../../src/common/permission";
import type { CreateElicitationRequest, RequestPermissionRequest } from "../../src/common/protocol";
import { Approvals } from "../../src/host/approvals";
import { Keys } from "../../src/host/keys";
import { Models } from "../../src/host/models";
import { notify } from "../../src/host/notify";
import { Questions } from "../../src/host/questions";
import type { Sessions } from "../../src/host/sessions";
import type { Sidecar } from "../../src/host/sidecar";
import { runCommand } from "../../src/host/table";
import { EventEmitter, play } from "./vscode";

type Handler = (params: unknown, signal: AbortSignal) => Promise<unknown>;

/** The connection that a test speaks through. */
function wire() {
  const handlers = new Map<string, Handler>();
  const state = new EventEmitter<{ kind: string }>();
  const started = new EventEmitter<unknown>();
  const asked: { method: string; params: unknown }[] = [];
  const notified = new EventEmitter<unknown>();
  const changes = new EventEmitter<unknown>();
  const sidecar = {
    onNotification: (m: string, h: (params: unknown) => void) => (m === "session/update" ? notified : changes).event(h),
    onRequest: (m: string, h: Handler) => (handlers.set(m, h), { dispose: () => handlers.delete(m) }),
    onDidChangeState: state.event,
    onDidStart: started.event,
    announced: (m: string) => m.startsWith("_pillion/auth/"),
    start: () => Promise.resolve(),
    request: (method: string, params: unknown) => (asked.push({ method, params }), Promise.resolve({ providers: [{ id: "anthropic", name: "Anthropic", env: ["ANTHROPIC_API_KEY"], source: "none" }] })),
  };
  const call = (m: string, params: unknown, signal = new AbortController().signal) => handlers.get(m)!(params, signal);
  return { sidecar: sidecar as unknown as Sidecar, call, state, started, asked, notified, changes };
}

const permission = (sessionId: string, title = "edit a.txt"): RequestPermissionRequest => ({
  sessionId, toolCall: { toolCallId: "t1", title }, options: [{ optionId: "once", name: "Allow", kind: "allow_once" }, { optionId: "no", name: "Reject", kind: "reject_once" }],
});
const question = (sessionId: string, message = "Which one?"): CreateElicitationRequest => ({ sessionId, mode: "form", message, requestedSchema: { type: "object", properties: { a: { type: "string" } } } });

function world() {
  const w = wire();
  const approvals = new Approvals(w.sidecar);
  const questions = new Questions(w.sidecar);
  const prompted = new EventEmitter<{ sessionId: string; prompt: never[] }>();
  const ended = new EventEmitter<{ sessionId: string; interrupted: boolean; error?: string }>();
  const activated: string[] = [];
  const sessions = { get: (id: string) => ({ title: `title of ${id}` }), activate: (id: string) => activated.push(id), onDidPrompt: prompted.event, onDidEndTurn: ended.event };
  Object.assign(play, { settings: {}, said: [], ran: [] });
  play.focus(false);
  notify(sessions as unknown as Sessions, approvals, questions);
  return { ...w, approvals, questions, prompted, ended, activated };
}

test("nobody looks: what waits is told once, and again when another thing waits after it was answered", async () => {
  const w = world();
  const first = w.call("session/request_permission", permission("s1"));
  assert.deepEqual(play.said.map((s) => s.text), ["Approval needed: edit a.txt"]);
  void w.call("session/request_permission", permission("s1", "edit b.txt"));
  assert.equal(play.said.length, 1, "one is enough");
  // decided in the panel; the notification went out of sight by itself, of which nobody tells
  for (const a of w.approvals.pending()) w.approvals.decide(a.id, "once");
  assert.deepEqual(await first, { outcome: { outcome: "selected", optionId: "once" } });
  void w.call("session/request_permission", permission("s1", "edit c.txt"));
  assert.deepEqual(play.said.map((s) => s.text).slice(1), ["Approval needed: edit c.txt"]);
  await play.said[1]!.press("Review");
  assert.deepEqual(w.activated, ["s1"]);
  assert.deepEqual(play.ran, ["pillion.nextPending"]);
});

test("who was here since is told anew; who looks is not told; the setting decides", () => {
  const w = world();
  void w.call("session/request_permission", permission("s1"));
  play.focus(true);
  void w.call("session/request_permission", permission("s1"));
  play.focus(false);
  void w.call("session/request_permission", permission("s1"));
  assert.equal(play.said.length, 2);
  play.settings = { notifications: "never" };
  void w.call("session/request_permission", permission("s2"));
  assert.equal(play.said.length, 2);
  play.settings = { notifications: "always" };
  play.focus(true);
  void w.call("session/request_permission", permission("s2"));
  assert.equal(play.said.length, 3);
});

test("a question is told too, leads to its session, and is answered there; cancelled when its asker goes", async () => {
  const w = world();
  const one = w.call("elicitation/create", question("s2"));
  assert.deepEqual(play.said.map((s) => s.text), ["Pillion asks: Which one?"]);
  assert.deepEqual(w.questions.pending("s1"), []);
  await play.said[0]!.press("Answer");
  assert.deepEqual([w.activated, play.ran], [["s2"], ["pillion.focusApproval"]]);
  w.questions.answer(w.questions.pending("s2")[0]!.question.requestId, { a: "this" });
  assert.deepEqual(await one, { action: "accept", content: { a: "this" } });
  const stop = new AbortController();
  const two = w.call("elicitation/create", question("s2"), stop.signal);
  assert.equal(play.said.length, 2, "the next question is told again");
  stop.abort();
  assert.deepEqual(await two, { action: "cancel" });
  const three = w.call("elicitation/create", question("s2"));
  w.state.fire({ kind: "waiting" });
  assert.deepEqual(await three, { action: "cancel" });
  assert.deepEqual(w.questions.pending(), []);
});

test("that a turn is over does not keep what waits from being told", (t) => {
  t.mock.timers.enable({ apis: ["Date"] });
  const w = world();
  w.prompted.fire({ sessionId: "s1", prompt: [] });
  t.mock.timers.tick(60_000);
  w.ended.fire({ sessionId: "s1", interrupted: false });
  void w.call("session/request_permission", permission("s1"));
  assert.deepEqual(play.said.map((s) => s.text), ["Pillion has finished: title of s1", "Approval needed: edit a.txt"]);
});

test("a request that cannot be decided is refused at once; what it says wrong beside that is left out", async () => {
  const w = world();
  const good = permission("s1");
  for (const bad of [undefined, null, 7, {}, { ...good, options: undefined }, { ...good, options: [] }, { ...good, options: [{ kind: "maybe", optionId: "x", name: "x" }] }, { ...good, toolCall: null }, { ...good, toolCall: { title: "no id" } }, { ...good, sessionId: 3 }]) {
    await assert.rejects(w.call("session/request_permission", bad), /session\/request_permission/, JSON.stringify(bad));
  }
  assert.deepEqual(w.approvals.pending(), []);
  const odd = { ...good, toolCall: { toolCallId: "t1", title: 5, content: "none", _meta: { pillion: { files: [{ uri: "file:///a" }], diagnostics: { fixed: 1 }, always: "x", patterns: [1, "y"], why: {} } } } };
  const { meta, request } = permissionOf({ ...odd, options: [...good.options, { kind: "allow_for_a_week", optionId: "w", name: "w" }] })!;
  assert.deepEqual([meta.files, meta.diagnostics, meta.always, meta.patterns, meta.why], [[], undefined, [], ["y"], undefined]);
  assert.deepEqual([request.options.length, request.toolCall.title, request.toolCall.content], [2, undefined, []]);
  void w.call("session/request_permission", odd);
  assert.equal(w.approvals.pending().length, 1);
});

test("the verdict of a proposal is the last one that its tool call brought; another call's is none of it", () => {
  const w = world();
  const verdict = (certainty: string, introduced: unknown[] = []) => ({ certainty, introduced, fixed: [], unchanged: 0 });
  const ask = permission("s1");
  ask.toolCall._meta = { pillion: { changeSet: "set 1", diagnostics: verdict("pending") } };
  void w.call("session/request_permission", ask);
  const approval = w.approvals.pending("s1")[0]!;
  const told: string[] = [];
  w.approvals.onDidChange((id) => told.push(id));
  const update = (sessionId: string, toolCallId: string, meta: unknown) => w.notified.fire({ sessionId, update: { sessionUpdate: "tool_call_update", toolCallId, _meta: meta } });
  assert.equal(approval.verdict?.certainty, "pending");
  update("s1", "t2", { pillion: { diagnostics: verdict("fresh") } });
  update("s2", "t1", { pillion: { diagnostics: verdict("fresh") } });
  update("s1", "t1", {}); // the title changed, say
  update("s1", "t1", { pillion: { diagnostics: { certainty: "fresh", introduced: null } } });
  assert.deepEqual([approval.verdict?.certainty, told], ["pending", []]);
  update("s1", "t1", { pillion: { diagnostics: verdict("fresh", [{ path: "/a", line: 1 }]) } });
  assert.deepEqual([approval.verdict?.certainty, approval.verdict?.introduced.length, told], ["fresh", 1, ["s1"]]);
  const change = (sessionId: string, id: string, state: string, diagnostics: unknown) => w.changes.fire({ sessionId, change: { id, state, files: [], diagnostics } });
  change("s2", "set 1", "proposed", verdict("fresh"));
  change("s1", "set 2", "proposed", verdict("fresh"));
  change("s1", "set 1", "applied", verdict("fresh"));
  change("s1", "set 1", "proposed", verdict("fresh", [{ path: "/a", line: 1 }])); // the same once more
  assert.deepEqual([approval.verdict?.introduced.length, told], [1, ["s1"]]);
  change("s1", "set 1", "proposed", verdict("partial"));
  assert.deepEqual([approval.verdict?.certainty, told], ["partial", ["s1", "s1"]]);
});

test("a secret storage that fails: it is said with another way, nothing is remembered, and other keys are still given", async () => {
  const w = wire();
  Object.assign(play, { said: [], input: "sk-1" });
  let index: unknown = {};
  const store = { throws: true };
  const secrets = {
    store: () => (store.throws ? Promise.reject(new Error("the keyring is locked")) : Promise.resolve()),
    get: (id: string) => (id.endsWith("anthropic") ? Promise.reject(new Error("the keyring is locked")) : Promise.resolve("sk-2")),
  };
  const warned: string[] = [];
  const log = { warn: (s: string) => warned.push(s), error: (s: string) => warned.push(s) };
  const keys = new Keys(w.sidecar, { secrets, globalState: { get: () => index, update: (_: string, v: unknown) => ((index = v), Promise.resolve()) } } as never, log as never);
  new Models(w.sidecar, {} as Sessions, keys);
  await runCommand("pillion.setKey", ["anthropic"]);
  assert.match(play.said[0]!.text, /cannot store the key \(the keyring is locked\).*ANTHROPIC_API_KEY/);
  assert.deepEqual([index, w.asked.map((a) => a.method)], [{}, ["_pillion/auth/list"]]);
  index = { anthropic: { name: "Anthropic", env: "ANTHROPIC_API_KEY" }, openai: { name: "OpenAI", env: "PILLION_TEST_KEY" } };
  assert.deepEqual(await keys.environment(), { PILLION_TEST_KEY: "sk-2" });
  w.started.fire({});
  await new Promise((later) => setImmediate(later));
  assert.deepEqual(w.asked.slice(1), [{ method: "_pillion/auth/set", params: { provider: "openai", key: "sk-2" } }]);
  assert.ok(warned.every((s) => s.includes("anthropic") && !s.includes("sk-")) && warned.length === 2);
  keys.dispose();
});
