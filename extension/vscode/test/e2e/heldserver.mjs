// A language server whose check of a text is held until a file exists: heldserver.mjs GATE. A line with BAD in it is an error,
// and so is "use NAME" without "def NAME".
import { existsSync, watch } from "node:fs";
import { basename, dirname } from "node:path";

const gate = process.argv[2];
const opened = new Promise((open) => {
  const watcher = watch(dirname(gate), (_, name) => name === basename(gate) && open());
  if (existsSync(gate)) open();
  process.stdin.on("end", () => watcher.close());
});
const send = (m) => {
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...m }));
  process.stdout.write(`Content-Length: ${body.length}\r\n\r\n`);
  process.stdout.write(body);
};
const wrong = (l, text) => (l.includes("BAD") ? `bad: ${l.trim()}` : l.startsWith("use ") && !text.split("\n").includes(l.replace("use", "def")) ? `${l.slice(4)} is not defined` : undefined);
const problems = (text) => text.split("\n").flatMap((l, line) => (wrong(l, text) ? [{ range: { start: { line, character: 0 }, end: { line, character: l.length } }, severity: 1, source: "held", message: wrong(l, text) }] : []));
const versions = new Map();
async function check({ uri, version }, text) {
  versions.set(uri, version);
  if (text.includes("BAD")) await opened; // the text as it was is checked at once
  if (versions.get(uri) === version) send({ method: "textDocument/publishDiagnostics", params: { uri, version, diagnostics: problems(text) } });
}
const handle = (m) => {
  if (m.method === "initialize") send({ id: m.id, result: { capabilities: { textDocumentSync: 1 }, serverInfo: { name: "held", version: "1" } } });
  else if (m.method === "shutdown") send({ id: m.id, result: null });
  else if (m.method === "exit") process.exit(0);
  else if (m.method === "textDocument/didOpen") void check(m.params.textDocument, m.params.textDocument.text);
  else if (m.method === "textDocument/didChange") void check(m.params.textDocument, m.params.contentChanges.at(-1).text);
  else if (m.id !== undefined && m.method) send({ id: m.id, error: { code: -32601, message: m.method } });
};
let rest = Buffer.alloc(0);
process.stdin.on("data", (d) => {
  rest = Buffer.concat([rest, d]);
  for (;;) {
    const end = rest.indexOf("\r\n\r\n");
    const length = end < 0 ? 0 : Number(/Content-Length: (\d+)/i.exec(rest.subarray(0, end))?.[1]);
    if (end < 0 || rest.length < end + 4 + length) return;
    handle(JSON.parse(rest.subarray(end + 4, end + 4 + length)));
    rest = rest.subarray(end + 4 + length);
  }
});
