// The open sessions of this window: which one is active, their states, and all actions on them. It passes the updates of a
// session on in order and does not store them.
import { mkdirSync } from "node:fs";
import * as vscode from "vscode";
import type {
  AvailableCommand,
  ContentBlock,
  PromptResponse,
  SessionConfigOption,
  SessionForkResponse,
  SessionInfo,
  SessionModeState,
  SessionNotification,
} from "../common/protocol";
import { pillion } from "../common/narrow";
import { ClosedError } from "../common/rpc";
import type { Approvals } from "./approvals";
import type { Questions } from "./questions";
import type { Sidecar } from "./sidecar";

export interface OpenSession {
  readonly id: string;
  readonly cwd: string;
  readonly title: string;
  readonly state: "idle" | "running" | "waiting";
  readonly configOptions: readonly SessionConfigOption[];
  readonly modes: SessionModeState | undefined;
  readonly commands: readonly AvailableCommand[];
}

interface Entry {
  id: string;
  cwd: string;
  title: string;
  turns: number;
  configOptions: SessionConfigOption[];
  modes: SessionModeState | undefined;
  commands: AvailableCommand[];
  /** Its process has ended; it must be resumed before it is used. */
  detached: boolean;
  resuming: Promise<void> | undefined;
  /** Set while a turn was told to stop and has not stopped. */
  stopping: NodeJS.Timeout | undefined;
}

export interface PromptEvent {
  sessionId: string;
  prompt: ContentBlock[];
}

export interface TurnEnd {
  sessionId: string;
  response?: PromptResponse;
  /** Why the turn ended without a response, as a message. */
  error?: string;
  /** The sidecar has crashed; what it stored still exists. */
  interrupted: boolean;
}

const stopLimit = 10_000; // ms; the time a turn may need to stop
const activeKey = "pillion.activeSession";

export class Sessions implements vscode.Disposable {
  private readonly entries = new Map<string, Entry>();
  private activeId: string | undefined;
  private readying: Promise<OpenSession> | undefined;
  /** Updates of a session that arrived before the response with its id was handled. */
  private readonly early = new Map<string, SessionNotification[]>();
  private readonly disposables: vscode.Disposable[] = [];
  private readonly changed = this.emitter<string>();
  /** A session (its id) was opened or closed, or its title, state or an option has changed. */
  readonly onDidChange = this.changed.event;
  private readonly activated = this.emitter<OpenSession | undefined>();
  readonly onDidChangeActive = this.activated.event;
  private readonly reset = this.emitter<string>();
  /** The stored transcript of a session is invalid; all of it follows as updates. */
  readonly onDidReset = this.reset.event;
  private readonly prompted = this.emitter<PromptEvent>();
  /** A prompt was sent to a session; the sidecar does not send it back. */
  readonly onDidPrompt = this.prompted.event;
  private readonly ended = this.emitter<TurnEnd>();
  readonly onDidEndTurn = this.ended.event;
  private readonly updated = this.emitter<SessionNotification>();
  /** All updates of open sessions, in order. */
  readonly onUpdate = this.updated.event;

  constructor(
    private readonly sidecar: Sidecar,
    private readonly approvals: Approvals,
    private readonly questions: Questions,
    private readonly context: Pick<vscode.ExtensionContext, "workspaceState" | "globalStorageUri">,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.disposables.push(
      sidecar.onNotification("session/update", (n) => this.update(n)),
      sidecar.onDidChangeState((state) => {
        if (state.kind === "running" || state.kind === "starting") return;
        for (const entry of this.entries.values()) entry.detached = true;
        for (const entry of this.entries.values()) this.approvals.cancel(entry.id);
      }),
      sidecar.onDidStart(() => {
        for (const entry of this.entries.values()) entry.detached = true; // also after a restart whose end was not noticed
        for (const entry of this.entries.values()) void this.attach(entry).catch((e) => log.warn(`${entry.id}: ${message(e)}`));
      }),
      approvals.onDidChange((id) => this.changed.fire(id)),
      questions.onDidChange((id) => id !== undefined && this.changed.fire(id)),
    );
  }

  /** The sessions of this window, oldest first. */
  get open(): OpenSession[] {
    return [...this.entries.values()].map((e) => this.view(e));
  }

  get active(): OpenSession | undefined {
    return this.get(this.activeId);
  }

  get(id: string | undefined): OpenSession | undefined {
    const entry = id === undefined ? undefined : this.entries.get(id);
    return entry && this.view(entry);
  }

  /** Creates a session and makes it active. */
  async create(options: { title?: string; agent?: string; model?: string; cwd?: string } = {}): Promise<OpenSession> {
    const { cwd, ...meta } = options;
    const place = this.place(cwd);
    const r = await this.sidecar.request("session/new", { ...place, mcpServers: [], _meta: { pillion: { trusted: vscode.workspace.isTrusted, ...meta } } });
    const entry = this.add(r.sessionId, place.cwd, options.title ?? "");
    entry.configOptions = r.configOptions ?? [];
    entry.modes = r.modes ?? undefined;
    this.activate(entry.id);
    return this.view(entry);
  }

