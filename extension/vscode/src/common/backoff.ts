// How long to wait before a process that ended is restarted, and when to give up.

const delays = [250, 1_000, 4_000, 10_000, 30_000]; // ms
const stable = 60_000; // ms; after a run of this length, earlier crashes no longer count

export class Backoff {
  private deaths = 0;

  /** The delay before the next restart in ms, after a run of the given length. Undefined: it crashed too often. */
  next(lifetime: number): number | undefined {
    if (lifetime >= stable) this.deaths = 0;
    return delays[this.deaths++];
  }

  reset(): void {
    this.deaths = 0;
  }
}
