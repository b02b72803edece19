// Finds and closes the tabs that show a proposal, without moving the focus.
import * as vscode from "vscode";
import { textSide } from "./cellsides";
import { proposalScheme } from "./proposals";

/** `override` asks for the text editor even if the person has chosen another editor for this kind of file (a preview
 * shows no hunks). */
export type DiffOptions = vscode.TextDocumentShowOptions & { override: true };

/**
 * Saves a proposal (in memory), so that VS Code does not ask when its tab is closed. It is saved without formatters,
 * code actions and trimming: these would change lines that were not proposed, and undo decisions.
 */
export async function keep(document: vscode.TextDocument): Promise<void> {
  const front = vscode.window.tabGroups.activeTabGroup.activeTab;
  const here = front && proposalTabs((right) => !right || right.toString() === document.uri.toString()).includes(front);
  if (here) await vscode.commands.executeCommand("workbench.action.files.saveWithoutFormatting").then(undefined, () => {});
  if (document.isDirty) await document.save(); // it is not active, or another extension has the command
}

/** The tabs that show a proposal: all, or those that `mine` accepts by the right side or, for several files, by the
 * label. */
export function proposalTabs(mine: (right: vscode.Uri | undefined, label: string) => boolean = () => true): vscode.Tab[] {
  return vscode.window.tabGroups.all
    .flatMap((group) => group.tabs)
    .filter((tab) => {
      const right = rightSide(tab);
      if (right) return right.scheme === proposalScheme && mine(right, tab.label);
      // The API has no input for a diff of several files, only its label.
      return (tab.input === undefined || !isKnown(tab.input)) && tab.label.startsWith("Pillion proposes (") && mine(undefined, tab.label);
    });
}

export async function closeTabs(tabs: readonly vscode.Tab[]): Promise<void> {
  if (tabs.length > 0) await vscode.window.tabGroups.close([...tabs], true).then(undefined, () => {}); // the tab may be closed already
}

export function rightSide(tab: vscode.Tab): vscode.Uri | undefined {
  if (tab.input instanceof vscode.TabInputNotebookDiff) return textSide(tab.input.modified);
  if (tab.input instanceof vscode.TabInputTextDiff) return textSide(tab.input.modified);
  if (tab.input instanceof vscode.TabInputText) return tab.input.uri;
  return undefined;
}

function isKnown(input: unknown): boolean {
  return [vscode.TabInputText, vscode.TabInputTextDiff, vscode.TabInputCustom, vscode.TabInputWebview, vscode.TabInputNotebook, vscode.TabInputNotebookDiff, vscode.TabInputTerminal].some((kind) => input instanceof kind);
}
