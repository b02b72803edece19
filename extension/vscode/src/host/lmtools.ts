// The tools that VS Code's own chat can call, and their answers.
import type * as vscode from "vscode";
import type { Sessions } from "./sessions";
import type { Sidecar } from "./sidecar";

export async function callTool(sidecar: Sidecar, sessions: Sessions, input: Record<string, unknown>, token: vscode.CancellationToken): Promise<string> {
  const session = await sessions.ready();
  const stop = new AbortController();
  const listening = token.onCancellationRequested(() => stop.abort());
  try {
    const r = await sidecar.request("_pillion/tool/call", { sessionId: session.id, tool: "lsp", input }, stop.signal);
    return r.error ? `error: ${r.error.message}` : r.output;
  } finally {
    listening.dispose();
  }
}
