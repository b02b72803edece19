// Notifies a person who works elsewhere that Pillion needs a decision or has finished.
import * as vscode from "vscode";
import type { Approvals } from "./approvals";
import type { Questions } from "./questions";
import type { Sessions } from "./sessions";

/** No notification for a shorter turn. */
const shortTurn = 10_000; // ms

export function notify(sessions: Pick<Sessions, "get" | "activate" | "onDidPrompt" | "onDidEndTurn">, approvals: Pick<Approvals, "onDidAsk" | "onDidDecide">, questions: Pick<Questions, "onDidAsk" | "onDidChange" | "pending">): vscode.Disposable {
  const wanted = () => {
    const when = vscode.workspace.getConfiguration("pillion").get<string>("notifications", "unfocused");
    return when === "always" || (when === "unfocused" && !vscode.window.state.focused);
  };
  const begun = new Map<string, number>();
  /** The notifications since the person was last in this window; each is shown once. VS Code does not report when a
   * notification disappears. */
  const told = new Set<string>();
  const tell = async (kind: "waits" | "over", sessionId: string | undefined, text: string, button: string, command: string) => {
    const key = `${kind} ${sessionId ?? ""}`;
    if (told.has(key)) return;
    told.add(key);
    const choice = await vscode.window.showInformationMessage(text, button);
    if (choice === undefined) return;
    if (sessionId !== undefined) sessions.activate(sessionId);
    await vscode.commands.executeCommand(command);
  };
  return vscode.Disposable.from(
    vscode.window.onDidChangeWindowState(({ focused }) => focused && told.clear()),
    approvals.onDidAsk((a) => {
      if (wanted() && !a.own) void tell("waits", a.sessionId, `Approval needed: ${a.request.toolCall.title ?? "a decision"}`, "Review", "pillion.nextPending");
    }),
    approvals.onDidDecide(({ approval }) => told.delete(`waits ${approval.sessionId}`)),
    questions.onDidAsk(({ sessionId, question }) => {
      if (wanted()) void tell("waits", sessionId, `Pillion asks: ${question.message}`, "Answer", "pillion.focusApproval");
    }),
    questions.onDidChange((sessionId) => {
      if (questions.pending(sessionId).length === 0) told.delete(`waits ${sessionId ?? ""}`);
    }),
    sessions.onDidPrompt(({ sessionId }) => {
      begun.set(sessionId, Date.now());
      told.delete(`over ${sessionId}`);
    }),
    sessions.onDidEndTurn(({ sessionId, error, interrupted, response }) => {
      const took = Date.now() - (begun.get(sessionId) ?? Date.now());
      begun.delete(sessionId);
      const name = sessions.get(sessionId)?.title || "the session";
      if (!wanted() || response?.stopReason === "cancelled" || took < shortTurn) return;
      void tell("over", sessionId, error && !interrupted ? `Pillion stopped in ${name}: ${error}` : `Pillion has finished: ${name}`, "Open", "pillion.focus");
    }),
  );
}
