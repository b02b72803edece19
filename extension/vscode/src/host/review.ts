// One proposal under review: its documents, the place of each hunk, and the person's decisions. reviews.ts shows it.
import * as vscode from "vscode";
import { linesOf, reviewed, type ReviewedHunk, textWith } from "../common/hunks";
import type { HunkState } from "../common/decisions";
import type { Problem } from "../common/protocol";
import { type Approval, type ApprovalFile, type Approvals, optionOf } from "./approvals";
import { baseScheme, proposalScheme, type Proposals } from "./proposals";

/** How a file has changed since the proposal was made; "" if it has not. drift.ts compares it. */
export type Drift = "" | "changed" | "gone" | "there" | "unsaved";

export interface ReviewFile {
  readonly index: number;
  readonly of: ApprovalFile;
  readonly path: string;
  base: string;
  proposed: string;
  /** The texts are only parts of the file; the whole file is fetched before it is shown. */
  excerpt: boolean;
  /** Left and right side. */
  readonly left: vscode.Uri;
  readonly right: vscode.Uri;
  hunks: ReviewedHunk[];
  /** The person also changed lines outside the hunks. */
  outside: boolean;
  /** How the file itself has changed since. */
  drift: Drift;
  /** It is a notebook that is shown as cells; its text is in no editor then. */
  asCells: boolean;
}

/** The title of a change that this window itself proposes: the name of the file and what the change is. */
function ownTitle(files: readonly ReviewFile[], what: string): string {
  return files.length === 1 ? `${fileName(files[0]!)} — ${what.charAt(0).toLowerCase()}${what.slice(1)}` : what; // VS Code appends the number of files
}

/** A larger proposal is shown only when the person asks for it. */
const largeText = 1 << 20; // characters
const largeHunks = 400;

