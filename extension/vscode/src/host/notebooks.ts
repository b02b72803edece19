// Notebooks with unsaved cells, as the text that VS Code would write: what the sidecar reads and what its edits are made for. An
// accepted edit goes into the cells, one undo step, and the notebook stays unsaved.
import * as vscode from "vscode";
import { cellChanges, type NewCell } from "../common/cells";

interface Known {
  text: string;
  version: number;
}

/** The last text of each unsaved notebook. VS Code counts versions of cells and notebooks apart; these count texts. */
const known = new Map<string, Known>();

/** VS Code's own extension for .ipynb, which reads and writes them here. */
interface IpynbApi {
  exportNotebook?(data: vscode.NotebookData): Promise<string>;
}

function api(): IpynbApi | undefined {
  const extension = vscode.extensions.getExtension<IpynbApi>("vscode.ipynb");
  return extension?.isActive ? extension.exports : undefined;
}

/** The notebook of a file to which a cell's document belongs, and the cell's place in it, from 0. */
export function notebookOf(cell: vscode.Uri): { notebook: vscode.NotebookDocument; at: number } | undefined {
  if (cell.scheme !== "vscode-notebook-cell") return undefined;
  for (const notebook of vscode.workspace.notebookDocuments) {
    if (notebook.uri.scheme !== "file") continue; // the sides of a proposal
    const at = notebook.getCells().findIndex((c) => c.document.uri.toString() === cell.toString());
    if (at >= 0) return { notebook, at };
  }
  return undefined;
}

/** The text of a Jupyter notebook as the sidecar knows it: of its cells while they are unsaved, else of the file, without a version. */
export async function knownText(n: vscode.NotebookDocument): Promise<{ text: string; version?: number }> {
  if (unsavedNotebook(n.uri)) return notebookText(n);
  return { text: new TextDecoder().decode(await vscode.workspace.fs.readFile(n.uri)) };
}

/** The open notebook of a file, when it has unsaved changes and its text is known. */
export function unsavedNotebook(uri: vscode.Uri): vscode.NotebookDocument | undefined {
  return unsavedNotebooks().find((n) => n.uri.toString() === uri.toString());
}

export function unsavedNotebooks(): vscode.NotebookDocument[] {
  if (!api()?.exportNotebook) return [];
  // The tab and the document hear of the first change one after the other.
  const tabs = new Set(vscode.window.tabGroups.all.flatMap((g) => g.tabs).flatMap((t) => (t.isDirty && t.input instanceof vscode.TabInputNotebook ? [t.input.uri.toString()] : [])));
  return vscode.workspace.notebookDocuments.filter((n) => (n.isDirty || tabs.has(n.uri.toString())) && !n.isClosed && n.notebookType === "jupyter-notebook" && n.uri.scheme === "file");
}

/** A notebook's text as it is by now, with a number that grows whenever it is another. */
export async function notebookText(n: vscode.NotebookDocument): Promise<Known> {
  const data = new vscode.NotebookData(n.getCells().map(copyOf));
  data.metadata = n.metadata;
  const text = (await api()?.exportNotebook?.(data)) ?? "";
  const was = known.get(n.uri.toString());
  if (was?.text === text) return was;
  const now = { text, version: (was?.version ?? 0) + 1 };
  known.set(n.uri.toString(), now);
  return now;
}

/** Adds what makes a notebook of one text that of another; why not, where its cells cannot be edited so. */
export function addNotebook(edit: vscode.WorkspaceEdit, n: vscode.NotebookDocument, before: string, after: string): string | undefined {
  const changes = cellChanges(before, after);
  if (typeof changes === "string") return changes;
  const cells = n.getCells();
  const edits: vscode.NotebookEdit[] = [];
  for (const c of changes) {
    if (c.kind === "replace") edits.push(vscode.NotebookEdit.replaceCells(new vscode.NotebookRange(c.start, c.start + c.count), c.cells.map((x) => dataOf(x, n))));
    else {
      const document = cells[c.at]?.document;
      if (!document) return "its cells are others by now";
      edit.replace(document.uri, new vscode.Range(new vscode.Position(0, 0), document.lineAt(document.lineCount - 1).range.end), c.source);
    }
  }
  // From the last to the first, so that the places before stay as they are counted.
  if (edits.length > 0) edit.set(n.uri, edits.reverse());
  return undefined;
}

function dataOf(c: NewCell, n: vscode.NotebookDocument): vscode.NotebookCellData {
  const info = (n.metadata["metadata"] as { language_info?: { name?: string } } | undefined)?.language_info?.name;
  const code = n.getCells().find((x) => x.kind === vscode.NotebookCellKind.Code)?.document.languageId;
  const data = new vscode.NotebookCellData(
    c.kind === "markdown" ? vscode.NotebookCellKind.Markup : vscode.NotebookCellKind.Code,
    c.source,
    c.kind === "code" ? (code ?? info ?? "python") : c.kind,
  );
  const old = c.outputsOf === undefined ? undefined : n.getCells()[c.outputsOf];
  if (old) Object.assign(data, { outputs: [...old.outputs], executionSummary: old.executionSummary });
  data.metadata = { ...(old?.metadata ?? {}), ...(c.id === undefined ? {} : { id: c.id }), metadata: c.metadata };
  return data;
}

function copyOf(c: vscode.NotebookCell): vscode.NotebookCellData {
  const data = new vscode.NotebookCellData(c.kind, c.document.getText(), c.document.languageId);
  data.metadata = c.metadata;
  data.outputs = [...c.outputs];
  if (c.executionSummary) data.executionSummary = c.executionSummary;
  return data;
}
