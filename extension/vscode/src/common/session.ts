/**
 * Converts a session's updates to what the panel shows. Updates may arrive in any order. It reports each change as ops;
 * a copy to which they are applied in order stays equal. No vscode, no DOM, no clock.
 */
import type { AvailableCommand, ContentBlock, SessionConfigOption } from "./protocol";
import { list, number, pillion, text, tree, word, type Tree } from "./narrow";
import type { Op } from "./messages";
import { takeTool } from "./tool";
import type { Action, AttachmentView, Detail, Entry, Head, NoticeEntry, TextEntry, ThoughtEntry, ToolEntry, TurnEntry, UserEntry } from "./view";

/** Stores entries and details in the order in which they were first set: a Map, or a map that packs old values. */
export interface Kept<V> {
  readonly size: number;
  get(id: string): V | undefined;
  set(id: string, value: V): unknown;
  has(id: string): boolean;
  delete(id: string): boolean;
  keys(): Iterable<string>;
  values(): Iterable<V>;
  [Symbol.iterator](): Iterator<[string, V]>;
}

type HeadPart = Pick<Head, "title" | "plan" | "commands" | "options" | "usage" | "reverted">;

export class SessionState {
  readonly head: HeadPart = { title: "", plan: [], commands: [], options: [] };
  private ops: Op[] = [];
  private headDirty = new Set<keyof HeadPart>();
  private detailDirty = new Set<string>();
  /** The newest entry of each list of entries: "" is the transcript, other keys are cards. */
  private readonly newest = new Map<string, string>();
  private readonly seqs = new Map<string, number>();
  private counter = 0;
  /** Entries that the person added here, not from the wire. */
  private readonly said = new Set<string>();

  /** Tool calls and notices that still run. */
  private readonly unfinished = new Set<string>();
  /** The person's prompts, in order: ids of entries, and by the prompt's id. */
  private readonly prompts = new Set<string>();
  private readonly byMessage = new Map<string, string>();

  constructor(
    readonly details: Kept<Detail> = new Map<string, Detail>(),
    readonly entries: Kept<Entry> = new Map<string, Entry>(),
  ) {}

  /** The person's prompts, in order. */
  get users(): UserEntry[] {
    return [...this.prompts].flatMap((id) => {
      const e = this.entries.get(id);
      return e?.kind === "user" ? [e] : [];
    });
  }

  /** Handles a session/update. live is false while a stored session is replayed: its times are unknown. */
  apply(raw: unknown, now: number, live = true): void {
    const u = tree(raw);
    if (!u) return;
    switch (u["sessionUpdate"]) {
      case "user_message_chunk":
        return this.userChunk(u);
      case "agent_message_chunk":
        return this.chunk("text", u, now, live);
      case "agent_thought_chunk":
        return this.chunk("thought", u, now, live);
      case "tool_call":
      case "tool_call_update":
        return this.tool(u, now, live);
      case "plan":
        return this.setHead("plan", plan(u["entries"]));
      case "available_commands_update":
        return this.setHead("commands", list(u["availableCommands"]) as AvailableCommand[]);
      case "config_option_update":
        return this.setHead("options", list(u["configOptions"]) as SessionConfigOption[]);
      case "current_mode_update":
        return this.setMode(text(u["currentModeId"]));
      case "session_info_update":
        if ("title" in u) this.setHead("title", text(u["title"]) ?? "");
        return;
      case "usage_update":
        return this.setHead("usage", usage(u));
      case "notice":
        if (pillion(u)["resumable"] === true) return; // sessions.ts sends the prompt that continues the turn
        this.notice({ severity: word(u["severity"], ["info", "warning", "error"] as const, "info"), title: text(u["title"]) ?? "", description: text(u["description"]) || undefined, actions: helpOf(u) });
        return;
      case "compaction_update":
        return this.compaction(u);
    }
  }

  /** Adds the person's prompt before the sidecar has confirmed it. */
  say(words: string, attachments: AttachmentView[], steered = false): UserEntry {
    if (!steered) this.dropOldPlan();
    const e: UserEntry = { kind: "user", id: this.id("u"), text: words, attachments, steered: steered || undefined };
    this.said.add(e.id);
    this.add(e);
    return e;
  }

