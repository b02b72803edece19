// What the commands of the manifest do. They are registered with VS Code by extension.ts, before any of this is loaded.
import * as vscode from "vscode";

type Run = (...args: unknown[]) => unknown;

const table = new Map<string, Run>();

/** Says what a command of the manifest does. */
export function onCommand(id: string, run: Run): vscode.Disposable {
  table.set(id, run);
  return new vscode.Disposable(() => table.delete(id));
}

export function runCommand(id: string, args: readonly unknown[]): unknown {
  const run = table.get(id);
  if (!run) throw new Error(`${id} is in the manifest, and nothing does it`);
  return run(...args);
}
