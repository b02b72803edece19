// Whether the files of a proposal still have the text that it was made for. They are compared again when one changes in the
// editor or on the disk. A proposal for another text is never written; here the person learns it before they have read all
// of it.
import * as vscode from "vscode";
import { unsavedElsewhere } from "./elsewhere";
import { notebookText, unsavedNotebook } from "./notebooks";
import type { Drift, Review, ReviewFile } from "./review";

const unknown = Symbol("a text that cannot be read here");
const settle = 200; // ms without a change, so that files are not compared at every key

/** Watches the files of a review until it is disposed; `moved` is called when a file begins or ceases to differ. */
export function watchFiles(review: Review, moved: (file: ReviewFile) => void): { look(): void } & vscode.Disposable {
  const files = new Map(review.files.map((f) => [original(f).toString(), f]));
  const waiting = new Set<ReviewFile>();
  let timer: NodeJS.Timeout | undefined;
  const look = async (file: ReviewFile) => {
    if (file.excerpt) return; // its text is not loaded, and it is not shown
    const now = await present(original(file));
    if (review.over || file.excerpt) return;
    const drift = driftOf(file, now) || (unsavedElsewhere().has(original(file).toString()) ? "unsaved" : "");
    if (drift === file.drift) return;
    file.drift = drift;
    moved(file);
  };
  const soon = (some: Iterable<ReviewFile>) => {
    for (const f of some) waiting.add(f);
    clearTimeout(timer);
    timer = setTimeout(() => {
      const now = [...waiting];
      waiting.clear();
      for (const f of now) void look(f); // a file that cannot be read counts as deleted
    }, settle);
  };
  const touched = (uri: vscode.Uri) => {
    const file = files.get(uri.toString());
    if (file) soon([file]);
  };
  const disk = vscode.workspace.createFileSystemWatcher("**/*");
  const watching = vscode.Disposable.from(
    disk,
    disk.onDidChange(touched),
    disk.onDidCreate(touched),
    disk.onDidDelete(touched),
    vscode.workspace.onDidChangeTextDocument((e) => touched(e.document.uri)),
    vscode.workspace.onDidChangeNotebookDocument((e) => touched(e.notebook.uri)),
    vscode.window.tabGroups.onDidChangeTabs((e) => e.changed.length > 0 && soon(review.files)),
    { dispose: () => clearTimeout(timer) },
  );
  return { look: () => soon(review.files), dispose: () => watching.dispose() };
}

/** A message about the changed files of a review; "" if none has changed. */
export function driftTitle(review: Review): string | undefined {
  const moved = review.files.filter((f) => f.drift !== "");
  const first = moved[0];
  if (!first) return review.refreshed ? "$(sync)\u00a0New proposal for the current text" : undefined;
  const name = original(first).path.split("/").at(-1);
  if (moved.length > 1) return `$(warning)\u00a0${moved.length} files have changed since the proposal: propose again`;
  if (first.drift === "unsaved") return `$(warning)\u00a0${name} has unsaved changes in its own editor: save it first`;
  const how = { changed: "has changed since the proposal", gone: "was deleted since the proposal", there: "was created since the proposal", "": "" }[first.drift];
  return `$(warning)\u00a0${name} ${how}: propose again`;
}

function driftOf(file: ReviewFile, now: string | typeof unknown | undefined): Drift {
  if (file.of.change.kind === "create") return now === undefined ? "" : "there";
  if (now === undefined) return "gone";
  return now === unknown || plain(now) === plain(file.base) ? "" : "changed";
}

/** The text of a file in the editor, else on the disk; undefined if it does not exist. */
async function present(uri: vscode.Uri): Promise<string | typeof unknown | undefined> {
  const notebook = unsavedNotebook(uri);
  if (notebook) return (await notebookText(notebook)).text;
  const open = vscode.workspace.textDocuments.find((d) => d.uri.toString() === uri.toString() && !d.isClosed);
  const bytes = await vscode.workspace.fs.readFile(uri).then(undefined, () => undefined);
  if (open && (open.isDirty || bytes)) return open.getText();
  if (!bytes) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return unknown; // another encoding: the sidecar compares it before it writes
  }
}

function original(file: ReviewFile): vscode.Uri {
  return vscode.Uri.parse(file.of.change.uri, true);
}

function plain(text: string): string {
  return text.replace(/^\ufeff/, "").replace(/\r\n/g, "\n");
}
