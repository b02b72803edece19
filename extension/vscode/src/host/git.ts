// Uses VS Code's Git extension: which repository the person works in, and the message of the next commit.
import * as vscode from "vscode";
import { tell } from "./sessionlist";
import type { Sessions } from "./sessions";
import type { Sidecar } from "./sidecar";
import { onCommand } from "./table";

/** The used part of the Git extension's API, version 1. VS Code's types do not contain it. */
export interface Repository {
  readonly rootUri: vscode.Uri;
  readonly inputBox: { value: string };
  readonly state: { readonly HEAD?: { readonly name?: string } };
  getBranches?(query: { remote: boolean }): Promise<{ name?: string }[]>;
}

interface GitExtension {
  getAPI(version: 1): { repositories: Repository[]; getRepository(uri: vscode.Uri): Repository | null };
}

/** The repository of a folder, else of the file in front, else the first; undefined without Git. */
export async function gitRepository(of?: vscode.Uri): Promise<Repository | undefined> {
  const extension = vscode.extensions.getExtension<GitExtension>("vscode.git");
  if (!extension) return undefined;
  try {
    const api = (await extension.activate()).getAPI(1);
    const at = of ?? vscode.window.activeTextEditor?.document.uri;
    return (at && api.getRepository(at)) ?? api.repositories[0];
  } catch {
    return undefined; // a setting turns Git off
  }
}

export class CommitMessages implements vscode.Disposable {
  private readonly registered: vscode.Disposable;
  /** The last message that was written, by repository: it may be replaced without asking. */
  private readonly written = new Map<string, string>();

  constructor(
    private readonly sidecar: Pick<Sidecar, "request">,
    private readonly sessions: Sessions,
  ) {
    this.registered = onCommand("pillion.commitMessage", (source?: unknown) => this.write((source as { rootUri?: vscode.Uri } | undefined)?.rootUri).catch(tell));
  }

  dispose(): void {
    this.registered.dispose();
  }

  private async write(root: vscode.Uri | undefined): Promise<void> {
    const repository = await gitRepository(root);
    if (!repository) throw new Error("Open a folder with a Git repository first.");
    const key = repository.rootUri.toString();
    const before = repository.inputBox.value;
    if (before.trim() !== "" && before !== this.written.get(key)) {
      const choice = await vscode.window.showWarningMessage("Replace the commit message that you have typed?", { modal: true }, "Replace");
      if (!choice) return;
    }
    const session = await this.sessions.ready();
    await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: "Writing a commit message", cancellable: true }, async (_, token) => {
      const stop = new AbortController();
      token.onCancellationRequested(() => stop.abort());
      const { message } = await this.sidecar.request("_pillion/commit/message", { sessionId: session.id, cwd: repository.rootUri.fsPath }, stop.signal);
      // the person has typed a message in the meantime; do not replace it
      if (stop.signal.aborted || repository.inputBox.value !== before) return;
      repository.inputBox.value = message;
      this.written.set(key, message);
    });
  }
}
