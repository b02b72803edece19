// The lenses above a proposal and above each of its hunks: the verdict, and the buttons that decide.
import * as vscode from "vscode";
import { cellLines } from "../common/cells";
import { evidenceSummary, readEvidence } from "../common/evidence";
import type { ReviewedHunk } from "../common/hunks";
import type { Problem } from "../common/protocol";
import { countVerdict } from "../common/verdict";
import { driftTitle } from "./drift";
import { proposalScheme } from "./proposals";
import type { Review, ReviewFile } from "./review";

/** If the first hunk begins at this line or before, it is visible together with the file's first line. */
const near = 8;

/** Lines that the editor leaves unfolded before a change (diffEditor.hideUnchangedRegions.contextLineCount). */
const context = 3;

/** The command of the lenses that are texts: what a change does to the problems. */
const showProblems = "workbench.actions.view.problems";

/** The largest number of lenses; a proposal with thousands of hunks is decided at its first line. */
const most = 300;

export class Lenses implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly registered: vscode.Disposable;

  constructor(private readonly find: (uri: vscode.Uri) => { review: Review; file: ReviewFile } | undefined) {
    this.registered = vscode.languages.registerCodeLensProvider({ scheme: proposalScheme }, this);
  }

  refresh(): void {
    this.changed.fire();
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const found = this.find(document.uri);
    if (!found || found.review.over) return [];
    const lenses = this.header(found.review, found.file);
    if (!vscode.workspace.getConfiguration("pillion").get("review.codeLens", true)) return lenses;
    const cells = document.uri.path.endsWith(".ipynb") ? cellLines(document.getText()) : [];
    for (const [i, hunk] of found.file.hunks.slice(0, most).entries()) {
      const own = this.hunk(found.review, found.file, hunk, document);
      // In one row with the file's: the hunk's buttons first, or a narrow editor would hide them; texts that appear and disappear last.
      if (i === 0 && lenses[0]?.range.isEqual(own[0]?.range ?? new vscode.Range(0, 0, 0, 1))) {
        const row = [...own, ...lenses];
        const text = (l: vscode.CodeLens) => l.command?.command === showProblems;
        lenses.splice(0, lenses.length, ...row.filter((l) => !text(l)), ...row.filter(text));
      } else lenses.push(...own);
      const cell = cells.filter((line) => line <= hunk.start).length; // counted from 1, as notebooks do
      const line = Math.min(hunk.start, document.lineCount - 1);
      if (cell > 0) lenses.push(new vscode.CodeLens(new vscode.Range(line, 0, line, 0), { title: `$(notebook)\u00a0Cell ${String(cell)}`, command: "" }));
    }
    return lenses;
  }

  dispose(): void {
    this.registered.dispose();
    this.changed.dispose();
  }

  private header(review: Review, file: ReviewFile): vscode.CodeLens[] {
    // A diff of several files folds unchanged lines, and a lens at a folded line would be an empty row.
    const first = file.hunks[0]?.start ?? 0;
    const line = review.files.length > 1 && first >= 2 * context ? first - context : 0;
    const top = new vscode.Range(line, 0, line, 0);
    const lens = (title: string, command: string, tooltip: string) => new vscode.CodeLens(top, { title, command, tooltip, arguments: [file.right] });
    const open = review.undecided(file).length;
    const done = file.hunks.length - open;
    const problems = problemsTitle(review);
    const moved = driftLens(review, top, file);
    const parts = [];
    const count = `${file.hunks.length} ${file.hunks.length === 1 ? "hunk" : "hunks"}${done > 0 ? `, ${done} decided` : ""}`;
    parts.push(lens(`$(check)\u00a0Accept file (${count})`, "pillion.review.acceptFile", "Accept the undecided hunks of this file"));
    parts.push(lens("$(close)\u00a0Reject file", "pillion.review.rejectFile", "Reject the undecided hunks of this file"));
    if (review.files.length > 1) parts.push(lens(`$(check-all)\u00a0Accept all ${review.files.length} files`, "pillion.review.acceptAll", "Accept all undecided hunks"));
    // Texts that appear and disappear come last, so that the buttons stay under the pointer.
    if (moved) parts.push(moved);
    const ran = readEvidence(review.approval.meta.evidence);
    if (ran.length > 0) parts.push(lens(`${ran.some((e) => e.status === "failed") ? "$(error)" : ran.every((e) => e.status === "passed") ? "$(pass)" : "$(question)"}\u00a0${evidenceSummary(ran)}`, "pillion.focusApproval", "What was run on this change. Click to read it in the panel."));
    if (problems) parts.push(lens(problems, showProblems, problemsTooltip(review)));
    return parts;
  }

  private hunk(review: Review, file: ReviewFile, hunk: ReviewedHunk, document: vscode.TextDocument): vscode.CodeLens[] {
    const line = Math.min(hunk.start, document.lineCount - 1);
    const at = new vscode.Range(line, 0, line, 0);
    const lens = (title: string, command: string, tooltip: string) => new vscode.CodeLens(at, { title, command, tooltip, arguments: [file.right, hunk.id] });
    const { choice, comment, lines } = review.state(hunk.id);
    // The file's first line may not be visible, so its texts are also at the first hunk.
    const far = hunk === file.hunks[0] && hunk.start > near && review.files.length === 1;
    const news = far ? problemsTitle(review) : undefined;
    const after = news ? [new vscode.CodeLens(at, { title: news, command: showProblems, tooltip: problemsTooltip(review) })] : [];
    const moved = far ? driftLens(review, at, file) : undefined;
    if (moved) after.unshift(moved);
    const talk = review.approval.own ? [] : [lens(comment ? `$(comment)\u00a0${short(comment)}` : "$(comment)\u00a0Comment", "pillion.review.commentHunk", comment ?? "Add a comment for the model; it is sent with your decision")]; // a change of this window has no agent that could read a comment
    const effect = choice ? undefined : effectOf(review, hunk);
    if (effect) after.unshift(new vscode.CodeLens(at, { title: effect.title, command: showProblems, tooltip: effect.tooltip }));
    if (choice === "reject") return [lens("$(close)\u00a0Rejected", "", ""), lens("$(discard)\u00a0Undo rejection", "pillion.review.reopenHunk", "Restore the proposed lines; the hunk is undecided again"), ...talk, ...after];
    if (choice) return [lens(lines ? "$(check)\u00a0Accepted as you edited it" : "$(check)\u00a0Accepted", "", ""), lens("$(close)\u00a0Reject", "pillion.review.rejectHunk", "Restore the original lines"), ...talk, ...after];
    return [
      lens(hunk.kind === "edited" ? "$(check)\u00a0Accept your version" : "$(check)\u00a0Accept", "pillion.review.acceptHunk", "Accept these lines"),
      lens("$(close)\u00a0Reject", "pillion.review.rejectHunk", "Restore the original lines"),
      ...talk,
      ...after,
    ];
  }
}

