// The $`command` of plugins: values are quoted, output is caught.
import { spawn } from "node:child_process";

const quote = (v) => (Array.isArray(v) ? v.map(quote).join(" ") : typeof v === "object" && v !== null && "raw" in v ? String(v.raw) : `'${String(v).replaceAll("'", `'\\''`)}'`);

class Command {
  #command;
  #o;
  #running;
  constructor(command, o) {
    this.#command = command;
    this.#o = o;
  }
  #with(o) {
    return new Command(this.#command, { ...this.#o, ...o });
  }
  cwd(directory) {
    return this.#with({ cwd: directory });
  }
  env(env) {
    return this.#with({ env });
  }
  quiet() {
    return this;
  }
  nothrow() {
    return this.#with({ throws: false });
  }
  throws(on) {
    return this.#with({ throws: on });
  }
  #run() {
    this.#running ??= new Promise((resolve, reject) => {
      const child = spawn("sh", ["-c", this.#command], { cwd: this.#o.cwd, env: this.#o.env ?? process.env, stdio: ["ignore", "pipe", "pipe"] });
      const out = [];
      const err = [];
      child.stdout.on("data", (b) => out.push(b));
      child.stderr.on("data", (b) => err.push(b));
      child.on("error", reject);
      child.on("close", (exitCode) => {
        const result = { exitCode: exitCode ?? 1, stdout: Buffer.concat(out), stderr: Buffer.concat(err) };
        result.text = () => result.stdout.toString();
        result.json = () => JSON.parse(result.text());
        if (result.exitCode !== 0 && this.#o.throws) reject(Object.assign(new Error(`${this.#command}: exit code ${result.exitCode}\n${result.stderr}`), result));
        else resolve(result);
      });
    });
    return this.#running;
  }
  then(ok, failed) {
    return this.#run().then(ok, failed);
  }
  catch(failed) {
    return this.#run().catch(failed);
  }
  finally(f) {
    return this.#run().finally(f);
  }
  async text() {
    return (await this.#run()).text();
  }
  async json() {
    return (await this.#run()).json();
  }
  async bytes() {
    return new Uint8Array((await this.#run()).stdout);
  }
  async arrayBuffer() {
    return (await this.bytes()).buffer;
  }
  async blob() {
    return new Blob([await this.bytes()]);
  }
  async *lines() {
    yield* (await this.text()).split("\n");
  }
}

/** A shell that runs in a directory. */
export function shell(directory, o = {}) {
  const $ = (parts, ...values) => new Command(String.raw({ raw: parts.raw }, ...values.map(quote)), { throws: true, ...o, cwd: directory });
  $.escape = (text) => quote(text);
  $.cwd = (other) => shell(other, o);
  $.env = (env) => shell(directory, { ...o, env });
  $.nothrow = () => shell(directory, { ...o, throws: false });
  $.throws = (on) => shell(directory, { ...o, throws: on });
  return $;
}
