/** Reads out what streams in sensible pieces: whole sentences, not each word, and not faster than one can listen. */
import { h } from "./dom";

const pause = 1500; // ms between two pieces

export class Announcer {
  readonly el = h("div", { class: "sr", role: "log", aria: { live: "polite", relevant: "additions" } });
  private waiting = "";
  private timer: ReturnType<typeof setTimeout> | undefined;

  say(text: string): void {
    this.flush(true);
    this.put(text);
  }

  /** Words of an answer, as they come. */
  stream(text: string): void {
    this.waiting += text;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.flush(false);
    }, pause);
  }

  /** What waits, up to the last end of a sentence; all of it at the end. */
  flush(all: boolean): void {
    const end = all ? this.waiting.length : Math.max(this.waiting.lastIndexOf("\n"), ...[". ", "! ", "? ", ": "].map((s) => this.waiting.lastIndexOf(s))) + 1;
    const piece = this.waiting.slice(0, end).replace(/```[\s\S]*?(```|$)/g, " code ").replace(/[*_#`>|]/g, "").trim();
    this.waiting = this.waiting.slice(end);
    if (piece) this.put(piece.length > 1000 ? `${piece.slice(0, 1000)}…` : piece);
  }

  private put(text: string): void {
    this.el.append(h("div", {}, text));
    while (this.el.childElementCount > 20) this.el.firstElementChild?.remove();
  }
}
