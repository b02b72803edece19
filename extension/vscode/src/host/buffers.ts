// Sends the sidecar what the person has open, when it changes: documents with versions, the selection, and the problems that
// VS Code shows for languages without a server of Pillion.
import * as vscode from "vscode";
import { placeInText } from "../common/cells";
import type { FileDiagnostic, Range } from "../common/protocol";
import { unsavedElsewhere } from "./elsewhere";
import { knownText, notebookOf, notebookText, unsavedNotebooks } from "./notebooks";
import { isMine } from "./problems";
import type { Sidecar } from "./sidecar";
import type { UnseenFiles } from "./unseen";

/** Larger documents are not sent: one message has at most 32 MiB, and people do not edit such files by hand. */
const largest = 8 << 20; // characters
const selectionText = 64 << 10; // characters; the protocol's limit
const settle = 150; // ms without a change before the selection is sent

export class Buffers implements vscode.Disposable {
  private readonly told = new Set<string>();
  /** Files with unsaved changes in editors that are not text editors. Their text on the disk is sent as unsaved, so
   * that the sidecar does not write them. */
  private readonly elsewhere = new Set<string>();
  /** Unsaved notebooks, with the version of the text that was told last. */
  private readonly notebooks = new Map<string, number>();
  /** Notebooks are told one after the other: each text has to be made first. */
  private telling: Promise<void> = Promise.resolve();
  /** Files whose problems were sent, so that an empty list is sent too. */
  private readonly problems = new Set<string>();
  private readonly disposables: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly sidecar: Sidecar, private readonly unseen: Pick<UnseenFiles, "has" | "onDidChange">) {
    this.disposables = [
      sidecar.onDidStart(() => this.all()),
      unseen.onDidChange(() => this.sync()),
      vscode.workspace.onDidChangeTextDocument((e) => this.changed(e)),
      vscode.workspace.onDidSaveTextDocument((d) => this.saved(d)),
      vscode.workspace.onDidCloseTextDocument((d) => this.close(d.uri)),
      vscode.workspace.onDidChangeNotebookDocument(() => this.syncNotebooks()),
      vscode.workspace.onDidSaveNotebookDocument(() => this.syncNotebooks()),
      vscode.window.tabGroups.onDidChangeTabs(() => this.sync()),
      vscode.window.onDidChangeVisibleTextEditors(() => this.sync()),
      vscode.window.onDidChangeTextEditorSelection(() => this.selectionSoon()),
      vscode.window.onDidChangeActiveTextEditor(() => this.selectionSoon()),
      vscode.languages.onDidChangeDiagnostics((e) => this.diagnostics(e.uris)),
    ];
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const d of this.disposables) d.dispose();
  }

  /** A process that has just started knows none of the documents. */
  private all(): void {
    this.told.clear();
    this.elsewhere.clear();
    this.notebooks.clear();
    this.problems.clear();
    this.sync();
    this.selection();
    this.diagnostics(vscode.languages.getDiagnostics().map(([uri]) => uri));
  }

  /** Sends documents that became visible, have unsaved changes, or are part of a proposal. Other documents that only an
   * extension has loaded are not the person's. */
  private sync(): void {
    const shown = shownFiles();
    for (const d of vscode.workspace.textDocuments) {
      const key = d.uri.toString();
      if (this.notebooks.has(key)) continue; // its cells are what counts
      const wanted = isFile(d) && (d.isDirty || shown.has(key) || this.unseen.has(d.uri));
      if (wanted && !this.told.has(key)) this.openDocument(d);
      else if (!wanted && this.told.has(key)) this.close(d.uri);
    }
    const elsewhere = unsavedElsewhere();
    for (const uri of elsewhere) if (!this.elsewhere.has(uri)) void this.openElsewhere(uri); // a file that cannot be read is not sent
    for (const uri of this.elsewhere) if (!elsewhere.has(uri)) this.closeElsewhere(uri);
    this.syncNotebooks();
  }

  /** Tells what unsaved notebooks hold, and that one was saved or closed: then the disk has it. */
  private syncNotebooks(): void {
    this.telling = this.telling.then(async () => {
      const unsaved = new Map(unsavedNotebooks().map((n) => [n.uri.toString(), n]));
      for (const uri of this.notebooks.keys()) if (!unsaved.has(uri) && this.notebooks.delete(uri)) this.close(vscode.Uri.parse(uri, true));
      for (const [uri, n] of unsaved) {
        const { text, version } = await notebookText(n);
        if (text.length > largest || n.isClosed || this.notebooks.get(uri) === version) continue;
        const first = !this.notebooks.has(uri);
        this.notebooks.set(uri, version);
        this.told.add(uri);
        if (first) this.sidecar.notify("_pillion/buffer/didOpen", { textDocument: { uri, languageId: "json", version, text, dirty: true } });
        else this.sidecar.notify("_pillion/buffer/didChange", { textDocument: { uri, version }, contentChanges: [{ text }], dirty: true });
      }
    }).catch(() => {}); // a notebook that cannot be written as text is refused when it is to be edited
  }

  private async openElsewhere(uri: string): Promise<void> {
    this.elsewhere.add(uri);
    const bytes = await vscode.workspace.fs.readFile(vscode.Uri.parse(uri, true)).then(undefined, () => undefined);
    if (!bytes || bytes.length > largest || !this.elsewhere.has(uri) || this.told.has(uri)) return;
    this.told.add(uri);
    this.sidecar.notify("_pillion/buffer/didOpen", { textDocument: { uri, languageId: "plaintext", version: 1, text: new TextDecoder().decode(bytes), dirty: true } });
  }

  private closeElsewhere(uri: string): void {
    this.elsewhere.delete(uri);
    if (this.notebooks.has(uri)) return; // a notebook whose text is known by now
    this.close(vscode.Uri.parse(uri, true));
    if (vscode.workspace.textDocuments.some((d) => d.uri.toString() === uri)) this.sync(); // a text editor has it open now
  }

  private openDocument(d: vscode.TextDocument): void {
    const text = d.getText();
    if (text.length > largest) return;
    this.told.add(d.uri.toString());
    this.sidecar.notify("_pillion/buffer/didOpen", { textDocument: { uri: d.uri.toString(), languageId: d.languageId, version: d.version, text, dirty: d.isDirty } });
  }

  private changed(e: vscode.TextDocumentChangeEvent): void {
    const d = e.document;
    if (!isFile(d)) return;
    if (!this.told.has(d.uri.toString())) {
      if (d.isDirty) this.sync();
      return;
    }
    if (e.contentChanges.length === 0) {
      // Only the dirty flag has changed. This event comes after the change of the text, which was sent as saved; for a
      // revert there is no other event.
      if (d.isDirty) this.sidecar.notify("_pillion/buffer/didChange", { textDocument: { uri: d.uri.toString(), version: d.version }, contentChanges: [], dirty: true });
      else this.saved(d);
      return;
    }
    this.sidecar.notify("_pillion/buffer/didChange", {
      textDocument: { uri: d.uri.toString(), version: d.version },
      contentChanges: e.contentChanges.map((c) => ({ range: range(c.range), text: c.text })),
      dirty: d.isDirty,
    });
  }

  private saved(d: vscode.TextDocument): void {
    if (this.told.has(d.uri.toString())) this.sidecar.notify("_pillion/buffer/didSave", { textDocument: { uri: d.uri.toString(), version: d.version } });
  }

  private close(uri: vscode.Uri): void {
    if (this.told.delete(uri.toString())) this.sidecar.notify("_pillion/buffer/didClose", { textDocument: { uri: uri.toString() } });
  }

  private selectionSoon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.selection(), settle);
  }

  private selection(): void {
    if (!this.sidecar.announced("_pillion/selection/didChange")) return;
    const editor = vscode.window.activeTextEditor;
    if (!editor || !isFile(editor.document)) {
      // The panel has the focus: the last selection still counts.
      if (vscode.window.visibleTextEditors.length === 0) this.sidecar.notify("_pillion/selection/didChange", {});
      return;
    }
    const text = editor.document.getText(editor.selection);
    this.sidecar.notify("_pillion/selection/didChange", {
      textDocument: { uri: editor.document.uri.toString(), version: editor.document.version },
      selections: editor.selections.map((s) => range(s)),
      ...(text !== "" ? { text: text.slice(0, selectionText) } : {}),
    });
  }

  /** Sends the problems of a notebook's cells, at their places in the text that the sidecar has of it. */
  private async cellDiagnostics(n: vscode.NotebookDocument): Promise<void> {
    const { text, version } = await knownText(n);
    const found = n.getCells().flatMap((cell) => vscode.languages.getDiagnostics(cell.document.uri).flatMap((d) => inText(text, cell.index, d)));
    const uri = n.uri.toString();
    if (found.length === 0 && !this.problems.delete(uri)) return;
    if (found.length > 0) this.problems.add(uri);
    this.sidecar.notify("_pillion/diagnostics/didChange", { uri, ...(version === undefined ? {} : { version }), diagnostics: found });
  }

  private diagnostics(uris: readonly vscode.Uri[]): void {
    if (!this.sidecar.announced("_pillion/diagnostics/didChange")) return;
    if (!vscode.workspace.getConfiguration("pillion").get("shareDiagnostics", true)) return;
    const notebooks = new Set(uris.map((uri) => notebookOf(uri)?.notebook));
    for (const n of notebooks) if (n) this.telling = this.telling.then(() => this.cellDiagnostics(n)).catch(() => {}); // its file is gone
    for (const uri of uris) {
      if (uri.scheme !== "file") continue;
      const found = vscode.languages.getDiagnostics(uri).filter((d) => !isMine(d));
      if (found.length === 0 && !this.problems.delete(uri.toString())) continue;
      if (found.length > 0) this.problems.add(uri.toString());
      const open = vscode.workspace.textDocuments.find((d) => d.uri.toString() === uri.toString());
      this.sidecar.notify("_pillion/diagnostics/didChange", { uri: uri.toString(), ...(open ? { version: open.version } : {}), diagnostics: found.map(diagnostic) });
    }
  }
}

