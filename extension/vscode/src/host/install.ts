// Installs a missing language server in a terminal, where Pillion says what it downloads, asks, and shows the progress.
import * as vscode from "vscode";

/**
 * Runs "pillion doctor --install" with the sidecar's program and environment, so that the sidecar finds what was installed.
 * As a task: its terminal stays with what a failed download said, and VS Code does not report a person's "no" as an error, as it
 * does with a terminal whose program exits with 1.
 */
export async function installServer(server: string, program: { path: string; env: Record<string, string> }): Promise<void> {
  const run = new vscode.ProcessExecution(program.path, ["doctor", "--install", server], { env: program.env });
  const task = new vscode.Task({ type: "process" }, vscode.workspace.workspaceFolders ? vscode.TaskScope.Workspace : vscode.TaskScope.Global, `Install ${server}`, "Pillion", run, []);
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, focus: true, echo: false, clear: true, panel: vscode.TaskPanelKind.Dedicated };
  const started = await vscode.tasks.executeTask(task);
  const ended = vscode.tasks.onDidEndTaskProcess(({ execution, exitCode }) => {
    if (execution !== started) return;
    ended.dispose();
    if (exitCode === 0) void vscode.window.showInformationMessage(`${server} is installed. Pillion uses it from now on.`);
  });
}
