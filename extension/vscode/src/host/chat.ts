// The host's side of the panel: it shows the active session and carries out the person's actions. The webview only draws;
// prompts, transcripts and answers are stored here.
import { createHash, randomBytes } from "node:crypto";
import * as vscode from "vscode";
import { parseToHost, type Op, type ToHost, type ToView } from "../common/messages";
import { blocksText } from "../common/session";
import { slim } from "../common/tool";
import { type Draft, emptyHead, type Head } from "../common/view";
import type { Approvals } from "./approvals";
import { ChatActions } from "./chatactions";
import type { CodeApply } from "./codeapply";
import type { Follow } from "./follow";
import { Drafts } from "./drafts";
import { panelHtml } from "./html";
import { LiveOutput } from "./live";
import { Mentions, shown } from "./mentions";
import { approvalView, connectionView } from "./panelview";
import type { Questions } from "./questions";
import { tell } from "./sessionlist";
import type { Sessions } from "./sessions";
import type { Sidecar } from "./sidecar";
import { onCommand } from "./table";
import { queued, type Transcript, Transcripts } from "./transcripts";

const viewId = "pillion.chat";
const historyKey = "pillion.history";
const none: readonly never[] = [];
const detailPace = 120; // ms between two updates of an unfolded card
const pace = 25; // ms between two messages to the panel at least; the first after a pause is sent at once

