// Shows the findings of a review as comment threads at their lines. Each can be sent to Pillion to be fixed, which gives a
// proposal like any other. The text comes from a model, so it is shown as Markdown without commands and HTML.
import * as vscode from "vscode";
import { fixFindingPrompt, reviewPrompt } from "../common/ask";
import type { ContentBlock, ReviewFinding, ReviewUpdated } from "../common/protocol";
import { gitRepository } from "./git";
import type { Reviews } from "./reviews";
import { tell } from "./sessionlist";
import type { Sessions } from "./sessions";
import type { Sidecar } from "./sidecar";
import { onCommand } from "./table";

/** A larger patch of a pull request is not reviewed. */
const largestPatch = 5 << 20; // bytes

/** The largest number of threads; the answer lists the others. */
const mostThreads = 200;

export class Findings implements vscode.Disposable {
  private readonly controller = vscode.comments.createCommentController("pillion.review", "Pillion Review");
  /** The threads of the last review of a session, by source: the findings of the language servers and of the model
   * arrive at different times. */
  private readonly shown = new Map<string, { messageId: string; threads: Map<string, vscode.CommentThread[]> }>();
  private readonly of = new WeakMap<vscode.CommentThread, { sessionId: string; finding: ReviewFinding }>();
  private readonly registered: vscode.Disposable;

  constructor(
    sidecar: Pick<Sidecar, "onNotification">,
    private readonly sessions: Sessions,
    private readonly reviews: Pick<Reviews, "showNext">,
    private readonly context: Pick<vscode.ExtensionContext, "globalStorageUri">,
  ) {
    this.registered = vscode.Disposable.from(
      this.controller,
      sidecar.onNotification("_pillion/review/updated", (found) => this.update(found)),
      onCommand("pillion.reviewChanges", () => this.choose().catch(tell)),
      onCommand("pillion.finding.fix", (thread?: unknown) => this.fix(thread as vscode.CommentThread | undefined).catch(tell)),
      onCommand("pillion.finding.dismiss", (thread?: unknown) => this.dismiss(thread as vscode.CommentThread | undefined)),
      onCommand("pillion.finding.dismissAll", () => [...this.shown.keys()].forEach((id) => this.clear(id))),
    );
  }

  dispose(): void {
    for (const id of [...this.shown.keys()]) this.clear(id);
    this.registered.dispose();
  }

  private update(found: ReviewUpdated): void {
    let review = this.shown.get(found.sessionId);
    if (review?.messageId !== found.messageId) {
      this.clear(found.sessionId);
      review = { messageId: found.messageId, threads: new Map() };
      this.shown.set(found.sessionId, review);
    }
    for (const t of review.threads.get(found.by) ?? []) t.dispose();
    review.threads.set(found.by, found.findings.slice(0, mostThreads).map((f) => this.thread(found.sessionId, f)));
    this.setContext();
  }

  private thread(sessionId: string, finding: ReviewFinding): vscode.CommentThread {
    const body = new vscode.MarkdownString(finding.message);
    const author = finding.source === "model" ? "Pillion" : finding.source;
    const range = new vscode.Range(finding.line - 1, 0, finding.endLine - 1, 0);
    const thread = this.controller.createCommentThread(vscode.Uri.file(finding.path), range, [{ body, mode: vscode.CommentMode.Preview, author: { name: author }, label: finding.code ? `${finding.severity} · ${finding.code}` : finding.severity }]);
    thread.label = `${finding.severity[0]!.toUpperCase()}${finding.severity.slice(1)} found by ${author}`;
    thread.contextValue = "finding";
    thread.canReply = false;
    // an expanded thread covers code, so only the most severe ones are expanded
    thread.collapsibleState = finding.severity === "error" ? vscode.CommentThreadCollapsibleState.Expanded : vscode.CommentThreadCollapsibleState.Collapsed;
    this.of.set(thread, { sessionId, finding });
    return thread;
  }

  private async fix(thread: vscode.CommentThread | undefined): Promise<void> {
    const about = thread && this.of.get(thread);
    if (!thread || !about) throw new Error("Open a finding of a review, then choose Fix This.");
    const { finding } = about;
    const session = this.sessions.get(about.sessionId) ?? (await this.sessions.ready());
    const path = vscode.workspace.asRelativePath(thread.uri);
    // lines may have moved since; the thread moves with them
    const first = (thread.range?.start.line ?? finding.line - 1) + 1;
    const last = (thread.range?.end.line ?? finding.endLine - 1) + 1;
    const prompt: ContentBlock[] = [
      { type: "text", text: fixFindingPrompt(path, first, last, finding.message) },
      { type: "resource_link", uri: `${thread.uri.toString()}#L${String(first)}-L${String(last)}`, name: path },
    ];
    thread.collapsibleState = vscode.CommentThreadCollapsibleState.Collapsed;
    this.reviews.showNext(session.id, true);
    try {
      await this.sessions.prompt(session.id, prompt);
    } finally {
      this.reviews.showNext(session.id, false);
    }
  }

