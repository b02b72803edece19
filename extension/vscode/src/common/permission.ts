/** A permission request, checked so that it can be shown and decided. */
import { list, number, pillion, text, texts, tree } from "./narrow";
import type { ChangeDiagnostics, FileChange, HunkEffect, PermissionOption, Problem, RequestPermissionRequest, ToolCallMeta } from "./protocol";

const kinds = ["allow_once", "allow_always", "reject_once", "reject_always"];

/** The request with its options and its `_meta.pillion` checked; undefined if there is nothing to decide or no
 * option. */
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
    // If one file cannot be read, none is shown as hunks: the standard part of the request has them all.
    files: files.every(isChange) ? files : [],
    diagnostics: verdictOf(call),
  } as ToolCallMeta;
  const toolCall = { ...call, content: list(call?.["content"]), title: text(call?.["title"]) } as RequestPermissionRequest["toolCall"];
  return { request: { ...(r as unknown as RequestPermissionRequest), options, toolCall }, meta };
}

/** The verdict of a change in a tool call or an update; undefined if there is none that can be read. */
export function verdictOf(call: unknown): ChangeDiagnostics | undefined {
  return readVerdict(pillion(tree(call))["diagnostics"]);
}

export function readVerdict(raw: unknown): ChangeDiagnostics | undefined {
  const d = tree(raw);
  return d && text(d["certainty"]) !== undefined && Array.isArray(d["fixed"]) && Array.isArray(d["introduced"]) ? (d as unknown as ChangeDiagnostics) : undefined;
}

/** The effect of each hunk, from an answer that is not trusted. */
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
