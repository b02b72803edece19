// Marks the lines of a proposal that change only in their indentation or in white space at their end: the diff editor does
// not.
import * as vscode from "vscode";
import { blankChanges } from "../common/hunks";
import { proposalScheme } from "./proposals";
import type { ReviewFile } from "./review";

export class BlankMarks implements vscode.Disposable {
  private readonly kind = vscode.window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new vscode.ThemeColor("diffEditor.insertedLineBackground"),
    overviewRulerColor: new vscode.ThemeColor("diffEditorOverview.insertedForeground"),
    overviewRulerLane: vscode.OverviewRulerLane.Full,
  });
  private readonly registered: vscode.Disposable;

  constructor(private readonly fileOf: (uri: vscode.Uri) => ReviewFile | undefined) {
    this.registered = vscode.Disposable.from(this.kind, vscode.window.onDidChangeVisibleTextEditors(() => this.draw()));
  }

  /** Draws the marks of every visible proposal. */
  draw(): void {
    for (const editor of vscode.window.visibleTextEditors) {
      const { uri } = editor.document;
      const file = uri.scheme === proposalScheme ? this.fileOf(uri) : undefined;
      if (!file) continue;
      // if the person has turned these lines on in the diff editor, it marks them itself
      const shown = !vscode.workspace.getConfiguration("diffEditor", uri).get("ignoreTrimWhitespace", true);
      const lines = shown ? [] : file.hunks.flatMap((h) => blankChanges(h).map((at) => h.start + at));
      editor.setDecorations(this.kind, lines.filter((line) => line < editor.document.lineCount).map((line) => editor.document.lineAt(line).range));
    }
  }

  dispose(): void {
    this.registered.dispose();
  }
}
