// Installs a missing language server in a terminal, where Pillion says what it downloads, asks, and shows the progress.
import * as vscode from "vscode";

/** Runs "pillion doctor --install" with the sidecar's program and environment, so that the sidecar finds what was
 * installed. */
export function installServer(server: string, program: { path: string; env: Record<string, string> }): void {
  const terminal = vscode.window.createTerminal({ name: `Install ${server}`, shellPath: program.path, shellArgs: ["doctor", "--install", server], env: program.env });
  terminal.show();
  const closed = vscode.window.onDidCloseTerminal((t) => {
    if (t !== terminal) return;
    closed.dispose();
    // A terminal whose command succeeded is closed.
    if (t.exitStatus?.code === 0) void vscode.window.showInformationMessage(`${server} is installed. Pillion uses it from now on.`);
  });
}
