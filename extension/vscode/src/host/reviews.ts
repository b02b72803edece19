// Shows proposals in the editor and handles the decisions there. Closing a tab decides nothing; the focus moves only if the
// person asked for it.
import * as vscode from "vscode";
import { besideSource, withSource } from "../common/cells";
import type { ReviewedHunk } from "../common/hunks";
import type { Approval, Approvals, Decided } from "./approvals";
import { BlankMarks } from "./blanks";
import { type CellEdit, CellSides, isCells, showsCells, sideAsCells, textSide } from "./cellsides";
import { watchFiles } from "./drift";
import { Lenses } from "./lenses";
import { baseScheme, proposalScheme, type Proposals, turnScheme } from "./proposals";
import { fileName, Review, type ReviewFile } from "./review";
import { tell } from "./sessionlist";
import type { Sidecar } from "./sidecar";
import { onCommand } from "./table";
import { closeTabs, type DiffOptions, keep, proposalTabs } from "./tabs";

/** For this time after a key in a file, no proposal is shown in front of it. */
const typingPause = 5_000; // ms

export class Reviews implements vscode.Disposable {
  private readonly reviews = new Map<string, Review>();
  private readonly lenses: Lenses;
  private readonly blanks: BlankMarks;
  private readonly cells: CellSides;
  private readonly problems = vscode.languages.createDiagnosticCollection("pillion-proposal");
  private readonly disposables: vscode.Disposable[];
  private lastTyped = 0;
  /** Sessions whose next proposal is shown with the focus. */
  private readonly wanted = new Set<string>();
  private writers = 0;
  private readonly watched = new Map<string, ReturnType<typeof watchFiles>>();
  /** By session: files whose proposal was given up because they had changed. The next proposal for them says so. */
  private readonly again = new Map<string, Set<string>>();
  /** Texts that the person typed outside hunks; they are applied after the accepted hunks were written. */
  private readonly own = new Map<string, { path: string; expected: string; wanted: string }[]>();

  constructor(
    private readonly sidecar: Sidecar,
    private readonly approvals: Approvals,
    private readonly proposals: Proposals,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.lenses = new Lenses((uri) => this.find(uri));
    const command = (id: string, run: (uri?: vscode.Uri, hunk?: string) => unknown) =>
      onCommand(`pillion.review.${id}`, (uri?: unknown, hunk?: unknown) => run(uri instanceof vscode.Uri ? uri : undefined, typeof hunk === "string" ? hunk : undefined));
    this.cells = new CellSides(proposals);
    this.blanks = new BlankMarks((uri) => this.find(uri)?.file);
    this.disposables = [
      this.cells,
      this.cells.onDidEdit((e) => this.editedCell(e)),
      this.lenses,
      this.blanks,
      this.problems,
      approvals.onDidAsk((a) => this.asked(a)),
      approvals.onDidOpen(({ approval, path }) => void this.open(approval.id, false, path)), // reviews show their own errors
      approvals.onDidChange((sessionId) => this.changed(sessionId)),
      approvals.onDidDecide((d) => void this.decided(d)), // if tabs cannot be closed, the decision is still valid
      vscode.workspace.onDidChangeTextDocument((e) => this.typed(e)),
      vscode.window.tabGroups.onDidChangeTabs(({ opened }) => {
        this.context();
        // the notebook diff editor's own button for the text: read-only and without lenses, so the review's text is shown
        for (const tab of opened) if (tab.input instanceof vscode.TabInputTextDiff && isCells(tab.input.modified)) void this.showAs(tab.input.modified, true).catch(tell);
      }),
      vscode.window.onDidChangeActiveTextEditor(() => this.context()),
      command("acceptHunk", (uri, hunk) => this.decide(uri, hunk, true)),
      command("rejectHunk", (uri, hunk) => this.decide(uri, hunk, false)),
      command("reopenHunk", (uri, hunk) => this.reopen(uri, hunk)),
      command("commentHunk", (uri, hunk) => this.comment(uri, hunk)),
      command("next", () => this.step(1)),
      command("previous", () => this.step(-1)),
      command("acceptFile", (uri) => this.decideFile(uri, true)),
      command("rejectFile", (uri) => this.decideFile(uri, false)),
      command("acceptAll", () => this.current()?.review.answer(true)),
      command("rejectAll", () => this.rejectAll()),
      command("proposeAgain", (uri) => this.current(uri)?.review.again()),
      command("openAll", () => this.openAll(this.current()?.review)),
      command("showCells", (uri) => this.showAs(uri, false)),
      command("later", (uri) => this.close(this.current(uri)?.review)),
    ];
    void closeTabs(proposalTabs()); // left over from before a restart: their texts no longer exist
  }