  /** Opens a stored session and makes it active; its transcript follows as updates. */
  async load(id: string, cwd?: string): Promise<OpenSession> {
    const have = this.entries.get(id);
    if (have) {
      this.activate(id);
      return this.view(have);
    }
    const place = this.place(cwd);
    const entry = this.add(id, place.cwd, "");
    this.reset.fire(id);
    try {
      const r = await this.sidecar.request("session/load", { sessionId: id, ...place, mcpServers: [], _meta: { pillion: { trusted: vscode.workspace.isTrusted } } });
      entry.configOptions = r.configOptions ?? entry.configOptions;
      entry.modes = r.modes ?? entry.modes;
    } catch (error) {
      this.entries.delete(id);
      throw error;
    }
    this.activate(id);
    return this.view(entry);
  }

  /** The active session; if there is none, the last one of this folder, else a new one. Concurrent calls get the
   * same session. */
  ready(): Promise<OpenSession> {
    if (this.active) return Promise.resolve(this.active);
    this.readying ??= (async () => (await this.restore()) ?? (await this.create()))().finally(() => (this.readying = undefined));
    return this.readying;
  }

  /** Opens the session that was active when this window was last used; undefined if there is none. */
  async restore(): Promise<OpenSession | undefined> {
    const id = this.context.workspaceState.get<string>(activeKey);
    if (this.active || id === undefined) return this.active;
    try {
      return await this.load(id);
    } catch (error) {
      this.log.info(`${id} was not opened again: ${message(error)}`);
      return undefined;
    }
  }

  activate(id: string | undefined): void {
    if (this.activeId === id) return;
    this.activeId = id;
    void this.context.workspaceState.update(activeKey, id); // at worst it is lost with the window
    this.activated.fire(this.active);
  }

  /** Sends a prompt and waits for the end of the turn; prompts of one session are queued. */
  async prompt(id: string, prompt: ContentBlock[]): Promise<PromptResponse> {
    const entry = await this.attached(id).catch((error: unknown) => {
      // the session did not start; show the prompt and the error
      this.prompted.fire({ sessionId: id, prompt });
      this.ended.fire({ sessionId: id, error: message(error), interrupted: false });
      throw error;
    });
    entry.turns++;
    this.prompted.fire({ sessionId: id, prompt });
    this.changed.fire(id);
    let end: TurnEnd = { sessionId: id, interrupted: false };
    try {
      const response = await this.sidecar.request("session/prompt", { sessionId: id, prompt });
      end = { ...end, response };
      return response;
    } catch (error) {
      end = { ...end, error: message(error), interrupted: error instanceof ClosedError };
      throw error;
    } finally {
      entry.turns--;
      if (entry.turns === 0 && entry.stopping) {
        clearTimeout(entry.stopping);
        entry.stopping = undefined;
        this.sidecar.doubt(undefined);
      }
      this.ended.fire(end);
      this.changed.fire(id);
    }
  }

  /** Stops the running turn and cancels its pending approval requests. */
  cancel(id: string): void {
    this.sidecar.notify("session/cancel", { sessionId: id });
    this.approvals.cancel(id);
    const entry = this.entries.get(id);
    if (!entry || entry.turns === 0 || entry.stopping) return;
    entry.stopping = setTimeout(() => this.sidecar.doubt("The turn did not stop when asked. Restart Pillion to end it."), stopLimit).unref();
  }

  async setMode(id: string, modeId: string): Promise<void> {
    await this.attached(id);
    await this.sidecar.request("session/set_mode", { sessionId: id, modeId });
  }

  async setOption(id: string, configId: string, value: string): Promise<void> {
    const entry = await this.attached(id);
    const r = await this.sidecar.request("session/set_config_option", { sessionId: id, configId, value });
    entry.configOptions = r.configOptions;
    this.changed.fire(id);
  }

  /** All stored sessions of this window's folders, the latest first. */
  async list(): Promise<SessionInfo[]> {
    const all: SessionInfo[] = [];
    const { cwd: first, additionalDirectories = [] } = this.place();
    for (const cwd of [first, ...additionalDirectories]) {
      for (let cursor: string | undefined; ; ) {
        const page = await this.sidecar.request("session/list", { cwd, ...(cursor ? { cursor } : {}) });
        all.push(...page.sessions);
        cursor = page.nextCursor ?? undefined;
        if (!cursor || all.length >= 10_000) break;
      }
    }
    if (additionalDirectories.length === 0) return all;
    return [...new Map(all.map((s) => [s.sessionId, s])).values()].sort((a, b) => (b.updatedAt ?? "").localeCompare(a.updatedAt ?? ""));
  }