  /** A call waited for the person's decision; that time does not count as its own. */
  waited(callId: string, ms: number): void {
    const e = this.entries.get(callId);
    if (e?.kind === "tool" && ms > 0) this.put({ ...e, waited: (e.waited ?? 0) + ms });
  }

  /** Stores the id of a prompt when it becomes known. */
  identify(entryId: string, messageId: string): void {
    const e = this.entries.get(entryId);
    if (e?.kind === "user" && e.messageId === undefined) this.put({ ...e, messageId });
  }

  notice(n: Partial<NoticeEntry> & Pick<NoticeEntry, "severity" | "title">): NoticeEntry {
    const e: NoticeEntry = { kind: "notice", id: n.id ?? this.id("n"), actions: [], ...n };
    this.add(e);
    return e;
  }

  /** The turn has ended, for whatever reason. Calls that still ran did not finish. */
  endTurn(stop: TurnEntry["stop"], now: number, more: Partial<TurnEntry> = {}): void {
    if (this.head.plan.every((p) => p.status === "completed")) this.dropOldPlan();
    for (const [place] of this.newest) this.closeNewest(place, now);
    for (const id of [...this.unfinished]) {
      const e = this.entries.get(id);
      if (e?.kind === "tool" && (e.status === "in_progress" || e.status === "pending")) {
        this.put({ ...e, status: "failed", outcome: "cancelled", endedAt: e.startedAt === undefined ? undefined : now });
      }
      if (e?.kind === "notice" && e.busy) this.put({ ...e, busy: undefined });
    }
    this.add({ kind: "turn", id: this.id("t"), stop, ...more });
  }

  /** The conversation was restored to the state before a prompt. Returns how many entries were removed. */
  revert(messageId: string): number {
    const from = this.byMessage.get(messageId);
    const ids = [...this.entries.keys()];
    const gone = from === undefined ? [] : ids.slice(ids.indexOf(from));
    for (const id of gone) {
      this.forget(id);
      this.seqs.delete(id);
    }
    if (from !== undefined) {
      this.ops.push({ op: "cut", from });
      this.newest.clear();
      const last = [...this.entries.values()].filter((e) => e.parent === undefined).pop();
      if (last) this.newest.set("", last.id);
    }
    return gone.length;
  }

  put(e: Entry): void {
    if (!this.entries.has(e.id)) return this.add(e);
    this.keep(e);
    this.ops.push({ op: "put", entry: { ...e } });
  }

  remove(id: string): void {
    if (this.forget(id)) this.ops.push({ op: "remove", id });
  }

  private keep(e: Entry): void {
    this.entries.set(e.id, e);
    if ((e.kind === "tool" && (e.status === "in_progress" || e.status === "pending")) || (e.kind === "notice" && e.busy)) this.unfinished.add(e.id);
    else this.unfinished.delete(e.id);
    if (e.kind !== "user") return;
    this.prompts.add(e.id);
    if (e.messageId !== undefined) this.byMessage.set(e.messageId, e.id);
  }

  private forget(id: string): boolean {
    const e = this.prompts.has(id) ? this.entries.get(id) : undefined;
    if (e?.kind === "user" && e.messageId !== undefined) this.byMessage.delete(e.messageId);
    this.prompts.delete(id);
    this.unfinished.delete(id);
    this.details.delete(id);
    return this.entries.delete(id);
  }

  setHead<K extends keyof HeadPart>(key: K, value: HeadPart[K]): void {
    this.head[key] = value;
    this.headDirty.add(key);
  }

  /** The changes since the last call. */
  take(): { ops: Op[]; head: Partial<HeadPart>; gone: (keyof HeadPart)[]; details: string[] } {
    const head: Partial<HeadPart> = {};
    const gone: (keyof HeadPart)[] = [];
    for (const k of this.headDirty) {
      if (this.head[k] === undefined) gone.push(k);
      else Object.assign(head, { [k]: this.head[k] });
    }
    const out = { ops: this.ops, head, gone, details: [...this.detailDirty] };
    this.ops = [];
    this.headDirty = new Set();
    this.detailDirty = new Set();
    return out;
  }

  private id(kind: string): string {
    let id: string;
    do id = `#${kind}${String(++this.counter)}`; // models and servers choose the ids of calls; a "#" keeps them different from the ids made here
    while (this.entries.has(id));
    return id;
  }

  private add(e: Entry): void {
    const place = e.parent ?? "";
    this.closeNewest(place);
    this.keep(e);
    this.newest.set(place, e.id);
    this.ops.push({ op: "put", entry: { ...e } });
  }

