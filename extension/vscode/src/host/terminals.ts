// Shows a session's terminals in VS Code: commands of the agent, to watch and type into, and shells of the person in the
// agent's environment. The sidecar owns the processes.
import { StringDecoder } from "node:string_decoder";
import * as vscode from "vscode";
import type { TerminalInfo } from "../common/protocol";
import { tell } from "./sessionlist";
import type { Sessions } from "./sessions";
import type { Sidecar } from "./sidecar";
import { onCommand } from "./table";

export class Terminals implements vscode.Disposable {
  private readonly open = new Map<string, Window>();
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
  ) {
    this.disposables = [
      sidecar.onNotification("_pillion/terminal/output", (o) => this.open.get(key(o.sessionId, o.terminalId))?.take(o.data, o.seq)),
      sidecar.onNotification("_pillion/terminal/exited", (e) => this.open.get(key(e.sessionId, e.terminal.terminalId))?.exited(e.terminal)),
      sidecar.onDidChangeState((s) => {
        if (s.kind !== "running" && s.kind !== "starting") for (const w of this.open.values()) w.lost();
      }),
      onCommand("pillion.newTerminal", () => this.create().catch(tell)),
      onCommand("pillion.showTerminal", (sessionId?: unknown, terminalId?: unknown) =>
        (typeof sessionId === "string" && typeof terminalId === "string" ? this.show(sessionId, terminalId) : this.pick()).catch(tell),
      ),
    ];
  }

  /** Opens a shell for the person. */
  async create(): Promise<void> {
    const session = this.sessions.active ?? (await this.sessions.create());
    this.need("_pillion/terminal/create");
    const { terminal } = await this.sidecar.request("_pillion/terminal/create", { sessionId: session.id });
    this.window(session.id, terminal, true).show();
  }

  /** Shows a terminal of a session, also one of the agent. */
  async show(sessionId: string, terminalId: string): Promise<void> {
    this.need("_pillion/terminal/subscribe");
    const have = this.open.get(key(sessionId, terminalId));
    if (have) return have.show();
    const { terminals } = await this.sidecar.request("_pillion/terminal/list", { sessionId });
    const found = terminals.find((t) => t.terminalId === terminalId);
    if (!found) throw new Error("The terminal has closed. Its output is in the panel.");
    this.window(sessionId, found, false).show();
  }

  dispose(): void {
    for (const d of this.disposables) d.dispose();
    for (const w of [...this.open.values()]) w.dispose();
  }

  private async pick(): Promise<void> {
    this.need("_pillion/terminal/list");
    const session = this.sessions.active;
    const terminals = session ? (await this.sidecar.request("_pillion/terminal/list", { sessionId: session.id })).terminals : [];
    if (!session || terminals.length === 0) return void vscode.window.showInformationMessage("The session has no terminal.");
    const rows = terminals.map((t) => ({ label: `${t.state === "running" ? "$(play)" : "$(check)"} ${t.title}`, description: t.state === "running" ? "running" : `ended${t.exitCode != null ? ` with ${t.exitCode}` : ""}`, detail: t.command ?? "", id: t.terminalId }));
    const row = await vscode.window.showQuickPick(rows, { title: "Terminals of the session", matchOnDetail: true });
    if (row) await this.show(session.id, row.id);
  }

  private need(method: string): void {
    if (!this.sidecar.announced(method)) throw new Error("This version of Pillion cannot show terminals. Update it.");
  }

  private window(sessionId: string, info: TerminalInfo, own: boolean): Window {
    const id = key(sessionId, info.terminalId);
    const w = new Window(this.sidecar, sessionId, info, own, () => this.open.delete(id));
    this.open.set(id, w);
    return w;
  }
}