  async rename(id: string, title: string): Promise<void> {
    await this.sidecar.request("_pillion/session/rename", { sessionId: id, title });
    const entry = this.entries.get(id);
    if (entry) entry.title = title;
    this.changed.fire(id);
  }

  async fork(id: string, messageId?: string): Promise<SessionForkResponse> {
    return this.sidecar.request("_pillion/session/fork", { sessionId: id, ...(messageId ? { messageId } : {}) });
  }

  async export(id: string, format: "markdown" | "json"): Promise<string> {
    return (await this.sidecar.request("_pillion/session/export", { sessionId: id, format })).content;
  }

  /** Removes a session from this window; it stays stored. */
  async close(id: string): Promise<void> {
    this.forget(id);
    await this.sidecar.request("session/close", { sessionId: id });
  }

  async delete(id: string): Promise<void> {
    this.approvals.cancel(id);
    await this.sidecar.request("session/delete", { sessionId: id });
    this.forget(id);
  }

  dispose(): void {
    for (const d of this.disposables) d.dispose();
  }

  private emitter<T>(): vscode.EventEmitter<T> {
    const emitter = new vscode.EventEmitter<T>();
    this.disposables.push(emitter);
    return emitter;
  }

  private add(id: string, cwd: string, title: string): Entry {
    const entry: Entry = { id, cwd, title, turns: 0, configOptions: [], modes: undefined, commands: [], detached: false, resuming: undefined, stopping: undefined };
    this.entries.set(id, entry);
    const early = this.early.get(id) ?? [];
    this.early.delete(id);
    this.changed.fire(id);
    for (const n of early) this.update(n);
    return entry;
  }

  private forget(id: string): void {
    this.entries.delete(id);
    if (this.activeId === id) this.activate([...this.entries.keys()].at(-1));
    this.changed.fire(id);
  }

  private view(e: Entry): OpenSession {
    const state = this.approvals.pending(e.id).length + this.questions.pending(e.id).length > 0 ? "waiting" : e.turns > 0 ? "running" : "idle";
    return { id: e.id, cwd: e.cwd, title: e.title, state, configOptions: e.configOptions, modes: e.modes, commands: e.commands };
  }

  private async attached(id: string): Promise<Entry> {
    const entry = this.entries.get(id);
    if (!entry) throw new Error(`session ${id} is not open`);
    if (entry.detached) await this.attach(entry);
    return entry;
  }

  private attach(entry: Entry): Promise<void> {
    const { id, cwd } = entry;
    entry.resuming ??= (async () => {
      const r = await this.sidecar.request("session/resume", { sessionId: id, ...this.place(cwd), mcpServers: [], _meta: { pillion: { trusted: vscode.workspace.isTrusted } } });
      entry.detached = false;
      entry.configOptions = r.configOptions ?? entry.configOptions;
      this.changed.fire(id);
    })().finally(() => (entry.resuming = undefined));
    return entry.resuming;
  }

  /** The folders for a new session: those of the window. Without any, a folder of Pillion, so that a conversation is
   * still possible. */
  private place(cwd?: string): { cwd: string; additionalDirectories?: string[] } {
    const folders = (vscode.workspace.workspaceFolders ?? []).filter((f) => f.uri.scheme === "file").map((f) => f.uri.fsPath);
    if (cwd !== undefined) folders.unshift(cwd);
    const first = folders[0];
    if (first === undefined) {
      const scratch = vscode.Uri.joinPath(this.context.globalStorageUri, "no-folder").fsPath;
      mkdirSync(scratch, { recursive: true });
      return { cwd: scratch };
    }
    const others = [...new Set(folders)].filter((f) => f !== first);
    return { cwd: first, ...(others.length > 0 ? { additionalDirectories: others } : {}) };
  }

  private update(n: SessionNotification): void {
    const entry = this.entries.get(n.sessionId);
    if (!entry) {
      const early = this.early.get(n.sessionId) ?? [];
      if (this.early.size < 100 && early.length < 100) this.early.set(n.sessionId, [...early, n]);
      return;
    }
    const u = n.update;
    if (u.sessionUpdate === "session_info_update" && u.title != null) entry.title = u.title;
    else if (u.sessionUpdate === "config_option_update") entry.configOptions = u.configOptions;
    else if (u.sessionUpdate === "available_commands_update") entry.commands = u.availableCommands;
    else if (u.sessionUpdate === "current_mode_update" && entry.modes) entry.modes = { ...entry.modes, currentModeId: u.currentModeId };
    this.updated.fire(n);
    // The turn was cut off while it waited for a decision, and the person has accepted now, so the turn continues.
    if (u.sessionUpdate === "notice" && pillion(u)["resumable"] === true && entry.turns === 0) {
      this.prompt(n.sessionId, [{ type: "text", text: "Continue" }]).catch(() => {}); // the end of the turn reports its errors
    }
    if (u.sessionUpdate === "session_info_update" || u.sessionUpdate === "config_option_update" || u.sessionUpdate === "current_mode_update") this.changed.fire(n.sessionId);
  }
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
