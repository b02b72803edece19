// The pending permission requests, with the decisions on single hunks so far. The panel and the editor both show them and
// can decide; each request is answered once.
import * as vscode from "vscode";
import { Decisions, type HunkState } from "../common/decisions";
import { permissionOf, readVerdict, verdictOf } from "../common/permission";
import type { ChangeDiagnostics, DecisionMeta, Diff, FileChange, HunkDecision, HunkEffect, PermissionOption, RequestPermissionRequest, RequestPermissionResponse, ToolCallMeta } from "../common/protocol";
import { RpcError } from "../common/rpc";
import type { Sidecar } from "./sidecar";

export interface Approval {
  /** Unique in this window; not the tool call's id. */
  readonly id: string;
  readonly sessionId: string;
  readonly toolCallId: string;
  readonly request: RequestPermissionRequest;
  readonly meta: ToolCallMeta;
  /** The verdict on the whole proposal: from the request, then from updates. */
  readonly proposed: ChangeDiagnostics | undefined;
  /** The verdict with the present decisions and edits; while there are none, the one on the whole (liveverdicts.ts). */
  readonly verdict: ChangeDiagnostics | undefined;
  /** The effect of each undecided hunk, by hunk, as far as it is known. */
  readonly effects: ReadonlyMap<string, HunkEffect>;
  /** The files of a change set with their texts; empty for other requests, such as commands. */
  readonly files: readonly ApprovalFile[];
  /** The decisions so far, by hunk. Only Approvals.mark changes them, so that all views are notified. */
  readonly decisions: Pick<Decisions, "of" | "decided" | "empty" | "answer">;
  /** When it arrived, in milliseconds of the clock. */
  readonly since: number;
  /** It is not from an agent: the person asked for this change, in this window only. */
  readonly own: boolean;
}

export interface ApprovalFile {
  readonly change: FileChange;
  readonly diff: Diff;
}

export interface Decision {
  hunks?: Record<string, HunkDecision>;
  comment?: string;
  stale?: boolean;
}

/** How an approval ended: the answer, or undefined if it was cancelled. */
export interface Decided {
  readonly approval: Approval;
  readonly optionId: string | undefined;
  readonly decision: DecisionMeta;
}

interface Entry extends Approval {
  readonly decisions: Decisions;
  proposed: ChangeDiagnostics | undefined;
  verdict: ChangeDiagnostics | undefined;
  effects: ReadonlyMap<string, HunkEffect>;
  answer(response: RequestPermissionResponse): void;
}

export class Approvals implements vscode.Disposable {
  private readonly entries = new Map<string, Entry>();
  private readonly changed = new vscode.EventEmitter<string>();
  /** The approvals of a session (its id) have changed, or a hunk has a new decision. */
  readonly onDidChange = this.changed.event;
  private readonly asked = new vscode.EventEmitter<Approval>();
  readonly onDidAsk = this.asked.event;
  private readonly decided = new vscode.EventEmitter<Decided>();
  readonly onDidDecide = this.decided.event;
  private readonly opened = new vscode.EventEmitter<{ approval: Approval; path: string | undefined }>();
  /** A request should be shown in the editor: the named file, or the first undecided one. */
  readonly onDidOpen = this.opened.event;
  private readonly registered: vscode.Disposable;
  private next = 1;

  constructor(sidecar: Pick<Sidecar, "onRequest" | "onNotification">) {
    this.registered = vscode.Disposable.from(
      sidecar.onRequest("session/request_permission", (request, signal) => this.ask(request, signal)),
      sidecar.onNotification("session/update", ({ sessionId, update }) => {
        if (update.sessionUpdate === "tool_call_update") this.checked(sessionId, (a) => a.toolCallId === update.toolCallId, verdictOf(update));
      }),
      sidecar.onNotification("_pillion/change/updated", ({ sessionId, change }) => {
        if (change.state === "proposed") this.checked(sessionId, (a) => a.meta.changeSet === change.id, readVerdict(change.diagnostics));
      }),
    );
  }

  /** Oldest first; of one session, or of all. */
  pending(sessionId?: string): Approval[] {
    return [...this.entries.values()].filter((e) => sessionId === undefined || e.sessionId === sessionId);
  }

  get(id: string): Approval | undefined {
    return this.entries.get(id);
  }

  /** Answers the request, with the decisions on single hunks; those named here override them. */
  decide(id: string, optionId: string, decision: Decision = {}): boolean {
    const entry = this.entries.get(id);
    if (!entry) return false;
    const option = entry.request.options.find((o) => o.optionId === optionId);
    if (!option) throw new Error(`${optionId} is not one of the options`);
    const hunks = { ...entry.decisions.answer(option.kind.startsWith("allow")), ...decision.hunks };
    const meta: DecisionMeta = {};
    if (Object.keys(hunks).length > 0) meta.hunks = hunks;
    if (decision.comment) meta.comment = decision.comment;
    if (decision.stale) meta.stale = true;
    this.entries.delete(id);
    entry.answer({ outcome: { outcome: "selected", optionId, ...(Object.keys(meta).length > 0 ? { _meta: { pillion: meta } } : {}) } });
    this.decided.fire({ approval: entry, optionId, decision: meta });
    this.changed.fire(entry.sessionId);
    return true;
  }

