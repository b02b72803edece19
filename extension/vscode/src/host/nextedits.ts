// Follow-up edits: after the person has renamed a declaration or changed its parameters by hand, the other places to change
// are offered at the end of its line, and shown as a proposal on request. The language server finds them. No model is asked,
// no server is started for this, and nothing is written before hunks are accepted.
import * as vscode from "vscode";
import { hunksOf, reviewed } from "../common/hunks";
import type { NextEditResponse } from "../common/protocol";
import type { Approvals } from "./approvals";
import { decisionOf } from "./codeapply";
import { lineEdit } from "./review";
import type { Reviews } from "./reviews";
import { tell } from "./sessionlist";
import type { Sessions } from "./sessions";
import type { Sidecar } from "./sidecar";
import { onCommand } from "./table";

/** Milliseconds without typing before the language server is asked. */
const pause = 700;
/** An edit of more characters is not a rename or a change of parameters. */
const mostEdited = 400;
/** No copy is kept of larger documents. */
const largest = 1 << 20; // characters

interface Offer {
  document: vscode.TextDocument;
  version: number;
  line: number;
  title: string;
  files: NonNullable<NextEditResponse["files"]>;
}

export class NextEdits implements vscode.Disposable {
  /** By document: the text before the present edit. */
  private readonly before = new WeakMap<vscode.TextDocument, string>();
  private readonly mark = vscode.window.createTextEditorDecorationType({ after: { margin: "0 0 0 2em", color: new vscode.ThemeColor("editorCodeLens.foreground") } });
  private readonly registered: vscode.Disposable;
  private offer: Offer | undefined;
  private timer: NodeJS.Timeout | undefined;
  private asking = new AbortController();
  private writing = false;

