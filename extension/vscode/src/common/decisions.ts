/**
 * What the person has decided about the hunks of a change set so far: the one place where that is kept. The panel's card, the
 * lenses and the answer read it. The document of a proposal is only where the person types: what is read from it comes here
 * (host/review.ts), and nothing is asked of the document again. No vscode, no DOM.
 */
import type { HunkDecision } from "./protocol";

/** What is known of one hunk. A hunk that was never touched has an empty state. */
export interface HunkState {
  /** Undefined: undecided. */
  readonly choice?: "accept" | "reject" | undefined;
  /** The person's own lines, without line ends, where they typed into the hunk. */
  readonly lines?: readonly string[] | undefined;
  /** For the model; it goes along whatever is decided. */
  readonly comment?: string | undefined;
}

const untouched: HunkState = {};

export class Decisions {
  private readonly states = new Map<string, HunkState>();

  of(hunkId: string): HunkState {
    return this.states.get(hunkId) ?? untouched;
  }

  /** How many hunks are accepted or rejected. */
  get decided(): number {
    let n = 0;
    for (const s of this.states.values()) if (s.choice) n++;
    return n;
  }

  /** Whether accepting the rest would write the proposal as it was made. */
  get empty(): boolean {
    for (const s of this.states.values()) if (s.choice === "reject" || s.lines) return false;
    return true;
  }

  /** Changes the named parts of a hunk's state; undefined clears one. Returns whether anything is different now. */
  set(hunkId: string, part: HunkState): boolean {
    const was = this.of(hunkId);
    const now = { ...was, ...part };
    const equal = was.choice === now.choice && was.comment === now.comment && JSON.stringify(was.lines) === JSON.stringify(now.lines);
    if (!equal) this.states.set(hunkId, now);
    return !equal;
  }

  /**
   * The decisions as the wire wants them when everything undecided is accepted, or rejected. A hunk without a word of its own
   * is left out: the answer's option says what becomes of it.
   */
  answer(acceptRest: boolean): Record<string, HunkDecision> {
    const out: Record<string, HunkDecision> = {};
    for (const [id, s] of this.states) {
      const accepted = s.choice ? s.choice === "accept" : acceptRest;
      // lines that were typed into a hunk which is then rejected are nobody's decision
      if (!s.choice && !s.comment && !(accepted && s.lines)) continue;
      const comment = s.comment ? { comment: s.comment } : {};
      if (!accepted) out[id] = { decision: "reject", ...comment };
      else if (s.lines) out[id] = { decision: "edit", newLines: [...s.lines], ...comment };
      else out[id] = { decision: "accept", ...comment };
    }
    return out;
  }
}
