// One proposal under review: its documents, which hunk stands where, and what the person has decided. It shows nothing
// by itself; see reviews.ts.
import * as vscode from "vscode";
import { linesOf, reviewed, type ReviewedHunk, textWith } from "../common/hunks";
import type { HunkDecision, Problem } from "../common/protocol";
import { type Approval, type ApprovalFile, type Approvals, optionOf } from "./approvals";
import type { Drift } from "./drift";
import { baseScheme, proposalScheme, type Proposals } from "./proposals";

export interface ReviewFile {
  readonly index: number;
  readonly of: ApprovalFile;
  readonly path: string;
  base: string;
  proposed: string;
  /** The texts are only parts of the file; the whole is fetched before it is shown. */
  excerpt: boolean;
  /** Left and right side. */
  readonly left: vscode.Uri;
  readonly right: vscode.Uri;
  hunks: ReviewedHunk[];
  /** The person also changed lines outside of every hunk. */
  outside: boolean;
  /** What became of the file itself since. */
  drift: Drift;
}

/** Beyond this a proposal is shown only when the person asks for it. */
const largeText = 1 << 20; // characters
const largeHunks = 400;

export class Review {
  readonly files: ReviewFile[];
  readonly title: string;
  /** It takes the place of one whose file had moved on. */
  refreshed = false;

  constructor(
    readonly approval: Approval,
    private readonly approvals: Approvals,
    private readonly proposals: Proposals,
  ) {
    this.files = approval.files.map((of, index) => {
      const base = of.diff.oldText ?? "";
      const proposed = of.change.kind === "delete" ? "" : of.diff.newText;
      const query = `${approval.id}&${index}`;
      const file = vscode.Uri.parse(of.change.newUri ?? of.change.uri, true);
      const left = vscode.Uri.from({ scheme: baseScheme, path: shownPath(vscode.Uri.parse(of.change.uri, true)), query });
      const right = vscode.Uri.from({ scheme: proposalScheme, path: shownPath(file), query });
      proposals.put(left, base);
      proposals.put(right, proposed);
      const now = reviewed(base, proposed, of.change.hunks, proposed);
      return { index, of, path: file.fsPath, base, proposed, excerpt: of.change.excerpt ?? false, left, right, hunks: now.hunks, outside: false, drift: "" };
    });
    this.title = approval.own ? `${fileName(this.files[0]!)} — code from the conversation` : this.files.length === 1 ? `${fileName(this.files[0]!)} — Pillion proposes` : "Pillion proposes"; // VS Code adds the number of files
  }

  get id(): string {
    return this.approval.id;
  }

  get large(): boolean {
    const text = this.files.reduce((n, f) => n + f.base.length + f.proposed.length, 0);
    return text > largeText || this.files.some((f) => f.excerpt) || this.files.reduce((n, f) => n + f.hunks.length, 0) > largeHunks;
  }

  /** Whether somebody has answered, here or in the panel. */
  get over(): boolean {
    return this.approvals.get(this.id) === undefined;
  }

  /** Gives a file whose request held only parts of it its whole texts. */
  fill(file: ReviewFile, base: string, proposed: string): void {
    file.excerpt = false;
    file.base = base;
    file.proposed = proposed;
    file.hunks = reviewed(base, proposed, file.of.change.hunks, proposed).hunks;
    this.proposals.put(file.left, base);
    this.proposals.put(file.right, proposed);
  }

  file(uri: vscode.Uri): ReviewFile | undefined {
    return this.files.find((f) => f.right.toString() === uri.toString());
  }

  decision(hunkId: string): HunkDecision | undefined {
    return this.approval.hunks.get(hunkId);
  }

  comment(hunkId: string): string | undefined {
    return this.decision(hunkId)?.comment ?? this.approval.drafts.get(hunkId)?.comment;
  }

  undecided(file?: ReviewFile): ReviewedHunk[] {
    return (file ? [file] : this.files).flatMap((f) => f.hunks.filter((h) => !this.decision(h.id)));
  }

  /** Problems that the proposal would bring to a file. */
  introduced(file: ReviewFile): Problem[] {
    return (this.approval.meta.diagnostics?.introduced ?? []).filter((p) => p.path === file.path);
  }

  /**
   * The right side has another text: reads from it what became of each hunk. Returns true when this one change took a hunk
   * back to its old lines, which is what the diff editor's own arrow does.
   */
  read(file: ReviewFile, text: string): boolean {
    const now = reviewed(file.base, file.proposed, file.of.change.hunks, text);
    let reverted = false;
    for (const h of now.hunks) {
      const was = this.decision(h.id);
      const comment = this.comment(h.id);
      const said = comment ? { comment } : {};
      const before = file.hunks.find((x) => x.id === h.id)?.kind;
      if (h.kind === "reverted") {
        if (before !== "reverted") reverted ||= before === "proposed";
        if (was?.decision !== "reject") this.approvals.note(this.id, h.id, { decision: "reject", ...said });
      } else if (was?.decision === "reject") this.approvals.note(this.id, h.id, undefined); // the rejection was taken back
      else if (was) this.approvals.note(this.id, h.id, accepting(h, comment));
      this.approvals.draft(this.id, h.id, { ...(h.kind === "edited" ? { newLines: h.lines } : {}), ...said });
    }
    file.hunks = now.hunks;
    file.outside = now.outside;
    return reverted;
  }

