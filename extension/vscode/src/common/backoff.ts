// How long to wait before a process that died is started again, and when to give up.

const delays = [250, 1_000, 4_000, 10_000, 30_000]; // ms
const stable = 60_000; // ms of life after which earlier deaths no longer count

export class Backoff {
  private deaths = 0;

  /** The next delay in ms after a life that lasted so long, or undefined: it died too often. */
  next(lifetime: number): number | undefined {
    if (lifetime >= stable) this.deaths = 0;
    return delays[this.deaths++];
  }

  reset(): void {
    this.deaths = 0;
  }
}
