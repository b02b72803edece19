// What tools written for Bun use of it, where they run in Node: the shell, files, a few helpers.
import { spawn, spawnSync } from "node:child_process";
import { accessSync, constants, readdirSync, statSync } from "node:fs";
import { access, mkdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, dirname, join, resolve } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath, pathToFileURL } from "node:url";
import { shell } from "./shell.mjs";

let directory = process.cwd();

/** Says where relative paths begin and commands run. */
export function workIn(path) {
  directory = path;
}

const pathOf = (path) => (path instanceof File ? path.path : path instanceof URL || String(path).startsWith("file:") ? fileURLToPath(path) : resolve(directory, String(path)));

class File {
  constructor(path) {
    this.path = pathOf(path);
    this.name = this.path;
  }
  get size() {
    return statSync(this.path, { throwIfNoEntry: false })?.size ?? 0;
  }
  text() {
    return readFile(this.path, "utf8");
  }
  async json() {
    return JSON.parse(await this.text());
  }
  async bytes() {
    return new Uint8Array(await readFile(this.path));
  }
  async arrayBuffer() {
    return (await this.bytes()).buffer;
  }
  exists() {
    return access(this.path).then(
      () => true,
      () => false,
    );
  }
  write(data) {
    return write(this, data);
  }
}

async function write(to, data) {
  const bytes = data instanceof File ? await data.bytes() : Buffer.from(await new Response(data).arrayBuffer());
  await mkdir(dirname(pathOf(to)), { recursive: true });
  await writeFile(pathOf(to), bytes);
  return bytes.length;
}

function which(command, { PATH = process.env.PATH ?? "" } = {}) {
  for (const folder of PATH.split(delimiter)) {
    try {
      accessSync(join(folder, command), constants.X_OK);
      return join(folder, command);
    } catch {
      // not there
    }
  }
  return null;
}

function start(command, o = {}) {
  const [program, ...args] = Array.isArray(command) ? command : ((o = command), command.cmd);
  const child = spawn(program, args, { cwd: o.cwd ?? directory, env: o.env ?? process.env, stdio: [o.stdin ?? "ignore", o.stdout ?? "pipe", o.stderr ?? "pipe"] });
  const exited = new Promise((done, failed) => {
    child.on("error", failed);
    child.on("close", (code) => done(code ?? 1));
  });
  exited.catch(() => {}); // also where nobody waits for it
  return { pid: child.pid, exited, stdin: child.stdin, stdout: child.stdout && Readable.toWeb(child.stdout), stderr: child.stderr && Readable.toWeb(child.stderr), kill: (signal) => child.kill(signal) };
}

/** Bun.spawnSync: the same words as start, with the output as a Buffer. */
function startSync(command, o = {}) {
  const [program, ...args] = Array.isArray(command) ? command : ((o = command), command.cmd);
  const stdin = o.stdin instanceof Uint8Array ? { input: o.stdin } : {};
  const r = spawnSync(program, args, { cwd: o.cwd ?? directory, env: o.env ?? process.env, maxBuffer: 64 << 20, ...stdin, stdio: [stdin.input ? "pipe" : "ignore", o.stdout ?? "pipe", o.stderr ?? "pipe"] });
  if (r.error && r.status === null && r.signal === null) throw r.error; // it did not start, for which Bun throws too
  return { pid: r.pid, exitCode: r.status ?? 1, signalCode: r.signal ?? undefined, success: r.status === 0, stdout: r.stdout, stderr: r.stderr };
}

/** A glob as an expression for whole paths with forward slashes: ** crosses folders, {a,b} are choices, [a-z] and [!a] sets. */
function globExpression(pattern) {
  let out = "";
  let choices = 0;
  for (let i = 0; i < pattern.length; i++) {
    const c = pattern[i];
    if (pattern.startsWith("**/", i)) {
      out += "(?:[^/]+/)*";
      i += 2;
    } else if (pattern.startsWith("**", i)) {
      out += ".*";
      i++;
    } else if (c === "*") out += "[^/]*";
    else if (c === "?") out += "[^/]";
    else if (c === "{" && pattern.includes("}", i)) (out += "(?:"), choices++;
    else if (c === "," && choices > 0) out += "|";
    else if (c === "}" && choices > 0) (out += ")"), choices--;
    else if (c === "[" && pattern.indexOf("]", i + 2) > 0) {
      const end = pattern.indexOf("]", i + 2);
      out += "[" + pattern.slice(i + 1, end).replace(/^[!^]/, "^").replace(/\\/g, "\\\\") + "]";
      i = end;
    } else if (c === "\\" && i + 1 < pattern.length) out += pattern[++i].replace(/[^\w]/g, "\\$&");
    else out += c.replace(/[.+^$()|[\]{}\\]/g, "\\$&");
  }
  return new RegExp(`^${out}$`, "s");
}

/** Bun.Glob. Node has a glob of its own only in its newer versions. */
class Glob {
  constructor(pattern) {
    this.pattern = String(pattern).replace(/^\.\//, "");
    this.expression = globExpression(this.pattern);
  }
  match(text) {
    return this.expression.test(String(text));
  }
  *scanSync(o = {}) {
    const { cwd = directory, absolute = false, onlyFiles = true, dot = false } = typeof o === "string" ? { cwd: o } : o;
    const root = resolve(directory, cwd);
    const folders = [""];
    while (folders.length > 0) {
      const folder = folders.pop();
      for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
        if (!dot && entry.name.startsWith(".")) continue;
        const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
        // Links are not followed, as in Bun: one may lead back to where it lies.
        if (entry.isDirectory()) folders.push(path);
        const wanted = entry.isDirectory() ? !onlyFiles : true;
        if (wanted && this.match(path)) yield absolute ? join(root, path) : path;
      }
    }
  }
  async *scan(o) {
    yield* this.scanSync(o);
  }
}

const $ = Object.assign((parts, ...values) => shell(directory)(parts, ...values), { escape: shell("").escape, cwd: (path) => shell(resolve(directory, path)) });
for (const name of ["env", "nothrow", "throws"]) $[name] = (...a) => shell(directory)[name](...a);

const have = {
  $,
  env: process.env,
  argv: process.argv,
  file: (path) => new File(path),
  write,
  which,
  spawn: start,
  spawnSync: startSync,
  Glob,
  fileURLToPath,
  pathToFileURL,
  sleep: (ms) => new Promise((done) => setTimeout(done, ms instanceof Date ? ms - Date.now() : ms)),
};

/** What Node does not have: any part of it may be asked for, and says what to do when it is used. */
export function missing(name) {
  const fail = () => {
    throw new Error(`${name} is not here: this runs in Node. Set js_runtime to "bun@1.4.4" in pillion.jsonc; it is then installed once`);
  };
  return new Proxy(function () {}, {
    get: (_, key) => (key === "then" || key === "prototype" || typeof key === "symbol" ? undefined : missing(`${name}.${key}`)),
    apply: fail,
    construct: fail,
  });
}

/** Bun itself where it is, else what there is of it. */
export const Bun =
  globalThis.Bun ??
  new Proxy(have, { get: (_, name) => (name in have || typeof name === "symbol" ? have[name] : missing(`Bun.${name}`)) });
export default Bun;
