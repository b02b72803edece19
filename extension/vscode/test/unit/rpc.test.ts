import assert from "node:assert/strict";
import test from "node:test";
import { Connection, ClosedError, RpcError, type Handlers } from "../../src/common/rpc";

function pair(handlers: Partial<Handlers>) {
  const problems: string[] = [];
  const sent: string[] = [];
  const far = new Connection((line) => near.take(line), { request: () => undefined, notification: () => {}, problem: (m) => problems.push(m), ...handlers });
  const near: Connection = new Connection((line) => (sent.push(line), far.take(line)), { request: () => undefined, notification: () => {}, problem: (m) => problems.push(m) });
  return { near, far, problems, sent };
}

test("an answer, an error with its code, a method that nobody answers", async () => {
  const { near } = pair({
    request: (m) => (m === "add" ? (p) => (p as number[]).reduce((a, b) => a + b) : m === "bad" ? () => { throw new RpcError(-32602, "a: want a string", { at: "a" }); } : undefined),
  });
  assert.equal(await near.request("add", [1, 2]), 3);
  await assert.rejects(near.request("bad", {}), (e: RpcError) => e.code === -32602 && e.message === "a: want a string");
  await assert.rejects(near.request("none", {}), (e: RpcError) => e.code === -32601);
});

test("pieces may end anywhere, also inside a line; blank lines and rubbish are survived", () => {
  const seen: unknown[] = [];
  const problems: string[] = [];
  const c = new Connection(() => {}, { request: () => undefined, notification: (m, p) => seen.push([m, p]), problem: (m) => problems.push(m) });
  const text = '{"jsonrpc":"2.0","method":"a","params":1}\n\nnot json\n[]\n{"jsonrpc":"2.0","method":"b","params":"é\\n"}\n';
  for (const letter of text) c.take(letter);
  assert.deepEqual(seen, [["a", 1], ["b", "é\n"]]);
  assert.equal(problems.length, 2);
});

test("a cancelled request tells the other side and still takes its answer", async () => {
  let aborted = false;
  const { near, sent } = pair({
    request: () => (_p, signal) => new Promise((resolve) => signal.addEventListener("abort", () => ((aborted = true), resolve("late")))),
  });
  const stop = new AbortController();
  const answer = near.request("slow", {}, stop.signal);
  stop.abort();
  assert.equal(await answer, "late");
  assert.ok(aborted);
  assert.match(sent[1]!, /cancel_request/);
});

test("the end rejects what is open, and later requests at once", async () => {
  const { near } = pair({ request: () => () => new Promise(() => {}) });
  const open = near.request("never", {});
  near.close("it died");
  await assert.rejects(open, ClosedError);
  await assert.rejects(near.request("more", {}), /it died/);
});

test("a handler that throws does not end the connection", async () => {
  const { near, problems } = pair({ request: () => () => "fine", notification: () => { throw new Error("oops"); } });
  near.notify("x", {});
  assert.equal(await near.request("y", {}), "fine");
  assert.match(problems[0]!, /oops/);
});

test("32 MB in one line arrive in linear time", () => {
  let got = 0;
  const c = new Connection(() => {}, { request: () => undefined, notification: (_m, p) => (got = (p as string).length), problem: () => {} });
  const line = JSON.stringify({ jsonrpc: "2.0", method: "big", params: "x".repeat(32 << 20) }) + "\n";
  for (let i = 0; i < line.length; i += 65_536) c.take(line.slice(i, i + 65_536));
  assert.equal(got, 32 << 20);
});
