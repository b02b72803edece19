/**
 * The person's decisions on the hunks of a change set. They are stored only here; the card in the panel, the lenses and
 * the answer read them. Text that the person types into the document of a proposal is read by host/review.ts, which
 * stores the decisions here. No vscode, no DOM.
 */
import type { HunkDecision } from "./protocol";

/** The state of one hunk. It is empty for a hunk that was never touched. */
export interface HunkState {
  /** Undefined: undecided. */
  readonly choice?: "accept" | "reject" | undefined;
  /** The person's own lines, without line ends, if they typed into the hunk. */
  readonly lines?: readonly string[] | undefined;
  /** A comment for the model; it is sent with any decision. */
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

  /** Whether accepting the other hunks would write the proposal unchanged. */
  get empty(): boolean {
    for (const s of this.states.values()) if (s.choice === "reject" || s.lines) return false;
    return true;
  }

  /** Changes the named parts of a hunk's state; undefined clears a part. Returns whether the state has changed. */
  set(hunkId: string, part: HunkState): boolean {
    const was = this.of(hunkId);
    const now = { ...was, ...part };
    const equal = was.choice === now.choice && was.comment === now.comment && JSON.stringify(was.lines) === JSON.stringify(now.lines);
    if (!equal) this.states.set(hunkId, now);
    return !equal;
  }

  /**
   * The decisions as the wire needs them when everything undecided is accepted, or rejected. A hunk without its own
   * decision is left out: the option of the answer decides it.
   */
  answer(acceptRest: boolean): Record<string, HunkDecision> {
    const out: Record<string, HunkDecision> = {};
    for (const [id, s] of this.states) {
      const accepted = s.choice ? s.choice === "accept" : acceptRest;
      // lines that were typed into a hunk which is then rejected are not part of the answer
      if (!s.choice && !s.comment && !(accepted && s.lines)) continue;
      const comment = s.comment ? { comment: s.comment } : {};
      if (!accepted) out[id] = { decision: "reject", ...comment };
      else if (s.lines) out[id] = { decision: "edit", newLines: [...s.lines], ...comment };
      else out[id] = { decision: "accept", ...comment };
    }
    return out;
  }
}
