// Asks for a change in the editor: an input for a prompt about the selection or the line of the cursor. The answer is a
// proposal like any other, shown in the editor and written as one undo step when it is accepted.
import * as vscode from "vscode";
import { inlinePrompt } from "../common/ask";
import type { Approvals } from "./approvals";
import type { Reviews } from "./reviews";
import { tell } from "./sessionlist";
import type { Sessions } from "./sessions";
import { onCommand } from "./table";

export class InlinePrompt implements vscode.Disposable {
  private readonly registered: vscode.Disposable;
  /** The last prompt that was typed and not sent; it is offered again the next time. */
  private draft = "";

  constructor(
    private readonly sessions: Sessions,
    private readonly approvals: Pick<Approvals, "onDidAsk">,
    private readonly reviews: Pick<Reviews, "showNext">,
  ) {
    this.registered = onCommand("pillion.inlinePrompt", () => this.ask().catch(tell));
  }

  dispose(): void {
    this.registered.dispose();
  }

  private async ask(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (!editor || editor.document.uri.scheme !== "file") throw new Error("Open a file and place the cursor where the change should be.");
    const { document, selection } = editor;
    const path = vscode.workspace.asRelativePath(document.uri);
    const first = selection.start.line + 1;
    // a selection that ends at the start of a line does not include that line
    const last = selection.end.line + (selection.end.character === 0 && selection.end.line > selection.start.line ? 0 : 1);
    const where = first === last ? `line ${String(first)}` : `lines ${String(first)} to ${String(last)}`;
    const words = await vscode.window.showInputBox({
      title: `Change ${where} of ${path}`,
      prompt: "Describe the change. You review it before it is written.",
      value: this.draft,
      ignoreFocusOut: true,
    });
    if (words === undefined) return;
    this.draft = words;
    if (words.trim() === "") return;
    const session = await this.sessions.ready();
    let proposed = false;
    const asked = this.approvals.onDidAsk((a) => (proposed ||= a.sessionId === session.id && a.files.length > 0));
    this.reviews.showNext(session.id, true);
    this.draft = "";
    try {
      const response = await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: `Pillion: changing ${path}` }, () =>
        this.sessions.prompt(session.id, [
          { type: "text", text: inlinePrompt(path, first, last, selection.isEmpty, words.trim()) },
          { type: "resource_link", uri: `${document.uri.toString()}#L${String(first)}-L${String(last)}`, name: path },
        ]),
      );
      if (proposed || response.stopReason === "cancelled") return;
      const choice = await vscode.window.showInformationMessage(`Pillion proposed no change to ${path}.`, "Show Answer");
      if (choice) await vscode.commands.executeCommand("pillion.focus");
    } catch (error) {
      this.draft = words; // the text of the prompt is not lost
      throw error;
    } finally {
      asked.dispose();
      this.reviews.showNext(session.id, false);
    }
  }
}
