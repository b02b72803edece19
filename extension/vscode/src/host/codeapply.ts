// Puts code of an answer into a file. It is shown like a proposal, hunk by hunk and with the same keys, and written as one
// edit when it is accepted. Closing the tab discards it; the answer still contains the code.
import * as vscode from "vscode";
import { hunksOf, reviewed } from "../common/hunks";
import type { DecisionMeta, HunkDecision, RequestPermissionResponse } from "../common/protocol";
import { placeOf } from "../common/place";
import { applyOwn } from "./apply";
import type { Approvals } from "./approvals";
import { shown } from "./mentions";
import { proposalScheme } from "./proposals";
import { lineEdit } from "./review";
import type { Reviews } from "./reviews";
import { rightSide } from "./tabs";

export class CodeApply implements vscode.Disposable {
  /** The proposal that is shown. */
  private now: string | undefined;
  private readonly closing: vscode.Disposable;

  constructor(
    private readonly approvals: Approvals,
    private readonly reviews: Reviews,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.closing = vscode.window.tabGroups.onDidChangeTabs((e) => {
      const id = this.now;
      if (id === undefined || !e.closed.some((tab) => shows(tab, id))) return;
      if (!vscode.window.tabGroups.all.some((g) => g.tabs.some((tab) => shows(tab, id)))) this.approvals.drop(id); // closed, not only moved
    });
  }

  /** Shows how code would change a file: the one it names, else the active one; at the selection, or where it
   * belongs. */
  async apply(code: string, named?: vscode.Uri): Promise<void> {
    const there = named && (await vscode.workspace.openTextDocument(named).then((d) => (vscode.workspace.getWorkspaceFolder(d.uri) ? d : undefined), () => undefined));
    const front = fileInFront();
    const document = there ?? front?.document;
    if (!document) throw new Error("Open the target file, then apply the code.");
    const selection = front?.document === document ? front.selection : undefined;
    if (this.now !== undefined) this.approvals.drop(this.now);
    let again = true;
    while (again) {
      again = false;
      const base = document.getText();
      const { range, code: placed } = placeFor(document, code, selection);
      const eol = document.eol === vscode.EndOfLine.CRLF ? "\r\n" : "\n";
      const proposed = base.slice(0, document.offsetAt(range.start)) + placed.replace(/\r?\n/g, eol) + base.slice(document.offsetAt(range.end));
      const hunks = hunksOf(base, proposed);
      if (hunks.length === 0) throw new Error(`${vscode.workspace.asRelativePath(document.uri)} has this code already.`);
      const change = { uri: document.uri.toString(), kind: "edit", hunks };
      const { id, answer } = this.approvals.propose({
        toolCallId: "",
        title: "Code from the conversation",
        kind: "edit",
        content: [{ type: "diff", path: document.uri.fsPath, oldText: base, newText: proposed }],
        _meta: { pillion: { changeSet: `code ${String(Date.now())}`, files: [change] } },
      });
      this.now = id;
      const changeSet = (this.approvals.get(id)?.meta.changeSet) ?? "";
      const decided = decisionOf(await answer);
      if (this.now === id) this.now = undefined;
      if (decided === undefined) return;
      if (decided.stale) {
        again = true; // propose it again for the present text
        continue;
      }
      const lines = new Map(reviewed(base, proposed, hunks, proposed).hunks.map((h) => [h.id, h]));
      const edit = new vscode.WorkspaceEdit();
      for (const h of hunks) {
        const wanted = decided.lines(h.id, lines.get(h.id)?.proposed ?? []);
        if (!wanted) continue;
        const { range: at, text } = lineEdit(document, h.oldLines > 0 ? h.oldStart - 1 : h.oldStart, h.oldLines, wanted);
        edit.replace(document.uri, at, text);
      }
      if (edit.size === 0) return;
      if (document.getText() !== base) {
        const choice = await vscode.window.showWarningMessage(`${vscode.workspace.asRelativePath(document.uri)} has changed since the proposal. Nothing was written.`, "Propose Again");
        again = choice !== undefined;
        continue;
      }
      if (!(await vscode.workspace.applyEdit(edit))) throw new Error(`VS Code did not change ${vscode.workspace.asRelativePath(document.uri)}.`);
      await applyOwn(this.reviews.takeOwn(changeSet), this.log);
      await vscode.window.showTextDocument(document, { preview: false }); // undo works in the active editor
    }
  }

  dispose(): void {
    this.closing.dispose();
  }
}

/** The editor of the file that the person works on, also while the panel has the focus. */
export function fileInFront(): vscode.TextEditor | undefined {
  return [vscode.window.activeTextEditor, ...vscode.window.visibleTextEditors].find((e) => e !== undefined && shown(e.document));
}

function shows(tab: vscode.Tab, id: string): boolean {
  const right = rightSide(tab);
  return right?.scheme === proposalScheme && right.query.startsWith(`${id}&`);
}

/** The lines of a hunk after the decision; undefined if nothing was decided. */
export function decisionOf(r: RequestPermissionResponse): { stale: boolean; lines(id: string, proposed: string[]): readonly string[] | undefined } | undefined {
  if (r.outcome.outcome !== "selected") return undefined;
  const all = r.outcome.optionId === "once";
  const meta = ((r.outcome._meta as { pillion?: DecisionMeta } | undefined)?.pillion ?? {}) as DecisionMeta;
  return {
    stale: meta.stale === true,
    lines: (id, proposed) => {
      const d: HunkDecision = meta.hunks?.[id] ?? { decision: all ? "accept" : "reject" };
      return d.decision === "reject" ? undefined : d.decision === "edit" ? (d.newLines ?? []) : proposed;
    },
  };
}

/** Where code goes and its indentation: at the selection, at the declaration with the same beginning, else at the
 * cursor or the end. */
function placeFor(d: vscode.TextDocument, code: string, selection: vscode.Range | undefined): { range: vscode.Range; code: string } {
  if (selection && !selection.isEmpty) return { range: selection, code };
  const lines = code.split(/\r?\n/);
  const place = placeOf(d.getText().split(/\r?\n/), lines);
  if (place) return { range: new vscode.Range(place.from, 0, place.to, d.lineAt(place.to).text.length), code: lines.map((l) => (l.trim() === "" ? l : place.indent + l)).join("\n") };
  const end = d.lineAt(d.lineCount - 1).range.end;
  return { range: selection ?? new vscode.Range(end, end), code };
}
