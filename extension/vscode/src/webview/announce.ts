/** Gives streamed text to a screen reader: in whole sentences, each once, and not faster than one can listen. */
import { h } from "./dom";

const pause = 1500; // ms between two pieces
const longest = 1000; // characters of one piece

export class Announcer {
  readonly el = h("div", { class: "sr", role: "log", aria: { live: "polite", relevant: "additions" } });
  /** The entry that is streamed, and how much of its text was announced. */
  private id: string | undefined;
  private taken = 0;
  private waiting = "";
  /** The text is inside a block of code, which is named and not read. */
  private code = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  say(text: string): void {
    this.flush(true);
    this.put(text);
  }

  /** The present text of an answer; its new part is announced. */
  stream(id: string, text: string): void {
    if (id !== this.id) this.begin(id, 0);
    if (text.length <= this.taken) return;
    this.waiting += text.slice(this.taken);
    this.taken = text.length;
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      this.flush(false);
    }, pause);
  }

  /** The length of an entry's text before announcing began. */
  begin(id: string | undefined, taken: number): void {
    this.flush(true);
    this.id = id;
    this.taken = taken;
    this.code = false;
  }

  /** The text that was not announced yet, up to the last end of a sentence; all of it at the end. */
  flush(all: boolean): void {
    const end = all ? this.waiting.length : sentences(this.waiting);
    const piece = this.spoken(this.waiting.slice(0, end));
    this.waiting = this.waiting.slice(end);
    if (piece) this.put(piece.length > longest ? `${piece.slice(0, longest)}…` : piece);
  }

  /** The text without Markdown; for a block of code only a note that there is one. */
  private spoken(text: string): string {
    const out: string[] = [];
    for (const line of text.split("\n")) {
      if (/^\s*(```|~~~)/.test(line)) {
        this.code = !this.code;
        if (this.code) out.push("Code.");
      } else if (!this.code) out.push(line.replace(/[*_#`>|]/g, "").trim());
    }
    return out.filter(Boolean).join("\n");
  }

  private put(text: string): void {
    this.el.append(h("div", {}, text));
    while (this.el.childElementCount > 20) this.el.firstElementChild?.remove();
  }
}

/** The end of the last whole sentence or line. A line that may become a fence is not cut. */
function sentences(text: string): number {
  const line = text.lastIndexOf("\n") + 1;
  if (/^\s*[`~]/.test(text.slice(line))) return line;
  return Math.max(line, ...[". ", "! ", "? ", ": "].map((s) => text.lastIndexOf(s) + 1));
}
