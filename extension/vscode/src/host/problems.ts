// Shows the problems that Pillion's language servers find in VS Code's list, for languages that no other extension checks:
// otherwise each problem would be listed twice.
import * as vscode from "vscode";
import type { DiagnosticsUpdated } from "../common/protocol";
import type { Sidecar } from "./sidecar";

const mine = new WeakSet<vscode.Diagnostic>();

/** Whether this extension published a problem: it comes from the sidecar, which must not get it back. */
export function isMine(d: vscode.Diagnostic): boolean {
  return mine.has(d);
}

interface Manifest {
  main?: string;
  browser?: string;
  activationEvents?: string[];
  contributes?: { languages?: { id: string; extensions?: string[] }[] };
}

export class Problems implements vscode.Disposable {
  private readonly shown = vscode.languages.createDiagnosticCollection("pillion");
  /** Languages by file extension, and the languages that extensions check. Read when they are first needed. */
  private languages: { byEnding: Map<string, string>; served: Set<string> } | undefined;
  /** Languages for which another extension has shown a problem. */
  private readonly others = new Set<string>();
  private readonly disposables: vscode.Disposable[];

  constructor(sidecar: Sidecar, own: string) {
    this.disposables = [
      this.shown,
      sidecar.onNotification("_pillion/diagnostics/updated", (update) => this.update(update, own)),
      sidecar.onDidChangeState((s) => s.kind !== "running" && this.shown.clear()),
      vscode.extensions.onDidChange(() => (this.languages = undefined)),
      vscode.languages.onDidChangeDiagnostics((e) => this.yield(e.uris)),
      vscode.workspace.onDidChangeConfiguration((e) => e.affectsConfiguration("pillion.showProblems") && this.shown.clear()),
    ];
  }

  dispose(): void {
    for (const d of this.disposables) d.dispose();
  }

  private update(update: DiagnosticsUpdated, own: string): void {
    const uri = vscode.Uri.parse(update.uri, true);
    if (update.certainty === "pending") return; // keep the last list until the next update
    const wanted = update.diagnostics.length > 0 && vscode.workspace.getConfiguration("pillion").get("showProblems", true) && !this.served(uri, own);
    this.shown.set(uri, wanted ? update.diagnostics.map(diagnostic) : undefined);
  }

  private served(uri: vscode.Uri, own: string): boolean {
    const language = this.language(uri, own);
    return language === undefined || this.others.has(language) || (this.languages?.served.has(language) ?? false);
  }

  private language(uri: vscode.Uri, own = ""): string | undefined {
    this.languages ??= languages(own);
    const open = vscode.workspace.textDocuments.find((d) => d.uri.toString() === uri.toString());
    const name = uri.path.slice(uri.path.lastIndexOf("/") + 1);
    return open?.languageId ?? this.languages.byEnding.get(name.slice(name.lastIndexOf(".")));
  }

  /** Another extension shows problems of a language: remove Pillion's. */
  private yield(uris: readonly vscode.Uri[]): void {
    if (!this.languages) return; // no problems were shown yet
    for (const uri of uris) {
      if (vscode.languages.getDiagnostics(uri).every(isMine)) continue;
      const language = uri.scheme === "file" ? this.language(uri) : undefined;
      if (language === undefined || this.others.has(language)) continue;
      this.others.add(language);
      this.shown.forEach((shown) => this.language(shown) === language && this.shown.delete(shown));
    }
  }
}

/** What the installed extensions contribute for languages. An extension with code for a language checks it; one with
 * only colours does not. */
function languages(own: string): { byEnding: Map<string, string>; served: Set<string> } {
  const byEnding = new Map<string, string>();
  const served = new Set<string>();
  for (const extension of vscode.extensions.all) {
    const manifest = extension.packageJSON as Manifest;
    const code = extension.id !== own && (manifest.main !== undefined || manifest.browser !== undefined);
    for (const l of manifest.contributes?.languages ?? []) {
      for (const ending of l.extensions ?? []) byEnding.set(ending, l.id);
      if (code) served.add(l.id);
    }
    for (const event of manifest.activationEvents ?? []) if (code && event.startsWith("onLanguage:")) served.add(event.slice("onLanguage:".length));
  }
  return { byEnding, served };
}

function diagnostic(d: DiagnosticsUpdated["diagnostics"][number]): vscode.Diagnostic {
  const { start, end } = d.range;
  const out = new vscode.Diagnostic(new vscode.Range(start.line, start.character, end.line, end.character), d.message, d.severity - 1);
  out.source = d.source ?? "Pillion";
  if (d.code) out.code = d.code;
  mine.add(out);
  return out;
}