  private dismiss(thread: vscode.CommentThread | undefined): void {
    for (const { threads } of this.shown.values()) for (const [by, list] of threads) threads.set(by, list.filter((t) => t !== thread));
    thread?.dispose();
    this.setContext();
  }

  private clear(sessionId: string): void {
    for (const list of this.shown.get(sessionId)?.threads.values() ?? []) for (const t of list) t.dispose();
    this.shown.delete(sessionId);
    this.setContext();
  }

  private setContext(): void {
    void vscode.commands.executeCommand("setContext", "pillion.findings", [...this.shown.values()].some((r) => [...r.threads.values()].some((l) => l.length > 0)));
  }

  /** Asks what to review, and starts the review. */
  private async choose(): Promise<void> {
    const repository = await gitRepository();
    const branch = repository?.state.HEAD?.name;
    const branches = (await repository?.getBranches?.({ remote: false }).catch(() => [])) ?? [];
    interface Row extends vscode.QuickPickItem {
      target?: string;
      patch?: () => Promise<{ target: string; text: string } | undefined>;
    }
    const rows: Row[] = [
      { label: "$(git-commit) Uncommitted Changes", description: "what differs from the last commit", target: "" },
      { label: "$(history) Last Commit", target: "HEAD" },
      ...(branch ? [{ label: `$(git-branch) This Branch: ${branch}`, description: "what it changes since it left the default branch", target: branch }] : []),
      { label: "$(git-pull-request) Pull Request…", description: "by its address, or that of a patch", patch: () => this.pullRequest() },
      { label: "$(diff) Patch File…", patch: () => patchFile() },
      ...branches.flatMap((b): Row[] => (b.name && b.name !== branch ? [{ label: `$(git-branch) ${b.name}`, target: b.name }] : [])),
    ];
    const row = await vscode.window.showQuickPick(rows, { title: "Review which change?", matchOnDescription: true });
    if (!row) return;
    const patch = await row.patch?.();
    if (row.patch && !patch) return;
    const session = await this.sessions.ready();
    await vscode.commands.executeCommand("pillion.focus");
    const prompt: ContentBlock[] = [{ type: "text", text: reviewPrompt(patch?.target ?? row.target ?? "") }];
    if (patch) prompt.push({ type: "resource", resource: { uri: vscode.Uri.file(patch.target).toString(), mimeType: "text/x-diff", text: patch.text } });
    await this.sessions.prompt(session.id, prompt);
  }

  /** Downloads the patch of a pull request to a file, so that the language servers can check it too. */
  private async pullRequest(): Promise<{ target: string; text: string } | undefined> {
    const given = await vscode.window.showInputBox({
      title: "Review a Pull Request",
      prompt: "The address of a pull request on GitHub, or of a patch or diff. It is fetched without your credentials.",
      ignoreFocusOut: true,
      validateInput: (v) => (v === "" || patchAddress(v) ? undefined : "Enter an address that begins with https://"),
    });
    const address = given && patchAddress(given);
    if (!address) return undefined;
    const text = await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: `Fetching ${address}`, cancellable: true }, async (_, token) => {
      const stop = new AbortController();
      token.onCancellationRequested(() => stop.abort());
      const response = await fetch(address, { signal: stop.signal });
      if (!response.ok) throw new Error(`${address} answered ${String(response.status)} ${response.statusText}. Download the patch and choose Patch File.`);
      const bytes = new Uint8Array(await response.arrayBuffer());
      if (bytes.length > largestPatch) throw new Error(`The patch has ${String(bytes.length >> 20)} MB; at most ${String(largestPatch >> 20)} MB can be reviewed.`);
      return new TextDecoder().decode(bytes);
    });
    const file = vscode.Uri.joinPath(this.context.globalStorageUri, "reviews", `${address.replace(/^https?:\/\//, "").replace(/[^\w.-]+/g, "-").slice(-100)}`);
    await vscode.workspace.fs.writeFile(file, new TextEncoder().encode(text));
    return { target: file.fsPath, text };
  }
}

async function patchFile(): Promise<{ target: string; text: string } | undefined> {
  const [file] = (await vscode.window.showOpenDialog({ title: "Review a Patch", filters: { Patches: ["patch", "diff"], "All Files": ["*"] } })) ?? [];
  return file && { target: file.fsPath, text: new TextDecoder().decode(await vscode.workspace.fs.readFile(file)) };
}

/** The address of the patch for what the person named; undefined if that is not an address. */
export function patchAddress(given: string): string | undefined {
  const v = given.trim();
  if (!/^https?:\/\/[^/\s]+\/\S+$/.test(v)) return undefined;
  const pull = /^(https:\/\/[^/]+\/[^/]+\/[^/]+\/pull\/\d+)(?:[/?#].*)?$/.exec(v);
  return pull ? `${pull[1]!}.diff` : v;
}
