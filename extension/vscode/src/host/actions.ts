// The prompts of "Fix with Pillion" and "Explain", for code actions and menus.
import * as vscode from "vscode";
import { type AskedProblem, explainPrompt, fixPrompt } from "../common/ask";
import type { ContentBlock } from "../common/protocol";
import { asked } from "./codeactions";
import { notebookOf } from "./notebooks";
import { tell } from "./sessionlist";
import type { Sessions } from "./sessions";
import { onCommand } from "./table";

export function asks(sessions: Sessions): vscode.Disposable {
  const ask = async (text: string, uri: vscode.Uri, range?: vscode.Range) => {
    const session = await sessions.ready();
    await vscode.commands.executeCommand("pillion.focus");
    const file = notebookOf(uri)?.notebook.uri ?? uri;
    const anchor = range && file === uri ? `#L${range.start.line + 1}-L${range.end.line + 1}` : ""; // lines of a cell are not those of the file
    const prompt: ContentBlock[] = [
      { type: "text", text },
      { type: "resource_link", uri: file.toString() + anchor, name: vscode.workspace.asRelativePath(file) },
    ];
    await sessions.prompt(session.id, prompt);
  };
  const target = (uri: unknown): { uri: vscode.Uri; range: vscode.Range } | undefined => {
    const editor = vscode.window.activeTextEditor;
    if (uri instanceof vscode.Uri && uri.toString() !== editor?.document.uri.toString()) return { uri, range: new vscode.Range(0, 0, 0, 0) };
    return editor ? { uri: editor.document.uri, range: editor.selection } : undefined;
  };
  return vscode.Disposable.from(
    onCommand("pillion.fix", (uri?: unknown, only?: unknown) => {
      const at = target(uri);
      if (!at) return undefined;
      const problems = Array.isArray(only) ? (only as AskedProblem[]) : vscode.languages.getDiagnostics(at.uri).filter((d) => d.severity <= vscode.DiagnosticSeverity.Warning).map(asked);
      return ask(fixPrompt(named(at.uri), problems), at.uri).catch(tell);
    }),
    onCommand("pillion.explain", (uri?: unknown, range?: unknown) => {
      const at = target(uri);
      if (!at) return undefined;
      const where = range instanceof vscode.Range ? range : at.range;
      const problems = vscode.languages.getDiagnostics(at.uri).filter((d) => d.range.intersection(where)).map(asked);
      return ask(explainPrompt(named(at.uri), where.start.line + 1, where.end.line + 1, problems), at.uri, where).catch(tell);
    }),
  );
}

/** The path of a document, and of a notebook's cell also its number, from 1. */
function named(uri: vscode.Uri): string {
  const cell = notebookOf(uri);
  return cell ? `${vscode.workspace.asRelativePath(cell.notebook.uri)}, cell ${cell.at + 1}` : vscode.workspace.asRelativePath(uri);
}
