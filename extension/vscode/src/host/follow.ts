// Review after the fact: what the turn in front changed, in the gutter and in the source control view, to keep or undo
// hunk by hunk.
import * as vscode from "vscode";
import type { TurnFile, TurnHunk } from "../common/protocol";
import { byChange, comparedWith, hunksAt, openHunks } from "../common/turn";
import { type Proposals, turnScheme } from "./proposals";
import type { Sessions } from "./sessions";
import type { Sidecar } from "./sidecar";
import { onCommand } from "./table";
import type { DiffOptions } from "./tabs";

interface Shown {
  sessionId: string;
  turn: string;
  files: Map<string, TurnFile>; // by document URI
}

/** VS Code's line change, as menus of a quick diff hand it over. Lines count from 1. */
interface LineChange {
  modifiedStartLineNumber: number;
  modifiedEndLineNumber: number;
}

type Verb = "keep" | "undo";

export class Follow implements vscode.Disposable, vscode.QuickDiffProvider {
  private control: vscode.SourceControl | undefined;
  private group: vscode.SourceControlResourceGroup | undefined;
  private shown: Shown | undefined;
  private refreshing: Promise<void> | undefined;
  private again = false;
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
    private readonly proposals: Proposals,
    private readonly log: vscode.LogOutputChannel,
  ) {
    const command = (id: string, run: (...args: never[]) => unknown) => onCommand(`pillion.follow.${id}`, (...args: unknown[]) => run(...(args as never[])));
    this.disposables = [
      sidecar.onNotification("_pillion/change/updated", ({ sessionId }) => {
        if (sessionId === this.sessions.active?.id) this.refreshSoon();
      }),
      sessions.onDidChangeActive(() => this.refreshSoon()),
      sidecar.onDidStart(() => this.refreshSoon()),
      vscode.workspace.onDidChangeConfiguration((e) => e.affectsConfiguration("pillion.follow") && this.refreshSoon()),
      command("keepHunk", (uri: vscode.Uri, changes: LineChange[], index: number) => this.hunk("keep", uri, changes[index])),
      command("undoHunk", (uri: vscode.Uri, changes: LineChange[], index: number) => this.hunk("undo", uri, changes[index])),
      command("keepFile", (...states: vscode.SourceControlResourceState[]) => this.files("keep", states)),
      command("undoFile", (...states: vscode.SourceControlResourceState[]) => this.files("undo", states)),
      command("keepAll", () => this.do("keep", [...(this.shown?.files.values() ?? [])].flatMap(openHunks))),
      command("undoAll", () => this.undoAll()),
      command("openTurn", () => this.open()),
    ];
  }

  /** QuickDiffProvider. */
  provideOriginalResource(uri: vscode.Uri): vscode.Uri | undefined {
    const file = this.shown?.files.get(uri.toString());
    if (!file || openHunks(file).length === 0) return undefined;
    if (!vscode.workspace.getConfiguration("pillion").get("follow.gutter", true)) return undefined;
    return this.original(uri);
  }

  dispose(): void {
    this.control?.dispose();
    for (const d of this.disposables) d.dispose();
  }

  private original(uri: vscode.Uri): vscode.Uri {
    return vscode.Uri.from({ scheme: turnScheme, path: uri.path, query: this.shown?.turn ?? "" });
  }

  /** Reads the turn again; calls while one runs are joined into one after it. */
  private refreshSoon(): void {
    if (this.refreshing) {
      this.again = true;
      return;
    }
    this.refreshing = this.refresh()
      .catch((e: unknown) => this.log.warn(`the turn's changes could not be read: ${String(e)}`))
      .finally(() => {
        this.refreshing = undefined;
        if (this.again) {
          this.again = false;
          this.refreshSoon();
        }
      });
  }

  private async refresh(): Promise<void> {
    const session = this.sessions.active;
    if (!session || !this.sidecar.announced("_pillion/change/turn")) return this.clear();
    const { turn, files } = await this.sidecar.request("_pillion/change/turn", { sessionId: session.id });
    const open = new Map<string, TurnFile>();
    for (const f of files) {
      if (openHunks(f).length > 0) open.set(vscode.Uri.parse(f.newUri ?? f.uri, true).toString(), f);
    }
    if (open.size === 0) return this.clear();
    this.shown = { sessionId: session.id, turn, files: open };
    for (const [uri, f] of open) {
      const text = comparedWith(f);
      if (text !== undefined) this.proposals.put(this.original(vscode.Uri.parse(uri, true)), text);
    }
    this.draw();
  }

  private clear(): void {
    if (!this.shown) return;
    this.shown = undefined;
    this.control?.dispose(); // its marks go with it
    this.control = this.group = undefined;
    void vscode.commands.executeCommand("setContext", "pillion.following", false);
  }

  private draw(): void {
    const shown = this.shown;
    if (!shown) return;
    if (!this.control) {
      this.control = vscode.scm.createSourceControl("pillion", "Pillion");
      this.control.inputBox.visible = false;
      this.group = this.control.createResourceGroup("turn", "Changes of the Last Turn");
      this.group.hideWhenEmpty = true;
    }
    // Set anew, so that VS Code asks again: which files have marks depends on the turn.
    this.control.quickDiffProvider = { provideOriginalResource: (uri) => this.provideOriginalResource(uri) };
    this.control.count = shown.files.size;
    if (this.group) {
      this.group.resourceStates = [...shown.files].map(([key, f]) => {
        const uri = vscode.Uri.parse(key, true);
        const n = openHunks(f).length;
        return {
          resourceUri: uri,
          command: { command: "vscode.diff", title: "Show Changes", arguments: [this.original(uri), uri, `${uri.path.split("/").at(-1)} — changes of the turn`, { preview: true, override: true } satisfies DiffOptions] },
          decorations: { tooltip: `${n} ${n === 1 ? "hunk" : "hunks"}${f.source === "command" ? ", by a command that ran" : ""}`, strikeThrough: f.kind === "delete", faded: f.source === "command" },
          contextValue: f.kind,
        };
      });
    }
    void vscode.commands.executeCommand("setContext", "pillion.following", true);
  }

  private async hunk(verb: Verb, uri: vscode.Uri, change: LineChange | undefined): Promise<void> {
    await this.refreshing;
    const file = this.shown?.files.get(uri.toString());
    if (!file || !change) return;
    const hunks = hunksAt(file, change.modifiedStartLineNumber, change.modifiedEndLineNumber);
    if (hunks.length === 0) {
      void vscode.window.showInformationMessage("The turn did not change these lines.");
      return;
    }
    await this.do(verb, hunks);
  }

  private async files(verb: Verb, states: readonly (vscode.SourceControlResourceState | undefined)[]): Promise<void> {
    const uris = states.flatMap((s) => (s?.resourceUri ? [s.resourceUri] : []));
    const active = vscode.window.activeTextEditor?.document.uri;
    if (uris.length === 0 && active) uris.push(active);
    await this.do(verb, uris.flatMap((u) => openHunks(this.shown?.files.get(u.toString()) ?? ({ hunks: [] as TurnHunk[] } as TurnFile))));
  }

  private async undoAll(): Promise<void> {
    const hunks = [...(this.shown?.files.values() ?? [])].flatMap(openHunks);
    if (hunks.length === 0) return;
    const n = this.shown?.files.size ?? 0;
    const sure = await vscode.window.showWarningMessage(`Undo what the turn changed in ${n} ${n === 1 ? "file" : "files"}?`, { modal: true, detail: "Your later edits are kept. You can restore the changes from a checkpoint." }, "Undo");
    if (sure) await this.do("undo", hunks);
  }

  private async do(verb: Verb, hunks: readonly TurnHunk[]): Promise<void> {
    const sessionId = this.shown?.sessionId;
    if (!sessionId) return;
    for (const [changeSet, ids] of byChange(hunks)) {
      try {
        await this.sidecar.request(verb === "keep" ? "_pillion/change/keep" : "_pillion/change/undo", { sessionId, changeSet, hunks: ids });
      } catch (error) {
        void vscode.window.showWarningMessage(error instanceof Error ? error.message : String(error));
        break;
      }
    }
    this.refreshSoon();
  }

  private async open(): Promise<void> {
    const shown = this.shown;
    if (!shown) return;
    await vscode.commands.executeCommand(
      "vscode.changes",
      "Changes of the turn",
      [...shown.files].map(([key, f]) => {
        const uri = vscode.Uri.parse(key, true);
        return [uri, f.kind === "create" ? undefined : this.original(uri), f.kind === "delete" ? undefined : uri];
      }),
    );
  }
}
