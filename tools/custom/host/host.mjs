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

/** @type {Map<string, Worker>} by unit: one version of one file */
const workers = new Map();

function load({ id, unit, ...data }) {
  const worker = new Worker(new URL("./worker.mjs", import.meta.url), {
    workerData: { id, unit, ...data },
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: data.memory },
  });
  workers.set(unit, worker);
  worker.stdout.on("data", (b) => process.stderr.write(b));
  worker.stderr.on("data", (b) => process.stderr.write(b));
  let why = "";
  worker.on("message", (m) => send({ ...m, unit }));
  worker.on("messageerror", (e) => send({ unit, gone: String(e) }));
  worker.on("error", (e) => {
    why = e?.code === "ERR_WORKER_OUT_OF_MEMORY" ? `it used more than ${data.memory} MB of memory` : String(e?.message ?? e);
  });
  worker.on("exit", (code) => {
    if (workers.get(unit) === worker) workers.delete(unit);
    send({ unit, gone: why || `it ended the process (exit code ${code})` });
  });
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
