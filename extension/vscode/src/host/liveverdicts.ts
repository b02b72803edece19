// The verdict follows the person: what the proposal does to the problems as they have decided and typed so far, and what one
// more rejected hunk would change. The sidecar asks the language servers; nothing is decided by it.
import * as vscode from "vscode";
import { readVerdict } from "../common/permission";
import type { ChangeDiagnostics, HunkDecision } from "../common/protocol";
import type { Approval, Approvals } from "./approvals";
import type { Sidecar } from "./sidecar";

/** Milliseconds that decisions and typing must rest before the language servers are asked. */
const pause = 400;
/** A proposal of more hunks is not looked at hunk by hunk: each costs the language servers a check. */
const mostHunks = 8;

interface Looking {
  /** What the last question was about. */
  key: string;
  timer: NodeJS.Timeout | undefined;
  stop: AbortController;
}

export class LiveVerdicts implements vscode.Disposable {
  private readonly looking = new Map<string, Looking>();
  private readonly registered: vscode.Disposable;

  constructor(
    private readonly sidecar: Pick<Sidecar, "announced" | "request">,
    private readonly approvals: Pick<Approvals, "pending" | "get" | "judge" | "onDidChange" | "onDidDecide">,
  ) {
    this.registered = vscode.Disposable.from(
      approvals.onDidChange((sessionId) => approvals.pending(sessionId).forEach((a) => this.look(a))),
      approvals.onDidDecide(({ approval }) => this.end(approval.id)),
    );
  }

  dispose(): void {
    for (const id of [...this.looking.keys()]) this.end(id);
    this.registered.dispose();
  }

  private end(id: string): void {
    const l = this.looking.get(id);
    clearTimeout(l?.timer);
    l?.stop.abort();
    this.looking.delete(id);
  }

  private look(a: Approval): void {
    if (a.own || !a.meta.changeSet || a.files.length === 0 || !this.sidecar.announced("_pillion/change/check")) return;
    const decided = decisionsOf(a);
    const key = JSON.stringify([decided, a.proposed?.certainty, undecided(a)]);
    const was = this.looking.get(a.id);
    if (was?.key === key) return;
    this.end(a.id);
    const mine: Looking = { key, timer: undefined, stop: new AbortController() };
    this.looking.set(a.id, mine);
    // without a server there is nothing to follow, and while the first check runs its servers are busy
    if (!a.proposed || !known(a.proposed)) return;
    mine.timer = setTimeout(() => void this.ask(a, decided, mine.stop.signal).catch(() => {}), pause); // a check that fails leaves what is known
    if (!a.decisions.empty) this.approvals.judge(a.id, { certainty: "pending", introduced: [], fixed: [], unchanged: 0 }, new Map());
    else if (a.verdict !== a.proposed || a.without.size > 0) this.approvals.judge(a.id, undefined, new Map());
  }

  private async ask(a: Approval, decided: Record<string, HunkDecision>, signal: AbortSignal): Promise<void> {
    const verdict = a.decisions.empty ? undefined : await this.check(a, decided, signal);
    if (signal.aborted) return;
    this.approvals.judge(a.id, verdict, new Map());
    const current = verdict ?? a.proposed;
    const open = undecided(a);
    if (!current || !known(current) || hunksOf(a).length < 2 || hunksOf(a).length > mostHunks) return;
    const without = new Map<string, ChangeDiagnostics>();
    for (const id of open) {
      const v = await this.check(a, { ...decided, [id]: { decision: "reject" } }, signal);
      if (signal.aborted) return;
      if (v && known(v)) without.set(id, v);
    }
    this.approvals.judge(a.id, verdict, without);
  }

  private async check(a: Approval, hunks: Record<string, HunkDecision>, signal: AbortSignal): Promise<ChangeDiagnostics | undefined> {
    const r = await this.sidecar.request("_pillion/change/check", { sessionId: a.sessionId, changeSet: a.meta.changeSet ?? "", hunks }, signal);
    return readVerdict(r.diagnostics);
  }
}

/** Decisions that change what would be written; comments do not. */
function decisionsOf(a: Approval): Record<string, HunkDecision> {
  return Object.fromEntries(
    Object.entries(a.decisions.answer(true)).flatMap(([id, d]) => (d.decision === "accept" ? [] : [[id, d.decision === "edit" ? { decision: "edit", newLines: d.newLines ?? [] } : { decision: "reject" }] as const])),
  );
}

function hunksOf(a: Approval): string[] {
  return a.files.flatMap((f) => f.change.hunks.map((h) => h.id));
}

function undecided(a: Approval): string[] {
  return hunksOf(a).filter((id) => !a.decisions.of(id).choice);
}

function known(v: ChangeDiagnostics): boolean {
  return v.certainty === "fresh" || v.certainty === "partial";
}
