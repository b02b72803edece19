// Runs the commands of the program that install something in a terminal, where Pillion says what it downloads, asks, and shows the progress.
import * as vscode from "vscode";

interface Program {
  path: string;
  env: Record<string, string>;
}

/** Runs "pillion doctor --install" with the sidecar's program and environment, so that the sidecar finds what was installed. */
export async function installServer(server: string, program: Program): Promise<void> {
  await runTask(`Install ${server}`, program, ["doctor", "--install", server], () => {
    void vscode.window.showInformationMessage(`${server} is installed. Pillion uses it from now on.`);
  });
}

/** Runs "pillion upgrade"; a program that needs another way says so in the terminal. */
export async function upgradeProgram(program: Program): Promise<void> {
  await runTask("Upgrade Pillion", program, ["upgrade"], () => {
    void vscode.window.showInformationMessage("Restart Pillion to use the program that is installed now.", "Restart").then((choice) => choice && vscode.commands.executeCommand("pillion.restart"));
  });
}

/**
 * As a task: its terminal stays with what a failed download said, and VS Code does not report a person's "no" as an error, as it
 * does with a terminal whose program exits with 1.
 */
async function runTask(name: string, program: Program, args: string[], done: () => void): Promise<void> {
  const run = new vscode.ProcessExecution(program.path, args, { env: program.env });
  const task = new vscode.Task({ type: "process" }, vscode.workspace.workspaceFolders ? vscode.TaskScope.Workspace : vscode.TaskScope.Global, name, "Pillion", run, []);
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, focus: true, echo: false, clear: true, panel: vscode.TaskPanelKind.Dedicated };
  const started = await vscode.tasks.executeTask(task);
  const ended = vscode.tasks.onDidEndTaskProcess(({ execution, exitCode }) => {
    if (execution !== started) return;
    ended.dispose();
    if (exitCode === 0) done();
  });
}
