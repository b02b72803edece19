// The parts of Pillion that each window needs: the status bar item, the commands, and quick fixes at problems. The other
// parts are loaded when one of these is first used, so that a window that does not use Pillion costs little.
import * as vscode from "vscode";
import { codeActions } from "./host/codeactions";
import { registerTools } from "./host/lmregister";
import type { Parts } from "./main.js";

export function activate(context: vscode.ExtensionContext): void {
  const item = vscode.window.createStatusBarItem("pillion.status", vscode.StatusBarAlignment.Left, 10);
  item.name = "Pillion";
  item.text = "$(comment-discussion) Pillion";
  item.tooltip = "Open Pillion";
  item.accessibilityInformation = { label: "Pillion", role: "button" };
  item.command = "pillion.focus";
  item.show();

  let loaded: Promise<Parts> | undefined;
  const parts = () => (loaded ??= import("./main.js").then(({ wire }) => wire(context, item)));
  const manifest = context.extension.packageJSON as { contributes: { commands: { command: string }[] } };
  context.subscriptions.push(
    item,
    ...manifest.contributes.commands.map(({ command }) => vscode.commands.registerCommand(command, async (...args: unknown[]) => (await parts()).run(command, args))),
    vscode.window.registerWebviewViewProvider("pillion.chat", { resolveWebviewView: async (view) => (await parts()).resolveView(view) }, { webviewOptions: { retainContextWhenHidden: true } }),
    codeActions(),
    registerTools(async (input, token) => (await parts()).callTool(input, token)),
  );
  if (vscode.window.tabGroups.all.some((group) => group.tabs.some(ours))) void parts(); // tabs from before a restart: the loaded code closes or reads them
}

function ours({ input, label }: vscode.Tab): boolean {
  const uri = input instanceof vscode.TabInputTextDiff ? input.modified : input instanceof vscode.TabInputText ? input.uri : undefined;
  return uri?.scheme.startsWith("pillion-") === true || label.startsWith("Pillion proposes (");
}
