// Notices when the other side of a connection has stopped answering: it runs, and nothing comes.

/** What of a connection is watched. */
export interface Watched {
  /** The oldest request that nobody has answered. */
  readonly oldest: { method: string; since: number } | undefined;
  /** When something last came, in ms. */
  readonly heardAt: number;
  request(method: string, params: unknown): Promise<unknown>;
}

/** So long nothing may come while something is waited for; then it is asked whether it lives, and has as long again. */
export const patience = 10_000; // ms

export class Watch {
  private asked: number | undefined;

  constructor(private readonly on: Watched) {}

  /** Looks, every few seconds. The method that is waited for in vain, where even a plain question gets no answer. */
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
    // of no session: who lives says at once that there is none, however long a model thinks
    void this.on.request("_pillion/session/status", { sessionId: "" }).catch(() => {});
    return undefined;
  }
}