export class Review {
  readonly files: ReviewFile[];
  readonly title: string;
  /** It replaces a proposal whose file had changed. */
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
      return { index, of, path: file.fsPath, base, proposed, excerpt: of.change.excerpt ?? false, left, right, hunks: now.hunks, outside: false, drift: "", asCells: false };
    });
    this.title = approval.own ? ownTitle(this.files, approval.request.toolCall.title ?? "") : this.files.length === 1 ? `${fileName(this.files[0]!)} — Pillion proposes` : "Pillion proposes"; // VS Code appends the number of files
  }

  /** It is the draft of a whole turn. */
  get draft(): boolean {
    return this.approval.request.toolCall.name === "draft";
  }

  get id(): string {
    return this.approval.id;
  }

  get large(): boolean {
    const text = this.files.reduce((n, f) => n + f.base.length + f.proposed.length, 0);
    return text > largeText || this.files.some((f) => f.excerpt) || this.files.reduce((n, f) => n + f.hunks.length, 0) > largeHunks;
  }

  /** Whether it was answered, here or in the panel. */
  get over(): boolean {
    return this.approvals.get(this.id) === undefined;
  }

  /** Replaces the partial texts of a file by the whole ones. */
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

  /** The person's decision on a hunk so far, with edited lines and comment. */
  state(hunkId: string): HunkState {
    return this.approval.decisions.of(hunkId);
  }

  undecided(file?: ReviewFile): ReviewedHunk[] {
    return (file ? [file] : this.files).flatMap((f) => f.hunks.filter((h) => !this.state(h.id).choice));
  }

  /** The number of a hunk among all hunks of the proposal, from 1; 0 for a hunk of another proposal. */
  number(hunkId: string): number {
    return this.files.flatMap((f) => f.hunks).findIndex((h) => h.id === hunkId) + 1;
  }

  /** The place of a hunk: "line 12", with the name of the file if it is another one. */
  place(hunkId: string): string {
    const file = this.files.find((f) => f.hunks.some((h) => h.id === hunkId));
    const line = (file?.hunks.find((h) => h.id === hunkId)?.start ?? 0) + 1;
    return file && this.files.length > 1 ? `line ${String(line)} of ${fileName(file)}` : `line ${String(line)}`;
  }

  /** The problems that the proposal introduces into a file. */
  introduced(file: ReviewFile): Problem[] {
    return (this.approval.verdict?.introduced ?? []).filter((p) => p.path === file.path);
  }

  /**
   * Called when the text of the right side has changed: finds out what the person did to each hunk. Returns true if
   * this change restored the old lines of a hunk, as the diff editor's arrow does.
   */
  read(file: ReviewFile, text: string): boolean {
    const now = reviewed(file.base, file.proposed, file.of.change.hunks, text);
    let reverted = false;
    for (const h of now.hunks) {
      const before = file.hunks.find((x) => x.id === h.id)?.kind;
      reverted ||= h.kind === "reverted" && before === "proposed";
      const lines = h.kind === "edited" ? h.lines : undefined;
      if (h.kind === "reverted") this.mark(h, { choice: "reject", lines });
      else if (this.state(h.id).choice === "reject") this.mark(h, { choice: undefined, lines }); // the person undid the rejection
      else this.mark(h, { lines });
    }
    file.hunks = now.hunks;
    file.outside = now.outside;
    return reverted;
  }

  /** Accepts hunks; the text does not change. A hunk with restored old lines gets its proposed lines again. */
  async accept(file: ReviewFile, hunks: readonly ReviewedHunk[]): Promise<void> {
    const back = hunks.filter((h) => h.kind === "reverted");
    await this.decide(file, hunks, "accept", new Map(back.map((h) => [h.id, h.proposed])));
  }

  /** Rejects hunks and restores their old lines; undo in the editor reverts that. */
  async reject(file: ReviewFile, hunks: readonly ReviewedHunk[]): Promise<void> {
    const there = hunks.filter((h) => h.kind !== "reverted");
    await this.decide(file, hunks, "reject", new Map(there.map((h) => [h.id, h.old])));
  }

  /** Takes the rejection of a hunk back: its proposed lines are restored, and it is undecided. */
  async reopen(file: ReviewFile, hunk: ReviewedHunk): Promise<void> {
    this.mark(hunk, { choice: undefined });
    await this.rewrite(file, new Map([[hunk.id, hunk.proposed]]));
  }

  /**
   * The decision counts from the click on, even if everything is answered while the editor still changes the text. That
   * text change is handled like typing of the person, so the decision is stored again after it.
   */
  private async decide(file: ReviewFile, hunks: readonly ReviewedHunk[], choice: "accept" | "reject", lines: Map<string, readonly string[]>): Promise<void> {
    for (const h of hunks) this.mark(h, { choice });
    if (lines.size === 0) return;
    await this.rewrite(file, lines);
    for (const h of hunks) this.mark(h, { choice });
  }

  /** Stores a comment on a hunk; an empty text removes it. */
  comment(hunkId: string, comment: string): void {
    this.approvals.mark(this.id, hunkId, { comment: comment || undefined });
  }

  /** Answers when every hunk is decided. */
  settle(): boolean {
    if (this.over || this.undecided().length > 0 || this.files.length === 0) return false;
    const accepted = this.files.some((f) => f.hunks.some((h) => this.state(h.id).choice !== "reject"));
    return this.answer(accepted);
  }

  /** Accepts or rejects everything that is undecided, and answers. */
  answer(accept: boolean, comment?: string): boolean {
    const option = optionOf(this.approval, accept);
    return option !== undefined && this.approvals.decide(this.id, option.optionId, comment ? { comment } : {});
  }

  /** Answers that the files have changed: nothing is written, and the model reads them again. */
  again(): boolean {
    const option = optionOf(this.approval, false);
    return option !== undefined && this.approvals.decide(this.id, option.optionId, { stale: true });
  }

  /** The two texts of a file in which the person typed outside the hunks: with only the hunks' lines (expected), and as typed
   * (wanted). Undefined if they did not. */
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

  private mark(h: ReviewedHunk, part: HunkState): void {
    this.approvals.mark(this.id, h.id, part);
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
    if (file.asCells) return this.replace(file, edited(document, edit.get(file.right)));
    await vscode.workspace.applyEdit(edit);
    this.read(file, document.getText());
  }

  /**
   * Sets the text of the right side without an editor. A workspace edit would make the document unsaved, and VS Code opens a tab for
   * unsaved documents that have none.
   */
  replace(file: ReviewFile, text: string): void {
    this.proposals.put(file.right, text);
    this.read(file, text);
  }
}

/** The edit that replaces lines, also at the end of a text without a final newline. */
export function lineEdit(document: vscode.TextDocument, start: number, count: number, lines: readonly string[]): { range: vscode.Range; text: string } {
  const eol = document.eol === vscode.EndOfLine.CRLF ? "\r\n" : "\n";
  const end = start + count;
  if (end < document.lineCount) return { range: new vscode.Range(start, 0, end, 0), text: lines.map((l) => l + eol).join("") };
  // up to the end of the document: the newline before is removed too if no lines are left
  const last = document.lineAt(document.lineCount - 1).range.end;
  if (start === 0) return { range: new vscode.Range(new vscode.Position(0, 0), last), text: lines.join(eol) };
  return { range: new vscode.Range(document.lineAt(Math.min(start, document.lineCount) - 1).range.end, last), text: lines.map((l) => eol + l).join("") };
}

/** A document's text after these edits, which do not overlap. */
function edited(document: vscode.TextDocument, edits: readonly vscode.TextEdit[]): string {
  const last = [...edits].sort((a, b) => b.range.start.compareTo(a.range.start));
  return last.reduce((text, e) => text.slice(0, document.offsetAt(e.range.start)) + e.newText + text.slice(document.offsetAt(e.range.end)), document.getText());
}

/** The path as the breadcrumbs show it, relative to the folder. */
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
