// Checks a proposed text with VS Code's extensions, before the person approves it. The sidecar requests this for files
// without a server of its own.
//
// The text is opened as a hidden document with the same name and language; the person's document does not change. The
// document has the scheme `pillion-check`. Extensions that only check files on disk ("file") ignore it, and those that only
// check documents in tabs report when the review is open. If no extension reports, the answer is "not checked", never "no
// problems".
import { basename } from "node:path";
import * as vscode from "vscode";
import type { EditorCheckRequest, EditorCheckResponse, FileDiagnostic } from "../common/protocol";
import { diagnostic } from "./buffers";
import { isMine } from "./problems";
import { proposalScheme } from "./proposals";
import type { Sidecar } from "./sidecar";

export const checkScheme = "pillion-check";

// Milliseconds. Servers often publish syntax errors first and other problems later, so the problems are read after a pause
// in their messages. A server that sends nothing within `limit` does not check copies. Two limits fit into the sidecar's ten
// seconds.
const quiet = 300;
const limit = 4000;

export class TextChecks implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  private readonly texts = new Map<string, string>();
  private readonly disposables: vscode.Disposable[];
  private copies = 0;

  constructor(sidecar: Sidecar) {
    this.disposables = [
      this.changed,
      vscode.workspace.registerTextDocumentContentProvider(checkScheme, this),
      sidecar.onRequest("_pillion/diagnostics/check", (p) => this.answer(p)),
    ];
  }

  dispose(): void {
    for (const d of this.disposables) d.dispose();
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.toString()) ?? "";
  }

  private async answer(p: EditorCheckRequest): Promise<EditorCheckResponse> {
    const file = vscode.Uri.parse(p.uri, true);
    const open = vscode.workspace.textDocuments.find((d) => d.uri.toString() === file.toString());
    // One after the other: a server must not have both copies at once.
    let before = await this.check(file, open?.languageId, p.before);
    const after = await this.check(file, open?.languageId, p.after);
    if (!after) return { checked: false, reason: `no extension looks at proposals of ${basename(file.path)}` };
    if (!before && open?.getText() === p.before) before = problemsOf(open.uri); // the document itself has that text
    return before ? { checked: true, before, after } : { checked: false, reason: `the extensions did not check ${basename(file.path)} in time` };
  }

  /** The problems of one text; undefined if no extension reported any. */
  private async check(file: vscode.Uri, language: string | undefined, text: string): Promise<FileDiagnostic[] | undefined> {
    // The query makes copies different; the path stays, because imports are relative to it.
    const copy = file.with({ scheme: checkScheme, query: String(++this.copies) });
    const key = copy.toString();
    this.texts.set(key, text);
    // Language clients that pull diagnostics do so only for documents in tabs. The right side of an open review is one.
    const shown = () => vscode.workspace.textDocuments.find((d) => d.uri.scheme === proposalScheme && basename(d.uri.path) === basename(file.path) && d.getText() === text)?.uri;
    const heard = new Heard(copy, shown);
    try {
      const document = await vscode.workspace.openTextDocument(copy);
      if (language !== undefined && document.languageId !== language) await vscode.languages.setTextDocumentLanguage(document, language);
      const uri = await heard.done;
      return uri && problemsOf(uri);
    } finally {
      heard.dispose();
      // VS Code closes an unused document minutes later. Without text it has no problems that could stay in the list until
      // then.
      this.texts.delete(key);
      this.changed.fire(copy);
    }
  }
}

function problemsOf(uri: vscode.Uri): FileDiagnostic[] {
  return vscode.languages.getDiagnostics(uri).filter((d) => !isMine(d)).map(diagnostic);
}

/** Waits until extensions have reported on a text: `done` gets the document that they checked, or undefined. */
class Heard implements vscode.Disposable {
  readonly done: Promise<vscode.Uri | undefined>;
  private timer: NodeJS.Timeout | undefined;
  private listener: vscode.Disposable | undefined;

  constructor(copy: vscode.Uri, shown: () => vscode.Uri | undefined) {
    this.done = new Promise((resolve) => {
      const soon = (uri: vscode.Uri) => {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => resolve(uri), quiet);
      };
      this.timer = setTimeout(() => resolve(undefined), limit);
      // This event is also sent for an empty list: the extension found no problems.
      this.listener = vscode.languages.onDidChangeDiagnostics((e) => {
        for (const uri of [copy, shown()]) if (uri && e.uris.some((u) => u.toString() === uri.toString())) return soon(uri);
      });
      const already = shown();
      if (already && vscode.languages.getDiagnostics(already).length > 0) soon(already);
    });
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.listener?.dispose();
  }
}
