// Files with unsaved changes in editors that are not text editors: notebooks, forms, drawings. Only that editor has the
// changes, and it writes the whole file when it saves; edits that an agent wrote to the disk since would be lost silently.
import * as vscode from "vscode";

/** The URIs of such files. */
export function unsavedElsewhere(): Set<string> {
  const found = new Set<string>();
  for (const tab of vscode.window.tabGroups.all.flatMap((g) => g.tabs)) {
    if (!tab.isDirty || !(tab.input instanceof vscode.TabInputNotebook || tab.input instanceof vscode.TabInputCustom)) continue;
    if (tab.input.uri.scheme === "file") found.add(tab.input.uri.toString());
  }
  // A custom editor of a text document shares the document with the text editor.
  for (const d of vscode.workspace.textDocuments) if (!d.isClosed) found.delete(d.uri.toString());
  return found;
}
