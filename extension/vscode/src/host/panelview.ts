// Converts pending requests and the state of the process to what the panel shows.
import * as vscode from "vscode";
import { readEvidence, readNotes } from "../common/evidence";
import { changedFiles, fileDiff, uriPath } from "../common/tool";
import { list, number, text, texts, tree } from "../common/narrow";
import type { Approval as View, ConnectionView, Field, FileSummary, ProblemView, Question } from "../common/view";
import type { CreateElicitationRequest, Problem } from "../common/protocol";
import type { Approval } from "./approvals";
import type { SidecarState } from "./sidecar";

/** `folders`: all folders of the project, the session's own first. */
export function approvalView(a: Approval, folders: readonly string[]): View {
  const call = a.request.toolCall;
  const input = tree(call.rawInput);
  const meta = tree(input?.["metadata"]);
  const command = text(input?.["command"]) ?? text(meta?.["command"]);
  const shell = a.meta.permission === "bash" || a.meta.permission === "bash_input";
  const files = summaries(a);
  const d = a.verdict;
  const outside = a.meta.permission === "external_directory" ? (a.meta.patterns ?? []) : [...texts(meta?.["externalPaths"]), ...files.map((f) => f.path).filter((p) => folders[0] !== "" && !folders.some((folder) => inside(p, folder)))];
  return {
    requestId: a.id,
    toolCallId: a.toolCallId,
    title: call.title ?? "",
    toolKind: call.kind ?? "other",
    permission: a.meta.permission,
    always: a.meta.always ?? [],
    patterns: a.meta.patterns ?? [],
    why: a.meta.why,
    command: shell ? (command ?? (a.meta.patterns ?? []).join("\n")) : undefined,
    files,
    outside,
    problems: d ? { certainty: d.certainty, reason: d.reason, fixed: d.fixed.map(problem), introduced: d.introduced.map(problem) } : undefined,
    evidence: readEvidence(a.meta.evidence),
    notes: readNotes(a.meta.evidence),
    draft: call.name === "draft" || undefined,
    options: a.request.options.map((o) => ({ id: o.optionId, label: o.name, kind: o.kind })),
    hunks: a.files.reduce((n, f) => n + f.change.hunks.length, 0),
    decided: a.decisions.decided || undefined,
  };
}

function summaries(a: Approval): FileSummary[] {
  const named = changedFiles(a.meta.files);
  if (named.length > 0) return named;
  return (a.request.toolCall.content ?? []).flatMap((c) => {
    const t = tree(c);
    if (t?.["type"] !== "diff") return [];
    const { path, kind, added, removed } = fileDiff(t);
    return [{ path, kind, added, removed }];
  });
}

function inside(path: string, cwd: string): boolean {
  return path === cwd || path.startsWith(cwd.endsWith("/") ? cwd : `${cwd}/`) || path.startsWith(`${cwd}\\`);
}

function problem(p: Problem): ProblemView {
  return { path: uriPath(p.path), line: p.line, severity: p.severity, message: p.message };
}

export function connectionView(state: SidecarState): ConnectionView {
  const log = { id: "showLog", label: "Show the log" } as const;
  switch (state.kind) {
    case "stopped":
    case "starting":
      return { state: "starting", actions: [] };
    case "running":
      if (state.doubt !== undefined) return { state: "quiet", message: state.doubt, actions: [{ id: "restart", label: "Restart Pillion" }, log] };
      if (!vscode.workspace.workspaceFolders?.length) return { state: "noFolder", message: "You can ask questions. To read and change files, open a folder.", actions: [{ id: "openFolder", label: "Open a folder" }] };
      if (!vscode.workspace.isTrusted) return { state: "untrusted", message: "The folder's own settings, and the programs they name, are ignored until you trust it.", actions: [{ id: "trust", label: "Manage trust" }] };
      return { state: "ready", actions: [] };
    case "waiting":
      return { state: "restarting", message: state.reason, actions: [log] };
    case "failed":
      return { state: "failed", message: state.reason, actions: [{ id: "restart", label: "Restart Pillion" }, log, ...(/not found|could not be started|too old/.test(state.reason) ? [{ id: "setBinary" as const, label: "Set the path" }] : [])] };
  }
}

/** A form's fields. `q1-other` is for own words in place of the options of `q1`. */
export function questionView(requestId: string, r: CreateElicitationRequest): Question {
  const properties = tree(tree(r.requestedSchema)?.["properties"]) ?? {};
  const required = texts(tree(r.requestedSchema)?.["required"]);
  const fields = Object.entries(properties).map(([key, raw]): Field => {
    const p = tree(raw) ?? {};
    const items = tree(p["items"]);
    const choices = [...list(p["oneOf"]), ...list(items?.["anyOf"])].map((o) => ({ value: text(tree(o)?.["const"]) ?? "", label: text(tree(o)?.["title"]) ?? text(tree(o)?.["const"]) ?? "", description: text(tree(o)?.["description"]) }));
    const words = [...texts(p["enum"]), ...texts(items?.["enum"])].map((value) => ({ value, label: value }));
    const options = [...choices, ...words];
    const type = p["type"] === "array" ? "choices" : options.length > 0 ? "choice" : p["type"] === "number" || p["type"] === "integer" || p["type"] === "boolean" ? p["type"] : "text";
    const initial = p["default"];
    return {
      key, title: text(p["title"]) ?? key, description: text(p["description"]), type, options, other: `${key}-other` in properties ? `${key}-other` : undefined, required: required.includes(key),
      initial: typeof initial === "string" || typeof initial === "number" || typeof initial === "boolean" ? initial : Array.isArray(initial) ? texts(initial) : undefined,
      min: number(p["minimum"]), max: number(p["maximum"]),
    };
  });
  return { requestId, message: text(r.message) ?? "", fields };
}

/** A path from a model as something to open: only a file of this machine, never a network path that names a server. */
export function openable(path: string, cwd: string): vscode.Uri | undefined {
  if (/^[\\/]{2}/.test(path) || path.includes("\0")) return undefined;
  if (path.startsWith("file:")) {
    const uri = vscode.Uri.parse(path);
    return uri.authority === "" ? uri.with({ fragment: "", query: "" }) : undefined;
  }
  if (/^[A-Za-z]:[\\/]/.test(path) || path.startsWith("/")) return vscode.Uri.file(path);
  if (/^[a-z][a-z0-9+.-]+:/i.test(path) || cwd === "") return undefined;
  return vscode.Uri.joinPath(vscode.Uri.file(cwd), path);
}
