// Creates the parts and gives each the others that it needs. Loaded when one of them is first needed.
import * as vscode from "vscode";
import { asks } from "./host/actions";
import { applyEdits } from "./host/apply";
import { Approvals } from "./host/approvals";
import { Buffers } from "./host/buffers";
import { Chat } from "./host/chat";
import { CodeApply } from "./host/codeapply";
import { commands } from "./host/commands";
import { Failures } from "./host/failures";
import { Findings } from "./host/findings";
import { Follow } from "./host/follow";
import { CommitMessages } from "./host/git";
import { InlinePrompt } from "./host/inline";
import { Keys } from "./host/keys";
import { callTool } from "./host/lmtools";
import { LiveVerdicts } from "./host/liveverdicts";
import { Models } from "./host/models";
import { NextEdits } from "./host/nextedits";
import { notify } from "./host/notify";
import { Problems } from "./host/problems";
import { Proposals } from "./host/proposals";
import { Questions } from "./host/questions";
import { Reviews } from "./host/reviews";
import { SessionList } from "./host/sessionlist";
import { Sessions } from "./host/sessions";
import { Sidecar } from "./host/sidecar";
import { Status } from "./host/status";
import { runCommand } from "./host/table";
import { Terminals } from "./host/terminals";
import { TextChecks } from "./host/textcheck";
import { TurnLenses } from "./host/turnlenses";
import { UnseenFiles } from "./host/unseen";

/** What VS Code may call in this extension after it was loaded. */
export interface Parts {
  run(command: string, args: readonly unknown[]): unknown;
  resolveView(view: vscode.WebviewView): void;
  callTool(input: Record<string, unknown>, token: vscode.CancellationToken): Promise<string>;
}

export function wire(context: vscode.ExtensionContext, item: vscode.StatusBarItem): Parts {
  const log = vscode.window.createOutputChannel("Pillion", { log: true });
  const sidecar = new Sidecar(context, log);
  const approvals = new Approvals(sidecar);
  const questions = new Questions(sidecar);
  const sessions = new Sessions(sidecar, approvals, questions, context, log);
  const proposals = new Proposals();
  const reviews = new Reviews(sidecar, approvals, proposals, log);
  const code = new CodeApply(approvals, reviews, log);
  const keys = new Keys(sidecar, context, log);
  const unseen = new UnseenFiles(sidecar, approvals);
  const follow = new Follow(sidecar, sessions, proposals, approvals, context.workspaceState, log);
  const chat = new Chat(sidecar, sessions, approvals, questions, follow, code, context, log);
  sidecar.environment = () => keys.environment();
  context.subscriptions.push(
    log,
    sidecar,
    approvals,
    questions,
    sessions,
    proposals,
    reviews,
    keys,
    new Models(sidecar, sessions, keys),
    code,
    unseen,
    new Buffers(sidecar, unseen),
    new Problems(sidecar, context.extension.id),
    new TextChecks(sidecar),
    applyEdits(sidecar, reviews, log),
    follow,
    new TurnLenses(follow),
    new LiveVerdicts(sidecar, approvals),
    new InlinePrompt(sessions, approvals, reviews),
    new Failures(sessions),
    new Findings(sidecar, sessions, reviews, context),
    new CommitMessages(sidecar, sessions),
    new NextEdits(sidecar, sessions, approvals, reviews, log),
    new Terminals(sidecar, sessions),
    new SessionList(sessions, sidecar),
    chat,
    new Status(item, sidecar, sessions, approvals, questions),
    notify(sessions, approvals, questions),
    asks(sessions),
    commands({ sidecar, sessions, approvals, questions, reviews, log }),
  );
  return {
    run: runCommand,
    resolveView: (view) => chat.resolveWebviewView(view),
    callTool: (input, token) => callTool(sidecar, sessions, input, token),
  };
}
