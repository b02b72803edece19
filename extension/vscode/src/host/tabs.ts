// Finding and closing the tabs that show a proposal. Focus stays where it is.
import * as vscode from "vscode";
import { proposalScheme } from "./proposals";

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
