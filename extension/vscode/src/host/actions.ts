// "Fix with Pillion" and "Explain" where the problems are: as code actions, in menus and as commands.
import * as vscode from "vscode";
import { type AskedProblem, explainPrompt, fixPrompt } from "../common/ask";
import type { ContentBlock } from "../common/protocol";
import { tell } from "./sessionlist";
import type { Sessions } from "./sessions";

export function actions(sessions: Sessions): vscode.Disposable {
  const ask = async (text: string, uri: vscode.Uri, range?: vscode.Range) => {
    const session = sessions.active ?? (await sessions.create());
    await vscode.commands.executeCommand("pillion.focus");
    const anchor = range ? `#L${range.start.line + 1}-L${range.end.line + 1}` : "";
    const prompt: ContentBlock[] = [
      { type: "text", text },
      { type: "resource_link", uri: uri.toString() + anchor, name: vscode.workspace.asRelativePath(uri) },
    ];
    await sessions.prompt(session.id, prompt);
  };
  const target = (uri: unknown): { uri: vscode.Uri; range: vscode.Range } | undefined => {
    const editor = vscode.window.activeTextEditor;
    if (uri instanceof vscode.Uri && uri.toString() !== editor?.document.uri.toString()) return { uri, range: new vscode.Range(0, 0, 0, 0) };
    return editor ? { uri: editor.document.uri, range: editor.selection } : undefined;
  };
  return vscode.Disposable.from(
    vscode.languages.registerCodeActionsProvider({ scheme: "file" }, new Provider(), { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix] }),
    vscode.commands.registerCommand("pillion.fix", (uri?: unknown, only?: unknown) => {
      const at = target(uri);
      if (!at) return undefined;
      const problems = Array.isArray(only) ? (only as AskedProblem[]) : vscode.languages.getDiagnostics(at.uri).filter((d) => d.severity <= vscode.DiagnosticSeverity.Warning).map(asked);
      return ask(fixPrompt(vscode.workspace.asRelativePath(at.uri), problems), at.uri).catch(tell);
    }),
    vscode.commands.registerCommand("pillion.explain", (uri?: unknown, range?: unknown) => {
      const at = target(uri);
      if (!at) return undefined;
      const where = range instanceof vscode.Range ? range : at.range;
      const problems = vscode.languages.getDiagnostics(at.uri).filter((d) => d.range.intersection(where)).map(asked);
      return ask(explainPrompt(vscode.workspace.asRelativePath(at.uri), where.start.line + 1, where.end.line + 1, problems), at.uri, where).catch(tell);
    }),
  );
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

function asked(d: vscode.Diagnostic): AskedProblem {
  const names = ["error", "warning", "information", "hint"];
  return { line: d.range.start.line + 1, severity: names[d.severity] ?? "problem", message: d.message, source: d.source };
}
