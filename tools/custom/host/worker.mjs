// One file of the person's: its tools, or a plugin's hooks.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { parentPort } from "node:worker_threads";
import { cancel, more, request, signIns, step } from "./auth.mjs";
import { workIn } from "./bun.mjs";
import { account, answered, client } from "./client.mjs";
import { jsonSchema, parse } from "./schema.mjs";
import { shell } from "./shell.mjs";

const MAX_OUTPUT = 8 << 20; // characters that go back; more is cut here, before it is copied
const MAX_FILE = 10 << 20; // bytes of an attachment

const post = (message) => parentPort.postMessage(message);

/** The file, as the message that loads it describes it. */
let file = {};

/** What went wrong, in words, with the place in the person's file. */
function fault(e) {
  const message = e instanceof Error ? e.message : typeof e === "string" ? e : typeof e?.message === "string" ? e.message : safeJSON(e);
  const at = e instanceof Error ? /\(?([^()\s]+:\d+:\d+)\)?/.exec((e.stack ?? "").split("\n").find((l) => l.includes(file.name)) ?? "")?.[1] : undefined;
  return { message: message || "it failed without a word", at, name: e?.name };
}

function safeJSON(value) {
  const seen = new WeakSet();
  const text = JSON.stringify(
    value,
    (_, v) => {
      if (typeof v === "bigint") return String(v);
      if (typeof v === "object" && v !== null) {
        if (seen.has(v)) return "[circular]";
        seen.add(v);
      }
      return v;
    },
    2,
  );
  return text ?? "";
}

const plain = (value) => (value === undefined ? undefined : JSON.parse(safeJSON(value) || "null"));

/** @type {Map<string, {definition: any}>} by name */
const tools = new Map();
/** @type {Array<Record<string, Function>>} the hooks of a plugin's functions */
const hooks = [];
/** What plugins are given: a function that is no plugin may return its input, and client is no hook. */
let given = new Set();
/** @type {Map<number, {controller: AbortController, asks: Map<number, Function>}>} calls under way */
const calls = new Map();

const isTool = (v) => typeof v === "object" && v !== null && typeof v.execute === "function";

function add(name, definition) {
  tools.set(name, { definition });
}

function described() {
  return [...tools].map(([name, { definition }]) => {
    const { schema, problem } = jsonSchema(definition.args ?? definition.parameters);
    return { name, description: String(definition.description ?? ""), schema, problem };
  });
}

async function load() {
  const module = await import(file.code);
  if (file.kind === "tool") {
    for (const [name, value] of Object.entries(module)) {
      const definition = typeof value === "function" && name === "default" ? await value() : value;
      if (isTool(definition)) add(name === "default" ? file.stem : `${file.stem}_${name}`, definition);
    }
    if (tools.size === 0) throw new Error(`${file.name} exports no tool: export default tool({ description, args, execute })`);
    return;
  }
  const input = {
    directory: file.directory,
    worktree: file.worktree,
    project: { id: file.worktree, worktree: file.worktree, time: { created: 0 } },
    $: shell(file.directory),
    serverUrl: undefined,
    client: client(post),
    experimental_workspace: { register() {} },
  };
  given = new Set(Object.keys(input));
  const functions = new Set();
  const module_ = module.default;
  if (typeof module_ === "object" && typeof module_?.server === "function") functions.add(module_.server);
  else for (const value of Object.values(module)) if (typeof value === "function") functions.add(value);
  if (functions.size === 0) throw new Error(`${file.name} exports no plugin: export const MyPlugin = async ({ directory }) => ({ … })`);
  for (const plugin of functions) {
    const made = (await plugin(input, file.options ?? {})) ?? {};
    hooks.push(made);
    for (const [name, definition] of Object.entries(made.tool ?? {})) if (isTool(definition)) add(name, definition);
  }
}

/** Judges arguments in the tool's own words. */
function check({ id, name, args }) {
  const { definition } = tools.get(name) ?? {};
  if (!definition) return post({ id, error: { message: `there is no tool ${name} in ${file.name} any more` } });
  try {
    const { problems } = parse(definition.args ?? definition.parameters, args);
    post(problems.length > 0 ? { id, error: { kind: "invalid", message: problems.join("\n") } } : { id, result: null });
  } catch (e) {
    post({ id, error: fault(e) });
  }
}

async function call({ id, name, args, context }) {
  const { definition } = tools.get(name) ?? {};
  if (!definition) return post({ id, error: { message: `there is no tool ${name} in ${file.name} any more` } });
  const controller = new AbortController();
  const asks = new Map();
  calls.set(id, { controller, asks });
  try {
    const { value, problems } = parse(definition.args ?? definition.parameters, args);
    if (problems.length > 0) return post({ id, error: { kind: "invalid", message: problems.join("\n") } });
    const result = await definition.execute(value, {
      ...context,
      directory: file.directory,
      worktree: file.worktree,
      abort: controller.signal,
      extra: {},
      messages: [],
      metadata(input) {
        post({ id, metadata: { title: input?.title === undefined ? undefined : String(input.title), metadata: plain(input?.metadata) } });
      },
      ask(input) {
        return new Promise((resolve, reject) => {
          const n = asks.size;
          asks.set(n, ({ error }) => (error ? reject(Object.assign(new Error(error), { name: "RejectedError" })) : resolve(undefined)));
          post({ id, ask: { n, permission: String(input?.permission), patterns: (input?.patterns ?? []).map(String), always: (input?.always ?? []).map(String), metadata: plain(input?.metadata) } });
        });
      },
    });
    post({ id, result: await shaped(result) });
  } catch (e) {
    post({ id, error: controller.signal.aborted ? { kind: "aborted", message: "aborted" } : fault(e) });
  } finally {
    calls.delete(id);
  }
}

