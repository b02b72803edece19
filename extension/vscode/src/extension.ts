// Wires the parts; each knows only those it is given.
import * as vscode from "vscode";
import { Approvals } from "./host/approvals";
import { Sessions } from "./host/sessions";
import { Sidecar } from "./host/sidecar";

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Pillion", { log: true });
  const sidecar = new Sidecar(context, log);
  const approvals = new Approvals(sidecar);
  const sessions = new Sessions(sidecar, approvals, context, log);
  context.subscriptions.push(log, sidecar, approvals, sessions);
}
