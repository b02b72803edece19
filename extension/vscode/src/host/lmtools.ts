// Pillion's language servers for VS Code's own chat: problems of a file, and symbols of the project. Needs VS Code 1.95.
import * as vscode from "vscode";
import type { Sessions } from "./sessions";
import type { Sidecar } from "./sidecar";

// The parts of VS Code's tool API that are used; the types this extension is built with are older.
interface ToolResult {
  content: unknown[];
}
interface ToolApi {
  lm?: { registerTool?: (name: string, tool: { invoke(options: { input: unknown }, token: vscode.CancellationToken): Promise<ToolResult> }) => vscode.Disposable };
  LanguageModelToolResult?: new (content: unknown[]) => ToolResult;
  LanguageModelTextPart?: new (text: string) => unknown;
}

export function languageModelTools(sidecar: Sidecar, sessions: Sessions): vscode.Disposable {
  const { lm, LanguageModelToolResult: Result, LanguageModelTextPart: Text } = vscode as unknown as ToolApi;
  if (!lm?.registerTool || !Result || !Text) return vscode.Disposable.from();
  const tool = (name: string, input: (given: Record<string, unknown>) => Record<string, unknown>) =>
    lm.registerTool!(name, {
      async invoke({ input: given }, token) {
        const session = sessions.active ?? (await sessions.create({ title: "Tools for VS Code's chat" }));
        const stop = new AbortController();
        const listening = token.onCancellationRequested(() => stop.abort());
        try {
          const r = await sidecar.request("_pillion/tool/call", { sessionId: session.id, tool: "lsp", input: input(given as Record<string, unknown>) }, stop.signal);
          return new Result([new Text(r.error ? `error: ${r.error.message}` : r.output)]);
        } finally {
          listening.dispose();
        }
      },
    });
  return vscode.Disposable.from(
    tool("pillion_diagnostics", ({ filePath }) => ({ operation: "diagnostics", filePath })),
    tool("pillion_symbols", ({ query }) => ({ operation: "workspaceSymbol", query })),
  );
}
