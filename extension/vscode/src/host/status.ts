// The status bar: what Pillion is doing, how many decisions are pending, and why it does not run.
import * as vscode from "vscode";
import { compareReleases } from "../common/releases";
import type { Approvals } from "./approvals";
import { installProgram, upgradeProgram } from "./install";
import type { Questions } from "./questions";
import type { Binary } from "./binary";
import type { Sessions } from "./sessions";
import type { Sidecar } from "./sidecar";

export class Status implements vscode.Disposable {
  private readonly disposables: vscode.Disposable[];
  private told: string | undefined;
  /** The program whose release was reported as another one than the extension's. */
  private reported: string | undefined;

  constructor(
    private readonly item: vscode.StatusBarItem,
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
    private readonly approvals: Approvals,
    private readonly questions: Questions,
  ) {
    const draw = () => this.draw();
    this.disposables = [sidecar.onDidChangeState(draw), sessions.onDidChange(draw), sessions.onDidChangeActive(draw), approvals.onDidChange(draw), questions.onDidChange(draw)];
    draw();
  }

  dispose(): void {
    for (const d of this.disposables) d.dispose();
  }

  private draw(): void {
    const state = this.sidecar.state;
    const asked = this.questions.pending().length;
    const waiting = this.approvals.pending().length + asked;
    const running = this.sessions.open.filter((s) => s.state !== "idle").length;
    const { item } = this;
    item.backgroundColor = undefined;
    item.command = "pillion.focus";
    if (state.kind === "failed") {
      item.text = "$(error) Pillion";
      item.tooltip = state.reason;
      item.backgroundColor = new vscode.ThemeColor("statusBarItem.errorBackground");
      item.command = "pillion.showStartupError";
    } else if (state.kind === "running" && state.doubt !== undefined) {
      item.text = "$(warning) Pillion is not responding";
      item.tooltip = state.doubt;
      item.backgroundColor = new vscode.ThemeColor("statusBarItem.warningBackground");
      item.command = "pillion.showStartupError";
    } else if (state.kind === "waiting") {
      item.text = "$(sync~spin) Pillion is restarting";
      item.tooltip = state.reason;
      item.command = "pillion.showLog";
    } else if (waiting > 0) {
      const hunks = this.approvals.pending().reduce((n, a) => n + a.files.reduce((m, f) => m + f.change.hunks.length, 0) - a.decisions.decided, 0);
      item.text = `$(bell-dot) Pillion: ${waiting} waiting`;
      item.tooltip = hunks > 0 ? `${plural(hunks, "hunk")} to decide. Click for the next one.` : asked === waiting ? "Pillion has a question. Click to answer." : "Approval needed. Click to review.";
      item.backgroundColor = new vscode.ThemeColor("statusBarItem.warningBackground");
      item.command = "pillion.nextPending";
    } else if (running > 0) {
      item.text = "$(loading~spin) Pillion";
      item.tooltip = running === 1 ? "Pillion is working" : `${running} sessions are working`;
    } else {
      item.text = "$(comment-discussion) Pillion";
      item.tooltip = state.kind === "running" ? `Pillion ${state.version}` : "Open Pillion";
    }
    const words = item.text.replace(/\$\([^)]*\)\s*/g, "");
    const busy = state.kind !== "failed" && !(state.kind === "running" && state.doubt !== undefined) && waiting === 0 && running > 0;
    item.accessibilityInformation = { label: state.kind === "failed" ? "Pillion is not running" : busy ? "Pillion: working" : words, role: "button" };
    void vscode.commands.executeCommand("setContext", "pillion.waiting", waiting);
    void vscode.commands.executeCommand("setContext", "pillion.running", running > 0);
    this.tell(state.kind === "failed" ? state.reason : undefined, state.kind === "failed" && state.installable === true);
    if (state.kind === "running") this.compare(state.version, state.binary);
  }

  /** Shows once for each program that its release is another than the extension's, and what to do. */
  private compare(version: string, binary: Binary): void {
    const key = `${version} ${binary.path}`;
    if (key === this.reported) return;
    this.reported = key;
    const is = compareReleases(version, this.sidecar.extensionVersion);
    if (is !== undefined) void explainMismatch(is, version, this.sidecar, binary); // a notification: do not wait for its button
  }

  /** Shows once why it does not run, and what to do. */
  private tell(reason: string | undefined, installable: boolean): void {
    if (reason === this.told) return;
    this.told = reason;
    if (reason !== undefined) void explainFailure(reason, { install: installable ? this.sidecar : undefined }); // a notification: do not wait for its button
  }
}

/** Shows why the process does not run, with a button to the log. */
export async function explainFailure(reason: string, { what = "Pillion is not running", install }: { what?: string; install?: Sidecar | undefined } = {}): Promise<void> {
  const choice = await vscode.window.showErrorMessage(`${what}. ${reason}`, ...(install ? ["Install"] : ["Restart"]), "Show Log", "Settings");
  if (choice === "Install" && install) await installProgram(install.installed, install.extensionVersion);
  else if (choice === "Restart") await vscode.commands.executeCommand("pillion.restart");
  else if (choice === "Show Log") await vscode.commands.executeCommand("pillion.showLog");
  else if (choice === "Settings") await vscode.commands.executeCommand("workbench.action.openSettings", "pillion.binary");
}

async function explainMismatch(is: "older" | "newer", version: string, sidecar: Sidecar, binary: Binary): Promise<void> {
  const setting = binary.from === "setting" ? ", or clear pillion.binary.path to use the program of this extension" : "";
  const message = `The program ${binary.path} is Pillion ${version}, ${is} than this extension (${sidecar.extensionVersion}), so some functions may be missing or fail. `;
  if (is === "older") {
    const choice = await vscode.window.showWarningMessage(`${message}Upgrade the program${setting}.`, "Upgrade", "Settings");
    if (choice === "Upgrade") await upgradeProgram(sidecar.program());
    else if (choice === "Settings") await vscode.commands.executeCommand("workbench.action.openSettings", "pillion.binary");
    return;
  }
  const choice = await vscode.window.showWarningMessage(`${message}Update the extension${setting}.`, "Show Extension", "Settings");
  if (choice === "Show Extension") await vscode.commands.executeCommand("workbench.extensions.search", "@id:pillion-dev.pillion");
  else if (choice === "Settings") await vscode.commands.executeCommand("workbench.action.openSettings", "pillion.binary");
}

function plural(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`;
}
