// Tells a person who looks elsewhere that Pillion waits for them or has finished.
import * as vscode from "vscode";
import type { Approvals } from "./approvals";
import type { Sessions } from "./sessions";

/** A turn that was over sooner needs no word. */
const shortTurn = 10_000; // ms

export function notify(sessions: Sessions, approvals: Approvals): vscode.Disposable {
  const wanted = () => {
    const when = vscode.workspace.getConfiguration("pillion").get<string>("notifications", "unfocused");
    return when === "always" || (when === "unfocused" && !vscode.window.state.focused);
  };
  const begun = new Map<string, number>();
  const told = new Set<string>(); // sessions with a notice that nobody has answered: one is enough
  const tell = async (sessionId: string, text: string, button: string, command: string) => {
    if (told.has(sessionId)) return;
    told.add(sessionId);
    const choice = await vscode.window.showInformationMessage(text, button);
    told.delete(sessionId);
    if (choice === undefined) return;
    sessions.activate(sessionId);
    await vscode.commands.executeCommand(command);
  };
  return vscode.Disposable.from(
    approvals.onDidAsk((a) => {
      if (wanted() && !a.own) void tell(a.sessionId, `Pillion waits for you: ${a.request.toolCall.title ?? "a decision"}`, "Review", "pillion.nextPending");
    }),
    sessions.onDidPrompt(({ sessionId }) => begun.set(sessionId, Date.now())),
    sessions.onDidEndTurn(({ sessionId, error, interrupted, response }) => {
      const took = Date.now() - (begun.get(sessionId) ?? Date.now());
      begun.delete(sessionId);
      const name = sessions.get(sessionId)?.title || "the session";
      if (!wanted() || response?.stopReason === "cancelled" || took < shortTurn) return;
      void tell(sessionId, error && !interrupted ? `Pillion stopped in ${name}: ${error}` : `Pillion has finished: ${name}`, "Open", "pillion.focus");
    }),
  );
}
