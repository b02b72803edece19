// Applies accepted edits to open documents: one workspace edit, one undo step, after a check of the versions it was made
// for.
import { createHash } from "node:crypto";
import * as vscode from "vscode";
import type { ApplyEditRequest, ApplyEditResponse, DocumentChange } from "../common/protocol";
import { unsavedElsewhere } from "./elsewhere";
import { addNotebook, notebookText, unsavedNotebook } from "./notebooks";
import type { Reviews } from "./reviews";
import type { Sidecar } from "./sidecar";

/** The sidecar waits ten seconds for the answer. */
const saveLimit = 5_000; // ms

export function applyEdits(sidecar: Sidecar, reviews: Reviews, log: vscode.LogOutputChannel): vscode.Disposable {
  return vscode.Disposable.from(
    // One after the other: two edits of one document must not be checked against the same version.
    sidecar.onRequest("_pillion/workspace/applyEdit", serial((request) => reviews.writing(() => apply(request, log)))),
    sidecar.onNotification("_pillion/change/updated", ({ change }) => {
      if (change.state === "applied") void applyOwn(reviews.takeOwn(change.id), log); // it reports its own failures
    }),
  );
}

async function apply(request: ApplyEditRequest, log: vscode.LogOutputChannel): Promise<ApplyEditResponse> {
  const edit = new vscode.WorkspaceEdit();
  const documents: vscode.TextDocument[] = [];
  const clean = new Set<vscode.TextDocument>();
  const notebooks: vscode.NotebookDocument[] = [];
  for (const change of request.edit.documentChanges) {
    const notebook = "textDocument" in change ? unsavedNotebook(vscode.Uri.parse(change.textDocument.uri, true)) : undefined;
    if (notebook) notebooks.push(notebook);
    const document = notebook && "textDocument" in change ? await addCells(edit, notebook, change) : await add(edit, change);
    if (typeof document === "string") {
      log.warn(`edit refused: ${document}`);
      return { applied: false, failureReason: document };
    }
    if (!document) continue;
    documents.push(document);
    if (!document.isDirty) clean.add(document);
  }
  const before = new Map(documents.map((d) => [d, d.getText()]));
  const saved = new Set<vscode.TextDocument>();
  const saving = vscode.workspace.onDidSaveTextDocument((d) => saved.add(d));
  const done = await vscode.workspace.applyEdit(edit);
  saving.dispose();
  if (!done) return { applied: false, failureReason: "VS Code did not apply the edit" };
  // A read-only editor accepts the text but never writes it; the document does not even count as unsaved.
  const stuck = documents.find((d) => clean.has(d) && !d.isDirty && !saved.has(d) && d.getText() !== before.get(d));
  if (stuck) {
    await takeBack(before);
    return { applied: false, failureReason: `${stuck.uri.fsPath} is read-only in VS Code (see the setting files.readonlyInclude)` };
  }
  const versions: Record<string, number> = {};
  const sha256: Record<string, string> = {};
  for (const d of documents) {
    versions[d.uri.toString()] = d.version;
    sha256[d.uri.toString()] = createHash("sha256").update(d.getText(), "utf8").digest("hex");
  }
  for (const n of notebooks) {
    const { text, version } = await notebookText(n);
    versions[n.uri.toString()] = version;
    sha256[n.uri.toString()] = createHash("sha256").update(text, "utf8").digest("hex");
  }
  // Before the answer, so that the agent's next command sees the file. Changes during the save (by a formatter) are sent
  // like any other change, with a later version than the one in this answer.
  if (vscode.workspace.getConfiguration("pillion").get<string>("save", "wasSaved") === "wasSaved") await saveAll(clean, log);
  return { applied: true, versions, sha256 };
}

/** Adds the change of a notebook whose cells are unsaved; why it cannot be made, or nothing. */
async function addCells(edit: vscode.WorkspaceEdit, n: vscode.NotebookDocument, change: Extract<DocumentChange, { textDocument: unknown }>): Promise<string | undefined> {
  const { text, version } = await notebookText(n);
  const wanted = change.textDocument.version;
  if (wanted != null && wanted !== version) return `${n.uri.fsPath} is at version ${version}, the edit was made for ${wanted}`;
  const lines = text.split("\n");
  const starts = [0];
  for (const l of lines) starts.push(starts[starts.length - 1]! + l.length + 1);
  const offset = (p: { line: number; character: number }) => Math.min(text.length, (starts[p.line] ?? text.length) + p.character);
  let after = text;
  for (const e of [...change.edits].sort((a, b) => offset(b.range.start) - offset(a.range.start))) after = after.slice(0, offset(e.range.start)) + e.newText + after.slice(offset(e.range.end));
  const why = addNotebook(edit, n, text, after);
  return why === undefined ? undefined : `${n.uri.fsPath}: ${why}`;
}