class Window implements vscode.Pseudoterminal {
  private readonly write = new vscode.EventEmitter<string>();
  readonly onDidWrite = this.write.event;
  private readonly closed = new vscode.EventEmitter<number | void>();
  readonly onDidClose = this.closed.event;
  private readonly terminal: vscode.Terminal;
  private readonly decoder = new StringDecoder("utf8");
  /** Bytes shown so far; output that arrives twice is dropped. */
  private seen = 0;
  private early: { data: string; seq: number }[] | undefined = [];
  private over = false;

  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessionId: string,
    private readonly info: TerminalInfo,
    private readonly own: boolean,
    private readonly gone: () => void,
  ) {
    this.terminal = vscode.window.createTerminal({ name: own ? `Pillion: ${info.title}` : info.title, pty: this, iconPath: new vscode.ThemeIcon("sparkle") });
  }

  show(): void {
    this.terminal.show(false);
  }

  dispose(): void {
    this.terminal.dispose();
  }

  open(size: vscode.TerminalDimensions | undefined): void {
    if (size) this.setDimensions(size);
    void this.subscribe().catch((e: unknown) => this.write.fire(`\r\n${e instanceof Error ? e.message : String(e)}\r\n`));
  }

  /** VS Code calls it when the person closes the terminal, and after dispose. */
  close(): void {
    this.gone();
    this.write.dispose();
    this.closed.dispose();
    // The person's own shell ends when its window is closed; a command of the agent continues.
    if (this.own && !this.over) void this.sidecar.request("_pillion/terminal/kill", { sessionId: this.sessionId, terminalId: this.info.terminalId, release: true }).catch(() => {}); // it has ended already
  }

  handleInput(data: string): void {
    if (this.over) return;
    void this.sidecar
      .request("_pillion/terminal/input", { sessionId: this.sessionId, terminalId: this.info.terminalId, data: Buffer.from(data, "utf8").toString("base64") })
      .catch((e: unknown) => this.write.fire(`\r\n[${e instanceof Error ? e.message : String(e)}]\r\n`));
  }

  setDimensions(size: vscode.TerminalDimensions): void {
    if (this.over) return;
    void this.sidecar.request("_pillion/terminal/resize", { sessionId: this.sessionId, terminalId: this.info.terminalId, columns: size.columns, rows: size.rows }).catch(() => {}); // the command does not run in a pty
  }

  take(data: string, seq: number): void {
    if (this.early) this.early.push({ data, seq });
    else this.put(data, seq);
  }

  exited(info: TerminalInfo): void {
    if (this.over) return;
    this.over = true;
    const how = info.signal ? `by ${info.signal}` : `with exit code ${info.exitCode ?? "unknown"}`;
    this.write.fire(`\r\n\x1b[2m[ended ${how}]\x1b[0m\r\n`);
    if (this.own) this.closed.fire(info.exitCode ?? undefined);
  }

  lost(): void {
    if (this.over) return;
    this.over = true;
    this.write.fire("\r\n\x1b[2m[Pillion ended, and this terminal with it]\x1b[0m\r\n");
  }

  private async subscribe(): Promise<void> {
    const kept = await this.sidecar.request("_pillion/terminal/subscribe", { sessionId: this.sessionId, terminalId: this.info.terminalId });
    if (kept.seq > 0) this.write.fire("\x1b[2m[earlier output was dropped]\x1b[0m\r\n");
    this.seen = kept.seq;
    this.put(kept.data, kept.seq);
    const early = this.early ?? [];
    this.early = undefined;
    for (const e of early) this.put(e.data, e.seq);
    if (kept.terminal.state === "exited") this.exited(kept.terminal);
  }

  private put(data: string, seq: number): void {
    const bytes = Buffer.from(data, "base64");
    const fresh = bytes.subarray(Math.max(0, this.seen - seq));
    this.seen = Math.max(this.seen, seq + bytes.length);
    const text = this.decoder.write(fresh);
    if (text !== "") this.write.fire(this.info.columns ? text : text.replace(/\r?\n/g, "\r\n")); // without a pty the output has no carriage returns
  }
}

function key(sessionId: string, terminalId: string): string {
  return `${sessionId} ${terminalId}`;
}
