/** A permission request as it may be shown: of whatever came, what a person can decide on. */
import { list, number, pillion, text, texts, tree } from "./narrow";
import type { ChangeDiagnostics, FileChange, HunkEffect, PermissionOption, Problem, RequestPermissionRequest, ToolCallMeta } from "./protocol";

const kinds = ["allow_once", "allow_always", "reject_once", "reject_always"];

/** The request with its options and its `_meta.pillion` made sure of; undefined when there is nothing to decide, or no way to. */
export function permissionOf(raw: unknown): { request: RequestPermissionRequest; meta: ToolCallMeta } | undefined {
  const r = tree(raw);
  const call = tree(r?.["toolCall"]);
  const options = list(r?.["options"]).filter((o) => text(tree(o)?.["optionId"]) !== undefined && text(tree(o)?.["name"]) !== undefined && kinds.includes(text(tree(o)?.["kind"]) ?? "")) as PermissionOption[];
  if (text(r?.["sessionId"]) === undefined || text(call?.["toolCallId"]) === undefined || options.length === 0) return undefined;
  const own = pillion(call);
  const files = list(own["files"]);
  const meta = {
    ...own,
    always: texts(own["always"]),
    patterns: texts(own["patterns"]),
    why: text(own["why"]),
    // one that cannot be read, and none is shown as hunks: the standard part has them all
    files: files.every(isChange) ? files : [],
    diagnostics: verdictOf(call),
  } as ToolCallMeta;
  const toolCall = { ...call, content: list(call?.["content"]), title: text(call?.["title"]) } as RequestPermissionRequest["toolCall"];
  return { request: { ...(r as unknown as RequestPermissionRequest), options, toolCall }, meta };
}

/** What a tool call, or an update of one, says of the check of its change; undefined when it says nothing that can be read. */
export function verdictOf(call: unknown): ChangeDiagnostics | undefined {
  return readVerdict(pillion(tree(call))["diagnostics"]);
}

export function readVerdict(raw: unknown): ChangeDiagnostics | undefined {
  const d = tree(raw);
  return d && text(d["certainty"]) !== undefined && Array.isArray(d["fixed"]) && Array.isArray(d["introduced"]) ? (d as unknown as ChangeDiagnostics) : undefined;
}

/** What each hunk does, of an answer that may hold anything. */
export function readEffects(raw: unknown): Map<string, HunkEffect> {
  const out = new Map<string, HunkEffect>();
  for (const [id, e] of Object.entries(tree(raw) ?? {})) {
    const lists = ["fixes", "introduces", "ifRejected"].map((k) => list(tree(e)?.[k]).filter(isProblem));
    out.set(id, { fixes: lists[0]!, introduces: lists[1]!, ifRejected: lists[2]!, needs: texts(tree(e)?.["needs"]) });
  }
  return out;
}

function isProblem(raw: unknown): raw is Problem {
  const p = tree(raw);
  return text(p?.["path"]) !== undefined && text(p?.["message"]) !== undefined && number(p?.["line"]) !== undefined;
}

function isChange(raw: unknown): raw is FileChange {
  const f = tree(raw);
  return text(f?.["uri"]) !== undefined && Array.isArray(f?.["hunks"]);
}