/** The effect of one hunk, and which hunks it needs; nothing if it changes no problems. */
function effectOf(review: Review, hunk: ReviewedHunk): { title: string; tooltip: string } | undefined {
  const effect = review.approval.effects.get(hunk.id);
  if (!effect) return undefined;
  const { fixes = [], introduces = [], ifRejected = [], needs = [] } = effect;
  const name = (p: Problem) => `${p.path.split(/[\\/]/).at(-1)}:${String(p.line)} ${p.message}`;
  const parts = [];
  if (needs.length > 0) parts.push(`$(link)\u00a0Hunk ${String(review.number(hunk.id))} needs ${needs.map((id) => `hunk ${String(review.number(id))}`).join(", ")}`);
  if (fixes.length > 0) parts.push(`$(pass)\u00a0Fixes ${String(fixes.length)}`);
  if (introduces.length > 0) parts.push(`$(warning)\u00a0Introduces ${String(introduces.length)}`);
  if (ifRejected.length > 0) parts.push(`$(warning)\u00a0If rejected: introduces ${String(ifRejected.length)}`);
  if (parts.length === 0) return undefined;
  const lines = [
    ...needs.map((id) => `Accepted without hunk ${String(review.number(id))} (${review.place(id)}), this hunk introduces problems.`),
    ...fixes.map((p) => `This hunk fixes ${name(p)}`),
    ...introduces.map((p) => `This hunk introduces ${name(p)}`),
    ...ifRejected.map((p) => `If this hunk is rejected: ${name(p)}`),
  ];
  return { title: parts.join(" · "), tooltip: lines.slice(0, 12).join("\n") };
}

/** Says that a file has changed, with a button to compare it again. */
function driftLens(review: Review, at: vscode.Range, file: ReviewFile): vscode.CodeLens | undefined {
  const title = driftTitle(review);
  if (!title) return undefined;
  if (review.files.every((f) => f.drift === "")) return new vscode.CodeLens(at, { title, command: "", tooltip: "" });
  return new vscode.CodeLens(at, { title, command: "pillion.review.proposeAgain", tooltip: "Accepted hunks are merged into the new text. If the same lines have changed, nothing is written. Click to have Pillion read the file again and make a new proposal.", arguments: [file.right] });
}

/** The verdict of the proposal; nothing if no language server has checked it. */
export function problemsTitle(review: Review): string | undefined {
  const d = review.approval.verdict;
  if (!d) return undefined;
  if (d.certainty === "unavailable") return "$(question)\u00a0Problems not checked";
  if (d.certainty === "pending") return "$(sync)\u00a0Checking problems…";
  const about = d.certainty === "partial" ? " (not all checked)" : "";
  const { fixed, introduced, lesser } = countVerdict(d);
  const parts = [];
  if (fixed > 0) parts.push(`$(pass)\u00a0Fixes ${String(fixed)}`);
  if (introduced > 0) parts.push(`$(warning)\u00a0Introduces ${String(introduced)}`);
  if (d.introduced.length === 0) parts.push(parts.length === 0 ? "$(pass)\u00a0No new problems" : "introduces none");
  else if (introduced === 0) parts.push(parts.length === 0 ? "$(pass)\u00a0No new errors" : "introduces no error");
  if (lesser) parts.push(lesser);
  return parts.join(" · ") + about;
}

function problemsTooltip(review: Review): string {
  const d = review.approval.verdict;
  if (!d) return "No language server checks this file.";
  const list = (label: string, problems: typeof d.fixed) => problems.slice(0, 10).map((p) => `${label} ${p.path.split(/[\\/]/).at(-1)}:${p.line} ${p.message}`);
  const lines = [...list("introduces", d.introduced), ...list("fixes", d.fixed)];
  if (d.reason) lines.unshift(d.reason);
  return lines.length > 0 ? lines.join("\n") : `${d.unchanged} problems stay as they are`;
}

function short(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 40 ? line.slice(0, 39) + "…" : line;
}
