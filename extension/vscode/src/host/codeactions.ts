// "Fix with Pillion" and "Explain" as code actions at problems.
import * as vscode from "vscode";
import type { AskedProblem } from "../common/ask";

export function codeActions(): vscode.Disposable {
  return vscode.languages.registerCodeActionsProvider([{ scheme: "file" }, { scheme: "vscode-notebook-cell" }], new Provider(), { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] });
}

class Provider implements vscode.CodeActionProvider {
  provideCodeActions(document: vscode.TextDocument, range: vscode.Range, context: vscode.CodeActionContext): vscode.CodeAction[] {
    if (context.diagnostics.length === 0) return [];
    const make = (title: string, command: string, last: unknown) => {
      const action = new vscode.CodeAction(title, vscode.CodeActionKind.QuickFix);
      action.diagnostics = [...context.diagnostics];
      action.command = { command, title, arguments: [document.uri, last] };
      return action;
    };
    const where = context.diagnostics.reduce((r, d) => r.union(d.range), new vscode.Range(range.start, range.end));
    return [make("Fix with Pillion", "pillion.fix", context.diagnostics.map(asked)), make("Explain with Pillion", "pillion.explain", where)];
  }
}

export function asked(d: vscode.Diagnostic): AskedProblem {
  const names = ["error", "warning", "information", "hint"];
  return { line: d.range.start.line + 1, severity: names[d.severity] ?? "problem", message: d.message, source: d.source };
}
