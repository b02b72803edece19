// What can be mentioned with @, and what a mention is converted to when the prompt is sent.
import { execFile } from "node:child_process";
import * as vscode from "vscode";
import type { Found } from "../common/messages";
import type { ContentBlock } from "../common/protocol";
import type { Draft, Mention } from "../common/view";
import type { Sidecar } from "./sidecar";

/** Characters of text that one mention may add. */
const most = 200_000;

const special: Found[] = [
  { mention: { kind: "problems", label: "@problems" }, icon: "warning", name: "problems", detail: "What the editor reports, in all files", hits: [] },
  { mention: { kind: "selection", label: "@selection" }, icon: "list-selection", name: "selection", detail: "What is selected in the editor", hits: [] },
  { mention: { kind: "terminal", label: "@terminal" }, icon: "terminal", name: "terminal", detail: "What the active terminal shows", hits: [] },
  { mention: { kind: "diff", label: "@diff" }, icon: "git-compare", name: "diff", detail: "What changed since the last commit (git)", hits: [] },
];

export class Mentions {
  constructor(private readonly sidecar: Sidecar) {}

  async search(query: string, sessionId: string | undefined): Promise<Found[]> {
    const q = query.toLowerCase();
    const out: Found[] = [];
    if (/^https?:\/\/\S+\.\S+/.test(query)) out.push({ mention: { kind: "url", label: `@${query}`, uri: query }, icon: "globe", name: query, detail: "A page", hits: [] });
    out.push(...(await this.files(query, sessionId)));
    const fitting = special.filter((s) => s.name.startsWith(q)).map((s) => ({ ...s, hits: Array.from(q, (_, i) => i) }));
    return q === "" ? [...out.slice(0, 8), ...fitting, ...out.slice(8)] : [...fitting, ...out];
  }

  /** A draft as a prompt: its text, then what it mentions, then the attachments. */
  async prompt(draft: Draft, cwd: string, selection: boolean): Promise<ContentBlock[]> {
    const blocks: ContentBlock[] = draft.text.trim() === "" ? [] : [{ type: "text", text: draft.text.trim() }];
    const mentioned = draft.mentions.filter((m) => draft.text.includes(m.label));
    const seen = new Set<string>();
    for (const m of mentioned) {
      const key = `${m.kind} ${m.uri ?? ""} ${String(m.startLine)}`;
      if (seen.has(key)) continue;
      seen.add(key);
      const block = await this.block(m, cwd);
      if (block) blocks.push(block);
    }
    if (selection && !mentioned.some((m) => m.kind === "selection")) {
      const block = selected();
      if (block) blocks.push(block);
    }
    for (const a of draft.attachments) {
      if (a.mime === "application/pdf") blocks.push({ type: "resource", resource: { uri: `attachment:///${encodeURIComponent(a.name)}`, mimeType: a.mime, blob: a.data } });
      else blocks.push({ type: "image", mimeType: a.mime, data: a.data, uri: `attachment:///${encodeURIComponent(a.name)}` });
    }
    return blocks;
  }

  private async files(query: string, sessionId: string | undefined): Promise<Found[]> {
    if (sessionId !== undefined && this.sidecar.announced("_pillion/file/search")) {
      const { matches } = await this.sidecar.request("_pillion/file/search", { sessionId, query, limit: 40 });
      return matches.map((m): Found => {
        const symbol = m.kind === "symbol";
        const name = symbol ? (m.name ?? m.path) : m.path;
        const line = m.range ? m.range.start.line + 1 : undefined;
        return {
          mention: { kind: symbol ? "symbol" : m.kind === "folder" ? "folder" : "file", label: `@${symbol ? name : m.path}`, uri: m.uri, path: m.path, startLine: symbol ? line : undefined, endLine: symbol && m.range ? m.range.end.line + 1 : undefined },
          icon: symbol ? "symbol-method" : m.kind === "folder" ? "folder" : m.kind === "resource" ? "plug" : "file", name, detail: m.kind === "resource" ? (m.name ?? "") : symbol ? `${m.path}${line === undefined ? "" : `:${String(line)}`}` : "", hits: m.indices ?? [],
        };
      });
    }
    const found = await vscode.workspace.findFiles("**/*", undefined, 2000);
    const scored = found.flatMap((uri) => {
      const path = vscode.workspace.asRelativePath(uri, false);
      const hits = fuzzy(path, query);
      return hits ? [{ path, uri, hits }] : [];
    });
    scored.sort((a, b) => spread(a.hits) - spread(b.hits) || a.path.length - b.path.length);
    return scored.slice(0, 40).map(({ path, uri, hits }) => ({ mention: { kind: "file", label: `@${path}`, uri: uri.toString(), path }, icon: "file", name: path, detail: "", hits }));
  }

