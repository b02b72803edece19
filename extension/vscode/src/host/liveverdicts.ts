// Keeps the verdict up to date while the person decides and edits: the effect of the proposal with their decisions, and of
// each undecided hunk. The sidecar asks the language servers; nothing is written.
import * as vscode from "vscode";
import { readEffects, readVerdict } from "../common/permission";
import type { ChangeDiagnostics, HunkDecision, HunkEffect } from "../common/protocol";
import type { Approval, Approvals } from "./approvals";
import type { Sidecar } from "./sidecar";

/** Milliseconds without a decision or a key before the language servers are asked. */
const pause = 400;

interface Looking {
  /** The decisions of the last request. */
  key: string;
  timer: NodeJS.Timeout | undefined;
  stop: AbortController;
  /** Which hunks each hunk needs. The sidecar reports it only while no hunk is rejected; it does not change during a
   * review. */
  needs: Map<string, string[]>;
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
    const mine: Looking = { key, timer: undefined, stop: new AbortController(), needs: was?.needs ?? new Map<string, string[]>() };
    this.looking.set(a.id, mine);
    // without a server there is no verdict, and during the first check its servers are busy
    if (!a.proposed || !known(a.proposed)) return;
    mine.timer = setTimeout(() => void this.ask(a, decided, mine).catch(() => {}), pause); // if a check fails, the last verdict stays
    if (!a.decisions.empty) this.approvals.judge(a.id, { certainty: "pending", introduced: [], fixed: [], unchanged: 0 }, needsOf(mine));
    else if (a.verdict !== a.proposed) this.approvals.judge(a.id, undefined, needsOf(mine));
  }

  /** Requests the verdict first, because it is fast, then the effect of each hunk. */
  private async ask(a: Approval, decided: Record<string, HunkDecision>, mine: Looking): Promise<void> {
    const about = { sessionId: a.sessionId, changeSet: a.meta.changeSet ?? "", hunks: decided };
    const { signal } = mine.stop;
    const verdict = a.decisions.empty ? undefined : readVerdict((await this.sidecar.request("_pillion/change/check", about, signal)).diagnostics);
    if (signal.aborted) return;
    this.approvals.judge(a.id, verdict, needsOf(mine));
    const open = undecided(a);
    if (open.length < 2) return;
    const effects = readEffects((await this.sidecar.request("_pillion/change/check", { ...about, open }, signal)).effects);
    if (signal.aborted) return;
    const rejected = Object.values(decided).some((d) => d.decision === "reject");
    if (!rejected) mine.needs = new Map([...effects].flatMap(([id, e]) => (e.needs ? [[id, e.needs] as const] : [])));
    this.approvals.judge(a.id, verdict, new Map([...needsOf(mine), ...[...effects].map(([id, e]) => [id, { ...e, needs: mine.needs.get(id) ?? [] }] as const)]));
  }
}

/** What is known of the hunks while their effects are computed: which others they need. */
function needsOf({ needs }: Looking): Map<string, HunkEffect> {
  return new Map([...needs].map(([id, ids]) => [id, { needs: ids }]));
}

/** The decisions that affect what is written; comments do not. */
function decisionsOf(a: Approval): Record<string, HunkDecision> {
  return Object.fromEntries(
    Object.entries(a.decisions.answer(true)).flatMap(([id, d]) => (d.decision === "accept" ? [] : [[id, d.decision === "edit" ? { decision: "edit", newLines: d.newLines ?? [] } : { decision: "reject" }] as const])),
  );
}

function undecided(a: Approval): string[] {
  return a.files.flatMap((f) => f.change.hunks.map((h) => h.id)).filter((id) => !a.decisions.of(id).choice);
}

function known(v: ChangeDiagnostics): boolean {
  return v.certainty === "fresh" || v.certainty === "partial";
}
