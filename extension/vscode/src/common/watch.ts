// Detects that the other side of a connection runs but no longer answers.

/** The state of a connection that is watched. */
export interface Watched {
  /** The oldest request without an answer. */
  readonly oldest: { method: string; since: number } | undefined;
  /** When the last message was received, in ms. */
  readonly heardAt: number;
  request(method: string, params: unknown): Promise<unknown>;
}

/** If a request is open and no message arrives for this time, a test request is sent; it has the same time to be
 * answered. */
export const patience = 10_000; // ms

export class Watch {
  private asked: number | undefined;

  constructor(private readonly on: Watched) {}

  /** Checks every few seconds. Returns the method of the open request if the test request is not answered either. */
  look(now: number): string | undefined {
    const { oldest, heardAt } = this.on;
    if (!oldest) {
      this.asked = undefined;
      return undefined;
    }
    if (this.asked !== undefined) {
      if (heardAt >= this.asked) this.asked = undefined;
      else return now - this.asked >= patience ? oldest.method : undefined;
    }
    if (now - Math.max(oldest.since, heardAt) < patience) return undefined;
    this.asked = now;
    // without a session: a working sidecar answers at once that there is none, even while a model thinks
    void this.on.request("_pillion/session/status", { sessionId: "" }).catch(() => {});
    return undefined;
  }
}