  private async block(m: Mention, cwd: string): Promise<ContentBlock | undefined> {
    switch (m.kind) {
      case "file":
      case "folder":
        return m.uri === undefined ? undefined : { type: "resource_link", uri: here(m.uri), name: m.path ?? m.label.slice(1) };
      case "symbol":
        return m.uri === undefined ? undefined : { type: "resource_link", uri: `${here(m.uri)}${m.startLine === undefined ? "" : `#L${String(m.startLine)}-L${String(m.endLine ?? m.startLine)}`}`, name: m.label.slice(1) };
      case "url":
        return m.uri === undefined ? undefined : { type: "resource_link", uri: m.uri, name: m.uri };
      case "selection":
        // a Pillion that receives each selection adds it itself, with its place
        if (this.sidecar.announced("_pillion/selection/didChange")) return undefined;
        return selected() ?? words("selection", "(nothing is selected)");
      case "problems":
        return words("problems", problems());
      case "terminal":
        return words("terminal", await terminalText());
      case "diff":
        return words("git-diff", await gitDiff(cwd));
    }
  }
}

/** Files that are dragged into the panel have an address of the window; in a remote window they are converted to
 * files of the remote machine. */
function here(uri: string): string {
  const u = vscode.Uri.parse(uri);
  return u.scheme === "vscode-remote" ? vscode.Uri.file(u.path).toString() : uri;
}

function words(what: string, content: string): ContentBlock {
  const text = content.length > most ? `${content.slice(0, most)}\n… ${String(content.length - most)} characters more` : content;
  return { type: "resource", resource: { uri: `editor:///${what}`, mimeType: "text/plain", text } };
}

function selected(): ContentBlock | undefined {
  const e = vscode.window.activeTextEditor;
  if (!e || !shown(e.document)) return undefined;
  if (e.selection.isEmpty) return { type: "resource_link", uri: e.document.uri.toString(), name: vscode.workspace.asRelativePath(e.document.uri) };
  const { start, end } = e.selection;
  return { type: "resource", resource: { uri: `${e.document.uri.toString()}#L${String(start.line + 1)}-L${String(end.line + 1)}`, mimeType: "text/plain", text: e.document.getText(e.selection).slice(0, most) } };
}

/** Documents that a person would call a file. */
export function shown(d: vscode.TextDocument): boolean {
  return d.uri.scheme === "file" || d.uri.scheme === "vscode-remote" || d.uri.scheme === "untitled";
}

function problems(): string {
  const names = ["error", "warning", "information", "hint"];
  const lines = vscode.languages.getDiagnostics().flatMap(([uri, all]) =>
    all.filter((d) => d.severity <= vscode.DiagnosticSeverity.Warning).map((d) => `${vscode.workspace.asRelativePath(uri)}:${String(d.range.start.line + 1)}:${String(d.range.start.character + 1)}: ${names[d.severity] ?? "problem"}: ${d.message}${d.source ? ` (${d.source})` : ""}`));
  return lines.join("\n") || "(the editor reports no errors and no warnings)";
}

/** VS Code has no stable API to read a terminal, so its text is copied through the clipboard, whose content is
 * restored. */
async function terminalText(): Promise<string> {
  if (!vscode.window.activeTerminal) return "(no terminal is open)";
  const before = await vscode.env.clipboard.readText();
  try {
    await vscode.env.clipboard.writeText("");
    await vscode.commands.executeCommand("workbench.action.terminal.selectAll");
    await vscode.commands.executeCommand("workbench.action.terminal.copySelection");
    await vscode.commands.executeCommand("workbench.action.terminal.clearSelection");
    return (await vscode.env.clipboard.readText()).trim().slice(-most) || "(the terminal is empty)";
  } finally {
    await vscode.env.clipboard.writeText(before);
  }
}

function gitDiff(cwd: string): Promise<string> {
  if (!vscode.workspace.isTrusted) return Promise.resolve("(the folder is not trusted, so git was not run in it)");
  return new Promise((resolve) => {
    execFile("git", ["diff", "HEAD", "--no-color", "--no-ext-diff", "--no-textconv"], { cwd, timeout: 10_000, maxBuffer: 4 << 20 }, (error, out) => {
      if (error && !out) resolve(`(git diff failed: ${error.message.split("\n")[0] ?? ""})`);
      else resolve(out || "(nothing changed since the last commit)");
    });
  });
}

/** The offsets of the query's characters in the text, in order; the last possible ones, because names are at the end
 * of a path. */
export function fuzzy(text: string, query: string): number[] | undefined {
  const t = text.toLowerCase();
  const hits: number[] = [];
  let at = t.length;
  for (let i = query.length - 1; i >= 0; i--) {
    at = t.lastIndexOf((query[i] ?? "").toLowerCase(), at - 1);
    if (at < 0) return undefined;
    hits.unshift(at);
  }
  return hits;
}

function spread(hits: number[]): number {
  return hits.length === 0 ? 0 : (hits[hits.length - 1] ?? 0) - (hits[0] ?? 0);
}
