// The implementations of the commands in the manifest. extension.ts registers the commands with VS Code before this file is
// loaded.
import * as vscode from "vscode";

type Run = (...args: unknown[]) => unknown;

const table = new Map<string, Run>();

/** Sets the implementation of a command of the manifest. */
export function onCommand(id: string, run: Run): vscode.Disposable {
  table.set(id, run);
  return new vscode.Disposable(() => table.delete(id));
}

export function runCommand(id: string, args: readonly unknown[]): unknown {
  const run = table.get(id);
  if (!run) throw new Error(`${id} is in the manifest but has no implementation`);
  return run(...args);
}
