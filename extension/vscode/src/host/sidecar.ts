// The sidecar process and the connection to it. It is started when it is first needed and restarted after a crash. If it
// cannot run, the reason says what to do.
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { join } from "node:path";
import { StringDecoder } from "node:string_decoder";
import * as vscode from "vscode";
import { Backoff } from "../common/backoff";
import type { Capabilities, InitializeResponse } from "../common/protocol";
import { ClosedError, Connection, type RequestHandler } from "../common/rpc";
import { Watch } from "../common/watch";
import { type AgentNotifications, type AgentRequests, editorMethods, type EditorNotifications, type EditorRequests } from "../common/wire";
import { type Binary, findBinary, NoBinaryError } from "./binary";
import { startSettings } from "./config";

export type SidecarState =
  | { kind: "stopped" }
  | { kind: "starting" }
  /** doubt: why the person may want to restart it although it runs. */
  | { kind: "running"; version: string; binary: Binary; doubt?: string }
  /** It crashed and will be restarted. */
  | { kind: "waiting"; reason: string; delay: number }
  /** It will not be restarted automatically. */
  | { kind: "failed"; reason: string; installable?: boolean };

interface Life {
  child: ChildProcessWithoutNullStreams;
  connection: Connection;
  capabilities: Capabilities | undefined;
  initialized: InitializeResponse | undefined;
  born: number;
  /** Stopped by this extension: not a crash. */
  wanted: boolean;
  watch: NodeJS.Timeout | undefined;
}

const initializeLimit = 20_000; // ms
const watchPace = 2_000; // ms
const endLimit = 3_000; // ms; the sidecar exits within two seconds

/** The protocol version of `_meta.pillion` that this extension was written for. */
const protocolVersion = 1;

/** Descriptions of slow methods; the others are shown by name. */
const waitedFor: Partial<Record<string, string>> = {
  "session/new": "a new session",
  "session/load": "the session that was open",
  "session/resume": "the session that was open",
  "session/prompt": "the answer to your message",
};

export class Sidecar implements vscode.Disposable {
  private readonly stateChanged = new vscode.EventEmitter<SidecarState>();
  /** The state of the process. */
  readonly onDidChangeState = this.stateChanged.event;
  private readonly started = new vscode.EventEmitter<InitializeResponse>();
  /** A process has answered initialize: send it what it must know. Also after each restart. */
  readonly onDidStart = this.started.event;
  private now: SidecarState = { kind: "stopped" };
  private life: Life | undefined;
  private starting: Promise<Life> | undefined;
  private timer: NodeJS.Timeout | undefined;
  private lastWords: string[] = [];
  private disposed = false;
  private readonly backoff = new Backoff();
  private readonly requests = new Map<string, RequestHandler>();
  private readonly notifications = new Map<string, ((params: never) => void)[]>();

