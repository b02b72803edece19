// The two sides of a review as documents: the text before (read-only) and the proposal (writable, in memory). This file
// writes no file of the project.
import * as vscode from "vscode";

export const proposalScheme = "pillion-proposal";
export const baseScheme = "pillion-base";
/** The text before a turn, for the gutter. */
export const turnScheme = "pillion-turn";

/**
 * Whether VS Code would not read a document as UTF-8. A byte order mark makes it use UTF-8; for other documents it is
 * left out, because the status bar would show it as if the file had one.
 */
function readOtherwise(uri: vscode.Uri): boolean {
  const files = vscode.workspace.getConfiguration("files", uri);
  const perLanguage = files.inspect("encoding")?.languageIds ?? [];
  return files.get("encoding", "utf8") !== "utf8" || files.get("autoGuessEncoding", false) || perLanguage.length > 0;
}

interface Content {
  bytes: Buffer;
  changed: number;
}

export class Proposals implements vscode.FileSystemProvider, vscode.Disposable {
  private readonly texts = new Map<string, Content>();
  private readonly files = new vscode.EventEmitter<vscode.FileChangeEvent[]>();
  readonly onDidChangeFile = this.files.event;
  /** Change events of the read-only sides, by scheme. */
  private readonly contents = new Map([baseScheme, turnScheme].map((scheme) => [scheme, new vscode.EventEmitter<vscode.Uri>()]));
  private readonly registered: vscode.Disposable[];

  constructor() {
    this.registered = [
      vscode.workspace.registerFileSystemProvider(proposalScheme, this, { isCaseSensitive: true }),
      ...[...this.contents].flatMap(([scheme, changed]) => [
        changed,
        vscode.workspace.registerTextDocumentContentProvider(scheme, { onDidChange: changed.event, provideTextDocumentContent: (uri) => this.text(uri) }),
      ]),
      this.files,
    ];
  }

  put(uri: vscode.Uri, text: string): void {
    const marked = uri.scheme === proposalScheme && readOtherwise(uri) ? `\ufeff${text}` : text;
    const bytes = Buffer.from(marked, "utf8");
    if (this.texts.get(uri.toString())?.bytes.equals(bytes)) return; // VS Code would read the whole text again
    this.texts.set(uri.toString(), { bytes, changed: Date.now() });
    if (uri.scheme === proposalScheme) this.files.fire([{ type: vscode.FileChangeType.Changed, uri }]);
    else this.contents.get(uri.scheme)?.fire(uri);
  }

  drop(uri: vscode.Uri): void {
    this.texts.delete(uri.toString());
  }

  has(uri: vscode.Uri): boolean {
    return this.texts.has(uri.toString());
  }

  /** The present text of a side; "" if it was decided. */
  text(uri: vscode.Uri): string {
    return this.texts.get(uri.toString())?.bytes.toString("utf8").replace(/^\ufeff/, "") ?? "";
  }

  stat(uri: vscode.Uri): vscode.FileStat {
    const content = this.content(uri);
    return { type: vscode.FileType.File, ctime: 0, mtime: content.changed, size: content.bytes.length };
  }

  readFile(uri: vscode.Uri): Uint8Array {
    return this.content(uri).bytes;
  }

  writeFile(uri: vscode.Uri, bytes: Uint8Array): void {
    this.content(uri); // the text of a decided proposal cannot change
    this.texts.set(uri.toString(), { bytes: Buffer.from(bytes), changed: Date.now() });
    this.files.fire([{ type: vscode.FileChangeType.Changed, uri }]);
  }

  watch(): vscode.Disposable {
    return new vscode.Disposable(() => {});
  }

  readDirectory(): [string, vscode.FileType][] {
    return [];
  }

  createDirectory(): void {
    throw vscode.FileSystemError.NoPermissions("a proposal has no folders");
  }

  delete(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  rename(uri: vscode.Uri): void {
    throw vscode.FileSystemError.NoPermissions(uri);
  }

  dispose(): void {
    for (const d of this.registered) d.dispose();
  }

  private content(uri: vscode.Uri): Content {
    const content = this.texts.get(uri.toString());
    if (!content) throw vscode.FileSystemError.FileNotFound(uri);
    return content;
  }
}
