// Review after the write: what the last turn of the active session changed, to keep or undo hunk by hunk. The panel and
// CodeLenses (turnlenses.ts) show it; they do not need VS Code's source control. In a Git repository the gutter is used by
// Git, and its Revert restores HEAD. Without Git, Pillion marks the hunks in the gutter too.
import * as vscode from "vscode";
import type { TurnFile, TurnHunk } from "../common/protocol";
import { byChange, comparedWith, hunksAt, openHunks, placedHunks } from "../common/turn";
import { uriPath } from "../common/tool";
import type { ChangedFile } from "../common/view";
import type { Approvals } from "./approvals";
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

/** VS Code's LineChange, as the menus of a quick diff pass it. Lines count from 1. */
interface LineChange {
  modifiedStartLineNumber: number;
  modifiedEndLineNumber: number;
}

type Verb = "keep" | "undo";

/** Change sets of this folder that the person reviewed before they were written: their hunks need no second
 * decision. */
const reviewedKey = "pillion.reviewedChanges";
const mostReviewed = 200; // change sets that are stored

export class Follow implements vscode.Disposable, vscode.QuickDiffProvider {
  private control: vscode.SourceControl | undefined;
  private group: vscode.SourceControlResourceGroup | undefined;
  private shown: Shown | undefined;
  private refreshing: Promise<void> | undefined;
  private again = false;
  private reviewed: ReadonlySet<string>;
  private readonly changed = new vscode.EventEmitter<void>();
  /** The hunks that need a decision have changed. */
  readonly onDidChange = this.changed.event;
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
    private readonly proposals: Proposals,
    approvals: Pick<Approvals, "onDidDecide">,
    state: vscode.Memento,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.reviewed = new Set(state.get<string[]>(reviewedKey, []));
    const command = (id: string, run: (...args: never[]) => unknown) => onCommand(`pillion.follow.${id}`, (...args: unknown[]) => run(...(args as never[])));
    this.disposables = [
      this.changed,
      approvals.onDidDecide(({ approval, optionId }) => {
        if (optionId === undefined || !approval.meta.changeSet) return;
        this.reviewed = new Set([...this.reviewed, approval.meta.changeSet].slice(-mostReviewed));
        void state.update(reviewedKey, [...this.reviewed]); // at worst the person is asked a second time
      }),
      sidecar.onNotification("_pillion/change/updated", ({ sessionId, change }) => {
        // A proposal has written nothing: to read the turn again would send every changed file's text while a person waits for the diff.
        if (sessionId === this.sessions.active?.id && change.state !== "proposed") this.refreshSoon();
      }),
      sessions.onDidChangeActive(() => this.refreshSoon()),
      sidecar.onDidStart(() => this.refreshSoon()),
      vscode.workspace.onDidChangeConfiguration((e) => e.affectsConfiguration("pillion.follow") && this.refreshSoon()),
      command("keepHunk", (uri?: vscode.Uri, which?: LineChange[] | string, index?: number) => this.hunk("keep", uri, which, index)),
      command("undoHunk", (uri?: vscode.Uri, which?: LineChange[] | string, index?: number) => this.hunk("undo", uri, which, index)),
      command("keepFile", (...files: (vscode.SourceControlResourceState | vscode.Uri)[]) => this.files("keep", files)),
      command("undoFile", (...files: (vscode.SourceControlResourceState | vscode.Uri)[]) => this.files("undo", files)),
      command("nextHunk", () => this.step(1)),
      command("previousHunk", () => this.step(-1)),
      command("keepAll", () => this.do("keep", [...(this.shown?.files.values() ?? [])].flatMap(openHunks))),
      command("undoAll", () => this.undoAll()),
      command("openTurn", () => this.open()),
    ];
  }

  /** The files of the turn that were changed without a review and have hunks which are neither kept nor undone. */
  unreviewed(): ChangedFile[] {
    return [...(this.shown?.files ?? [])].flatMap(([uri, f]): ChangedFile[] => {
      const hunks = this.waiting(f);
      if (hunks.length === 0) return [];
      const count = (side: "oldLines" | "newLines") => hunks.reduce((n, h) => n + h[side], 0);
      return [{ path: uriPath(uri), kind: f.kind === "create" || f.kind === "delete" ? f.kind : "edit", added: count("newLines"), removed: count("oldLines"), hunks: hunks.length }];
    });
  }

  /** The undecided hunks of a document, with their present lines. */
  hunksOf(document: vscode.TextDocument): { id: string; start: number; count: number }[] {
    const f = this.shown?.files.get(document.uri.toString());
    if (!f || f.binary || f.text == null) return [];
    const ids = new Set(this.waiting(f).map((h) => h.id));
    return placedHunks(f, document.getText()).filter((h) => ids.has(h.id));
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
    this.changed.fire();
  }

  private clear(): void {
    if (!this.shown) return;
    this.shown = undefined;
    this.control?.dispose(); // this removes its marks
    this.control = this.group = undefined;
    void vscode.commands.executeCommand("setContext", "pillion.following", false);
    this.changed.fire();
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
    // Set again, so that VS Code asks again which files have marks; they depend on the turn.
    this.control.quickDiffProvider = { provideOriginalResource: (uri) => this.provideOriginalResource(uri) };
    this.control.count = this.unreviewed().length; // the badge is for what needs a decision; Git counts the files already
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

  private waiting(f: TurnFile): TurnHunk[] {
    return openHunks(f).filter((h) => h.members.some((m) => !this.reviewed.has(m.changeSet)));
  }

  /** One hunk: the one of a lens (its id), of the gutter (the editor's line changes), or the one at the cursor. */
  private async hunk(verb: Verb, uri: vscode.Uri | undefined, which: LineChange[] | string | undefined, index: number | undefined): Promise<void> {
    await this.refreshing;
    const editor = vscode.window.activeTextEditor;
    const file = this.shown?.files.get((uri ?? editor?.document.uri)?.toString() ?? "");
    if (!file) return;
    if (typeof which === "string") return this.do(verb, file.hunks.filter((h) => h.id === which));
    const change = Array.isArray(which) ? which[index ?? 0] : undefined;
    if (change) {
      const hunks = hunksAt(file, change.modifiedStartLineNumber, change.modifiedEndLineNumber);
      if (hunks.length === 0) void vscode.window.showInformationMessage("The turn did not change these lines.");
      return this.do(verb, hunks);
    }
    const line = editor?.selection.active.line ?? 0;
    const at = editor && placedHunks(file, editor.document.getText()).find((h) => line >= h.start && line <= h.start + Math.max(h.count - 1, 0));
    if (!at) return void vscode.window.showInformationMessage("There is no change of the last turn at the cursor.");
    return this.do(verb, file.hunks.filter((h) => h.id === at.id));
  }

  private async files(verb: Verb, named: readonly (vscode.SourceControlResourceState | vscode.Uri | undefined)[]): Promise<void> {
    const uris = named.flatMap((s) => (s instanceof vscode.Uri ? [s] : s?.resourceUri ? [s.resourceUri] : []));
    const active = vscode.window.activeTextEditor?.document.uri;
    if (uris.length === 0 && active) uris.push(active);
    await this.do(verb, uris.flatMap((u) => openHunks(this.shown?.files.get(u.toString()) ?? ({ hunks: [] as TurnHunk[] } as TurnFile))));
  }

  /** Moves to the next or previous hunk of the turn; after the last one of a file to the next file. */
  private async step(by: 1 | -1): Promise<void> {
    const shown = this.shown;
    const editor = vscode.window.activeTextEditor;
    if (!shown) return;
    const uris = [...shown.files].filter(([, f]) => f.kind !== "delete").map(([uri]) => uri);
    const here = editor ? uris.indexOf(editor.document.uri.toString()) : -1;
    const line = editor?.selection.active.line ?? 0;
    for (let i = here < 0 ? 1 : 0; i <= uris.length; i++) {
      const uri = uris[(here + by * i + uris.length * (i + 1)) % uris.length];
      if (uri === undefined) return;
      const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(uri, true));
      const places = placedHunks(shown.files.get(uri)!, document.getText()).filter((h) => i > 0 || (by > 0 ? h.start > line : h.start < line));
      const to = by > 0 ? places[0] : places.at(-1);
      if (to) return void (await vscode.window.showTextDocument(document, { preview: true, selection: new vscode.Range(to.start, 0, to.start, 0) }));
    }
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