  /** Shows the oldest pending proposal at its first undecided hunk. */
  async openNext(sessionId?: string): Promise<boolean> {
    const waiting = this.approvals.pending(sessionId).find((a) => this.reviews.has(a.id));
    if (!waiting) return false;
    await this.open(waiting.id, false);
    return true;
  }

  /** The person's own edits outside the hunks of a change set, applied after it was written. */
  takeOwn(changeSet: string): { path: string; expected: string; wanted: string }[] {
    const own = this.own.get(changeSet) ?? [];
    this.own.delete(changeSet);
    return own;
  }

  /** Shows the next proposals of a session at once and with the focus: the person started it in the editor. */
  showNext(sessionId: string, on: boolean): void {
    if (on) this.wanted.add(sessionId);
    else this.wanted.delete(sessionId);
  }

  /** Runs a function that writes accepted changes: these edits are not typing, so they delay no proposal. */
  async writing<T>(run: () => Promise<T>): Promise<T> {
    this.writers++;
    try {
      return await run();
    } finally {
      this.writers--;
    }
  }

  dispose(): void {
    for (const d of this.disposables) d.dispose();
    for (const review of this.reviews.values()) review.dispose();
    for (const w of this.watched.values()) w.dispose();
  }

  private asked(approval: Approval): void {
    if (approval.files.length === 0) return;
    const review = new Review(approval, this.approvals, this.proposals);
    this.reviews.set(approval.id, review);
    const again = this.again.get(approval.sessionId);
    for (const f of review.files) if (again?.delete(f.path)) review.refreshed = true;
    this.watched.set(approval.id, watchFiles(review, () => this.lenses.refresh()));
    if (approval.own || this.wanted.delete(approval.sessionId)) return void this.open(review.id, false); // the person asked for it; reviews show their own errors
    const auto = vscode.workspace.getConfiguration("pillion").get<string>("review.open", "auto") === "auto";
    const typing = Date.now() - this.lastTyped < typingPause;
    const other = [...this.reviews.values()].some((r) => r !== review && !r.over); // one after the other
    if (auto && !typing && !other && !review.large) void this.open(review.id, true);
  }

  /** Called when there is a decision or a new verdict. */
  private changed(sessionId: string): void {
    this.lenses.refresh();
    for (const review of this.reviews.values()) if (review.approval.sessionId === sessionId) for (const f of review.files) if (this.problems.has(f.right)) this.publish(review, f);
  }

  private async open(id: string, quietly: boolean, path?: string): Promise<void> {
    const review = this.reviews.get(id);
    if (!review || review.over) return;
    const file = review.files.find((f) => f.path === path) ?? review.files.find((f) => review.undecided(f).length > 0) ?? review.files[0];
    if (!file) return;
    try {
      // A draft is shown as one review of all files, unless one file was named or VS Code would move the focus to them.
      if (review.draft && path === undefined && !quietly && review.files.length > 1 && !review.large) return await this.openAll(review);
      await this.show(review, file, quietly, review.undecided(file)[0]);
    } catch (error) {
      this.log.error(`the proposal could not be shown: ${String(error)}`);
      if (!quietly) tell(error);
    }
  }

  private async show(review: Review, file: ReviewFile, quietly: boolean, hunk?: ReviewedHunk, asText = false): Promise<void> {
    if (file.excerpt) await this.fetch(review, file);
    if (!this.proposals.has(file.right)) return; // it was decided in the meantime
    this.watched.get(review.id)?.look(); // changes in folders that are not watched
    const title = review.files.length === 1 ? review.title : `${fileName(file)} (${file.index + 1} of ${review.files.length}) — Pillion proposes`;
    const line = hunk?.start ?? 0;
    this.publish(review, file);
    file.asCells = !asText && showsCells(file.path, file.base, file.proposed);
    if (file.asCells) {
      await vscode.commands.executeCommand("vscode.diff", sideAsCells(file.left), sideAsCells(file.right), title, { preview: true, preserveFocus: quietly } satisfies vscode.TextDocumentShowOptions);
    } else {
      await vscode.commands.executeCommand("vscode.diff", file.left, file.right, title, {
        preview: true,
        preserveFocus: quietly,
        selection: new vscode.Range(line, 0, line, 0),
        override: true,
      } satisfies DiffOptions);
    }
    if (review.over) await this.close(review); // answered while it was opened
    this.context();
  }

