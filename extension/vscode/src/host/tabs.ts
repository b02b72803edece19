// Finding and closing the tabs that show a proposal. Focus stays where it is.
import * as vscode from "vscode";
import { proposalScheme } from "./proposals";

/** `override` asks for the text editor where the person has chosen another one for a kind of file (a preview shows no hunks). */
export type DiffOptions = vscode.TextDocumentShowOptions & { override: true };

/**
 * Saves a proposal into memory, so that closing its tab asks nothing. It stays as it is: what saving does to files
 * (formatters, code actions, trimming) would change lines that nobody proposed, and undo decisions.
 */
export async function keep(document: vscode.TextDocument): Promise<void> {
  const front = vscode.window.tabGroups.activeTabGroup.activeTab;
  const here = front && proposalTabs((right) => !right || right.toString() === document.uri.toString()).includes(front);
  if (here) await vscode.commands.executeCommand("workbench.action.files.saveWithoutFormatting").then(undefined, () => {});
  if (document.isDirty) await document.save(); // it is not in front, or the command is another's
}

/** Tabs that show a proposal: all, or those that `mine` names by its right side or, for several files, by its label. */
export function proposalTabs(mine: (right: vscode.Uri | undefined, label: string) => boolean = () => true): vscode.Tab[] {
  return vscode.window.tabGroups.all
    .flatMap((group) => group.tabs)
    .filter((tab) => {
      const right = rightSide(tab);
      if (right) return right.scheme === proposalScheme && mine(right, tab.label);
      // A diff of several files has no input that an extension may see, only its label.
      return (tab.input === undefined || !isKnown(tab.input)) && tab.label.startsWith("Pillion proposes (") && mine(undefined, tab.label);
    });
}

export async function closeTabs(tabs: readonly vscode.Tab[]): Promise<void> {
  if (tabs.length > 0) await vscode.window.tabGroups.close([...tabs], true).then(undefined, () => {}); // it may be gone already
}

export function rightSide(tab: vscode.Tab): vscode.Uri | undefined {
  if (tab.input instanceof vscode.TabInputTextDiff) return tab.input.modified;
  if (tab.input instanceof vscode.TabInputText) return tab.input.uri;
  return undefined;
}

function isKnown(input: unknown): boolean {
  return [vscode.TabInputText, vscode.TabInputTextDiff, vscode.TabInputCustom, vscode.TabInputWebview, vscode.TabInputNotebook, vscode.TabInputNotebookDiff, vscode.TabInputTerminal].some((kind) => input instanceof kind);
}