  /** Notes an acceptance; the text stays as it is. A hunk that was taken back gets its proposed lines again. */
  async accept(file: ReviewFile, hunks: readonly ReviewedHunk[]): Promise<void> {
    const back = hunks.filter((h) => h.kind === "reverted");
    if (back.length > 0) await this.rewrite(file, new Map(back.map((h) => [h.id, h.proposed])));
    for (const h of hunks) {
      const now = file.hunks.find((x) => x.id === h.id);
      if (now) this.approvals.note(this.id, h.id, accepting(now, this.comment(h.id)));
    }
  }

  /** Takes hunks back to their old lines; undo in the editor takes that back. */
  async reject(file: ReviewFile, hunks: readonly ReviewedHunk[]): Promise<void> {
    const there = hunks.filter((h) => h.kind !== "reverted");
    if (there.length > 0) await this.rewrite(file, new Map(there.map((h) => [h.id, h.old])));
    for (const h of hunks) {
      const comment = this.comment(h.id);
      this.approvals.note(this.id, h.id, { decision: "reject", ...(comment ? { comment } : {}) });
    }
  }

  say(hunkId: string, comment: string): void {
    const was = this.decision(hunkId);
    const said = comment === "" ? {} : { comment };
    if (was) this.approvals.note(this.id, hunkId, { ...was, comment: comment === "" ? undefined : comment });
    this.approvals.draft(this.id, hunkId, { ...(this.approval.drafts.get(hunkId)?.newLines ? { newLines: this.approval.drafts.get(hunkId)!.newLines! } : {}), ...said });
  }

  /** Answers when every hunk is decided. */
  settle(): boolean {
    if (this.over || this.undecided().length > 0 || this.files.length === 0) return false;
    const accepted = this.files.some((f) => f.hunks.some((h) => this.decision(h.id)?.decision !== "reject"));
    return this.answer(accepted);
  }

  /** Accepts or rejects all that is undecided, and answers. */
  answer(accept: boolean, comment?: string): boolean {
    const option = optionOf(this.approval, accept);
    return option !== undefined && this.approvals.decide(this.id, option.optionId, comment ? { comment } : {});
  }

  /** Answers that files are others by now: nothing is written, and the model looks at them again. */
  again(): boolean {
    const option = optionOf(this.approval, false);
    return option !== undefined && this.approvals.decide(this.id, option.optionId, { stale: true });
  }

  /** What the person typed outside of every hunk, as the text they want a file to have once it holds what they accepted. */
  own(file: ReviewFile, current: string): { expected: string; wanted: string } | undefined {
    if (!file.outside) return undefined;
    const expected = textWith(file.base, file.of.change.hunks, (id) => file.hunks.find((h) => h.id === id)?.lines);
    return expected === linesOf(current).join("\n") + "\n" ? undefined : { expected, wanted: current };
  }

  dispose(): void {
    for (const f of this.files) {
      this.proposals.drop(f.left);
      this.proposals.drop(f.right);
    }
  }

  /** Replaces the lines of hunks on the right side in one step. */
  private async rewrite(file: ReviewFile, lines: Map<string, readonly string[]>): Promise<void> {
    const document = await vscode.workspace.openTextDocument(file.right);
    const edit = new vscode.WorkspaceEdit();
    for (const h of file.hunks) {
      const wanted = lines.get(h.id);
      if (!wanted) continue;
      const { range, text } = lineEdit(document, h.start, h.lines.length, wanted);
      edit.replace(file.right, range, text);
    }
    await vscode.workspace.applyEdit(edit);
    this.read(file, document.getText());
  }
}

/** The edit that puts lines in the place of others, at the end of a text without a last line end too. */
export function lineEdit(document: vscode.TextDocument, start: number, count: number, lines: readonly string[]): { range: vscode.Range; text: string } {
  const eol = document.eol === vscode.EndOfLine.CRLF ? "\r\n" : "\n";
  const end = start + count;
  if (end < document.lineCount) return { range: new vscode.Range(start, 0, end, 0), text: lines.map((l) => l + eol).join("") };
  // up to the end of the document: the line end before goes along when nothing is left
  const last = document.lineAt(document.lineCount - 1).range.end;
  if (start === 0) return { range: new vscode.Range(new vscode.Position(0, 0), last), text: lines.join(eol) };
  return { range: new vscode.Range(document.lineAt(Math.min(start, document.lineCount) - 1).range.end, last), text: lines.map((l) => eol + l).join("") };
}

/** As the breadcrumbs show it: from the folder on. */
function shownPath(uri: vscode.Uri): string {
  const short = vscode.workspace.asRelativePath(uri);
  return short === uri.fsPath || short === uri.path || /^([\\/]|[a-zA-Z]:)/.test(short) ? uri.path : `/${short}`;
}

export function fileName(file: ReviewFile): string {
  const name = file.path.split(/[\\/]/).at(-1) ?? file.path;
  const { kind, uri } = file.of.change;
  if (kind === "rename") return `${vscode.Uri.parse(uri, true).path.split("/").at(-1)} → ${name}`;
  return name;
}

function accepting(h: ReviewedHunk, comment: string | undefined): HunkDecision {
  const said = comment ? { comment } : {};
  return h.kind === "edited" ? { decision: "edit", newLines: h.lines, ...said } : { decision: "accept", ...said };
}
