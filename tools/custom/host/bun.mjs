// What tools written for Bun use of it, where they run in Node: the shell, files, a few helpers.
import { spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import { access, mkdir, readFile, writeFile } from "node:fs/promises";
import { delimiter, dirname, join, resolve } from "node:path";
import { Readable } from "node:stream";
import { fileURLToPath } from "node:url";
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
  sleep: (ms) => new Promise((done) => setTimeout(done, ms instanceof Date ? ms - Date.now() : ms)),
};

/** Bun itself where it is, else what there is of it; the rest says so when it is called. */
export const Bun =
  globalThis.Bun ??
  new Proxy(have, {
    get: (_, name) =>
      name in have || typeof name === "symbol"
        ? have[name]
        : () => {
            throw new Error(`Bun.${name} is not here: this runs in Node. Use Node's own, or set js_runtime to a bun that is installed`);
          },
  });
export default Bun;
export const { $: command, argv, env, file, sleep, spawn: spawned, which: found, write: written } = Bun;
export { command as $, spawned as spawn, found as which, written as write };