export class Chat implements vscode.Disposable {
  readonly transcripts: Transcripts;
  private view: vscode.WebviewView | undefined;
  private ready = false;
  private epoch = 0;
  private timer: NodeJS.Timeout | undefined;
  private sentAt = -Infinity;
  private sentHead: Head = emptyHead();
  private busy: string | undefined;
  private builtinOnly = false;
  private readonly drafts: Drafts;
  private readonly place: string;
  private history: string[];
  /** The person's own choice about the selection; it is for one file. */
  private selection: { file: string; on: boolean } | undefined;
  private readonly unfolded = new Set<string>();
  /** The unfolded cards whose changes are sent with the next update. */
  private readonly details = new Set<string>();
  /** Messages to send when the panel is ready. */
  private waiting: ToView[] = [];
  private readonly mentions: Mentions;
  private readonly actions: ChatActions;
  private readonly live: LiveOutput;
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
    private readonly approvals: Approvals,
    private readonly questions: Questions,
    private readonly follow: Pick<Follow, "unreviewed" | "onDidChange">,
    code: CodeApply,
    private readonly context: Pick<vscode.ExtensionContext, "extensionUri" | "workspaceState" | "storageUri" | "globalStorageUri">,
    log: vscode.LogOutputChannel,
  ) {
    this.transcripts = new Transcripts(sidecar, sessions, approvals, log);
    this.mentions = new Mentions(sidecar);
    this.actions = new ChatActions(sidecar, sessions, approvals, this.transcripts, code, (m) => this.say(m));
    this.live = new LiveOutput(sidecar);
    const own = context.storageUri ?? vscode.Uri.joinPath(context.globalStorageUri, "no-folder-draft");
    this.place = createHash("sha256").update(own.toString()).digest("hex").slice(0, 32);
    this.drafts = new Drafts(own.fsPath, (m) => log.warn(m));
    this.history = (context.workspaceState.get<unknown[]>(historyKey) ?? []).filter((x): x is string => typeof x === "string");
    const soon = () => this.soon();
    this.disposables = [
      this.transcripts,
      this.actions,
      this.live,
      this.live.onDidChange((terminalId) => this.printed(terminalId)),
      this.transcripts.onDidChange((t) => {
        if (this.ready && t.id === sessions.active?.id) this.soon();
        else t.state.take(); // not shown; it is sent as a whole when it is
      }),
      this.transcripts.onDidVoid(() => this.snapshot()),
      sessions.onDidChangeActive(() => this.snapshot()),
      sessions.onDidChange(soon),
      approvals.onDidChange(soon),
      questions.onDidChange(soon),
      follow.onDidChange(soon),
      sidecar.onDidChangeState(soon),
      sidecar.onDidStart(() => {
        void this.lookForKeys();
        if (this.ready && !sessions.active) void sessions.ready().catch(() => {}); // the caller was told already
      }),
      vscode.window.onDidChangeTextEditorSelection(soon),
      vscode.window.onDidChangeActiveTextEditor(soon),
      vscode.workspace.onDidChangeWorkspaceFolders(soon),
      vscode.workspace.onDidGrantWorkspaceTrust(soon),
      onCommand("pillion.addSelection", () => this.mentionEditor(true).catch(tell)),
      onCommand("pillion.addFile", (uri?: unknown) => this.mentionEditor(false, uri instanceof vscode.Uri ? uri : undefined).catch(tell)),
      onCommand("pillion.focus", () => this.show("composer")),
      onCommand("pillion.focusApproval", () => this.show("approval")),
      onCommand("pillion.focusTranscript", () => this.show("transcript")),
    ];
  }

  /**
   * Shows the panel and moves the focus to one of its parts. VS Code's own command for a view is not enough: while the panel is
   * loading, an editor that has just been opened may take the focus back.
   */
  private async show(what: "composer" | "approval" | "transcript"): Promise<void> {
    await vscode.commands.executeCommand(`${viewId}.focus`);
    this.say({ type: "focus", what });
  }

  resolveWebviewView(view: vscode.WebviewView): void {
    const dist = vscode.Uri.joinPath(this.context.extensionUri, "extension", "vscode", "dist", "webview");
    this.view = view;
    this.ready = false;
    const { webview } = view;
    webview.options = { enableScripts: true, localResourceRoots: [dist], enableCommandUris: false, enableForms: false };
    const own = [
      webview.onDidReceiveMessage((m: unknown) => this.hear(m)),
      view.onDidDispose(() => {
        for (const d of own) d.dispose();
        if (this.view === view) this.view = undefined;
        this.ready = false;
        focused(false);
        this.unfolded.clear();
      }),
    ];
    const file = (name: string) => webview.asWebviewUri(vscode.Uri.joinPath(dist, name)).toString();
    webview.html = panelHtml({ script: file("main.js"), style: file("style.css"), source: webview.cspSource, nonce: randomBytes(16).toString("hex"), place: this.place });
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.drafts.dispose();
    for (const d of this.disposables) d.dispose();
  }

  private post(m: ToView): void {
    void this.view?.webview.postMessage(m); // a closed panel asks for everything when it is shown again
  }

  private say(m: ToView): void {
    if (this.ready) this.post(m);
    else this.waiting.push(m);
  }

  private hear(raw: unknown): void {
    const m = parseToHost(raw);
    if (!m) return;
    void this.do(m).catch((e: unknown) => this.say({ type: "tell", text: e instanceof Error ? e.message : String(e), severity: "error" }));
  }

  private async do(m: ToHost): Promise<void> {
    switch (m.type) {
      case "ready":
        return this.begin();
      case "focused":
        focused(m.on);
        return;
      case "draft":
        this.drafts.keep(m.draft);
        return;
      case "send":
        return this.send(m.draft, m.how);
      case "search": {
        const items = await this.mentions.search(m.query, this.sessions.active?.id).catch(() => []);
        this.post({ type: "found", request: m.request, items });
        return;
      }
      case "selection":
        this.selection = { file: vscode.window.activeTextEditor?.document.uri.toString() ?? "", on: m.on };
        this.soon();
        return;
      case "unfold":
        if (m.on) this.unfolded.add(m.id);
        else this.unfolded.delete(m.id);
        if (m.on) this.detail(m.id);
        return;
      case "answer":
        return this.questions.answer(m.requestId, m.values);
      case "restore": {
        const prompt = await this.actions.restore(m.entry, m.scope);
        if (m.edit && prompt) {
          this.remember(this.drafts.now.text);
          this.say({ type: "draft", draft: { text: blocksText(prompt), mentions: [], attachments: this.actions.attachments(prompt) }, mode: "replace" });
        }
        return;
      }
      default:
        return this.actions.do(m);
    }
  }

  private async begin(): Promise<void> {
    this.ready = true;
    this.snapshot();
    for (const m of this.waiting.splice(0)) this.post(m);
    if (this.sessions.active) return;
    try {
      await this.sessions.ready();
    } catch (error) {
      // if the process is the reason, the strip of the connection shows it
      if (this.sidecar.state.kind === "running") this.say({ type: "tell", text: `No session could be opened: ${error instanceof Error ? error.message : String(error)}`, severity: "error" });
    }
    this.soon();
  }

  private async send(sent: Draft, how: "prompt" | "queue" | "steer"): Promise<void> {
    const draft = this.drafts.filled(sent);
    this.remember(draft.text);
    try {
      if (!this.sessions.active) this.working("Opening a session…");
      const session = await this.sessions.ready();
      const t = this.transcripts.of(session.id);
      const blocks = await this.mentions.prompt(draft, session.cwd, this.selectionOn());
      this.working(undefined);
      if (blocks.length === 0) return;
      if (how === "steer" && (await this.sidecar.request("_session/steering", { sessionId: session.id, prompt: blocks })).outcome !== "promptRequired") return;
      if (t.running && this.sidecar.announced("_pillion/session/queue")) {
        const q = await this.sidecar.request("_pillion/session/queue", { sessionId: session.id, add: blocks });
        this.transcripts.setQueue(t, q.items, q.held === true);
        return;
      }
      this.sessions.prompt(session.id, blocks).catch(() => {}); // the end of the turn reports its errors
    } catch (error) {
      this.working(undefined);
      // the text of the prompt is not lost
      this.say({ type: "draft", draft, mode: "back" });
      throw error;
    }
  }

  private working(what: string | undefined): void {
    this.busy = what;
    this.soon();
  }

  private remember(text: string): void {
    const words = text.trim();
    if (words === "" || this.history.at(-1) === words) return;
    this.history = [...this.history.filter((x) => x !== words), words].slice(-100);
    void this.context.workspaceState.update(historyKey, this.history); // at worst the choice is lost with the window
    this.soon();
  }

  private async mentionEditor(selection: boolean, uri = vscode.window.activeTextEditor?.document.uri): Promise<void> {
    const e = vscode.window.activeTextEditor;
    if (!uri) throw new Error("Open a file first.");
    const path = vscode.workspace.asRelativePath(uri);
    const range = selection && e && !e.selection.isEmpty ? { startLine: e.selection.start.line + 1, endLine: e.selection.end.line + 1 } : undefined;
    const label = `@${path}${range ? `:${String(range.startLine)}-${String(range.endLine)}` : ""}`;
    await vscode.commands.executeCommand(`${viewId}.focus`);
    this.say({ type: "draft", mode: "insert", draft: { text: `${label} `, attachments: [], mentions: [{ kind: range ? "symbol" : "file", label, uri: uri.toString(), path, ...range }] } });
  }

  private selectionOn(): boolean {
    const e = vscode.window.activeTextEditor;
    if (!e || !shown(e.document)) return false;
    return this.selection?.file === e.document.uri.toString() ? this.selection.on : !e.selection.isEmpty;
  }

  private async lookForKeys(): Promise<void> {
    if (!this.sidecar.announced("_pillion/auth/list")) return;
    const { providers } = await this.sidecar.request("_pillion/auth/list", {}).catch(() => ({ providers: [{ source: "unknown", local: false }] }));
    this.builtinOnly = !providers.some((p) => p.source !== "none" || p.local);
    this.soon();
  }

  private head(): Head {
    const s = this.sessions.active;
    const t = s && this.transcripts.of(s.id);
    const e = vscode.window.activeTextEditor;
    const can = (m: string) => this.sidecar.announced(m);
    return {
      ...emptyHead(),
      sessionId: s?.id,
      title: s?.title ?? "",
      cwd: s?.cwd ?? "",
      connection: connectionView(this.sidecar.state),
      running: t?.running ?? false,
      runningSince: t?.since,
      busy: this.busy,
      plan: t?.state.head.plan ?? [],
      queue: queued(t?.queue ?? []),
      queueHeld: t?.held ?? false,
      commands: s?.commands ?? none,
      options: s?.configOptions ?? none,
      approvals: s ? this.approvals.pending(s.id).map((a) => approvalView(a, [s.cwd, ...(vscode.workspace.workspaceFolders ?? []).map((f) => f.uri.fsPath)])) : [],
      questions: this.questions.pending(s?.id ?? "").map((q) => q.question),
      changes: s ? this.follow.unreviewed() : none,
      usage: t?.state.head.usage,
      selection: e && shown(e.document) ? { path: vscode.workspace.asRelativePath(e.document.uri), name: e.document.uri.path.split("/").pop() ?? "", startLine: e.selection.start.line + 1, endLine: e.selection.end.line + 1, empty: e.selection.isEmpty } : undefined,
      selectionOff: !this.selectionOn(),
      history: this.history,
      can: { steer: true, queue: can("_pillion/session/queue"), restore: can("_pillion/checkpoint/restore"), image: this.sidecar.initialized?.agentCapabilities?.promptCapabilities?.image === true, search: can("_pillion/file/search") },
      reverted: t?.reverted && t.reverted.redo !== "" ? t.reverted : undefined,
      builtinOnly: this.builtinOnly,
    };
  }

  /** Sends everything: the panel is new, or another session is active. */
  private snapshot(): void {
    if (!this.ready) return;
    const t = this.current();
    t?.state.take();
    this.epoch++;
    this.sentHead = this.head();
    this.post({ type: "snapshot", head: this.sentHead, entries: t ? [...t.state.entries.values()] : [], draft: this.drafts.now, epoch: this.epoch });
  }

  private current(): Transcript | undefined {
    const id = this.sessions.active?.id;
    return id === undefined ? undefined : this.transcripts.of(id);
  }

  private soon(): void {
    if (!this.ready) return;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.sentAt = performance.now();
      this.flush();
    }, Math.max(0, this.sentAt + pace - performance.now()));
  }

  /** Sends the changes since the last message. */
  private flush(): void {
    const t = this.current();
    if (!this.ready) return;
    const { ops, details } = t?.state.take() ?? { ops: [] as Op[], details: [] };
    if (ops.length > 0) this.post({ type: "ops", ops, epoch: this.epoch });
    const head = this.head();
    const news: Partial<Head> = {};
    const gone: (keyof Head)[] = [];
    for (const k of new Set([...Object.keys(head), ...Object.keys(this.sentHead)] as (keyof Head)[])) {
      if (head[k] === this.sentHead[k] || JSON.stringify(head[k]) === JSON.stringify(this.sentHead[k])) continue;
      if (head[k] === undefined) gone.push(k);
      else Object.assign(news, { [k]: head[k] });
    }
    this.sentHead = head;
    if (Object.keys(news).length > 0 || gone.length > 0) this.post({ type: "head", head: news, gone });
    for (const id of details) for (const shown of [id, `dock:${id}`]) if (this.unfolded.has(shown)) this.detailSoon(shown);
    if (this.view) this.view.badge = head.approvals.length + head.questions.length > 0 ? { value: head.approvals.length + head.questions.length, tooltip: "Waiting for you" } : undefined;
  }

  /** The output of a command is sent a few times a second, not with each line. */
  private detailSoon(id: string): void {
    if (this.details.size === 0) {
      setTimeout(() => {
        for (const x of this.details) this.detail(x);
        this.details.clear();
      }, detailPace).unref();
    }
    this.details.add(id);
  }

  private detail(id: string): void {
    const call = id.replace(/^dock:/, "");
    const t = this.current();
    const detail = t?.state.details.get(call);
    const e = t?.state.entries.get(call);
    if (t && detail) this.post({ type: "detail", id, detail: slim(e?.kind === "tool" ? this.live.detail(t.id, e, detail) : detail) });
  }

  /** A terminal printed something: the card that shows it gets it. */
  private printed(terminalId: string): void {
    const t = this.current();
    for (const id of this.unfolded) {
      const e = t?.state.entries.get(id);
      if (e?.kind === "tool" && e.terminalId === terminalId) this.detailSoon(id);
    }
  }
}

/** VS Code has no context key for the focus of a webview. */
function focused(on: boolean): void {
  void vscode.commands.executeCommand("setContext", "pillion.panelFocused", on);
}
