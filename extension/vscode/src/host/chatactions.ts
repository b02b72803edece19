// The person's actions in the panel besides sending: opening places, decisions, code, the queue, restoring.
import * as vscode from "vscode";
import type { Scope, ToHost, ToView } from "../common/messages";
import type { ContentBlock, RestoredFile } from "../common/protocol";
import { uriPath } from "../common/tool";
import type { ActionId, Attachment, Detail } from "../common/view";
import type { Approvals } from "./approvals";
import { limits } from "../common/messages";
import { type CodeApply, fileInFront } from "./codeapply";
import { installServer } from "./install";
import { openable } from "./panelview";
import { tell } from "./sessionlist";
import type { Sessions } from "./sessions";
import type { Sidecar } from "./sidecar";
import type { DiffOptions } from "./tabs";
import type { Transcript, Transcripts } from "./transcripts";

const outputScheme = "pillion-output";

export class ChatActions implements vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private next = 1;
  private readonly registered: vscode.Disposable;

  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
    private readonly approvals: Approvals,
    private readonly transcripts: Transcripts,
    private readonly code: CodeApply,
    private readonly say: (m: ToView) => void,
  ) {
    this.registered = vscode.Disposable.from(
      vscode.workspace.registerTextDocumentContentProvider(outputScheme, { provideTextDocumentContent: (uri) => this.texts.get(uri.toString()) ?? "This output is no longer available." }),
      vscode.workspace.onDidCloseTextDocument((d) => this.texts.delete(d.uri.toString())),
    );
  }

  dispose(): void {
    this.registered.dispose();
  }

  async do(m: ToHost): Promise<void> {
    const session = this.sessions.active;
    switch (m.type) {
      case "stop":
        if (session) this.sessions.cancel(session.id);
        return;
      case "config":
        if (session) await this.sessions.setOption(session.id, m.id, m.value);
        return;
      case "open":
        return this.open(m.path, m.line);
      case "link":
        return this.link(m.href);
      case "showDiff":
        return this.showDiff(m.id, m.path);
      case "showOutput":
        return this.showText("output", this.detail(m.id)?.output ?? "");
      case "terminal": {
        const e = this.transcript()?.state.entries.get(m.id);
        if (session && e?.kind === "tool" && e.terminalId !== undefined) await vscode.commands.executeCommand("pillion.showTerminal", session.id, e.terminalId);
        return;
      }
      case "review":
        this.approvals.open(m.requestId, m.path);
        return;
      case "decide":
        this.approvals.decide(m.requestId, m.optionId, m.comment ? { comment: m.comment } : {});
        return;
      case "copy":
        return vscode.env.clipboard.writeText(m.text);
      case "code":
        return this.useCode(m);
      case "queue":
        return this.queue(m);
      case "redo":
        return this.redo();
      case "changes":
        return this.changes(m.action, m.path);
      case "pickFile":
        return this.pick();
      case "action":
        return this.action(m.id, m.about);
    }
  }

  /** Restores the state before a prompt and returns the prompt for editing. */
  async restore(entryId: string, scope: Scope): Promise<ContentBlock[] | undefined> {
    const t = this.transcript();
    const e = t?.state.entries.get(entryId);
    if (!t || e?.kind !== "user" || !e.checkpoint) throw new Error("There is no checkpoint for this message.");
    if (t.running) throw new Error("Stop the turn before you restore a checkpoint.");
    const had = t.reverted?.redo;
    const r = await this.sidecar.request("_pillion/checkpoint/restore", { sessionId: t.id, checkpointId: e.checkpoint.id, scope });
    if (scope !== "files" && t.reverted) t.reverted = { ...t.reverted, redo: had || (r.undo ?? "") };
    else if (r.undo) t.reverted = { entries: 0, redo: r.undo };
    this.report(r.files, scope);
    await this.transcripts.checkpoints(t);
    return r.prompt;
  }

  /** The images and PDFs of a prompt, to be sent again. */
  attachments(prompt: readonly ContentBlock[]): Attachment[] {
    return prompt.flatMap((b): Attachment[] => {
      const [mime, data] = b.type === "image" ? [b.mimeType, b.data] : b.type === "resource" && b.resource.blob !== undefined ? [b.resource.mimeType ?? "", b.resource.blob] : ["", ""];
      return data === "" ? [] : [{ id: `again-${String(this.next++)}`, name: "attachment", mime, size: Math.floor((data.length * 3) / 4), data }];
    });
  }

  /** What a turn wrote without a review; the commands of follow.ts have the hunks. */
  private async changes(action: "keep" | "undo" | "open", path: string): Promise<void> {
    if (path === "") return void (await vscode.commands.executeCommand(`pillion.follow.${{ keep: "keepAll", undo: "undoAll", open: "openTurn" }[action]}`));
    if (action === "open") return this.open(path);
    await vscode.commands.executeCommand(`pillion.follow.${action}File`, vscode.Uri.file(path));
  }

  private async redo(): Promise<void> {
    const t = this.transcript();
    if (!t?.reverted?.redo) return;
    const r = await this.sidecar.request("_pillion/checkpoint/restore", { sessionId: t.id, checkpointId: t.reverted.redo, scope: "both" });
    t.reverted = undefined;
    this.report(r.files, "both");
    await this.transcripts.checkpoints(t);
  }

  private report(files: readonly RestoredFile[], scope: Scope): void {
    const left = files.filter((f) => f.status === "conflict" || f.status === "failed");
    const done = files.filter((f) => f.status === "restored" || f.status === "merged").length;
    const t = this.transcript();
    if (left.length > 0 && t) {
      t.state.notice({ severity: "warning", title: `${String(left.length)} of ${String(files.length)} files were left as they are`, description: left.map((f) => `${vscode.workspace.asRelativePath(uriPath(f.uri))}: ${f.reason ?? "it changed since"}`).join("\n") });
    } else this.say({ type: "tell", severity: "info", text: scope === "conversation" ? "Conversation restored." : `${String(done)} files were taken back.` });
  }

  private transcript(): Transcript | undefined {
    const id = this.sessions.active?.id;
    return id === undefined ? undefined : this.transcripts.of(id);
  }

  private detail(id: string): Detail | undefined {
    return this.transcript()?.state.details.get(id);
  }

  private async open(path: string, line?: number): Promise<void> {
    const uri = openable(path, this.sessions.active?.cwd ?? "");
    if (!uri) throw new Error(`${path.slice(0, 200)} is not a file on this machine.`);
    const stat = await vscode.workspace.fs.stat(uri).then((s) => s, () => undefined);
    if (!stat) throw new Error(`${vscode.workspace.asRelativePath(uri)} does not exist.`);
    if (stat.type & vscode.FileType.Directory) return void (await vscode.commands.executeCommand("revealInExplorer", uri));
    const at = line === undefined ? undefined : new vscode.Range(Math.max(0, line - 1), 0, Math.max(0, line - 1), 0);
    await vscode.commands.executeCommand("vscode.open", uri, { preview: true, ...(at ? { selection: at } : {}) });
  }

  private async link(href: string): Promise<void> {
    if (/^file:/i.test(href)) return this.open(href);
    if (!/^(https?|mailto):/i.test(href)) throw new Error("Links of this kind cannot be opened.");
    await vscode.env.openExternal(vscode.Uri.parse(href, true)); // VS Code asks the person about addresses that it does not trust
  }

  private async showText(name: string, text: string, language?: string): Promise<void> {
    const uri = vscode.Uri.from({ scheme: outputScheme, path: `/${String(this.next++)}/${name}` });
    this.texts.set(uri.toString(), text.replace(/\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)/g, ""));
    const d = await vscode.workspace.openTextDocument(uri);
    if (language) await vscode.languages.setTextDocumentLanguage(d, language);
    await vscode.window.showTextDocument(d, { preview: true });
  }

  /** Shows a change: as a review while it is pending, compared with the text before its turn after it was written,
   * else as proposed. */
  private async showDiff(id: string, path: string): Promise<void> {
    const waits = this.approvals.pending(this.sessions.active?.id).find((a) => a.toolCallId === id);
    if (waits) return this.approvals.open(waits.id);
    const t = this.transcript();
    const e = t?.state.entries.get(id);
    if (t && e?.kind === "tool" && e.status === "completed" && e.outcome !== "rejected" && this.sidecar.announced("_pillion/change/turn")) {
      const { files } = await this.sidecar.request("_pillion/change/turn", { sessionId: t.id, turn: turnOf(t, id) }).catch(() => ({ files: [] }));
      const f = files.find((x) => uriPath(x.newUri ?? x.uri) === path);
      if (f?.text != null && f.baseText != null) {
        const before = vscode.Uri.from({ scheme: outputScheme, path: `/${String(this.next++)}${path}` });
        this.texts.set(before.toString(), f.baseText);
        await vscode.commands.executeCommand("vscode.diff", before, vscode.Uri.file(path), `${path.split("/").pop() ?? ""} (before the turn ↔ now)`, { preview: true, override: true } satisfies DiffOptions);
        return;
      }
    }
    const f = this.detail(id)?.files.find((x) => x.path === path);
    if (!f) return this.open(path);
    await this.showText(`${path.split("/").pop() ?? "change"}.diff`, `--- ${path}\n+++ ${path}\n${f.lines.map((l) => (l.sign === "@" ? l.text : l.sign + l.text)).join("\n")}${f.more > 0 ? `\n… ${String(f.more)} lines more` : ""}\n`, "diff");
  }

  private async useCode(m: Extract<ToHost, { type: "code" }>): Promise<void> {
    if (m.action === "copy") return vscode.env.clipboard.writeText(m.text);
    const code = m.text.replace(/\n$/, "");
    if (m.action === "apply") return this.code.apply(code, openable(m.path ?? "", this.sessions.active?.cwd ?? ""));
    const e = fileInFront();
    if (!e) throw new Error("Open a file first.");
    await e.edit((b) => e.selections.forEach((s) => b.replace(s, code)));
  }

  private async queue(m: Extract<ToHost, { type: "queue" }>): Promise<void> {
    const t = this.transcript();
    if (!t) return;
    const at = t.queue.findIndex((q) => q.id === m.id);
    const item = t.queue[at];
    const base = { sessionId: t.id };
    const request = () => {
      switch (m.action) {
        case "remove":
          return { ...base, remove: [m.id] };
        case "steer":
          return { ...base, steer: m.id };
        case "up":
          return { ...base, move: { id: m.id, before: t.queue[at - 1]?.id } };
        case "down":
          return { ...base, move: { id: m.id, before: t.queue[at + 2]?.id } };
        case "edit":
          return { ...base, edit: { id: m.id, prompt: [{ type: "text" as const, text: m.text ?? "" }, ...(item?.prompt ?? []).filter((b) => b.type !== "text")] } };
        case "resume":
          return { ...base, resume: true };
      }
    };
    const r = await this.sidecar.request("_pillion/session/queue", request());
    this.transcripts.setQueue(t, r.items, r.held === true);
  }

  private async pick(): Promise<void> {
    const picked = await vscode.window.showOpenDialog({ canSelectMany: true, title: "Attach pictures or PDFs", filters: { "Pictures and PDFs": ["png", "jpg", "jpeg", "gif", "webp", "pdf"] } });
    const out: Attachment[] = [];
    for (const uri of picked ?? []) {
      const ext = uri.path.toLowerCase().split(".").pop() ?? "";
      const mime = ext === "pdf" ? "application/pdf" : `image/${ext === "jpg" ? "jpeg" : ext}`;
      const bytes = await vscode.workspace.fs.readFile(uri);
      const name = uri.path.split("/").pop() ?? "";
      const most = mime === "application/pdf" ? limits.pdf : limits.image;
      if (bytes.byteLength > most) throw new Error(`${name} has ${(bytes.byteLength / (1 << 20)).toFixed(1)} MB; at most ${String(most >> 20)} MB can be attached.`);
      out.push({ id: `file-${String(this.next++)}-${String(Date.now())}`, name, mime, size: bytes.byteLength, data: Buffer.from(bytes).toString("base64") });
    }
    if (out.length > 0) this.say({ type: "attach", attachments: out });
  }

  private async action(id: ActionId, about?: string): Promise<void> {
    const t = this.transcript();
    switch (id) {
      case "retry":
        if (t?.last) this.sessions.prompt(t.id, t.last).catch(() => {}); // the end of the turn reports its errors
        return;
      case "continue":
        if (t) this.sessions.prompt(t.id, [{ type: "text", text: "Continue" }]).catch(() => {}); // see above
        return;
      case "install":
        if (about !== undefined) await installServer(about, this.sidecar.program());
        return;
      default:
        await vscode.commands.executeCommand(...commands[id]).then(undefined, tell);
    }
  }
}

const commands: Record<Exclude<ActionId, "retry" | "continue" | "install">, [string, ...unknown[]]> = {
  restart: ["pillion.restart"],
  showLog: ["pillion.showLog"],
  addKey: ["pillion.setKey"],
  settings: ["workbench.action.openSettings", "pillion."],
  setBinary: ["workbench.action.openSettings", "pillion.binary.path"],
  openFolder: ["workbench.action.files.openFolder"],
  newSession: ["pillion.newSession"],
  sessions: ["pillion.sessions"],
  chooseModel: ["pillion.selectModel"],
  trust: ["workbench.trust.manage"],
};

/** The messageId of the prompt before a call. */
function turnOf(t: Transcript, callId: string): string | undefined {
  let turn: string | undefined;
  for (const [id, e] of t.state.entries) {
    if (e.kind === "user" && e.messageId !== undefined) turn = e.messageId;
    if (id === callId) break;
  }
  return turn;
}
