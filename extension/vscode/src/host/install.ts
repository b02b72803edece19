// Runs the commands of the program that install something in a terminal, where Pillion says what it downloads, asks, and shows the progress.
import * as vscode from "vscode";

interface Program {
  path: string;
  env: Record<string, string>;
}

/** Runs "pillion doctor --install" with the sidecar's program and environment, so that the sidecar finds what was installed. */
export async function installServer(server: string, program: Program): Promise<void> {
  await runTask(`Install ${server}`, execution(program, ["doctor", "--install", server]), (exitCode) => {
    if (exitCode === 0) void vscode.window.showInformationMessage(`${server} is installed. Pillion uses it from now on.`);
  });
}

/** Runs "pillion upgrade"; a program that needs another way says so in the terminal. */
export async function upgradeProgram(program: Program): Promise<void> {
  await runTask("Upgrade Pillion", execution(program, ["upgrade"]), (exitCode) => {
    if (exitCode === 0) void vscode.window.showInformationMessage("Restart Pillion to use the program that is installed now.", "Restart").then((choice) => choice && vscode.commands.executeCommand("pillion.restart"));
  });
}

/**
 * Installs the program of the extension's release with npm, which checks what it downloads against the registry's hashes. For the
 * extension package of any platform, which carries no program.
 */
export async function installProgram(folder: string, extensionVersion: string): Promise<void> {
  // A version with a suffix is a build between two releases, which the registry does not have.
  const release = /^\d+\.\d+\.\d+$/.test(extensionVersion) ? extensionVersion : "latest";
  const args = ["install", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", `pillion@${release}`];
  // A shell, because npm is a script on Windows.
  await runTask("Install Pillion's program", new vscode.ShellExecution("npm", args), (exitCode) => {
    if (exitCode === 0) void vscode.commands.executeCommand("pillion.restart");
    else void vscode.window.showErrorMessage("npm could not install Pillion's program; the terminal says why. Install it in another way, or set pillion.binary.path.");
  });
}

/**
 * As a task: its terminal stays with what a failed download said, and VS Code does not report a person's "no" as an error, as it
 * does with a terminal whose program exits with 1.
 */
async function runTask(name: string, run: vscode.ProcessExecution | vscode.ShellExecution, done: (exitCode: number | undefined) => void): Promise<void> {
  const task = new vscode.Task({ type: "process" }, vscode.workspace.workspaceFolders ? vscode.TaskScope.Workspace : vscode.TaskScope.Global, name, "Pillion", run, []);
  task.presentationOptions = { reveal: vscode.TaskRevealKind.Always, focus: true, echo: false, clear: true, panel: vscode.TaskPanelKind.Dedicated };
  const started = await vscode.tasks.executeTask(task);
  const ended = vscode.tasks.onDidEndTaskProcess(({ execution, exitCode }) => {
    if (execution !== started) return;
    ended.dispose();
    done(exitCode);
  });
}

function execution(program: Program, args: string[]): vscode.ProcessExecution {
  return new vscode.ProcessExecution(program.path, args, { env: program.env });
}
