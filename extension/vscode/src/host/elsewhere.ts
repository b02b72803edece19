// Files with unsaved changes in an editor that is none for text: notebooks, forms, drawings. Only that editor knows what they
// hold, and it writes the whole file when it saves: what an agent wrote to the disk meanwhile would be lost without a word.
import * as vscode from "vscode";

/** URIs of such files. */
export function unsavedElsewhere(): Set<string> {
  const found = new Set<string>();
  for (const tab of vscode.window.tabGroups.all.flatMap((g) => g.tabs)) {
    if (!tab.isDirty || !(tab.input instanceof vscode.TabInputNotebook || tab.input instanceof vscode.TabInputCustom)) continue;
    if (tab.input.uri.scheme === "file") found.add(tab.input.uri.toString());
  }
  // A custom editor of a text shares its document with the text editor.
  for (const d of vscode.workspace.textDocuments) if (!d.isClosed) found.delete(d.uri.toString());
  return found;
}
