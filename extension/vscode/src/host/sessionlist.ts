// The list of sessions: search, open, rename, fork, export, delete. Several sessions may be open and working at once.
import * as vscode from "vscode";
import type { SessionInfo } from "../common/protocol";
import type { Sessions } from "./sessions";
import type { Sidecar } from "./sidecar";
import { onCommand } from "./table";

interface Row extends vscode.QuickPickItem {
  id: string;
}

const button = (icon: string, tooltip: string): vscode.QuickInputButton => ({ iconPath: new vscode.ThemeIcon(icon), tooltip });
const rename = button("edit", "Rename");
const fork = button("repo-forked", "Fork: a new session with the same conversation");
const save = button("export", "Export as Markdown or JSON");
const remove = button("trash", "Delete");

export class SessionList implements vscode.Disposable {
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sessions: Sessions,
    private readonly sidecar: Sidecar,
  ) {
    const command = (id: string, run: (id: string) => Promise<unknown>) =>
      onCommand(`pillion.${id}`, async () => {
        const active = this.sessions.active;
        if (!active) return void vscode.window.showInformationMessage("No session is open.");
        await run(active.id).catch(tell);
      });
    this.disposables = [
      onCommand("pillion.newSession", () => this.create().catch(tell)),
      onCommand("pillion.sessions", () => this.show().catch(tell)),
      command("renameSession", (id) => this.rename(id, this.sessions.get(id)?.title ?? "")),
      command("forkSession", (id) => this.fork(id)),
      command("exportSession", (id) => this.export(id)),
      command("deleteSession", (id) => this.delete(id, this.sessions.get(id)?.title ?? "")),
      command("restoreCheckpoint", (id) => this.restore(id)),
    ];
  }

  /** In a window with several folders the person chooses the one whose configuration is used; the folder of the
   * active file is first. */
  private async create(): Promise<void> {
    const folders = (vscode.workspace.workspaceFolders ?? []).filter((f) => f.uri.scheme === "file");
    const uri = vscode.window.activeTextEditor?.document.uri;
    const here = uri && vscode.workspace.getWorkspaceFolder(uri);
    folders.sort((a, b) => Number(b === here) - Number(a === here) || a.index - b.index);
    let cwd = folders[0]?.uri.fsPath;
    if (folders.length > 1) {
      const rows = folders.map((f) => ({ label: f.name, description: f.uri.fsPath, cwd: f.uri.fsPath }));
      const row = await vscode.window.showQuickPick(rows, { title: "New session in which folder?", placeHolder: "Its configuration counts. The other folders go along." });
      if (!row) return;
      cwd = row.cwd;
    }
    await this.sessions.create({ cwd });
    await vscode.commands.executeCommand("pillion.focus");
  }

  async show(): Promise<void> {
    const pick = vscode.window.createQuickPick<Row>();
    pick.title = "Pillion Sessions";
    pick.placeholder = "Search sessions of this folder";
    pick.matchOnDescription = true;
    pick.buttons = [button("add", "New Session")];
    pick.busy = true;
    const fill = async () => {
      const list = await this.sessions.list();
      pick.items = list.map((s) => this.row(s));
      pick.busy = false;
      if (list.length === 0) pick.placeholder = "No sessions in this folder yet";
    };
    const gone = new Promise<void>((resolve) => pick.onDidHide(() => resolve()));
    pick.onDidTriggerButton(() => {
      pick.hide();
      void vscode.commands.executeCommand("pillion.newSession");
    });
    pick.onDidAccept(() => {
      const row = pick.selectedItems[0];
      pick.hide();
      if (row) void this.sessions.load(row.id).then(() => vscode.commands.executeCommand("pillion.focus"), tell);
    });
    pick.onDidTriggerItemButton(({ item, button: b }) => {
      const stay = b === rename || b === remove;
      const run = b === rename ? this.rename(item.id, item.label) : b === fork ? this.fork(item.id) : b === save ? this.export(item.id) : this.delete(item.id, item.label);
      void run.then(() => (stay ? this.show() : undefined)).catch(tell);
    });
    pick.show();
    void fill().catch((e: unknown) => {
      pick.hide();
      tell(e);
    });
    await gone;
    pick.dispose();
  }

  dispose(): void {
    for (const d of this.disposables) d.dispose();
  }

  private row(s: SessionInfo): Row {
    const open = this.sessions.get(s.sessionId);
    const icon = open?.state === "running" ? "$(loading~spin)" : open?.state === "waiting" ? "$(bell-dot)" : open ? "$(circle-filled)" : "$(comment-discussion)";
    const state = open?.state === "running" ? "working" : open?.state === "waiting" ? "approval needed" : open ? "open" : "";
    const buttons = [rename, ...(this.sidecar.announced("_pillion/session/fork") ? [fork] : []), save, remove];
    return { id: s.sessionId, label: s.title || "Untitled", description: [state, ago(s.updatedAt ?? undefined)].filter(Boolean).join(" · "), detail: open ? `${icon} ${open.id === this.sessions.active?.id ? "In the panel" : "Open in this window"}` : undefined, buttons };
  }

  private async rename(id: string, title: string): Promise<void> {
    const name = await vscode.window.showInputBox({ title: "Rename the session", value: title, validateInput: (v) => (v.trim() === "" ? "Give it a name" : undefined) });
    if (name !== undefined) await this.sessions.rename(id, name.trim());
  }

  private async fork(id: string): Promise<void> {
    if (!this.sidecar.announced("_pillion/session/fork")) throw new Error("This version of Pillion cannot fork sessions. Update it.");
    const forked = await this.sessions.fork(id);
    const title = this.sessions.get(id)?.title || "the session";
    await this.sessions.load(forked.sessionId);
    await vscode.commands.executeCommand("pillion.focus");
    // the conversation of a fork looks the same, so a message says that it is the fork
    const choice = await vscode.window.showInformationMessage(`Forked ${title}. The panel shows the new session.`, "Back to the Original");
    if (choice) await this.sessions.load(id);
  }

  private async export(id: string): Promise<void> {
    const format = await vscode.window.showQuickPick([{ label: "Markdown", format: "markdown" as const, language: "markdown" }, { label: "JSON", format: "json" as const, language: "json" }], { title: "Export the session as" });
    if (!format) return;
    const content = await this.sessions.export(id, format.format);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ content, language: format.language }), { preview: false });
  }

  private async delete(id: string, title: string): Promise<void> {
    const sure = await vscode.window.showWarningMessage(`Delete the session “${title || "Untitled"}”?`, { modal: true, detail: "Its conversation and checkpoints are deleted permanently. Your files are not changed." }, "Delete");
    if (sure) await this.sessions.delete(id);
  }

  /** Restores files and conversation to the state before a prompt. Every restore can be undone. */
  private async restore(id: string): Promise<void> {
    if (!this.sidecar.announced("_pillion/checkpoint/restore")) throw new Error("This version of Pillion has no checkpoints. Update it.");
    const { checkpoints } = await this.sidecar.request("_pillion/checkpoint/list", { sessionId: id });
    const rows = [...checkpoints].reverse().map((c) => ({
      label: c.title || c.id,
      description: [c.kind === "restore" ? "before a restore" : "before this prompt", ago(c.time), c.files.length > 0 ? `${c.files.length} ${c.files.length === 1 ? "file" : "files"} changed since` : ""].filter(Boolean).join(" · "),
      checkpoint: c.id,
    }));
    const to = await vscode.window.showQuickPick(rows, { title: "Restore to", placeHolder: rows.length > 0 ? "The state before a prompt" : "No checkpoint yet", matchOnDescription: true });
    if (!to) return;
    const scope = await vscode.window.showQuickPick(
      [
        { label: "Files and conversation", scope: "both" },
        { label: "Files only", scope: "files" },
        { label: "Conversation only", scope: "conversation" },
      ],
      { title: "What to restore" },
    );
    if (!scope) return;
    const done = await this.sidecar.request("_pillion/checkpoint/restore", { sessionId: id, checkpointId: to.checkpoint, scope: scope.scope });
    const bad = done.files.filter((f) => f.status === "conflict" || f.status === "failed");
    const good = done.files.filter((f) => f.status === "restored" || f.status === "merged").length;
    const text = bad.length > 0 ? `Restored ${good} files; ${bad.length} stayed as they are: ${bad.map((f) => `${f.uri.split("/").at(-1)} (${f.reason ?? f.status})`).join(", ")}` : `Restored ${good} ${good === 1 ? "file" : "files"}.`;
    const choice = done.undo ? await vscode.window.showInformationMessage(text, "Undo Restore") : await vscode.window.showInformationMessage(text);
    if (choice && done.undo) await this.sidecar.request("_pillion/checkpoint/restore", { sessionId: id, checkpointId: done.undo, scope: scope.scope });
  }
}

export function tell(error: unknown): void {
  void vscode.window.showErrorMessage(error instanceof Error ? error.message : String(error));
}

function ago(time: string | undefined): string {
  const ms = time ? Date.now() - Date.parse(time) : NaN;
  if (Number.isNaN(ms)) return "";
  const steps: [number, string][] = [[60_000, "minute"], [3_600_000, "hour"], [86_400_000, "day"]];
  const [unit, name] = steps.filter(([size]) => ms >= size).at(-1) ?? [0, ""];
  if (unit === 0) return "just now";
  const n = Math.floor(ms / unit);
  return `${n} ${name}${n === 1 ? "" : "s"} ago`;
}
