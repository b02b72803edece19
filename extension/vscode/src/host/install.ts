// Installing a language server that is missing: in a terminal, where Pillion itself says what it fetches, asks, and shows how it goes.
import * as vscode from "vscode";

/** Runs "pillion doctor --install" with the program and the environment that the sidecar has, so that it finds what was installed. */
export function installServer(server: string, program: { path: string; env: Record<string, string> }): void {
  const terminal = vscode.window.createTerminal({ name: `Install ${server}`, shellPath: program.path, shellArgs: ["doctor", "--install", server], env: program.env });
  terminal.show();
  const closed = vscode.window.onDidCloseTerminal((t) => {
    if (t !== terminal) return;
    closed.dispose();
    // of a terminal that ended well nothing stays in sight
    if (t.exitStatus?.code === 0) void vscode.window.showInformationMessage(`${server} is installed. Pillion uses it from now on.`);
  });
}
