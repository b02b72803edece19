// JSON-RPC 2.0, one message per line, over two byte streams. It knows no methods: their types are in wire.ts.

/** An error that the other side answered, or that a handler throws to choose its code. */
export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
    this.name = "RpcError";
  }
}

/** The error of each request that was open when the connection ended. */
export class ClosedError extends Error {
  constructor(reason: string) {
    super(reason);
    this.name = "ClosedError";
  }
}

export const cancelled = -32800;

/** Answers a request; the signal tells that the caller has cancelled it. */
export type RequestHandler = (params: unknown, signal: AbortSignal) => unknown;

export interface Handlers {
  request(method: string): RequestHandler | undefined;
  notification(method: string, params: unknown): void;
  /** Called for messages that could not be read or handled; the connection continues. */
  problem(message: string): void;
}

interface Message {
  id?: string | number | null;
  method?: unknown;
  params?: unknown;
  result?: unknown;
  error?: unknown;
}

interface Waiting {
  method: string;
  since: number;
  resolve(value: unknown): void;
  reject(error: Error): void;
}

/** One connection. `take` gives it received bytes, `close` ends it; it sends with `write`. */
export class Connection {
  private next = 1;
  private rest: string[] = [];
  private waiting = new Map<number, Waiting>();
  private running = new Map<string | number, AbortController>();
  private closeReason: string | undefined;
  private lastHeard = Date.now();

  constructor(
    private readonly write: (line: string) => void,
    private readonly handlers: Handlers,
  ) {}

  /** The oldest request without an answer. */
  get oldest(): { method: string; since: number } | undefined {
    return this.waiting.values().next().value;
  }

  /** When the last bytes were received. */
  get heardAt(): number {
    return this.lastHeard;
  }

  get closed(): boolean {
    return this.closeReason !== undefined;
  }

  request(method: string, params: unknown, signal?: AbortSignal): Promise<unknown> {
    if (this.closeReason !== undefined) return Promise.reject(new ClosedError(this.closeReason));
    const id = this.next++;
    return new Promise((resolve, reject) => {
      // A cancelled request is still answered, with a result or with -32800, so the caller learns what happened.
      const abort = () => this.send({ method: "$/cancel_request", params: { requestId: id } });
      const done = () => signal?.removeEventListener("abort", abort);
      this.waiting.set(id, { method, since: Date.now(), resolve: (v) => (done(), resolve(v)), reject: (e) => (done(), reject(e)) });
      this.send({ id, method, params });
      if (signal?.aborted) abort();
      else signal?.addEventListener("abort", abort, { once: true });
    });
  }

  notify(method: string, params: unknown): void {
    if (this.closeReason === undefined) this.send({ method, params });
  }

  /** Takes received bytes; they may end in the middle of a line. */
  take(piece: string): void {
    this.lastHeard = Date.now();
    let from = 0;
    for (let end = piece.indexOf("\n"); end >= 0; end = piece.indexOf("\n", from)) {
      this.rest.push(piece.slice(from, end));
      from = end + 1;
      const line = this.rest.length === 1 ? this.rest[0]! : this.rest.join("");
      this.rest = [];
      if (line.trim() !== "") this.line(line);
    }
    if (from < piece.length) this.rest.push(piece.slice(from));
  }

  close(reason: string): void {
    if (this.closeReason !== undefined) return;
    this.closeReason = reason;
    for (const w of this.waiting.values()) w.reject(new ClosedError(reason));
    this.waiting.clear();
    for (const c of this.running.values()) c.abort();
    this.running.clear();
  }

  private send(message: object): void {
    this.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
  }

  private line(line: string): void {
    let message: unknown;
    try {
      message = JSON.parse(line);
    } catch {
      this.handlers.problem(`not JSON: ${line.slice(0, 200)}`);
      return;
    }
    if (typeof message !== "object" || message === null || Array.isArray(message)) {
      this.handlers.problem(`not a message: ${line.slice(0, 200)}`);
      return;
    }
    const m = message as Message;
    if (typeof m.method === "string") {
      if (m.id == null) this.notification(m.method, m.params);
      else void this.answer(m.id, m.method, m.params); // its errors become error responses
    } else if (typeof m.id === "number") this.response(m.id, m);
    else this.handlers.problem(`neither request nor response: ${line.slice(0, 200)}`);
  }

  private notification(method: string, params: unknown): void {
    if (method === "$/cancel_request") {
      const id = (params as { requestId?: string | number } | undefined)?.requestId;
      if (id !== undefined) this.running.get(id)?.abort();
      return;
    }
    try {
      this.handlers.notification(method, params);
    } catch (error) {
      this.handlers.problem(`${method}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
    }
  }

  private async answer(id: string | number, method: string, params: unknown): Promise<void> {
    const handler = this.handlers.request(method);
    if (!handler) {
      this.send({ id, error: { code: -32601, message: `${method}: this editor does not answer it` } });
      return;
    }
    const controller = new AbortController();
    this.running.set(id, controller);
    try {
      const result = await handler(params, controller.signal);
      if (!this.closed) this.send({ id, result: result ?? {} });
    } catch (error) {
      if (this.closed) return;
      const code = error instanceof RpcError ? error.code : controller.signal.aborted ? cancelled : -32603;
      this.send({ id, error: { code, message: error instanceof Error ? error.message : String(error) } });
    } finally {
      this.running.delete(id);
    }
  }

  private response(id: number, m: Message): void {
    const waiting = this.waiting.get(id);
    if (!waiting) return;
    this.waiting.delete(id);
    if (m.error != null) {
      const e = m.error as { code?: unknown; message?: unknown; data?: unknown };
      waiting.reject(new RpcError(typeof e.code === "number" ? e.code : -32603, typeof e.message === "string" ? e.message : `${waiting.method} failed`, e.data));
    } else waiting.resolve(m.result);
  }
}
