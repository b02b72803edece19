// The open questions to the person, of all sessions of this window. The panel shows those of the active session.
import * as vscode from "vscode";
import type { CreateElicitationRequest, CreateElicitationResponse } from "../common/protocol";
import type { Question } from "../common/view";
import { questionView } from "./panelview";
import type { Sidecar } from "./sidecar";

export interface Asked {
  /** Undefined if it belongs to no session: every session shows it. */
  readonly sessionId: string | undefined;
  readonly question: Question;
}

interface Entry extends Asked {
  answer(r: CreateElicitationResponse): void;
}

export class Questions implements vscode.Disposable {
  private readonly entries = new Map<string, Entry>();
  private readonly changed = new vscode.EventEmitter<string | undefined>();
  /** The questions of a session have changed. */
  readonly onDidChange = this.changed.event;
  private readonly asked = new vscode.EventEmitter<Asked>();
  readonly onDidAsk = this.asked.event;
  private readonly registered: vscode.Disposable;
  private next = 1;

  constructor(sidecar: Pick<Sidecar, "onRequest" | "onDidChangeState">) {
    this.registered = vscode.Disposable.from(
      sidecar.onRequest("elicitation/create", (r, signal) => this.ask(r, signal)),
      sidecar.onDidChangeState((s) => {
        if (s.kind !== "running") this.drop(); // the process that asked has ended
      }),
    );
  }

  /** Oldest first; those that the panel of a session shows, or all. */
  pending(sessionId?: string): Asked[] {
    return [...this.entries.values()].filter((e) => sessionId === undefined || e.sessionId === undefined || e.sessionId === sessionId);
  }

  /** The person's answer; without values they decline. */
  answer(requestId: string, values: CreateElicitationResponse["content"] | null): void {
    this.end(requestId, values ? { action: "accept", content: values } : { action: "decline" });
  }

  dispose(): void {
    this.registered.dispose();
    this.drop();
    this.changed.dispose();
    this.asked.dispose();
  }

  private ask(r: CreateElicitationRequest, signal: AbortSignal): Promise<CreateElicitationResponse> {
    const id = `question-${String(this.next++)}`;
    return new Promise((resolve) => {
      const entry = { sessionId: r.sessionId, question: questionView(id, r), answer: resolve };
      this.entries.set(id, entry);
      signal.addEventListener("abort", () => this.end(id, { action: "cancel" }), { once: true });
      this.changed.fire(entry.sessionId);
      this.asked.fire(entry);
    });
  }

  private end(id: string, r: CreateElicitationResponse): void {
    const entry = this.entries.get(id);
    if (!entry) return;
    this.entries.delete(id);
    entry.answer(r);
    this.changed.fire(entry.sessionId);
  }

  private drop(): void {
    for (const id of [...this.entries.keys()]) this.end(id, { action: "cancel" });
  }
}