  private closeNewest(place: string, now?: number): void {
    const e = this.entries.get(this.newest.get(place) ?? "");
    if ((e?.kind !== "text" && e?.kind !== "thought") || !e.open) return;
    e.open = false;
    if (e.kind === "thought" && e.startedAt !== undefined) e.endedAt = now ?? e.endedAt;
    this.ops.push({ op: "close", id: e.id, endedAt: e.kind === "thought" ? e.endedAt : undefined });
  }

  private chunk(kind: "text" | "thought", u: Tree, now: number, live: boolean): void {
    const said = blockText(u["content"]);
    if (said === "") return;
    const meta = pillion(u);
    const parent = text(meta["parentToolCallId"]);
    const messageId = text(u["messageId"]) ?? text(meta["messageId"]);
    const last = this.entries.get(this.newest.get(parent ?? "") ?? "");
    if (last?.kind === kind && last.messageId === messageId && last.open) {
      last.text += said;
      if (last.kind === "thought" && live) last.endedAt = now;
      this.append(last, said);
      return;
    }
    const before = last?.kind === "thought" ? last : undefined;
    if (before?.open && live) before.endedAt = now;
    // the pieces of a replayed message are joined too; endReplay closes the last one
    const base = { id: this.id("m"), parent, messageId, text: said, open: true };
    const e: TextEntry | ThoughtEntry = kind === "text" ? { kind, ...base } : { kind, ...base, startedAt: live ? now : undefined };
    this.add(e);
  }

  /** Ends the replay. */
  endReplay(): void {
    for (const place of this.newest.keys()) this.closeNewest(place);
  }

  private append(e: TextEntry | ThoughtEntry, said: string): void {
    const last = this.ops[this.ops.length - 1];
    if (last?.op === "append" && last.id === e.id) last.text += said;
    else this.ops.push({ op: "append", id: e.id, text: said });
  }

  private userChunk(u: Tree): void {
    const meta = pillion(u);
    const messageId = text(u["messageId"]) ?? text(meta["messageId"]);
    const parent = text(meta["parentToolCallId"]);
    const block = tree(u["content"]);
    const known = this.userOf(messageId, meta["own"] === true);
    if (known === "echo") return;
    const said = block?.["type"] === "text" ? blockText(block) : "";
    const attachment = attachmentOf(block);
    if (known) {
      const joined = said && known.text ? `${known.text}\n${said}` : known.text + said;
      this.put({ ...known, text: joined, attachments: attachment ? [...known.attachments, attachment] : known.attachments });
      return;
    }
    if (parent === undefined && meta["steered"] !== true) this.dropOldPlan();
    this.add({ kind: "user", id: this.id("u"), parent, text: said, messageId, attachments: attachment ? [attachment] : [], steered: meta["steered"] === true || undefined });
  }

  /** The entry to which a piece of a prompt belongs; "echo" if the prompt is shown already. */
  private userOf(messageId: string | undefined, own: boolean): UserEntry | "echo" | undefined {
    if (messageId === undefined) {
      const last = this.entries.get(this.newest.get("") ?? "");
      return last?.kind === "user" && last.messageId === undefined && !this.said.has(last.id) ? last : undefined;
    }
    const known = this.entries.get(this.byMessage.get(messageId) ?? "");
    if (known?.kind === "user") return this.said.has(known.id) ? "echo" : known;
    if (!own) return undefined;
    const waiting = [...this.said].map((id) => this.entries.get(id)).find((e): e is UserEntry => e?.kind === "user" && e.messageId === undefined);
    if (!waiting) return undefined;
    this.identify(waiting.id, messageId);
    return "echo";
  }

  private tool(u: Tree, now: number, live: boolean): void {
    const id = text(u["toolCallId"]);
    if (id === undefined) return;
    const seq = number(pillion(u)["seq"]);
    if (seq !== undefined) {
      if (seq < (this.seqs.get(id) ?? -Infinity)) return; // a newer state is shown already
      this.seqs.set(id, seq);
    }
    const was = this.entries.get(id);
    if (was && was.kind !== "tool") return;
    const entry: ToolEntry = was ? { ...was } : { kind: "tool", id, title: "", toolKind: "other", status: "pending", locations: [], files: [], detail: false };
    const detail = { ...(this.details.get(id) ?? { files: [], images: [] }) };
    takeTool(entry, detail, u, now, live);
    if (entry.parent === id) entry.parent = undefined;
    if (entry.title === "") entry.title = entry.tool ?? "Tool";
    this.details.set(id, detail);
    this.detailDirty.add(id);
    if (was && was.parent === entry.parent) this.put(entry);
    else {
      if (was) this.remove(id);
      this.details.set(id, detail);
      this.add(entry);
    }
  }

