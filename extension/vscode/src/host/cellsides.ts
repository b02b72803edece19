// The two sides of a proposed notebook as files that VS Code's notebook diff editor can open: it reads through a file system, and
// shows a text with one change as cells. Read-only; the decisions are made on the text (reviews.ts).
import * as vscode from "vscode";
import { isNotebook } from "../common/cells";
import { baseScheme, proposalScheme, type Proposals } from "./proposals";

const cellScheme = "pillion-cells";

/** A change of a proposal's cells in the notebook diff editor. */
export interface CellEdit {
  readonly uri: vscode.Uri;
  /** The cell, from 0; undefined: the notebook's own metadata. */
  readonly at: number | undefined;
  /** Its new source; undefined: its outputs or metadata were reverted. */
  readonly source: string | undefined;
}

export class CellSides implements vscode.FileSystemProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.changed.event;
  private readonly edited = new vscode.EventEmitter<CellEdit>();
  /** The notebook diff editor changed a right side in memory. It does so although the side is read-only, and marks nothing as unsaved. */
  readonly onDidEdit = this.edited.event;
  private own = false;
  private readonly registered: vscode.Disposable;

  constructor(private readonly proposals: Proposals) {
    this.registered = vscode.Disposable.from(
      this.changed,
      vscode.workspace.registerFileSystemProvider(cellScheme, this, { isCaseSensitive: true, isReadonly: true }),
      this.edited,
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (document.uri.scheme !== "vscode-notebook-cell" || contentChanges.length === 0) return;
        for (const n of vscode.workspace.notebookDocuments.filter((x) => isRight(x.uri))) {
          const cell = n.getCells().find((c) => c.document === document);
          if (cell) this.edited.fire({ uri: n.uri, at: cell.index, source: document.getText() });
        }
      }),
      vscode.workspace.onDidChangeNotebookDocument(({ notebook, metadata, cellChanges }) => {
        if (!isRight(notebook.uri)) return;
        if (metadata) this.edited.fire({ uri: notebook.uri, at: undefined, source: undefined });
        for (const c of cellChanges) if (c.metadata ?? c.outputs) this.edited.fire({ uri: notebook.uri, at: c.cell.index, source: undefined });
      }),
      // a hunk was rejected, or the person typed: the cells follow
      proposals.onDidChangeFile((events) => this.own || this.changed.fire(events.map(({ type, uri }) => ({ type, uri: sideAsCells(uri) })))),
    );
  }

  /** Runs a function that brings a change of the cells into the text: the cells need not be read again. */
  editing(run: () => void): void {
    this.own = true;
    try {
      run();
    } finally {
      this.own = false;
    }
  }

  stat(uri: vscode.Uri): vscode.FileStat {
    return { ...this.proposals.stat(textSide(uri)), permissions: vscode.FilePermission.Readonly };
  }

  readFile(uri: vscode.Uri): Uint8Array {
    const bytes = this.proposals.readFile(textSide(uri));
    const marked = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf; // see readOtherwise in proposals.ts: JSON has no byte order mark
    return marked ? bytes.subarray(3) : bytes;
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => {});
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  createDirectory(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  writeFile(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  delete(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  dispose(): void {
    this.registered.dispose();
  }
}

/** Whether a URI is one side of a proposal, as cells. */
export function isCells(uri: vscode.Uri): boolean {
  return uri.scheme === cellScheme;
}

function isRight(uri: vscode.Uri): boolean {
  return isCells(uri) && textSide(uri).scheme === proposalScheme;
}

/** Whether a change can be shown as cells: both texts are notebooks. */
export function showsCells(path: string, before: string, after: string): boolean {
  return path.endsWith(".ipynb") && isNotebook(before) && isNotebook(after);
}

/** The URI under which one side of a proposal is read as cells. */
export function sideAsCells(side: vscode.Uri): vscode.Uri {
  return side.with({ scheme: cellScheme, query: `${side.query}&${side.scheme}` });
}

/** The side that is shown as these cells; any other URI as it is. */
export function textSide(uri: vscode.Uri): vscode.Uri {
  if (uri.scheme !== cellScheme) return uri;
  const at = uri.query.lastIndexOf("&");
  const scheme = uri.query.slice(at + 1) === baseScheme ? baseScheme : proposalScheme;
  return uri.with({ scheme, query: uri.query.slice(0, at) });
}
