/** The messages between the host and the webview. Both sides check what they receive: see parseToHost. */
import type { ActionId, Attachment, Detail, Draft, Entry, Head, Mention } from "./view";

/** One change of the transcript. A list of them, applied in order, makes the webview's copy equal to the host's. */
export type Op =
  | { op: "put"; entry: Entry }
  | { op: "append"; id: string; text: string }
  | { op: "close"; id: string; endedAt?: number }
  | { op: "cut"; from: string }
  | { op: "remove"; id: string };

/** Host to webview. */
export type ToView =
  | { type: "snapshot"; head: Head; entries: Entry[]; draft: Draft; epoch: number }
  | { type: "ops"; ops: Op[]; epoch: number }
  | { type: "head"; head: Partial<Head>; gone?: (keyof Head)[] }
  | { type: "detail"; id: string; detail: Detail }
  | { type: "found"; request: number; items: Found[] }
  /** Text for the composer: replacing its text, at the caret, or put back because it could not be sent. */
  | { type: "draft"; draft: Draft; mode: "replace" | "insert" | "back" }
  | { type: "attach"; attachments: Attachment[] }
  | { type: "focus"; what: "composer" | "approval" | "transcript" }
  | { type: "tell"; text: string; severity: "info" | "error" };

/** Something that can be mentioned with @. */
export interface Found {
  mention: Mention;
  icon: string;
  name: string;
  detail: string;
  /** UTF-16 offsets of the matching characters in name. */
  hits: number[];
}

export type SendHow = "prompt" | "queue" | "steer";
export type Scope = "files" | "conversation" | "both";

/** Webview to host. */
export type ToHost =
  | { type: "ready" }
  | { type: "send"; draft: Draft; how: SendHow }
  | { type: "stop" }
  | { type: "focused"; on: boolean }
  | { type: "draft"; draft: Draft }
  | { type: "search"; request: number; query: string }
  | { type: "pickFile" }
  | { type: "config"; id: string; value: string }
  | { type: "selection"; on: boolean }
  | { type: "open"; path: string; line?: number }
  | { type: "link"; href: string }
  | { type: "unfold"; id: string; on: boolean }
  | { type: "showDiff"; id: string; path: string }
  | { type: "showOutput"; id: string }
  | { type: "terminal"; id: string }
  | { type: "review"; requestId: string; path?: string }
  | { type: "decide"; requestId: string; optionId: string; comment?: string }
  | { type: "answer"; requestId: string; values: Record<string, string | number | boolean | string[]> | null }
  | { type: "code"; action: "insert" | "apply" | "copy"; text: string; language: string; path?: string }
  | { type: "copy"; text: string }
  | { type: "queue"; action: "remove" | "up" | "down" | "steer" | "edit" | "resume"; id: string; text?: string }
  | { type: "restore"; entry: string; scope: Scope; edit: boolean }
  | { type: "redo" }
  /** Keep or undo what the last turn wrote, in one file or in all. "open" shows it. */
  | { type: "changes"; action: "keep" | "undo" | "open"; path: string }
  | { type: "action"; id: ActionId; about?: string };

const fields: Record<ToHost["type"], Record<string, "string" | "number" | "boolean" | "object" | "any">> = {
  ready: {}, send: { draft: "object", how: "string" }, stop: {}, focused: { on: "boolean" }, draft: { draft: "object" }, search: { request: "number", query: "string" }, pickFile: {},
  config: { id: "string", value: "string" }, selection: { on: "boolean" }, open: { path: "string" }, link: { href: "string" },
  unfold: { id: "string", on: "boolean" }, showDiff: { id: "string", path: "string" }, showOutput: { id: "string" }, terminal: { id: "string" },
  review: { requestId: "string" }, decide: { requestId: "string", optionId: "string" }, answer: { requestId: "string", values: "any" },
  code: { action: "string", text: "string", language: "string" }, copy: { text: "string" }, queue: { action: "string", id: "string" },
  restore: { entry: "string", scope: "string", edit: "boolean" }, redo: {}, changes: { action: "string", path: "string" }, action: { id: "string" },
};

/** Checks a message of the webview; undefined if it is invalid. The webview is Pillion's, but it draws foreign text,
 * so it is not trusted. */
export function parseToHost(raw: unknown): ToHost | undefined {
  if (typeof raw !== "object" || raw === null) return undefined;
  const m = raw as Record<string, unknown>;
  if (typeof m["type"] !== "string" || !Object.hasOwn(fields, m["type"])) return undefined;
  for (const [name, want] of Object.entries(fields[m["type"] as ToHost["type"]])) {
    const v = m[name];
    if (want !== "any" && (typeof v !== want || v === null)) return undefined;
  }
  if (m["type"] === "code" && m["path"] !== undefined && typeof m["path"] !== "string") return undefined;
  if (m["type"] === "review" && m["path"] !== undefined && typeof m["path"] !== "string") return undefined;
  if (m["type"] === "action" && m["about"] !== undefined && (typeof m["about"] !== "string" || !/^[\w.-]{1,60}$/.test(m["about"]))) return undefined;
  if ("draft" in m && !isDraft(m["draft"])) return undefined;
  return raw as ToHost;
}

/** Whether a value is a draft of a prompt; drafts that an older version stored count too. */
export function isDraft(raw: unknown): raw is Draft {
  if (typeof raw !== "object" || raw === null) return false;
  const d = raw as Record<string, unknown>;
  return typeof d["text"] === "string" && Array.isArray(d["mentions"]) && Array.isArray(d["attachments"])
    && (d["at"] === undefined || typeof d["at"] === "number")
    && d["mentions"].every((x: unknown) => typeof (x as Mention | null)?.label === "string")
    && d["attachments"].every((x: unknown) => typeof (x as Attachment | null)?.data === "string");
}

/** The limits of the attachments of a prompt. */
export const limits = {
  /** Bytes of one image; providers refuse larger ones. */
  image: 5 << 20,
  /** Bytes of one PDF. */
  pdf: 20 << 20,
  /** Bytes of all attachments of a prompt: one message may have 32 MiB, and base64 adds a third. */
  total: 22 << 20,
};

/** Applies ops to a copy of the entries, as the webview does. */
export function applyOps(entries: Map<string, Entry>, ops: readonly Op[]): void {
  for (const op of ops) {
    switch (op.op) {
      case "put":
        entries.set(op.entry.id, op.entry);
        break;
      case "append": {
        const e = entries.get(op.id);
        if (e && (e.kind === "text" || e.kind === "thought" || e.kind === "user")) e.text += op.text;
        break;
      }
      case "close": {
        const e = entries.get(op.id);
        if (e?.kind === "text") e.open = false;
        if (e?.kind === "thought") Object.assign(e, { open: false, endedAt: op.endedAt });
        break;
      }
      case "remove":
        entries.delete(op.id);
        break;
      case "cut": {
        let found = false;
        for (const id of [...entries.keys()]) {
          found ||= id === op.from;
          if (found) entries.delete(id);
        }
      }
    }
  }
}
