// Files of a proposal that have no tab are opened unseen while it waits. What is accepted then goes through VS Code, like an edit of
// a file in a tab: when the person opens the file later, Ctrl+Z takes the accepted lines back.
import * as vscode from "vscode";
import type { Approval, Approvals } from "./approvals";
import type { Sidecar } from "./sidecar";
import { closeTabs } from "./tabs";

/** A larger file is written on the disk: VS Code keeps no undo step of it once it is closed. */
const largest = 1 << 20; // characters

/** A proposal of more files is written on the disk: opening them all would cost more than their undo steps are worth. */
const most = 50;

export class UnseenFiles implements vscode.Disposable {
  /** By file, the proposals that it is open for. */
  private readonly held = new Map<string, Set<Approval>>();
  private readonly changed = new vscode.EventEmitter<void>();
  /** Files were opened, or are let go. */
  readonly onDidChange = this.changed.event;
  /** Files that VS Code gave a tab in the background, because it took longer than it likes to save them. */
  private readonly strays = new Set<string>();
  private readonly registered: vscode.Disposable;

  constructor(sidecar: Pick<Sidecar, "onNotification" | "onDidChangeState">, private readonly approvals: Pick<Approvals, "get" | "onDidAsk" | "onDidDecide">) {
    this.registered = vscode.Disposable.from(
      this.changed,
      approvals.onDidAsk((a) => void this.hold(a)), // a file that cannot be opened is written on the disk
      // An accepted change is yet to be written: its files stay open until the sidecar says that it is done.
      approvals.onDidDecide(({ approval: a, optionId }) => !accepts(a, optionId) && this.release((x) => x === a)),
      sidecar.onNotification("_pillion/change/updated", ({ change }) => {
        if (change.state !== "proposed") this.release((a) => a.meta.changeSet === change.id);
      }),
      sidecar.onDidChangeState((s) => s.kind !== "running" && this.release(() => true)),
      vscode.window.tabGroups.onDidChangeTabs((e) => this.tidy(e.opened)),
      // VS Code closes a document without a tab after some minutes; a review may take longer.
      vscode.workspace.onDidCloseTextDocument((d) => this.has(d.uri) && void vscode.workspace.openTextDocument(d.uri).then(() => this.changed.fire(), () => {})), // deleted meanwhile
    );
  }

  dispose(): void {
    this.registered.dispose();
  }

  has(uri: vscode.Uri): boolean {
    return this.held.has(uri.toString());
  }

  private async hold(a: Approval): Promise<void> {
    if (a.own || !a.meta.changeSet || a.files.length > most) return;
    if (vscode.workspace.getConfiguration("pillion").get("save", "wasSaved") !== "wasSaved") return; // nobody would save what nobody sees
    const files = a.files.filter(({ change, diff }) => change.kind === "edit" && !change.excerpt && (diff.oldText ?? "").length <= largest);
    await Promise.all(files.map(async ({ change, diff }) => {
      const uri = vscode.Uri.parse(change.uri, true);
      if (uri.scheme !== "file" || shownOtherwise(uri)) return;
      const document = await vscode.workspace.openTextDocument(uri).then(undefined, () => undefined);
      // VS Code reads mixed line ends and other encodings in its own way: such a file keeps its bytes when the sidecar writes it.
      if (!document || document.getText() !== diff.oldText || !savesAsItIs(document) || !this.approvals.get(a.id)) return;
      const key = uri.toString();
      this.held.set(key, (this.held.get(key) ?? new Set()).add(a));
    }));
    this.changed.fire();
  }

  /** Closes those tabs again once their files are saved, unless the person looks at one by then. */
  private tidy(opened: readonly vscode.Tab[]): void {
    for (const { input, isDirty, isActive } of opened) if (input instanceof vscode.TabInputText && isDirty && !isActive && this.has(input.uri)) this.strays.add(input.uri.toString());
    for (const uri of this.strays) {
      const tab = vscode.window.tabGroups.all.flatMap((g) => g.tabs).find(({ input }) => input instanceof vscode.TabInputText && input.uri.toString() === uri);
      if (tab?.isDirty && !tab.isActive) continue;
      this.strays.delete(uri);
      if (tab && !tab.isActive) void closeTabs([tab]);
    }
  }

  private release(which: (a: Approval) => boolean): void {
    let some = false;
    for (const [uri, all] of this.held) {
      for (const a of all) if (which(a)) some = all.delete(a);
      if (all.size === 0) this.held.delete(uri);
    }
    if (some) this.changed.fire();
  }
}

function accepts(a: Approval, optionId: string | undefined): boolean {
  return a.request.options.some((o) => o.optionId === optionId && o.kind.startsWith("allow"));
}

/** Whether a notebook's or a custom editor shows the file: the text is not what the person sees. */
function shownOtherwise(uri: vscode.Uri): boolean {
  const tabs = vscode.window.tabGroups.all.flatMap((g) => g.tabs);
  return uri.path.endsWith(".ipynb") || tabs.some(({ input }) => (input instanceof vscode.TabInputNotebook || input instanceof vscode.TabInputCustom) && input.uri.toString() === uri.toString());
}

/** Whether saving a document in VS Code writes its text and nothing else: in a file that nobody looks at, a formatter would change lines that nobody has seen. */
function savesAsItIs(document: vscode.TextDocument): boolean {
  const editor = vscode.workspace.getConfiguration("editor", document);
  const files = vscode.workspace.getConfiguration("files", document);
  const actions = editor.get<object>("codeActionsOnSave") ?? {};
  return !editor.get("formatOnSave", false) && Object.keys(actions).length === 0 && !["trimTrailingWhitespace", "insertFinalNewline", "trimFinalNewlines"].some((name) => files.get(name, false));
}
