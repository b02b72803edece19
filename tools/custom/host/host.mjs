// The process that runs the person's tools and plugins: a line of JSON in, a line of JSON out. Each file runs in a
// worker of its own, so that one that loops, exits or throws takes no other with it. What they print goes to standard
// error; standard output is the protocol's, and every line of it carries the token that came with the start.
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";

const token = process.env.PILLION_HOST_TOKEN;
delete process.env.PILLION_HOST_TOKEN;
const write = process.stdout.write.bind(process.stdout);
process.stdout.write = process.stderr.write.bind(process.stderr);
// The newline before it ends what somebody else may have left unfinished on this pipe.
const send = (message) => write("\n" + JSON.stringify({ ...message, token }) + "\n");

const memory = Number(process.env.PILLION_HOST_MEMORY) || 1024; // MB that one file's code may use
delete process.env.PILLION_HOST_MEMORY;

/** @type {Map<string, Worker>} by unit: one version of one file */
const workers = new Map();

/** A worker that waits for its file; what it says and its end are passed on from then on. */
function start() {
  const worker = new Worker(new URL("./worker.mjs", import.meta.url), { stdout: true, stderr: true, resourceLimits: { maxOldGenerationSizeMb: memory } });
  const at = { worker, unit: undefined };
  let why = "";
  worker.stdout.on("data", (b) => process.stderr.write(b));
  worker.stderr.on("data", (b) => process.stderr.write(b));
  worker.on("message", (m) => send({ ...m, unit: at.unit }));
  worker.on("messageerror", (e) => send({ unit: at.unit, gone: String(e) }));
  worker.on("error", (e) => {
    why = e?.code === "ERR_WORKER_OUT_OF_MEMORY" ? `it used more than ${memory} MB of memory` : String(e?.message ?? e);
  });
  worker.on("exit", (code) => {
    if (spare === at) spare = undefined;
    if (workers.get(at.unit) === worker) workers.delete(at.unit);
    if (at.unit !== undefined) send({ unit: at.unit, gone: why || `it ended the process (exit code ${code})` });
  });
  return at;
}

// The first file's worker starts with us, while the file is still being bundled.
let spare = start();

function load(message) {
  const at = spare ?? start();
  spare = undefined;
  at.unit = message.unit;
  workers.set(at.unit, at.worker);
  at.worker.postMessage(message);
}

const DISPOSE = 1000; // ms that a file has to clean up; shorter than the grace that this process has to end

/** Ends a worker after it has cleaned up. */
function dispose(worker) {
  return new Promise((done) => {
    const timer = setTimeout(() => worker.terminate(), DISPOSE);
    worker.once("exit", () => {
      clearTimeout(timer);
      done();
    });
    worker.postMessage({ op: "dispose" });
  });
}

const lines = createInterface({ input: process.stdin, crlfDelay: Infinity });
lines.on("line", (line) => {
  const message = JSON.parse(line);
  const worker = workers.get(message.unit);
  switch (message.op) {
    case "load":
      load(message);
      break;
    case "end":
      worker?.terminate();
      break;
    case "dispose":
      if (worker) void dispose(worker);
      break;
    default:
      if (worker) worker.postMessage(message);
      else send({ id: message.id, error: { message: "the file is not loaded" } });
  }
});
lines.on("close", async () => {
  await Promise.all([...workers.values()].map(dispose));
  process.exit(0);
});
send({ hello: { runtime: process.versions.bun ? "bun" : process.versions.deno ? "deno" : "node", version: process.version } });