  constructor(
    private readonly sidecar: Pick<Sidecar, "announced" | "request">,
    private readonly sessions: Sessions,
    private readonly approvals: Approvals,
    private readonly reviews: Pick<Reviews, "writing">,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.registered = vscode.Disposable.from(
      this.mark,
      vscode.workspace.onDidChangeTextDocument((e) => this.changed(e)),
      vscode.window.onDidChangeActiveTextEditor((e) => e && this.keep(e.document)),
      vscode.window.onDidChangeTextEditorSelection((e) => this.moved(e.textEditor)),
      vscode.languages.registerCodeActionsProvider({ scheme: "file" }, { provideCodeActions: (d, r) => this.actions(d, r) }, { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] }),
      onCommand("pillion.nextEdit", () => this.propose().catch(tell)),
    );
    if (vscode.window.activeTextEditor) this.keep(vscode.window.activeTextEditor.document);
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.asking.abort();
    this.registered.dispose();
  }

  /** Stores a document's text as the start of the next edit. */
  private keep(d: vscode.TextDocument): void {
    if (d.uri.scheme === "file" && d.lineCount < 50_000 && !this.before.has(d)) this.before.set(d, d.getText());
  }

  private changed(e: vscode.TextDocumentChangeEvent): void {
    const d = e.document;
    if (e.contentChanges.length === 0 || !this.before.has(d)) return;
    clearTimeout(this.timer);
    this.asking.abort();
    if (this.offer?.document === d) this.show(undefined);
    // after an undo, or a write by Pillion or another program, the next edit starts from the new text
    if (this.writing || d !== vscode.window.activeTextEditor?.document || e.reason !== undefined) return void this.before.set(d, d.getText());
    this.timer = setTimeout(() => void this.ask(d).catch((error: unknown) => this.log.debug(`next edit: ${String(error)}`)), pause);
  }

  /** When the cursor leaves the line, an edit without follow-ups ends. */
  private moved(editor: vscode.TextEditor): void {
    const d = editor.document;
    const before = this.before.get(d);
    if (before === undefined || this.offer?.document === d || before.length > largest) return;
    const edit = oneEdit(before, d.getText());
    if (edit && d.positionAt(edit.from).line !== editor.selection.active.line) this.before.set(d, d.getText());
  }

  private async ask(d: vscode.TextDocument): Promise<void> {
    const before = this.before.get(d);
    const session = this.sessions.active;
    const now = d.getText();
    if (before === undefined || now.length > largest || !vscode.workspace.getConfiguration("pillion").get("nextEdits", true)) return;
    const edit = oneEdit(before, now);
    if (!edit || edit.to - edit.from > mostEdited || edit.nowTo - edit.from > mostEdited) return void this.before.set(d, now);
    if (!session || !this.sidecar.announced("_pillion/edit/next")) return;
    const version = d.version;
    this.asking = new AbortController();
    const { signal } = this.asking;
    const next = await this.sidecar.request("_pillion/edit/next", { sessionId: session.id, uri: d.uri.toString(), before }, signal);
    if (signal.aborted || d.version !== version || !next.title || !next.files?.length) return;
    this.show({ document: d, version, line: d.positionAt(edit.from).line, title: next.title, files: next.files });
  }

  private show(offer: Offer | undefined): void {
    this.offer = offer;
    void vscode.commands.executeCommand("setContext", "pillion.nextEdit", offer !== undefined);
    for (const editor of vscode.window.visibleTextEditors) {
      const mine = offer && editor.document === offer.document;
      const end = mine ? editor.document.lineAt(offer.line).range.end : undefined;
      editor.setDecorations(this.mark, end ? [{ range: new vscode.Range(end, end), renderOptions: { after: { contentText: `${offer!.title} (${process.platform === "darwin" ? "⌥⌘U" : "Ctrl+Alt+U"})` } } }] : []);
    }
  }

  private actions(d: vscode.TextDocument, range: vscode.Range): vscode.CodeAction[] {
    if (this.offer?.document !== d || range.start.line > this.offer.line || range.end.line < this.offer.line) return [];
    const action = new vscode.CodeAction(this.offer.title, vscode.CodeActionKind.QuickFix);
    action.command = { command: "pillion.nextEdit", title: this.offer.title };
    action.isPreferred = true;
    return [action];
  }

  /** Shows the offered places as a proposal and writes what is accepted as one undo step. */
  private async propose(): Promise<void> {
    const { offer } = this;
    if (!offer) throw new Error("Rename a declaration or change its parameters first.");
    this.show(undefined);
    const files = offer.files.map((f) => ({ ...f, uri: vscode.Uri.parse(f.uri, true), hunks: hunksOf(f.oldText, f.newText) }));
    // hunk ids must be unique among all files
    const changes = files.map((f, i) => ({ ...f, hunks: f.hunks.map((h) => ({ ...h, id: `${String(i + 1)}.${h.id}` })) }));
    const { answer } = this.approvals.propose({
      toolCallId: "",
      title: offer.title,
      kind: "edit",
      content: changes.map((f) => ({ type: "diff" as const, path: f.uri.fsPath, oldText: f.oldText, newText: f.newText })),
      _meta: { pillion: { changeSet: `next ${String(Date.now())}`, files: changes.map((f) => ({ uri: f.uri.toString(), kind: "edit", hunks: f.hunks })) } },
    });
    const decided = decisionOf(await answer);
    this.before.set(offer.document, offer.document.getText());
    if (!decided || decided.stale) return;
    const edit = new vscode.WorkspaceEdit();
    for (const f of changes) {
      const document = await vscode.workspace.openTextDocument(f.uri);
      if (document.getText() !== f.oldText) throw new Error(`${vscode.workspace.asRelativePath(f.uri)} has changed since the proposal. Nothing was written.`);
      const lines = new Map(reviewed(f.oldText, f.newText, f.hunks, f.newText).hunks.map((h) => [h.id, h]));
      for (const h of f.hunks) {
        const wanted = decided.lines(h.id, lines.get(h.id)?.proposed ?? []);
        if (!wanted) continue;
        const { range, text } = lineEdit(document, h.oldLines > 0 ? h.oldStart - 1 : h.oldStart, h.oldLines, wanted);
        edit.replace(f.uri, range, text);
      }
    }
    if (edit.size === 0) return;
    this.writing = true;
    try {
      if (!(await this.reviews.writing(() => Promise.resolve(vscode.workspace.applyEdit(edit))))) throw new Error("VS Code did not change the files.");
    } finally {
      this.writing = false;
    }
    await vscode.window.showTextDocument(offer.document, { preview: false }); // undo works in the active editor
  }
}

/** Where two texts differ, as offsets; undefined if they are equal. */
export function oneEdit(before: string, now: string): { from: number; to: number; nowTo: number } | undefined {
  if (before === now) return undefined;
  let from = 0;
  while (from < before.length && from < now.length && before[from] === now[from]) from++;
  let to = before.length;
  let nowTo = now.length;
  while (to > from && nowTo > from && before[to - 1] === now[nowTo - 1]) {
    to--;
    nowTo--;
  }
  return { from, to, nowTo };
}
