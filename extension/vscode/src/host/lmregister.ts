// Offers Pillion's language servers to VS Code's own chat: the problems of a file, and the symbols of the project. Needs VS
// Code 1.95.
import * as vscode from "vscode";

// The used part of VS Code's tool API; the types that this extension is built with are older.
interface ToolResult {
  content: unknown[];
}
interface ToolApi {
  lm?: { registerTool?: (name: string, tool: { invoke(options: { input: unknown }, token: vscode.CancellationToken): Promise<ToolResult> }) => vscode.Disposable };
  LanguageModelToolResult?: new (content: unknown[]) => ToolResult;
  LanguageModelTextPart?: new (text: string) => unknown;
}

/** Registers the tools; `call` runs Pillion's lsp tool and returns its text. */
export function registerTools(call: (input: Record<string, unknown>, token: vscode.CancellationToken) => Promise<string>): vscode.Disposable {
  const { lm, LanguageModelToolResult: Result, LanguageModelTextPart: Text } = vscode as unknown as ToolApi;
  if (!lm?.registerTool || !Result || !Text) return vscode.Disposable.from();
  const tool = (name: string, input: (given: Record<string, unknown>) => Record<string, unknown>) =>
    lm.registerTool!(name, { invoke: async ({ input: given }, token) => new Result([new Text(await call(input(given as Record<string, unknown>), token))]) });
  return vscode.Disposable.from(
    tool("pillion_diagnostics", ({ filePath }) => ({ operation: "diagnostics", filePath })),
    tool("pillion_symbols", ({ query }) => ({ operation: "workspaceSymbol", query })),
  );
}