  /** A plan belongs to the turn that made it: it is removed with the next prompt, and when all of it is done. */
  private dropOldPlan(): void {
    if (this.head.plan.length > 0) this.setHead("plan", []);
  }

  private setMode(id: string | undefined): void {
    if (id === undefined) return;
    this.setHead("options", this.head.options.map((o) => (o.id === "mode" ? { ...o, currentValue: id } : o)));
  }

  private compaction(u: Tree): void {
    const id = `#c:${text(u["compactionId"]) ?? ""}`;
    const status = text(u["status"]);
    const error = text(u["error"]);
    const title = status === "completed" ? "Earlier conversation summarised to make room" : status === "failed" ? "The conversation could not be summarised" : status === "cancelled" ? "Summarising was stopped" : "Summarising the conversation to make room…";
    const e: NoticeEntry = { kind: "notice", id, severity: status === "failed" ? "warning" : "info", title, description: error, actions: [], busy: status === "in_progress" || undefined };
    this.put(e);
  }
}

/** The actions that a notice offers. */
function helpOf(u: Tree): Action[] {
  const server = text(pillion(u)["install"]);
  if (server !== undefined) return [{ id: "install", label: `Install ${server}`, about: server }];
  const said = `${text(u["title"]) ?? ""}\n${text(u["description"]) ?? ""}`;
  return /held back until you trust/.test(said) ? [{ id: "trust", label: "Manage Workspace Trust" }] : [];
}

function plan(raw: unknown): Head["plan"] {
  return list(raw).flatMap((p) => {
    const content = text(tree(p)?.["content"]);
    return content === undefined ? [] : [{ content, status: word(tree(p)?.["status"], ["pending", "in_progress", "completed"] as const, "pending"), priority: word(tree(p)?.["priority"], ["high", "medium", "low"] as const, "medium") }];
  });
}

function blockText(raw: unknown): string {
  const b = tree(raw);
  switch (b?.["type"]) {
    case "text":
      return text(b["text"]) ?? "";
    case "resource_link":
      return `[${text(b["name"]) ?? "resource"}](${text(b["uri"]) ?? ""})`;
    case "resource":
      return text(tree(b["resource"])?.["text"]) ?? "";
  }
  return "";
}

function attachmentOf(b: Tree | undefined): AttachmentView | undefined {
  if (b?.["type"] === "image") {
    const mime = text(b["mimeType"]) ?? "image/png";
    return { name: text(b["uri"])?.split("/").pop() ?? "image", mime, src: imageSource(mime, text(b["data"]) ?? "") };
  }
  if (b?.["type"] === "resource_link" || b?.["type"] === "resource") {
    const r = b["type"] === "resource" ? tree(b["resource"]) : b;
    const uri = text(r?.["uri"]) ?? "";
    return { name: text(r?.["name"]) ?? uri.split("/").pop() ?? uri, mime: text(r?.["mimeType"]) ?? "" };
  }
  return undefined;
}

/** The data: address of an image, if its type cannot run scripts and it is not too large. */
export function imageSource(mime: string, data: string): string | undefined {
  if (!/^image\/(png|jpeg|gif|webp)$/.test(mime) || data.length > 8 << 20 || !/^[A-Za-z0-9+/=]*$/.test(data)) return undefined;
  return `data:${mime};base64,${data}`;
}

function usage(u: Tree): Head["usage"] {
  const used = number(u["used"]);
  const size = number(u["size"]);
  if (used === undefined || size === undefined) return undefined;
  const cost = tree(u["cost"]);
  return { used, size, cost: number(cost?.["amount"]), currency: text(cost?.["currency"]) };
}

/** The blocks of a prompt as text to show. */
export function blocksText(blocks: readonly ContentBlock[]): string {
  return blocks.map((b) => (b.type === "text" ? b.text : "")).filter((s) => s !== "").join("\n");
}
