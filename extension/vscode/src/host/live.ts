// Live output of commands, with colours. The updates of a call contain it only as plain text, a few times a second.
import { StringDecoder } from "node:string_decoder";
import * as vscode from "vscode";
import type { TerminalOutput } from "../common/protocol";
import { withOutput } from "../common/tool";
import type { Detail, ToolEntry } from "../common/view";
import type { Sidecar } from "./sidecar";

/** Characters that are kept of a command's output: the end. */
const most = 1 << 20;
/** Number of commands whose output is kept. */
const atOnce = 8;

export class LiveOutput implements vscode.Disposable {
  /** Oldest first. */
  private readonly all = new Map<string, Capture>();
  private readonly changed = new vscode.EventEmitter<string>();
  /** A terminal (its id) has new output. */
  readonly onDidChange = this.changed.event;
  private readonly disposables: vscode.Disposable[];

  constructor(private readonly sidecar: Pick<Sidecar, "announced" | "request" | "onNotification" | "onDidChangeState">) {
    this.disposables = [
      this.changed,
      sidecar.onNotification("_pillion/terminal/output", (o) => {
        if (this.all.get(key(o.sessionId, o.terminalId))?.take(o)) this.changed.fire(o.terminalId);
      }),
      sidecar.onDidChangeState((s) => {
        if (s.kind !== "running") for (const [id, c] of this.all) if (c.text === "") this.all.delete(id); // requested again when the sidecar runs again
      }),
    ];
  }

  /** A call's detail with the output of its terminal. The first call subscribes to it; until there is output, and
   * for terminals that no longer exist, the text of the updates is used. */
  detail(sessionId: string, e: ToolEntry, detail: Detail): Detail {
    if (e.terminalId === undefined || !this.sidecar.announced("_pillion/terminal/subscribe")) return detail;
    const c = this.all.get(key(sessionId, e.terminalId));
    if (!c) void this.subscribe(sessionId, e.terminalId);
    return c && c.text !== "" ? withOutput(detail, c.text, c.omitted) : detail;
  }

  dispose(): void {
    for (const d of this.disposables) d.dispose();
  }

  private async subscribe(sessionId: string, terminalId: string): Promise<void> {
    const c = new Capture();
    this.all.set(key(sessionId, terminalId), c);
    for (const id of this.all.keys()) {
      if (this.all.size <= atOnce) break;
      this.all.delete(id);
    }
    try {
      c.begin(await this.sidecar.request("_pillion/terminal/subscribe", { sessionId, terminalId }));
      this.changed.fire(terminalId);
    } catch {
      c.end(); // the terminal no longer exists: use the text of the updates
    }
  }
}

/** The output of one terminal: the stored part and what arrived since. */
class Capture {
  text = "";
  /** Characters that are missing at the start; bytes for those that were never received. */
  omitted = 0;
  private readonly decoder = new StringDecoder("utf8");
  private seen = 0;
  private early: TerminalOutput[] | undefined = [];
  private over = false;

  /** Adds bytes; returns whether the text has changed. */
  take(o: TerminalOutput): boolean {
    if (this.over) return false;
    if (this.early) {
      this.early.push(o);
      return false;
    }
    return this.put(o.data, o.seq);
  }

  begin(kept: { data: string; seq: number }): void {
    this.seen = this.omitted = kept.seq;
    this.put(kept.data, kept.seq);
    const early = this.early ?? [];
    this.early = undefined;
    for (const o of early) this.put(o.data, o.seq);
  }

  end(): void {
    this.over = true;
    this.early = undefined;
  }

  private put(data: string, seq: number): boolean {
    const bytes = Buffer.from(data, "base64");
    if (seq > this.seen) this.text += `\n[${String(seq - this.seen)} bytes came too fast to be shown]\n`;
    const fresh = bytes.subarray(Math.max(0, this.seen - seq)); // a part of it may arrive twice
    this.seen = Math.max(this.seen, seq + bytes.length);
    if (fresh.length === 0) return false;
    const all = this.text + this.decoder.write(fresh);
    // cut off only when it is a quarter too long, not at each line
    const from = all.length > most * 1.25 ? all.indexOf("\n", all.length - most) + 1 : 0;
    this.text = all.slice(from);
    this.omitted += from;
    return true;
  }
}

function key(sessionId: string, terminalId: string): string {
  return `${sessionId} ${terminalId}`;
}
