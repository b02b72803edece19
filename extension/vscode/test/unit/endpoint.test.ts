// A server that the person adds by its address: what can be said of it before it is kept.
import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import test, { type TestContext } from "node:test";
import { Endpoint, providerId } from "../../src/host/endpoint";

async function serve(t: TestContext, answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((ok) => server.listen(0, "127.0.0.1", ok));
  t.after(() => (server.closeAllConnections(), server.close()));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

test("addresses that cannot be a base URL are told what is wrong with them", () => {
  for (const good of ["https://llm.example.com/v1", " http://localhost:8080/v1/ ", "http://[::1]:1/"]) assert.equal(Endpoint.problemOf(good), undefined, good);
  for (const bad of ["", "llm.example.com", "ftp://x/v1", "file:///etc/passwd", "javascript:1", "https://user:pw@x/v1", "https://x/v1?key=1", "https://x/v1/chat/completions"]) assert.equal(typeof Endpoint.problemOf(bad), "string", bad);
});

test("models, a refused key, a test call: over the wire, with the key for this server alone", async (t) => {
  const heard: string[] = [];
  const elsewhere = await serve(t, (q, r) => (heard.push(`elsewhere ${q.headers.authorization ?? ""}`), void r.end("{}")));
  const url = await serve(t, (q, r) => {
    heard.push(`${q.method} ${q.url} ${q.headers.authorization ?? ""}`);
    if (q.url === "/v1/moved/models") return void r.writeHead(307, { location: `${elsewhere}/models` }).end();
    if (q.headers.authorization !== "Bearer good") return void r.writeHead(401).end(JSON.stringify({ error: { message: "no such key" } }));
    if (q.url === "/v1/models") return void r.end(JSON.stringify({ data: [{ id: "b" }, { id: "a" }, { no: 1 }, null] }));
    q.resume().on("end", () => r.end(JSON.stringify({ choices: [{ message: { content: "OK" } }] })));
  });
  assert.deepEqual(await new Endpoint(url, "good").models(), ["a", "b"]);
  assert.equal(await new Endpoint(url, "bad").models(), `${url} does not accept the API key: no such key`);
  assert.equal(await new Endpoint(url, "good").refusesKey(), undefined);
  assert.match((await new Endpoint(url, "bad").refusesKey()) ?? "", /does not accept/);
  assert.equal(await new Endpoint(url, "good").test("a"), undefined);
  assert.match((await new Endpoint(url, "bad").test("a")) ?? "", /does not accept/);
  assert.match(String(await new Endpoint(`${url}/moved`, "good").models()), /cannot be reached/);
  assert.ok(!heard.some((x) => x.startsWith("elsewhere")), "a redirect took the key along");
});

test("a server that is none, one that lists nothing, and one that answers something else", async (t) => {
  assert.match(String(await new Endpoint("http://127.0.0.1:9/v1", "").models()), /cannot be reached/);
  const bare = await serve(t, (q, r) => (q.url === "/v1/models" ? r.writeHead(404).end("no") : r.writeHead(200).end("<html>")));
  assert.deepEqual(await new Endpoint(bare, "").models(), []);
  assert.match((await new Endpoint(bare, "").test("m")) ?? "", /not as a Chat Completions API/);
});

test("an ID for a provider is its host's name, and nobody else's", () => {
  const id = (url: string, ...taken: string[]) => providerId(url, new Set(taken));
  assert.deepEqual(
    [id("https://api.example.com/v1"), id("https://api.example.com/v1", "example", "example-2"), id("http://localhost:1/v1"), id("http://10.0.0.1/v1"), id("http://box/v1"), id("https://api.io/")],
    ["example", "example-3", "local-server", "local-server", "box", "io"],
  );
});