  /** What the notebook diff editor changed on the right side, above all by its arrow that reverts a cell: the same in the proposal's text. */
  private async editedCell({ uri, at, source }: CellEdit): Promise<void> {
    const found = this.find(uri);
    if (!found || found.review.over) return;
    const { review, file } = found;
    const text = this.proposals.text(file.right);
    if (source === undefined) {
      // Outputs or metadata, of a cell or of the notebook: nobody types them, so this was a revert, or the whole side was read again.
      const reverted = besideSource(text, file.hunks, at).filter((h) => h.kind !== "reverted");
      if (reverted.length > 0) await review.reject(file, reverted);
    } else {
      const now = withSource(text, at ?? 0, source);
      if (now === undefined || now === text) return; // the side was read again
      this.cells.editing(() => review.replace(file, now));
    }
    this.lenses.refresh();
    await this.settle(review);
  }

  /** Shows a notebook as its text, where each hunk can be decided and edited, or as cells. */
  private async showAs(uri: vscode.Uri | undefined, text: boolean): Promise<void> {
    const found = this.current(uri);
    if (!found) return;
    const { review, file } = found;
    const before = this.tabsOf(review);
    await this.show(review, file, false, review.undecided(file)[0], text);
    await closeTabs(before);
  }

  /** The texts of a large file are fetched when the review is opened. */
  private async fetch(review: Review, file: ReviewFile): Promise<void> {
    const { sessionId, meta } = review.approval;
    if (!this.sidecar.announced("_pillion/change/text")) throw new Error(`${file.path} is too large to be shown by this Pillion; update it, or decide in the panel.`);
    const text = await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: `Pillion: reading ${fileName(file)}` }, () =>
      this.sidecar.request("_pillion/change/text", { sessionId, changeSet: meta.changeSet ?? "", uri: file.of.change.uri }),
    );
    if (!review.over) review.fill(file, text.oldText, text.newText);
  }

  private async openAll(review: Review | undefined): Promise<void> {
    if (!review) return;
    for (const f of review.files.filter((x) => x.excerpt)) await this.fetch(review, f);
    for (const f of review.files) {
      f.asCells = false;
      this.publish(review, f);
    }
    await vscode.commands.executeCommand(
      "vscode.changes",
      review.title,
      review.files.map((f) => [f.right, f.of.change.kind === "create" ? undefined : f.left, f.of.change.kind === "delete" ? undefined : f.right]),
    );
  }

  private typed(e: vscode.TextDocumentChangeEvent): void {
    if (e.document.uri.scheme !== proposalScheme) {
      const mine = e.contentChanges.length > 0 && e.document === vscode.window.activeTextEditor?.document;
      if (mine && this.writers === 0 && (e.document.uri.scheme === "file" || e.document.uri.scheme === "untitled")) this.lastTyped = Date.now();
      return;
    }
    const found = this.find(e.document.uri);
    if (!found || e.contentChanges.length === 0) return;
    const reverted = found.review.read(found.file, e.document.getText());
    this.lenses.refresh();
    this.blanks.draw();
    void keep(e.document).then(() => {
      if (reverted && e.reason === undefined) void this.settle(found.review);
    });
  }

  private async decide(uri: vscode.Uri | undefined, hunkId: string | undefined, accept: boolean): Promise<void> {
    const found = this.current(uri);
    if (!found) return;
    const hunk = hunkId ? found.file.hunks.find((h) => h.id === hunkId) : this.hunkAtCursor(found.review, found.file);
    if (!hunk) return;
    if (accept) await found.review.accept(found.file, [hunk]);
    else await found.review.reject(found.file, [hunk]);
    await this.settle(found.review, found.file);
  }

  private async reopen(uri: vscode.Uri | undefined, hunkId: string | undefined): Promise<void> {
    const found = this.current(uri);
    const hunk = found?.file.hunks.find((h) => h.id === hunkId);
    if (found && hunk) await found.review.reopen(found.file, hunk);
    this.lenses.refresh();
  }

  private async decideFile(uri: vscode.Uri | undefined, accept: boolean): Promise<void> {
    const found = this.current(uri);
    if (!found) return;
    const open = found.review.undecided(found.file);
    if (accept) await found.review.accept(found.file, open);
    else await found.review.reject(found.file, open);
    await this.settle(found.review, found.file);
  }

  /** Answers if everything is decided, else moves to the next undecided hunk. */
  private async settle(review: Review, from?: ReviewFile): Promise<void> {
    if (review.over || review.settle()) return;
    this.lenses.refresh();
    if (!from) return;
    const here = review.undecided(from)[0];
    if (here) return this.reveal(from, here);
    const next = review.files.find((f) => review.undecided(f).length > 0);
    if (next && !this.severalShown()) await this.show(review, next, false, review.undecided(next)[0]);
  }

  private async comment(uri: vscode.Uri | undefined, hunkId: string | undefined): Promise<void> {
    const found = this.current(uri);
    const hunk = found && (hunkId ? found.file.hunks.find((h) => h.id === hunkId) : this.hunkAtCursor(found.review, found.file));
    if (!found || !hunk) return;
    const text = await vscode.window.showInputBox({
      title: "Comment on this hunk",
      prompt: "Sent to the model with your decision, for example why you reject the hunk.",
      value: found.review.state(hunk.id).comment ?? "",
    });
    if (text === undefined || found.review.over) return;
    found.review.comment(hunk.id, text.trim());
    this.lenses.refresh();
  }

  /**
   * Closes a proposal's tabs, decided or not. After a rejection or a key its document has unsaved changes for a moment,
   * and VS Code would ask whether to save them: so it is first saved (in memory).
   */
  private async close(review: Review | undefined): Promise<void> {
    const own = new Set(review?.files.map((f) => f.right.toString()));
    for (const d of vscode.workspace.textDocuments) if (d.isDirty && own.has(d.uri.toString())) await keep(d);
    await closeTabs(this.tabsOf(review));
  }

  private async rejectAll(): Promise<void> {
    const review = this.current()?.review;
    if (!review) return;
    const why = await vscode.window.showInputBox({ title: "Reject all undecided hunks", prompt: "Tell Pillion why, or what to do instead (optional)." });
    if (why !== undefined) review.answer(false, why.trim());
  }

  /** The next or previous undecided hunk, else any; after the last one of a file, that of the next file. */
  private async step(by: 1 | -1): Promise<void> {
    const found = this.current();
    if (!found) return;
    const { review, file } = found;
    const line = vscode.window.activeTextEditor?.selection.active.line ?? 0;
    const wanted = (f: ReviewFile) => {
      const open = review.undecided(f);
      return open.length > 0 || review.undecided().length > 0 ? open : f.hunks;
    };
    const here = wanted(file).filter((h) => (by > 0 ? h.start > line : h.start < line));
    const hunk = by > 0 ? here[0] : here.at(-1);
    if (hunk) return this.reveal(file, hunk);
    for (let i = 1; i <= review.files.length; i++) {
      const next = review.files[(file.index + by * i + review.files.length * i) % review.files.length]!;
      const list = wanted(next);
      const first = by > 0 ? list[0] : list.at(-1);
      if (!first) continue;
      if (next === file) return this.reveal(file, first);
      return this.show(review, next, false, first);
    }
  }

  private reveal(file: ReviewFile, hunk: ReviewedHunk): void {
    const editor = vscode.window.visibleTextEditors.find((e) => e.document.uri.toString() === file.right.toString());
    if (!editor) return;
    const line = Math.min(hunk.start, editor.document.lineCount - 1);
    editor.selection = new vscode.Selection(line, 0, line, 0);
    editor.revealRange(new vscode.Range(line, 0, line + hunk.lines.length, 0), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
  }

  private async decided({ approval, optionId }: Decided): Promise<void> {
    const review = this.reviews.get(approval.id);
    if (!review) return;
    this.reviews.delete(approval.id);
    this.watched.get(approval.id)?.dispose();
    this.watched.delete(approval.id);
    const moved = review.files.filter((f) => f.drift !== "").map((f) => f.path);
    if (moved.length > 0) this.again.set(approval.sessionId, new Set([...(this.again.get(approval.sessionId) ?? []), ...moved]));
    if (optionId !== undefined && approval.meta.changeSet) {
      const own = review.files.flatMap((f) => {
        const document = vscode.workspace.textDocuments.find((d) => d.uri.toString() === f.right.toString());
        const mine = document && review.own(f, document.getText());
        return mine ? [{ path: f.path, ...mine }] : [];
      });
      if (own.length > 0) this.own.set(approval.meta.changeSet, own);
    }
    for (const f of review.files) this.problems.delete(f.right);
    await this.close(review);
    review.dispose();
    this.context();
  }

  private publish(review: Review, file: ReviewFile): void {
    this.problems.set(
      file.right,
      review.introduced(file).map((p) => {
        const d = new vscode.Diagnostic(new vscode.Range(p.line - 1, p.column - 1, (p.endLine ?? p.line) - 1, (p.endColumn ?? p.column + 1) - 1), p.message, severity(p.severity));
        d.source = p.source ?? "Pillion";
        if (p.code) d.code = p.code;
        return d;
      }),
    );
  }

  private find(of: vscode.Uri | undefined): { review: Review; file: ReviewFile } | undefined {
    const uri = of && textSide(of);
    if (uri?.scheme !== proposalScheme) return undefined;
    for (const review of this.reviews.values()) {
      const file = review.file(uri);
      if (file) return { review, file };
    }
    return undefined;
  }

  /** The review for a command: of the named document, else of the active editor, else of a diff of several files. */
  private current(uri?: vscode.Uri): { review: Review; file: ReviewFile } | undefined {
    const active = vscode.window.activeTextEditor?.document.uri;
    const right = active?.scheme === baseScheme ? active.with({ scheme: proposalScheme }) : active;
    const found = this.find(uri) ?? this.find(right);
    if (found) return found;
    const tab = vscode.window.tabGroups.activeTabGroup.activeTab;
    const input = tab?.input;
    const shown = input instanceof vscode.TabInputTextDiff || input instanceof vscode.TabInputNotebookDiff ? this.find(input.modified) : undefined;
    if (shown) return shown;
    const review = [...this.reviews.values()].find((r) => r.files.length > 1 && tab?.label.startsWith(`${r.title} (`));
    const file = review?.files.find((f) => review.undecided(f).length > 0) ?? review?.files[0];
    return review && file ? { review, file } : undefined;
  }

  private hunkAtCursor(review: Review, file: ReviewFile): ReviewedHunk | undefined {
    const editor = vscode.window.activeTextEditor;
    const line = editor?.document.uri.toString() === file.right.toString() ? editor.selection.active.line : 0;
    const here = file.hunks.find((h) => line >= h.start && line <= h.start + Math.max(h.lines.length - 1, 0));
    return here ?? review.undecided(file).find((h) => h.start >= line) ?? review.undecided(file)[0];
  }

  private tabsOf(review: Review | undefined): vscode.Tab[] {
    if (!review) return [];
    return proposalTabs((right, label) => (right ? review.file(right) !== undefined : review.files.length > 1 && label.startsWith(`${review.title} (`)));
  }

  private severalShown(): boolean {
    return vscode.window.tabGroups.activeTabGroup.activeTab?.label.startsWith("Pillion proposes (") ?? false;
  }

  private context(): void {
    const reviewing = this.current() !== undefined;
    void vscode.commands.executeCommand("setContext", "pillion.reviewing", reviewing);
  }
}

/** Schemes of Pillion's documents, which are not the person's buffers. */
export const ownSchemes: ReadonlySet<string> = new Set([proposalScheme, baseScheme, turnScheme]);

function severity(name: string): vscode.DiagnosticSeverity {
  if (name === "error") return vscode.DiagnosticSeverity.Error;
  if (name === "warning") return vscode.DiagnosticSeverity.Warning;
  if (name === "hint") return vscode.DiagnosticSeverity.Hint;
  return vscode.DiagnosticSeverity.Information;
}