  constructor(
    private readonly context: Pick<vscode.ExtensionContext, "extensionPath" | "extension" | "globalStorageUri">,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** More environment for the next start; set once at activation. */
  environment: () => Promise<Record<string, string>> = () => Promise.resolve({});

  get state(): SidecarState {
    return this.now;
  }

  /** Where npm puts the program for an extension package that carries none. */
  get installed(): string {
    return join(this.context.globalStorageUri.fsPath, "program");
  }

  get extensionVersion(): string {
    return String((this.context.extension.packageJSON as { version?: string }).version);
  }

  /** The result of initialize of the running process. */
  get initialized(): InitializeResponse | undefined {
    return this.life?.initialized;
  }

  /** Whether the running process has a _pillion method. */
  announced(method: string): boolean {
    return this.life?.capabilities?.methods.includes(method) ?? false;
  }

  /** Starts the process unless it runs; every request calls this. */
  async start(): Promise<void> {
    await this.ready();
  }

  async request<M extends keyof AgentRequests>(method: M, params: AgentRequests[M][0], signal?: AbortSignal): Promise<AgentRequests[M][1]> {
    const life = await this.ready();
    return (await life.connection.request(method, params, signal)) as AgentRequests[M][1];
  }

  /** Sends a notification to the running process; other parts send the state again after a start. */
  notify<M extends keyof AgentNotifications>(method: M, params: AgentNotifications[M]): void {
    if (this.life?.initialized) this.life.connection.notify(method, params);
  }

  onRequest<M extends keyof EditorRequests>(method: M, handler: (params: EditorRequests[M][0], signal: AbortSignal) => EditorRequests[M][1] | Promise<EditorRequests[M][1]>): vscode.Disposable {
    this.requests.set(method, handler as RequestHandler);
    return new vscode.Disposable(() => this.requests.delete(method));
  }

  onNotification<M extends keyof EditorNotifications>(method: M, handler: (params: EditorNotifications[M]) => void): vscode.Disposable {
    const list = this.notifications.get(method) ?? [];
    list.push(handler);
    this.notifications.set(method, list);
    return new vscode.Disposable(() => list.splice(list.indexOf(handler), 1));
  }

  /** Restarts the process; the owners of sessions resume them. */
  async restart(): Promise<void> {
    clearTimeout(this.timer);
    this.backoff.reset();
    await this.end();
    await this.ready();
  }

  async stop(): Promise<void> {
    clearTimeout(this.timer);
    await this.end();
    this.become({ kind: "stopped" });
  }

  dispose(): void {
    this.disposed = true;
    clearTimeout(this.timer);
    void this.end(); // the process also exits when its stdin is closed with the window
    this.stateChanged.dispose();
    this.started.dispose();
  }

  /** Reports that the process has a problem although it runs, or that the problem is gone. */
  doubt(why: string | undefined): void {
    if (this.now.kind !== "running" || this.now.doubt === why) return;
    if (why !== undefined) this.log.warn(why);
    this.become({ ...this.now, doubt: why });
  }

  private watch(life: Life): void {
    const watch = new Watch(life.connection);
    let silent = false;
    life.watch = setInterval(() => {
      const method = watch.look(Date.now());
      if (silent !== (method !== undefined)) this.doubt(method && `Pillion has not said anything for a while; ${waitedFor[method] ?? `the answer to ${method}`} is waited for.`);
      silent = method !== undefined;
    }, watchPace).unref();
  }

  private become(state: SidecarState): void {
    this.now = state;
    if (!this.disposed) this.stateChanged.fire(state);
  }

  private ready(): Promise<Life> {
    if (this.life?.initialized) return Promise.resolve(this.life);
    if (this.disposed) return Promise.reject(new ClosedError("Pillion was shut down"));
    clearTimeout(this.timer);
    this.starting ??= this.launch().finally(() => (this.starting = undefined));
    return this.starting;
  }

  private async launch(): Promise<Life> {
    this.become({ kind: "starting" });
    try {
      return await this.spawn();
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.log.error(reason);
      if (this.now.kind !== "waiting") this.become({ kind: "failed", reason, installable: error instanceof NoBinaryError && error.installable });
      throw error;
    }
  }

  /** The program of the sidecar and its environment, to run its other commands. */
  program(): { path: string; env: Record<string, string> } {
    const settings = startSettings();
    return { path: this.find(settings.binary).path, env: settings.env };
  }

  private find(setting: string): Binary {
    return findBinary({ setting, extensionPath: this.context.extensionPath, platform: process.platform, arch: process.arch, path: process.env["PATH"] ?? "", installed: this.installed });
  }

  private async spawn(): Promise<Life> {
    const settings = startSettings();
    const binary = this.find(settings.binary);
    this.log.info(`starting ${binary.path} (${binary.from})`);
    this.lastWords = [];
    const more = await this.environment();
    const child = spawn(binary.path, ["acp"], {
      stdio: ["pipe", "pipe", "pipe"],
      env: {
        ...process.env,
        ...more,
        PILLION_LOG_LEVEL: logLevel(this.log.logLevel),
        ...(settings.config !== "" ? { PILLION_CONFIG_CONTENT: settings.config } : {}),
        ...(settings.folders !== "" ? { PILLION_CONFIG_FOLDERS: settings.folders } : {}),
        ...settings.env,
      },
    });
    const life: Life = { child, connection: this.connect(child), capabilities: undefined, initialized: undefined, born: Date.now(), wanted: false, watch: undefined };
    this.life = life;
    const gone = new Promise<never>((_, reject) => {
      child.once("error", (error) => reject(new Error(`${binary.path} could not be started: ${error.message}`)));
      child.once("close", (code, signal) => {
        this.ended(life, code, signal);
        reject(new Error(this.epitaph(code, signal)));
      });
    });
    gone.catch(() => {}); // after the start #ended handles it
    try {
      life.initialized = await Promise.race([this.initialize(life.connection), gone, limit(initializeLimit, `${binary.path} did not answer within ${initializeLimit / 1000} seconds`)]);
      const own = (life.initialized._meta as { pillion?: Capabilities } | undefined)?.pillion;
      const version = life.initialized.agentInfo?.version ?? "of unknown version";
      if (!own || !(own.version >= protocolVersion)) {
        throw new Error(`${binary.path} is ${life.initialized.agentInfo?.name ?? "a program"} ${version}, which is too old for this extension (${this.extensionVersion}). Update it, or clear pillion.binary.path to use the bundled one.`);
      }
      life.capabilities = own;
      this.log.info(`pillion ${version} runs (process ${child.pid})`);
      this.become({ kind: "running", version, binary });
      this.watch(life);
      this.started.fire(life.initialized);
      return life;
    } catch (error) {
      life.initialized = undefined;
      life.wanted = true;
      child.kill("SIGKILL");
      if (this.life === life) this.life = undefined;
      throw error;
    }
  }

  private async initialize(connection: Connection): Promise<InitializeResponse> {
    const own: Capabilities = { version: protocolVersion, methods: [...editorMethods], hunks: true, buffers: true, nested: true };
    return (await connection.request("initialize", {
      protocolVersion: 1,
      clientInfo: { name: "pillion-vscode", title: "Pillion for VS Code", version: this.extensionVersion },
      clientCapabilities: {
        fs: { readTextFile: false, writeTextFile: false },
        terminal: false,
        session: { notices: {}, compaction: {} },
        elicitation: { form: {} },
        _meta: { pillion: own },
      },
    })) as InitializeResponse;
  }

  private connect(child: ChildProcessWithoutNullStreams): Connection {
    const connection = new Connection((line) => child.stdin.write(line), {
      request: (method) => this.requests.get(method),
      notification: (method, params) => {
        // The handlers have the right types because only onNotification adds them.
        for (const handler of [...(this.notifications.get(method) ?? [])]) handler(params as never);
      },
      problem: (message) => this.log.warn(message),
    });
    child.stdin.on("error", (error) => this.log.debug(`stdin: ${error.message}`)); // the exit of the process is handled
    const out = new StringDecoder("utf8");
    child.stdout.on("data", (piece: Buffer) => connection.take(out.write(piece)));
    const err = new StringDecoder("utf8");
    let rest = "";
    child.stderr.on("data", (piece: Buffer) => {
      const lines = (rest + err.write(piece)).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.stderr(line);
    });
    child.stderr.on("end", () => rest !== "" && this.stderr(rest));
    return connection;
  }

  private stderr(line: string): void {
    if (line.trim() === "") return;
    this.lastWords.push(line);
    if (this.lastWords.length > 20) this.lastWords.shift();
    const level = /\blevel=(DEBUG|INFO|WARN|ERROR)\b/.exec(line)?.[1];
    if (level === "DEBUG") this.log.debug(line);
    else if (level === "INFO") this.log.info(line);
    else if (level === "ERROR") this.log.error(line);
    else this.log.warn(line);
  }

  private epitaph(code: number | null, signal: NodeJS.Signals | null): string {
    const how = signal ? `was ended by ${signal}` : `ended with code ${code}`;
    const words = this.lastWords.at(-1);
    return `The Pillion process ${how}${words ? `: ${words.slice(0, 300)}` : ""}`;
  }

  private ended(life: Life, code: number | null, signal: NodeJS.Signals | null): void {
    const reason = this.epitaph(code, signal);
    life.connection.close(reason);
    clearInterval(life.watch);
    const served = life.initialized !== undefined;
    if (this.life === life) this.life = undefined;
    if (life.wanted || this.disposed) return;
    this.log.error(reason);
    if (!served) return; // the start failed and reports it
    const delay = this.backoff.next(Date.now() - life.born);
    if (delay === undefined) {
      this.become({ kind: "failed", reason: `${reason} (too often; see the log, then restart Pillion)` });
      return;
    }
    this.become({ kind: "waiting", reason, delay });
    this.timer = setTimeout(() => void this.ready().catch(() => {}), delay); // the state shows a failure
  }

  private async end(): Promise<void> {
    const life = this.life;
    if (!life) return;
    this.life = undefined;
    life.wanted = true;
    const gone = new Promise<void>((resolve) => life.child.once("close", () => resolve()));
    life.child.stdin.end();
    const hard = setTimeout(() => life.child.kill("SIGKILL"), endLimit);
    if (life.child.exitCode === null && life.child.signalCode === null) await gone;
    clearTimeout(hard);
  }
}

function limit(ms: number, message: string): Promise<never> {
  return new Promise((_, reject) => setTimeout(() => reject(new Error(message)), ms).unref());
}

function logLevel(level: vscode.LogLevel): string {
  if (level === vscode.LogLevel.Trace || level === vscode.LogLevel.Debug) return "debug";
  if (level === vscode.LogLevel.Warning) return "warn";
  if (level === vscode.LogLevel.Error || level === vscode.LogLevel.Off) return "error";
  return "info";
}
