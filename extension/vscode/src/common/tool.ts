/** Converts what the wire says about a tool call to a card. */
import { diffTexts } from "./diff";
import { list, number, pillion, text, time, tree, word, type Tree } from "./narrow";
import type { Detail, FileDiff, FileSummary, Outcome, Place, ToolEntry } from "./view";

const kinds = ["read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"] as const;
const statuses = ["pending", "in_progress", "completed", "failed"] as const;
const outcomes = ["applied", "partly", "rejected", "cancelled", "denied"] as const;

/** Characters of output that are kept: the end, where a command reports how it went. */
const maxOutput = 1 << 20;
/** Characters of output that a card shows. */
const maxShown = 64 << 10;
/** Bytes of images that a card keeps. */
const maxImages = 6 << 20;

/** Merges a tool_call or tool_call_update into an entry and its detail. Fields that the message leaves out do not
 * change. */
export function takeTool(entry: ToolEntry, detail: Detail, u: Tree, now: number, live: boolean): void {
  const meta = pillion(u);
  const status = text(u["status"]);
  entry.title = text(u["title"]) ?? entry.title;
  entry.tool = text(meta["tool"]) ?? text(u["name"]) ?? entry.tool;
  if (text(u["kind"])) entry.toolKind = word(u["kind"], kinds, "other");
  if (status) entry.status = word(status, statuses, entry.status);
  // If a call continues after its turn was cut off, or its change is applied after all, the earlier outcome is removed.
  if (status && entry.status !== "failed") entry.outcome = undefined;
  entry.parent = text(meta["parentToolCallId"]) ?? entry.parent;
  entry.changeSet = text(meta["changeSet"]) ?? entry.changeSet;
  entry.terminalId = text(meta["terminalId"]) ?? entry.terminalId;
  entry.startedAt = time(meta["startedAt"]) ?? entry.startedAt ?? (live && entry.status === "in_progress" ? now : undefined);
  const over = entry.status === "completed" || entry.status === "failed";
  entry.endedAt = time(meta["endedAt"]) ?? entry.endedAt ?? (live && over && entry.startedAt !== undefined ? now : undefined);
  if (Array.isArray(u["locations"])) entry.locations = places(u["locations"]);
  takeInput(entry, detail, u["rawInput"]);
  if (Array.isArray(u["content"])) takeContent(entry, detail, u["content"]);
  takeOutput(entry, detail, tree(u["rawOutput"]));
  if (text(meta["outcome"])) entry.outcome = word(meta["outcome"], outcomes, "applied");
  if (!over && live) entry.outcome = undefined;
  entry.detail = !!(detail.output || detail.files.length || detail.images.length || detail.error || detail.command || detail.input);
}

function takeInput(entry: ToolEntry, detail: Detail, raw: unknown): void {
  const input = tree(raw);
  if (!input) return;
  const asked = text(tree(list(input["questions"])[0])?.["question"]);
  if (entry.tool === "question" && asked !== undefined && (entry.title === "" || entry.title === "question")) entry.title = firstLine(asked);
  const command = text(input["command"]);
  if (command !== undefined && entry.toolKind === "execute") detail.command = command.slice(0, maxOutput);
  else if (Object.keys(input).length > 0) detail.input = JSON.stringify(input, short, 2).slice(0, 8 << 10);
}

/** A card does not show long texts of an input. */
function short(_key: string, value: unknown): unknown {
  return typeof value === "string" && value.length > 500 ? `${value.slice(0, 500)}… (${String(value.length)} characters)` : value;
}

function takeContent(entry: ToolEntry, detail: Detail, content: unknown[]): void {
  const said: string[] = [];
  const files: FileDiff[] = [];
  detail.images = [];
  let room = maxImages;
  for (const raw of content) {
    const c = tree(raw);
    if (c?.["type"] === "diff") files.push(fileDiff(c));
    if (c?.["type"] === "terminal") entry.terminalId ??= text(c["terminalId"]);
    const block = c?.["type"] === "content" ? tree(c["content"]) : undefined;
    if (block?.["type"] === "text") said.push(unfence(text(block["text"]) ?? ""));
    const data = block?.["type"] === "image" ? text(block["data"]) : undefined;
    if (data !== undefined && data.length <= room) {
      room -= data.length;
      detail.images.push({ mime: text(block?.["mimeType"]) ?? "image/png", data });
    }
  }
  // a call that failed keeps its proposed diff, so that the person can read what was rejected
  if (files.length > 0) {
    detail.files = files;
    entry.files = files.map(({ path, kind, added, removed }) => ({ path, kind, added, removed }));
  }
  setOutput(detail, said.join("\n"));
}

