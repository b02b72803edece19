// Keep and Undo above each hunk that a turn wrote without a review, in the file itself. They are shown whichever extension
// uses the gutter.
import * as vscode from "vscode";
import type { Follow } from "./follow";

/** The largest number of lenses; a file with more hunks is decided as a whole. */
const most = 200;

export class TurnLenses implements vscode.CodeLensProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeCodeLenses = this.changed.event;
  private readonly registered: vscode.Disposable;

  constructor(private readonly follow: Pick<Follow, "hunksOf" | "onDidChange">) {
    this.registered = vscode.Disposable.from(
      this.changed,
      follow.onDidChange(() => this.changed.fire()),
      vscode.workspace.onDidChangeConfiguration((e) => e.affectsConfiguration("pillion.follow.codeLens") && this.changed.fire()),
      vscode.languages.registerCodeLensProvider({ scheme: "file" }, this),
    );
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    const hunks = this.follow.hunksOf(document);
    if (hunks.length === 0 || !vscode.workspace.getConfiguration("pillion").get("follow.codeLens", true)) return [];
    const lens = (line: number, title: string, command: string, tooltip: string, ...more: string[]) =>
      new vscode.CodeLens(new vscode.Range(line, 0, line, 0), { title, command, tooltip, arguments: [document.uri, ...more] });
    const whole = [
      lens(0, `$(check)\u00a0Keep file (${String(hunks.length)} ${hunks.length === 1 ? "change" : "changes"})`, "pillion.follow.keepFile", "Keep all changes of the last turn in this file"),
      lens(0, "$(discard)\u00a0Undo file", "pillion.follow.undoFile", "Undo all changes of the last turn in this file; your own edits stay"),
      lens(0, "$(diff-multiple)\u00a0Show changes", "pillion.follow.openTurn", "Compare all files of the turn with the state before it"),
    ];
    const first = hunks[0];
    if (hunks.length === 1 && first?.start === 0) return whole; // otherwise two equal rows would be above one line
    const each = hunks.slice(0, most).flatMap(({ id, start }) => {
      const line = Math.min(start, document.lineCount - 1);
      return [lens(line, "$(check)\u00a0Keep", "pillion.follow.keepHunk", "Keep this change of the last turn", id), lens(line, "$(discard)\u00a0Undo", "pillion.follow.undoHunk", "Undo this change of the last turn", id)];
    });
    return [...whole, ...each];
  }

  dispose(): void {
    this.registered.dispose();
  }
}
