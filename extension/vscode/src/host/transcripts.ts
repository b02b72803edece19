// The transcripts of the open sessions. They are kept here, so that the panel can be created again at any time.
import * as vscode from "vscode";
import { list, text, tree } from "../common/narrow";
import type { Checkpoint, ContentBlock, QueueItem, SessionNotification } from "../common/protocol";
import { blocksText, imageSource, SessionState } from "../common/session";
import type { Action, AttachmentView, Detail, Entry, QueuedPrompt, TurnEntry } from "../common/view";
import type { Approvals } from "./approvals";
import { PackedMap } from "./packed";
import type { Sessions, TurnEnd } from "./sessions";
import type { Sidecar } from "./sidecar";

/** The approximate number of bytes of a session that stay unpacked. */
const entryRoom = 128 << 10;
const detailRoom = 256 << 10;

export class Transcript {
  readonly state = new SessionState(new PackedMap(detailRoom, weighDetail), new PackedMap(entryRoom, weighEntry, growing));
  running = false;
  since: number | undefined;
  queue: QueueItem[] = [];
  held = false;
  reverted: { entries: number; redo: string } | undefined;
  /** Prompts of this window without an answer. */
  asked = 0;
  /** The last prompt, for a retry. */
  last: ContentBlock[] | undefined;

  constructor(readonly id: string) {}
}

export class Transcripts implements vscode.Disposable {
  private readonly all = new Map<string, Transcript>();
  private readonly changed = new vscode.EventEmitter<Transcript>();
  /** A transcript has changed; its state knows where. */
  readonly onDidChange = this.changed.event;
  private readonly voided = new vscode.EventEmitter<string>();
  /** A session's transcript starts again. */
  readonly onDidVoid = this.voided.event;
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    sessions: Sessions,
    approvals: Pick<Approvals, "onDidDecide">,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.disposables = [
      this.changed,
      this.voided,
      sessions.onUpdate((n) => this.update(n)),
      approvals.onDidDecide(({ approval }) => {
        if (approval.own) return;
        const t = this.of(approval.sessionId);
        t.state.waited(approval.toolCallId, Date.now() - approval.since);
        this.changed.fire(t);
      }),
      sessions.onDidReset((id) => this.void(id)),
      sessions.onDidChange((id) => {
        if (!sessions.get(id)) this.all.delete(id);
      }),
      sessions.onDidChangeActive((s) => {
        if (!s) return;
        const t = this.of(s.id);
        if (!t.running) t.state.endReplay();
        this.changed.fire(t);
        void this.lookAt(t);
      }),
      sessions.onDidPrompt(({ sessionId, prompt }) => this.prompted(sessionId, prompt)),
      sessions.onDidEndTurn((e) => this.ended(e)),
      sidecar.onNotification("_pillion/session/queueUpdated", ({ sessionId, items, held }) => this.queue(sessionId, items, held === true)),
      sidecar.onNotification("_pillion/session/statusUpdated", ({ sessionId, status }) => this.status(sessionId, status.state !== "idle", status.stopReason, status.error)),
      sidecar.onNotification("_pillion/session/reverted", ({ sessionId, messageId }) => this.reverted(sessionId, messageId)),
      sidecar.onDidStart(() => {
        for (const t of this.all.values()) void this.lookAt(t);
      }),
      this.changed,
      this.voided,
    ];
  }

  of(id: string): Transcript {
    const have = this.all.get(id);
    if (have) return have;
    const t = new Transcript(id);
    this.all.set(id, t);
    return t;
  }

  /** Requests the checkpoints, so that each prompt can be restored. */
  async checkpoints(t: Transcript): Promise<void> {
    if (!this.sidecar.announced("_pillion/checkpoint/list")) return;
    const { checkpoints } = await this.sidecar.request("_pillion/checkpoint/list", { sessionId: t.id });
    const byMessage = new Map(checkpoints.filter((c) => c.kind === "prompt" && c.messageId).map((c, i, all) => [c.messageId, after(all.slice(i))]));
    for (const e of t.state.users) {
      if (e.messageId === undefined) continue;
      const checkpoint = byMessage.get(e.messageId);
      if (JSON.stringify(checkpoint) !== JSON.stringify(e.checkpoint)) t.state.put({ ...e, checkpoint });
    }
    this.changed.fire(t);
  }

  setQueue(t: Transcript, items: QueueItem[], held: boolean): void {
    t.queue = list(items) as QueueItem[]; // the sidecar may have any version
    t.held = held;
    this.changed.fire(t);
  }

  dispose(): void {
    for (const d of this.disposables) d.dispose();
  }

  private update(n: SessionNotification): void {
    const t = this.of(n.sessionId);
    t.state.apply(n.update, Date.now(), t.running);
    this.changed.fire(t);
  }

  private void(id: string): void {
    this.all.delete(id);
    this.voided.fire(id);
  }

  private prompted(id: string, prompt: ContentBlock[]): void {
    const t = this.of(id);
    t.asked++;
    t.last = prompt;
    t.reverted = undefined;
    this.start(t);
    t.state.say(blocksText(prompt), prompt.flatMap(attachment));
    this.changed.fire(t);
  }

  private start(t: Transcript): void {
    if (t.running) return;
    t.running = true;
    t.since = Date.now();
    t.state.endReplay();
  }

  private ended(e: TurnEnd): void {
    const t = this.of(e.sessionId);
    t.asked--;
    const own = tree(tree(e.response?._meta)?.["pillion"]);
    const cost = own?.["cost"];
    this.end(t, e.error !== undefined ? "error" : (e.response?.stopReason ?? "end_turn"), typeof cost === "number" && cost > 0 ? cost : undefined, e.error, e.interrupted);
  }

  private status(id: string, busy: boolean, stop: string | undefined, error: string | undefined): void {
    const t = this.of(id);
    if (busy && !t.running) {
      this.start(t);
      this.changed.fire(t);
    } else if (!busy && t.running && t.asked === 0) this.end(t, error !== undefined && error !== "" ? "error" : (stop ?? "end_turn"), undefined, error || undefined, false);
  }

  private end(t: Transcript, stop: string, cost: number | undefined, error: string | undefined, interrupted: boolean): void {
    const known = ["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error"] as const;
    const seconds = t.since === undefined ? undefined : Math.round((Date.now() - t.since) / 1000);
    if (t.asked > 0) return; // another prompt of this window follows at once
    t.running = false;
    t.since = undefined;
    const more: Partial<TurnEntry> = { seconds, cost };
    t.state.endTurn(known.find((k) => k === stop) ?? "end_turn", Date.now(), more);
    if (error !== undefined) t.state.notice({ severity: "error", title: interrupted ? "Pillion stopped during the turn" : "The turn ended with an error", description: error, actions: nextSteps(error, interrupted) });
    this.changed.fire(t);
    void this.checkpoints(t).catch((e: unknown) => this.log.debug(`checkpoints: ${String(e)}`));
  }

  private queue(id: string, items: QueueItem[], held: boolean): void {
    this.setQueue(this.of(id), items, held);
  }

  private reverted(id: string, messageId: string | undefined): void {
    const t = this.of(id);
    if (messageId === undefined) t.reverted = undefined; // what was removed follows as updates
    else t.reverted = { entries: t.state.revert(messageId) + (t.reverted?.entries ?? 0), redo: t.reverted?.redo ?? "" };
    this.changed.fire(t);
  }

  /** Requests what was missed while nothing was shown: the queue, whether a turn runs, the checkpoints. */
  private async lookAt(t: Transcript): Promise<void> {
    try {
      if (this.sidecar.announced("_pillion/session/queue")) {
        const q = await this.sidecar.request("_pillion/session/queue", { sessionId: t.id });
        this.setQueue(t, q.items, q.held === true);
      }
      if (this.sidecar.announced("_pillion/session/status")) {
        const s = await this.sidecar.request("_pillion/session/status", { sessionId: t.id });
        this.status(t.id, s.state !== "idle", s.stopReason, undefined);
      }
      await this.checkpoints(t);
    } catch (error) {
      this.log.debug(`${t.id}: ${String(error)}`); // it is shown without the checkpoints
    }
  }
}