function takeOutput(entry: ToolEntry, detail: Detail, raw: Tree | undefined): void {
  if (!raw) return;
  const error = tree(raw["error"]);
  if (error) {
    detail.error = (text(error["message"]) ?? "").slice(0, 8 << 10);
    detail.output = undefined;
    entry.error = firstLine(detail.error);
    if (error["kind"] === "rejected" || error["kind"] === "denied") entry.outcome = error["kind"];
  }
  const meta = tree(raw["metadata"]);
  const exit = number(meta?.["exit"]);
  if (exit !== undefined) entry.exitCode = exit;
}

function setOutput(detail: Detail, said: string): void {
  detail.output = said.length > maxOutput ? said.slice(said.indexOf("\n", said.length - maxOutput) + 1) : said || undefined;
  detail.omitted = said.length - (detail.output?.length ?? 0) || undefined;
}

/** A detail with the command's own output, with its colours; the notes that updates added stay at its end. */
export function withOutput(d: Detail, output: string, omitted: number): Detail {
  const notes = /\n*<bash_metadata>\n[\s\S]*$/.exec(d.output ?? "")?.[0] ?? "";
  return { ...d, output: output + notes, omitted: omitted || undefined };
}

/** A detail in the form that a card gets. */
export function slim(d: Detail): Detail {
  if (d.output === undefined || d.output.length <= maxShown) return d;
  const output = d.output.slice(d.output.indexOf("\n", d.output.length - maxShown) + 1);
  return { ...d, output, omitted: (d.omitted ?? 0) + d.output.length - output.length };
}

/** Output that is a fenced block of code, without its fence. */
export function unfence(s: string): string {
  const m = /^(`{3,})[^\n`]*\n([\s\S]*?)\n?\1\s*$/.exec(s);
  return m ? (m[2] ?? "") : s;
}

export function firstLine(s: string): string {
  return (s.split("\n", 1)[0] ?? "").slice(0, 300);
}

export function fileDiff(c: Tree): FileDiff {
  const before = text(c["oldText"]);
  const after = text(c["newText"]) ?? "";
  const kind = before === undefined ? "create" : after === "" && before !== "" ? "delete" : "edit";
  return { path: text(c["path"]) ?? "", kind, ...diffTexts(before ?? "", after) };
}

export function places(raw: unknown): Place[] {
  return list(raw).flatMap((l) => {
    const path = text(tree(l)?.["path"]);
    return path === undefined ? [] : [{ path, line: number(tree(l)?.["line"]) }];
  });
}

/** The files in `_meta.pillion` of a permission request or a change, with the number of their hunks. */
export function changedFiles(raw: unknown): FileSummary[] {
  return list(raw).flatMap((f) => {
    const t = tree(f);
    const path = uriPath(text(t?.["newUri"]) ?? text(t?.["uri"]) ?? "");
    if (!path) return [];
    let added = 0;
    let removed = 0;
    for (const h of list(t?.["hunks"])) {
      added += number(tree(h)?.["newLines"]) ?? 0;
      removed += number(tree(h)?.["oldLines"]) ?? 0;
    }
    return [{ path, kind: word(t?.["kind"], ["edit", "create", "delete", "rename"] as const, "edit"), added, removed }];
  });
}

export function uriPath(uri: string): string {
  if (!uri.startsWith("file://")) return uri;
  try {
    const path = decodeURIComponent(uri.slice(7));
    return /^\/[A-Za-z]:/.test(path) ? path.slice(1) : path;
  } catch {
    return uri.slice(7);
  }
}

/** The status text of a finished call. */
export function outcomeOf(entry: ToolEntry): Outcome | "failed" | "done" | "running" | "waiting" {
  if (entry.status === "pending") return "waiting";
  if (entry.status === "in_progress") return "running";
  if (entry.outcome === "rejected" || entry.outcome === "denied" || entry.outcome === "cancelled" || entry.outcome === "partly") return entry.outcome;
  return entry.status === "failed" ? "failed" : "done";
}