/** The result in the one shape that goes back. */
async function shaped(result) {
  if (result === undefined || result === null) return { output: "" };
  if (typeof result !== "object") return limited({ output: String(result) });
  if (typeof result.output !== "string" && result.output === undefined) return limited({ output: safeJSON(result) });
  const out = { title: result.title === undefined ? undefined : String(result.title), output: typeof result.output === "string" ? result.output : safeJSON(result.output), metadata: plain(result.metadata) };
  const attachments = [];
  for (const a of result.attachments ?? []) {
    const data = await bytes(String(a?.url ?? ""));
    if (data && data.length <= MAX_FILE) attachments.push({ mime: String(a.mime ?? "application/octet-stream"), name: a.filename, data: data.toString("base64") });
    else out.output += `\n[attachment ${a?.filename ?? a?.mime ?? ""} left out: ${data ? "over 10 MB" : "its address cannot be read"}]`;
  }
  return limited({ ...out, attachments });
}

function limited(result) {
  const left = result.output.length - MAX_OUTPUT;
  if (left > 0) result.output = result.output.slice(0, MAX_OUTPUT) + `\n[${left} more characters were cut]`;
  return result;
}

async function bytes(url) {
  if (url.startsWith("file:")) return readFile(fileURLToPath(url)).catch(() => undefined);
  const found = /^data:[^,]*?(;base64)?,/s.exec(url);
  return found ? Buffer.from(found[1] ? url.slice(found[0].length) : decodeURIComponent(url.slice(found[0].length)), found[1] ? "base64" : "utf8") : undefined;
}

/** Runs a hook of every function in turn; each may change the output. */
async function hook({ id, name, input, output }) {
  try {
    for (const made of hooks) if (typeof made[name] === "function") await (name === "event" ? made[name](input) : made[name](input, output));
    post({ id, result: plain(output) ?? null });
  } catch (e) {
    post({ id, error: fault(e) });
  }
}

/** One step of a sign-in. */
async function auth(message) {
  try {
    post({ id: message.id, result: plain(await step(message, (provider) => account(post, provider))) ?? null });
  } catch (e) {
    post({ id: message.id, error: fault(e) });
  }
}

/** @type {Set<Promise<void>>} hooks under way */
const hooking = new Set();
function track(running) {
  hooking.add(running);
  void running.finally(() => hooking.delete(running));
}

/** Lets plugins clean up; the end comes by itself or from outside. */
async function dispose() {
  await Promise.allSettled(hooking);
  for (const made of hooks) {
    try {
      await made.dispose?.();
    } catch (e) {
      console.error(`${file.name}: dispose: ${fault(e).message}`);
    }
  }
  process.exit(0);
}

/** Lets plugins change the configuration. @returns it, if one changed it */
async function configure() {
  const config = plain(file.config ?? {});
  const before = safeJSON(config);
  for (const made of hooks) {
    if (typeof made.config !== "function") continue;
    try {
      await made.config(config);
    } catch (e) {
      tell("its config hook failed", e);
    }
  }
  return safeJSON(config) === before ? undefined : plain(config);
}

async function begin({ op, id, ...rest }) {
  void op;
  file = rest;
  workIn(file.directory);
  try {
    await load();
    const config = await configure();
    const names = new Set(hooks.flatMap((h) => Object.keys(h).filter((k) => typeof h[k] === "function" && !given.has(k))));
    post({ id, loaded: { tools: described(), hooks: [...names], signIns: signIns(hooks), config } });
  } catch (e) {
    post({ id, error: fault(e) });
  }
}

/** @type {Set<string>} what was said of failures outside of calls; at most 100 are kept, so that a timer that fails each time fills nothing */
const said = new Set();
function tell(words, e) {
  const { message, at } = fault(e);
  const text = `${words}: ${message}${at ? ` (${at.replace(/^file:\/\//, "")})` : ""}`;
  if (said.has(text) || said.size >= 100) return;
  said.add(text);
  post({ notice: text });
}

// Node would end the worker, and the file's tools with it, for a call that fails while nobody waits for it.
process.on("unhandledRejection", (e) => tell("a promise that it did not await failed", e));
process.on("uncaughtException", (e) => {
  // A call may wait for what has just failed, for ever, and which one it is cannot be known: the worker ends, and all of them fail. A hook
  // has a time limit.
  if (calls.size > 0) throw e;
  tell("it failed outside of a call", e);
});

parentPort.on("message", (message) => {
  const under = calls.get(message.id);
  switch (message.op) {
    case "load":
      return void begin(message);
    case "answer":
      return answered(message);
    case "check":
      return check(message);
    case "call":
      return void call(message);
    case "dispose":
      return void dispose();
    case "hook":
      return void track(hook(message));
    case "auth":
      return void auth(message);
    case "fetch":
      return void request(message, post, fault);
    case "more":
      return more(message.id);
    case "abort":
      return cancel(message.id) ? undefined : under?.controller.abort();
    case "reply":
      return under?.asks.get(message.n)?.(message);
    case "ping":
      return post({ id: message.id, result: null });
  }
});