async function takeBack(before: ReadonlyMap<vscode.TextDocument, string>): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  for (const [d, text] of before) if (d.getText() !== text) edit.replace(d.uri, whole(d), text);
  await vscode.workspace.applyEdit(edit);
}

function whole(d: vscode.TextDocument): vscode.Range {
  return new vscode.Range(new vscode.Position(0, 0), d.lineAt(d.lineCount - 1).range.end);
}

/** Saves. A formatter that hangs delays the answer only for a limited time; its save continues. */
async function saveAll(documents: Iterable<vscode.TextDocument>, log: vscode.LogOutputChannel): Promise<void> {
  const saved = [...documents].map((d) => d.save().then((ok) => ok || log.warn(`${d.uri.fsPath} was not saved`), (e: unknown) => log.warn(`${d.uri.fsPath} was not saved: ${String(e)}`)));
  let timer: NodeJS.Timeout | undefined;
  await Promise.race([Promise.all(saved), new Promise((resolve) => (timer = setTimeout(resolve, saveLimit)))]);
  clearTimeout(timer);
}

/** Adds one change. Returns the document that it edits, undefined for whole files, or why it is not possible. */
async function add(edit: vscode.WorkspaceEdit, change: DocumentChange): Promise<vscode.TextDocument | string | undefined> {
  if ("textDocument" in change) {
    const uri = vscode.Uri.parse(change.textDocument.uri, true);
    if (unsavedElsewhere().has(uri.toString())) return `${uri.fsPath} has unsaved changes in an editor that is not for text, which alone knows them: the user has to save it first`;
    const document = await vscode.workspace.openTextDocument(uri).then(undefined, (e: unknown) => `${uri.fsPath}: ${String(e)}`);
    if (typeof document === "string") return document;
    const wanted = change.textDocument.version;
    if (wanted != null && wanted !== document.version) return `${uri.fsPath} is at version ${document.version}, the edit was made for ${wanted}`;
    const eol = document.eol === vscode.EndOfLine.CRLF;
    for (const e of change.edits) {
      const at = new vscode.Range(e.range.start.line, e.range.start.character, e.range.end.line, e.range.end.character);
      if (!document.validateRange(at).isEqual(at)) return `${uri.fsPath} has no lines ${e.range.start.line + 1} to ${e.range.end.line + 1}`;
      edit.replace(uri, at, eol ? e.newText : e.newText.replace(/\r\n/g, "\n"));
    }
    return document;
  }
  switch (change.kind) {
    case "create":
      edit.createFile(vscode.Uri.parse(change.uri, true), { overwrite: false, ignoreIfExists: false });
      return undefined;
    case "rename":
      edit.renameFile(vscode.Uri.parse(change.oldUri, true), vscode.Uri.parse(change.newUri, true), { overwrite: false });
      return undefined;
    case "delete":
      edit.deleteFile(vscode.Uri.parse(change.uri, true), { ignoreIfNotExists: false });
      return undefined;
    default:
      return "an unknown kind of change";
  }
}

/** Lines that the person typed into a proposal outside its hunks are their own edit of the file. */
export async function applyOwn(own: { path: string; expected: string; wanted: string }[], log: vscode.LogOutputChannel): Promise<void> {
  for (const { path, expected, wanted } of own) {
    const document = await vscode.workspace.openTextDocument(vscode.Uri.file(path)).then(undefined, () => undefined);
    if (document && same(document.getText(), expected)) {
      const edit = new vscode.WorkspaceEdit();
      edit.replace(document.uri, whole(document), wanted);
      if (await vscode.workspace.applyEdit(edit)) continue;
    }
    log.warn(`${path}: what you typed outside the proposed hunks could not be written to the file`);
    const choice = await vscode.window.showWarningMessage(`What you typed outside the proposal's hunks could not be written to ${path.split(/[\\/]/).at(-1)}: the file has changed.`, "Show My Text");
    if (choice) await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ content: wanted, language: document?.languageId ?? "plaintext" }));
  }
}

function same(a: string, b: string): boolean {
  return a.replace(/\r\n/g, "\n").replace(/\n?$/, "\n") === b.replace(/\n?$/, "\n");
}

function serial<A, R>(run: (a: A) => Promise<R>): (a: A) => Promise<R> {
  let last: Promise<unknown> = Promise.resolve();
  return (a) => {
    const mine = last.then(() => run(a));
    last = mine.catch(() => {});
    return mine;
  };
}