function after(list: readonly Checkpoint[]): { id: string; files: number; added: number; removed: number } {
  const files = new Set<string>();
  let added = 0;
  let removed = 0;
  for (const c of list) {
    for (const f of c.files) {
      files.add(f.newUri ?? f.uri);
      added += f.added ?? 0;
      removed += f.removed ?? 0;
    }
  }
  return { id: list[0]?.id ?? "", files: files.size, added, removed };
}

function attachment(b: ContentBlock): AttachmentView[] {
  if (b.type === "image") return [{ name: lastName(b.uri, "picture"), mime: b.mimeType, src: b.data.length < 400_000 ? imageSource(b.mimeType, b.data) : undefined }];
  if (b.type === "resource_link") return [{ name: b.name, mime: b.mimeType ?? "" }];
  if (b.type === "resource") return [{ name: lastName(b.resource.uri, "text"), mime: b.resource.mimeType ?? "" }];
  return [];
}

function lastName(uri: string | null | undefined, other: string): string {
  const name = uri?.split("/").pop() ?? other;
  try {
    return decodeURIComponent(name);
  } catch {
    return name; // the name contains a single percent sign
  }
}

/** The actions that help with an error, found by its text. */
function nextSteps(error: string, interrupted: boolean): Action[] {
  if (interrupted) return [{ id: "retry", label: "Send again" }, { id: "showLog", label: "Show the log" }];
  const steps: Action[] = [];
  if (/\bkey\b|401|403|unauthori[sz]ed|credential/i.test(error)) steps.push({ id: "addKey", label: "Add a key" }, { id: "chooseModel", label: "Choose another model" });
  if (/no such session/.test(error)) return [{ id: "newSession", label: "New session" }, { id: "retry", label: "Try again" }];
  steps.push({ id: "retry", label: "Try again" });
  return steps;
}

/** The text of a queued prompt and the number of its attachments. */
export function queued(items: readonly QueueItem[]): QueuedPrompt[] {
  return items.map((q) => ({ id: q.id, steer: q.steer, text: blocksText(list(q.prompt) as ContentBlock[]), attachments: list(q.prompt).filter((b) => text(tree(b)?.["type"]) !== "text").length }));
}

function weighEntry(e: Entry): number {
  if (e.kind === "text" || e.kind === "thought") return 300 + e.text.length;
  if (e.kind === "user") return 300 + e.text.length + e.attachments.reduce((n, a) => n + (a.src?.length ?? 0), 0);
  return 1000;
}

/** Text that is still being streamed, and calls that still run. */
function growing(e: Entry): boolean {
  return ((e.kind === "text" || e.kind === "thought") && e.open === true) || (e.kind === "tool" && (e.status === "in_progress" || e.status === "pending"));
}

function weighDetail(d: Detail): number {
  let n = 1000 + (d.output?.length ?? 0) + (d.input?.length ?? 0) + (d.command?.length ?? 0) + (d.error?.length ?? 0);
  for (const f of d.files) for (const l of f.lines) n += l.text.length + 100;
  for (const i of d.images) n += i.data.length;
  return n;
}
