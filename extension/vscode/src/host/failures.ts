// Sends failures of other parts of the window to Pillion: tests of any testing extension, and the last command of a terminal
// whose shell reports exit codes to VS Code (shell integration).
import * as vscode from "vscode";
import { fixCommandPrompt, fixTestPrompt } from "../common/ask";
import type { ContentBlock } from "../common/protocol";
import { tell } from "./sessionlist";
import type { Sessions } from "./sessions";
import { onCommand } from "./table";

/** Characters of a command's output that are kept: the end, where the reason is. */
const mostOutput = 20_000;

/** Parts of the API of VS Code 1.93 and later; the types that this extension is built with are older. */
interface Execution {
  readonly commandLine: { readonly value: string };
  readonly cwd?: vscode.Uri;
  read(): AsyncIterable<string>;
}
interface ShellEvents {
  onDidStartTerminalShellExecution?: vscode.Event<{ readonly terminal: vscode.Terminal; readonly execution: Execution }>;
  onDidEndTerminalShellExecution?: vscode.Event<{ readonly terminal: vscode.Terminal; readonly execution: Execution; readonly exitCode: number | undefined }>;
}

interface Failed {
  readonly command: string;
  readonly cwd: string;
  readonly exitCode: number;
  output: string;
}

export class Failures implements vscode.Disposable {
  private readonly failed = new Map<vscode.Terminal, Failed>();
  private readonly outputs = new WeakMap<Execution, { text: string; read: Promise<void> }>();
  private readonly item = vscode.window.createStatusBarItem("pillion.failedCommand", vscode.StatusBarAlignment.Left, 9);
  private readonly registered: vscode.Disposable;

  constructor(private readonly sessions: Sessions) {
    this.item.name = "Pillion: Failed Command";
    this.item.command = "pillion.fixCommand";
    const shell = vscode.window as unknown as ShellEvents;
    this.registered = vscode.Disposable.from(
      this.item,
      shell.onDidStartTerminalShellExecution?.(({ terminal, execution }) => this.started(terminal, execution)) ?? new vscode.Disposable(() => {}),
      shell.onDidEndTerminalShellExecution?.(({ terminal, execution, exitCode }) => void this.ended(terminal, execution, exitCode)) ?? new vscode.Disposable(() => {}),
      vscode.window.onDidChangeActiveTerminal(() => this.draw()),
      vscode.window.onDidCloseTerminal((t) => {
        this.failed.delete(t);
        this.draw();
      }),
      onCommand("pillion.fixCommand", () => this.fixCommand().catch(tell)),
      onCommand("pillion.fixTest", (arg?: unknown) => this.fixTest(arg).catch(tell)),
    );
  }

  dispose(): void {
    this.registered.dispose();
  }

  private started(terminal: vscode.Terminal, execution: Execution): void {
    this.failed.delete(terminal);
    this.draw();
    const kept = { text: "", read: Promise.resolve() };
    this.outputs.set(execution, kept);
    kept.read = (async () => {
      for await (const piece of execution.read()) kept.text = (kept.text + piece).slice(-2 * mostOutput);
    })().catch(() => {}); // use what could be read
  }

  private async ended(terminal: vscode.Terminal, execution: Execution, exitCode: number | undefined): Promise<void> {
    const kept = this.outputs.get(execution);
    await kept?.read;
    // 130: the person stopped it with Ctrl+C
    if (exitCode === undefined || exitCode === 0 || exitCode === 130) return;
    this.failed.set(terminal, { command: execution.commandLine.value, cwd: execution.cwd?.fsPath ?? "", exitCode, output: plain(kept?.text ?? "").slice(-mostOutput) });
    this.draw();
  }

  private draw(): void {
    const f = this.failed.get(vscode.window.activeTerminal ?? ({} as vscode.Terminal));
    void vscode.commands.executeCommand("setContext", "pillion.commandFailed", f !== undefined);
    if (!f) return this.item.hide();
    const short = f.command.length > 30 ? `${f.command.slice(0, 29)}…` : f.command;
    this.item.text = `$(sparkle) Fix “${short.replace(/\$\(/g, "$ (")}”`;
    this.item.tooltip = `The command ended with exit code ${String(f.exitCode)}. Click to have Pillion find the cause.`;
    this.item.accessibilityInformation = { label: `Fix failed command ${short} with Pillion`, role: "button" };
    this.item.show();
  }

  private async fixCommand(): Promise<void> {
    const terminal = vscode.window.activeTerminal;
    const f = terminal && this.failed.get(terminal);
    if (!terminal || !f) throw new Error("No command has failed in the active terminal. Pillion sees commands of shells with VS Code's shell integration.");
    this.failed.delete(terminal);
    this.draw();
    await this.send([{ type: "text", text: fixCommandPrompt(f.command, f.exitCode, f.cwd, f.output) }]);
  }

  /** Called from the menu of a test (the test), or from the menu of one of its messages (test and message). */
  private async fixTest(arg: unknown): Promise<void> {
    const { test, message } = testOf(arg);
    if (!test) throw new Error("Select a failed test in the Testing view.");
    const path = test.uri ? vscode.workspace.asRelativePath(test.uri) : "";
    const names: string[] = [];
    for (let t: vscode.TestItem | undefined = test; t; t = t.parent) names.unshift(t.label);
    const m = message && { text: typeof message.message === "string" ? message.message : message.message.value, expected: message.expectedOutput, actual: message.actualOutput, line: message.location && message.location.range.start.line + 1, path: message.location && vscode.workspace.asRelativePath(message.location.uri) };
    await this.send([
      { type: "text", text: fixTestPrompt(names.join(" › "), path, test.range ? test.range.start.line + 1 : undefined, m) },
      ...(test.uri ? [{ type: "resource_link" as const, uri: test.uri.toString(), name: path }] : []),
    ]);
  }

  private async send(prompt: ContentBlock[]): Promise<void> {
    const session = await this.sessions.ready();
    await vscode.commands.executeCommand("pillion.focus");
    await this.sessions.prompt(session.id, prompt);
  }
}

function testOf(arg: unknown): { test?: vscode.TestItem; message?: vscode.TestMessage } {
  const a = arg as { test?: vscode.TestItem; message?: vscode.TestMessage; label?: unknown } | undefined;
  if (a?.test && typeof a.test.label === "string") return { test: a.test, ...(a.message ? { message: a.message } : {}) };
  return typeof a?.label === "string" ? { test: arg as vscode.TestItem } : {};
}

/** Output of a terminal without colours, links and cursor movements. */
function plain(text: string): string {
  return text.replace(/\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[=>()][0-9A-B]?/g, "").replace(/\r\n/g, "\n").replace(/[^\n]*\r/g, "");
}
