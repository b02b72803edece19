// The commands that belong to no other part, and the restart after a change of settings.
import * as vscode from "vscode";
import type { PermissionRule } from "../common/protocol";
import type { Approvals } from "./approvals";
import { restartSettings } from "./config";
import type { Questions } from "./questions";
import type { Reviews } from "./reviews";
import { tell } from "./sessionlist";
import type { Sessions } from "./sessions";
import type { Sidecar } from "./sidecar";
import { explainFailure } from "./status";
import { onCommand } from "./table";

export interface CommandParts {
  sidecar: Sidecar;
  sessions: Sessions;
  approvals: Approvals;
  questions: Questions;
  reviews: Reviews;
  log: vscode.LogOutputChannel;
}

export function commands(parts: CommandParts): vscode.Disposable {
  const { sidecar, sessions, approvals, questions, reviews, log } = parts;
  const command = (id: string, run: (...args: unknown[]) => unknown) =>
    onCommand(`pillion.${id}`, async (...args: unknown[]) => {
      try {
        return await run(...args);
      } catch (error) {
        return tell(error);
      }
    });
  return vscode.Disposable.from(
    command("stop", () => {
      const busy = sessions.active?.state !== "idle" ? sessions.active : sessions.open.find((s) => s.state !== "idle");
      if (busy) sessions.cancel(busy.id);
    }),
    command("nextPending", async () => {
      if (await reviews.openNext()) return;
      const first = [...approvals.pending(), ...questions.pending()][0];
      if (first?.sessionId) sessions.activate(first.sessionId);
      await vscode.commands.executeCommand("pillion.focus");
    }),
    command("openSettings", () => vscode.commands.executeCommand("workbench.action.openSettings", "@ext:pillion-dev.pillion")),
    command("permissions", () => permissions(sidecar, sessions)),
    command("restart", () => sidecar.restart()),
    command("showLog", () => log.show(true)),
    command("showStartupError", () => {
      const { state } = sidecar;
      if (state.kind === "failed") return explainFailure(state.reason, { install: state.installable ? sidecar : undefined });
      return state.kind === "running" && state.doubt !== undefined ? explainFailure(state.doubt, { what: "Pillion is not responding" }) : log.show(true);
    }),
    command("walkthrough", () => vscode.commands.executeCommand("workbench.action.openWalkthrough", "pillion-dev.pillion#start", false)),
    restartWhenAsked(sidecar, sessions),
  );
}

/** Lists the permission rules, the last first because it has precedence; grants can be revoked. */
async function permissions(sidecar: Sidecar, sessions: Sessions): Promise<void> {
  const session = await sessions.ready();
  const { rules } = await sidecar.request("_pillion/permission/list", { sessionId: session.id });
  const icon = { allow: "$(check)", ask: "$(question)", deny: "$(circle-slash)" } as Record<string, string>;
  const rows = [...rules].reverse().map((rule: PermissionRule) => ({
    label: `${icon[rule.action] ?? ""} ${rule.action} ${rule.permission}: ${rule.pattern}`,
    description: [rule.origin, rule.id ? "grant; select to revoke" : ""].filter(Boolean).join(" · "),
    rule,
  }));
  const row = await vscode.window.showQuickPick(rows, { title: "Permission rules (the first match wins)", matchOnDescription: true });
  if (!row?.rule.id) return;
  const sure = await vscode.window.showWarningMessage(`Revoke the grant “${row.rule.action} ${row.rule.permission}: ${row.rule.pattern}”?`, { modal: true }, "Revoke");
  if (sure) await sidecar.request("_pillion/permission/revoke", { sessionId: session.id, id: row.rule.id });
}

/** Only a new process reads this setting: restart at once if no turn runs, else after the last turn. */
function restartWhenAsked(sidecar: Sidecar, sessions: Sessions): vscode.Disposable {
  let wanted = false;
  const restart = () => {
    if (!wanted || sessions.open.some((s) => s.state !== "idle")) return;
    wanted = false;
    if (sidecar.state.kind === "stopped") return; // it reads them when it starts
    void sidecar.restart().catch(() => {}); // the status bar shows the reason
  };
  const ask = () => {
    wanted = true;
    restart();
  };
  return vscode.Disposable.from(
    vscode.workspace.onDidChangeConfiguration((e) => restartSettings.some((s) => e.affectsConfiguration(s)) && ask()),
    vscode.workspace.onDidGrantWorkspaceTrust(ask),
    sessions.onDidEndTurn(() => setImmediate(restart)),
  );
}
