// Files with unsaved changes in editors that are not text editors: forms, drawings, and notebooks whose text is not known
// (see notebooks.ts). Only that editor has the changes, and it writes the whole file when it saves; edits that an agent wrote
// to the disk since would be lost silently.
import * as vscode from "vscode";
import { unsavedNotebook } from "./notebooks";

/** The URIs of such files. */
export function unsavedElsewhere(): Set<string> {
  const found = new Set<string>();
  // A custom editor of a text document shares the document with the text editor. A notebook's cells are its own.
  const texts = new Set(vscode.workspace.textDocuments.filter((d) => !d.isClosed).map((d) => d.uri.toString()));
  for (const { input, isDirty } of vscode.window.tabGroups.all.flatMap((g) => g.tabs)) {
    if (!isDirty || !(input instanceof vscode.TabInputNotebook || input instanceof vscode.TabInputCustom) || input.uri.scheme !== "file") continue;
    const told = input instanceof vscode.TabInputNotebook ? unsavedNotebook(input.uri) !== undefined : texts.has(input.uri.toString());
    if (!told) found.add(input.uri.toString());
  }
  return found;
}