  /** Accepts (once) or rejects everything that is undecided. */
  decideRest(id: string, accept: boolean, comment?: string): boolean {
    const entry = this.entries.get(id);
    const option = entry && optionOf(entry, accept);
    return option !== undefined && this.decide(id, option.optionId, comment ? { comment } : {});
  }

  /** Stores a decision, edited lines or a comment on a hunk. It does not answer the request. */
  mark(id: string, hunkId: string, part: HunkState): void {
    const entry = this.entries.get(id);
    if (entry?.decisions.set(hunkId, part)) this.changed.fire(entry.sessionId);
  }

  /** Sets the verdict on the present decisions; undefined: use the verdict on the whole. */
  judge(id: string, verdict: ChangeDiagnostics | undefined, effects: ReadonlyMap<string, HunkEffect>): void {
    const entry = this.entries.get(id);
    if (!entry) return;
    entry.verdict = verdict ?? entry.proposed;
    entry.effects = effects;
    this.changed.fire(entry.sessionId);
  }

  /** Shows a request in the editor: one of its files, or the first undecided one. */
  open(id: string, path?: string): void {
    const approval = this.entries.get(id);
    if (approval) this.opened.fire({ approval, path });
  }

  /** Ends a session's requests without an answer; nothing is written. */
  cancel(sessionId: string): void {
    for (const entry of this.pending(sessionId)) this.end(entry.id);
  }

  dispose(): void {
    this.registered.dispose();
    for (const id of [...this.entries.keys()]) this.end(id);
    for (const emitter of [this.changed, this.asked, this.decided, this.opened]) emitter.dispose();
  }

  /** Shows a change of this window for review like an agent's. It belongs to no session. */
  propose(toolCall: RequestPermissionRequest["toolCall"]): { id: string; answer: Promise<RequestPermissionResponse> } {
    const options: PermissionOption[] = [{ optionId: "once", name: "Accept", kind: "allow_once" }, { optionId: "reject", name: "Reject", kind: "reject_once" }];
    const never = new AbortController();
    const id = `approval-${this.next}`;
    return { id, answer: this.ask({ sessionId: "", toolCall, options }, never.signal, true) };
  }

  /** Withdraws a request without an answer. */
  drop(id: string): void {
    this.end(id);
  }

  private ask(raw: RequestPermissionRequest, signal: AbortSignal, own = false): Promise<RequestPermissionResponse> {
    const asked = permissionOf(raw);
    if (!asked) return Promise.reject(new RpcError(-32602, "session/request_permission names no session, no tool call, or no option that can be chosen"));
    const { request, meta } = asked;
    return new Promise((resolve) => {
      const entry: Entry = {
        id: `approval-${this.next++}`,
        sessionId: request.sessionId,
        toolCallId: request.toolCall.toolCallId,
        request,
        meta,
        proposed: meta.diagnostics ?? undefined,
        verdict: meta.diagnostics ?? undefined,
        effects: new Map(),
        files: filesOf(request, meta),
        decisions: new Decisions(),
        since: Date.now(),
        own,
        answer: resolve,
      };
      this.entries.set(entry.id, entry);
      signal.addEventListener("abort", () => this.end(entry.id), { once: true });
      this.asked.fire(entry);
      this.changed.fire(entry.sessionId);
    });
  }

  /** The verdict of a proposal has changed while the person reads; the new one replaces the old one. */
  private checked(sessionId: string, about: (a: Approval) => boolean, verdict: ChangeDiagnostics | undefined): void {
    if (!verdict) return; // the update is about something else
    for (const entry of this.entries.values()) {
      if (entry.sessionId !== sessionId || !about(entry) || JSON.stringify(entry.proposed) === JSON.stringify(verdict)) continue;
      entry.proposed = verdict;
      if (entry.decisions.empty) entry.verdict = verdict;
      this.changed.fire(sessionId);
    }
  }

  private end(id: string): void {
    const entry = this.entries.get(id);
    if (!entry) return;
    this.entries.delete(id);
    entry.answer({ outcome: { outcome: "cancelled" } });
    this.decided.fire({ approval: entry, optionId: undefined, decision: {} });
    this.changed.fire(entry.sessionId);
  }
}

/** The option that accepts or rejects only this request. */
export function optionOf(approval: Approval, accept: boolean): PermissionOption | undefined {
  const wanted = accept ? "allow" : "reject";
  const options = approval.request.options;
  return options.find((o) => o.kind === `${wanted}_once`) ?? options.find((o) => o.kind.startsWith(wanted));
}

/** Matches the files of the change set with the diffs of the standard part, which have the same order. */
function filesOf(request: RequestPermissionRequest, meta: ToolCallMeta): ApprovalFile[] {
  const diffs = (request.toolCall.content ?? []).filter((c) => c.type === "diff");
  return (meta.files ?? []).map((change): ApprovalFile => {
    const path = vscode.Uri.parse(change.newUri ?? change.uri, true).fsPath;
    const from = vscode.Uri.parse(change.uri, true).fsPath;
    const diff = diffs.find((d) => d.path === path) ?? diffs.find((d) => d.path === from);
    if (diff) return { change, diff };
    // The file is too large to be sent with the request, or was only renamed.
    return { change, diff: { path, oldText: "", newText: "" } };
  });
}