/** A problem of a cell (from 0) as one of its notebook's text; none where the text has no such line by now. */
function inText(text: string, at: number, d: vscode.Diagnostic): FileDiagnostic[] {
  const start = placeInText(text, at, d.range.start.line, d.range.start.character);
  const end = placeInText(text, at, d.range.end.line, d.range.end.character) ?? start;
  return start && end ? [{ ...diagnostic(d), range: { start, end } }] : [];
}

/** The URIs of the documents that have a tab or are visible. */
export function shownFiles(): Set<string> {
  const shown = new Set(vscode.window.visibleTextEditors.map((e) => e.document.uri.toString()));
  for (const tab of vscode.window.tabGroups.all.flatMap((g) => g.tabs)) {
    if (tab.input instanceof vscode.TabInputText) shown.add(tab.input.uri.toString());
    else if (tab.input instanceof vscode.TabInputTextDiff) for (const uri of [tab.input.original, tab.input.modified]) shown.add(uri.toString());
  }
  return shown;
}

export function range(r: vscode.Range): Range {
  return { start: { line: r.start.line, character: r.start.character }, end: { line: r.end.line, character: r.end.character } };
}

export function diagnostic(d: vscode.Diagnostic): FileDiagnostic {
  const code = typeof d.code === "object" ? d.code.value : d.code;
  return { range: range(d.range), severity: d.severity + 1, message: d.message, ...(d.source ? { source: d.source } : {}), ...(code !== undefined ? { code: String(code) } : {}) };
}

function isFile(d: vscode.TextDocument): boolean {
  return d.uri.scheme === "file" && !d.isClosed;
}
