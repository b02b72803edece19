// A proposal under review: which lines of the edited right side belong to which hunk, and what the person decided by
// editing. Everything is computed from the texts alone, so undo, redo and a closed editor need no bookkeeping.
import { edits } from "./diff";
import type { Hunk } from "./protocol";

export interface ReviewedHunk {
  id: string;
  /** First line of the hunk on the present right side, from 0. */
  start: number;
  /** The hunk's present lines, without line ends. */
  lines: string[];
  /** The lines before the change. */
  old: string[];
  /** The proposed lines. */
  proposed: string[];
  /** Whether the lines are as proposed, restored to the old lines, or edited by the person. */
  kind: "proposed" | "reverted" | "edited";
}

export interface Reviewed {
  hunks: ReviewedHunk[];
  /** Whether the person also changed lines outside the hunks. */
  outside: boolean;
}

export function reviewed(base: string, proposed: string, hunks: readonly Hunk[], current: string): Reviewed {
  const before = linesOf(base);
  const then = linesOf(proposed);
  const now = linesOf(current);
  const areas = hunks.map((h) => ({ id: h.id, from: first(h.newStart, h.newLines), to: first(h.newStart, h.newLines) + h.newLines, old: slice(before, h.oldStart, h.oldLines) }));
  const plain = current === proposed ? areas.map(() => true) : whole(then, now, areas);
  if (plain) {
    let shift = 0;
    const out = areas.map((a, i): ReviewedHunk => {
      const was = then.slice(a.from, a.to);
      const lines = plain[i] ? was : a.old;
      const start = a.from + shift;
      shift += lines.length - was.length;
      return { id: a.id, start, lines, old: a.old, proposed: was, kind: plain[i] ? "proposed" : "reverted" };
    });
    return { hunks: out, outside: false };
  }
  const blocks = blocksOf(then, now).map((b) => slide(b, then, now, areas));
  const out = areas.map((a): ReviewedHunk => {
    const start = mapStart(a.from, blocks);
    const lines = now.slice(start, Math.max(start, mapEnd(a.to, blocks)));
    const was = then.slice(a.from, a.to);
    return { id: a.id, start, lines, old: a.old, proposed: was, kind: same(lines, was) ? "proposed" : same(lines, a.old) ? "reverted" : "edited" };
  });
  return { hunks: out, outside: blocks.length > 0 && !same(rebuilt(then, areas, out), now) };
}

/** The right side with only the given hunks applied. */
export function textWith(base: string, hunks: readonly Hunk[], lines: (id: string) => readonly string[] | undefined): string {
  const before = linesOf(base);
  const out: string[] = [];
  let at = 0;
  for (const h of hunks) {
    const from = first(h.oldStart, h.oldLines);
    push(out, before, at, from);
    const chosen = lines(h.id);
    if (chosen) out.push(...chosen);
    else push(out, before, from, from + h.oldLines);
    at = from + h.oldLines;
  }
  push(out, before, at, before.length);
  return out.length > 0 ? out.join("\n") + "\n" : "";
}

/** The differences of two texts, as hunks of a change. */
export function hunksOf(base: string, proposed: string): Hunk[] {
  const start = (from: number, lines: number) => (lines > 0 ? from + 1 : from);
  return blocksOf(linesOf(base), linesOf(proposed)).map(({ a0, a1, b0, b1 }, i) => ({ id: `h${i + 1}`, oldStart: start(a0, a1 - a0), oldLines: a1 - a0, newStart: start(b0, b1 - b0), newLines: b1 - b0 }));
}

/** Lines without their ends; a final line end does not add an empty line. */
export function linesOf(text: string): string[] {
  if (text === "") return [];
  const lines = text.split(/\r?\n/);
  if (lines.at(-1) === "") lines.pop();
  return lines;
}

interface Area {
  from: number;
  to: number;
}

/** Lines [a0,a1) of the proposal became lines [b0,b1). */
interface Block {
  a0: number;
  a1: number;
  b0: number;
  b1: number;
}

// The wire counts from 1 and names the line before an insertion. That is the line after it, counted from 0.
function first(start: number, lines: number): number {
  return lines > 0 ? start - 1 : start;
}

function slice(all: string[], start: number, lines: number): string[] {
  const from = first(start, lines);
  return all.slice(from, from + lines);
}

function blocksOf(a: string[], b: string[]): Block[] {
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const out: Block[] = [];
  let i = head;
  let j = head;
  let open: Block | undefined;
  for (const run of edits(a.slice(head, a.length - tail), b.slice(head, b.length - tail))) {
    if (run.sign === " ") {
      open = undefined;
      i += run.count;
      j += run.count;
      continue;
    }
    if (!open) out.push((open = { a0: i, a1: i, b0: j, b1: j }));
    if (run.sign === "-") open.a1 = i += run.count;
    else open.b1 = j += run.count;
  }
  return out;
}

/** An insertion or deletion among equal lines can be placed in several ways; choose the one inside a hunk. */
function slide(block: Block, a: string[], b: string[], areas: readonly Area[]): Block {
  const inside = (x: Block) => areas.some((h) => h.from <= x.a0 && x.a1 <= h.to);
  if (inside(block) || (block.a0 < block.a1 && block.b0 < block.b1)) return block;
  const [text, from, to] = block.a0 < block.a1 ? [a, block.a0, block.a1] : [b, block.b0, block.b1];
  const moved = (by: number): Block => ({ a0: block.a0 + by, a1: block.a1 + by, b0: block.b0 + by, b1: block.b1 + by });
  for (let by = 1; to + by <= text.length && text[from + by - 1] === text[to + by - 1]; by++) if (inside(moved(by))) return moved(by);
  for (let by = 1; from - by >= 0 && text[from - by] === text[to - by]; by++) if (inside(moved(-by))) return moved(-by);
  return block;
}

/**
 * Reads the text as one in which each hunk has either all its proposed lines (true) or all its old lines (false), so
 * that nothing must be guessed. Undefined if the text is not of this form.
 */
function whole(then: string[], now: string[], areas: readonly (Area & { old: string[] })[]): boolean[] | undefined {
  const matches = (at: number, lines: readonly string[], from: number, to: number) => {
    for (let i = from; i < to; i++) if (now[at + i - from] !== lines[i]) return false;
    return at + to - from <= now.length;
  };
  const chosen: boolean[] = [];
  const places: number[] = []; // where each hunk begins
  const failed = new Set<string>();
  let i = 0;
  let at = 0;
  let tryOld = false;
  const first = areas[0];
  if (!matches(0, then, 0, first?.from ?? then.length)) return undefined;
  at = first?.from ?? then.length;
  for (;;) {
    if (i === areas.length) {
      if (at === now.length) return chosen;
    } else if (!failed.has(`${i} ${at}`)) {
      const a = areas[i]!;
      const next = areas[i + 1]?.from ?? then.length;
      let taken = false;
      for (const proposed of tryOld ? [false] : [true, false]) {
        const length = proposed ? a.to - a.from : a.old.length;
        const fits = proposed ? matches(at, then, a.from, a.to) : matches(at, a.old, 0, a.old.length);
        if (!fits || !matches(at + length, then, a.to, next)) continue;
        chosen[i] = proposed;
        places[i] = at;
        at += length + next - a.to;
        i++;
        taken = true;
        break;
      }
      tryOld = false;
      if (taken) continue;
      failed.add(`${i} ${at}`);
    }
    // go back to the last hunk that was read as proposed
    do {
      i--;
      if (i < 0) return undefined;
      at = places[i]!;
      if (chosen[i] === false) failed.add(`${i} ${at}`);
    } while (chosen[i] === false);
    tryOld = true;
  }
}

function mapStart(line: number, blocks: readonly Block[]): number {
  let shift = 0;
  for (const x of blocks) {
    if (x.a0 < line && line < x.a1) return Math.min(x.b0 + (line - x.a0), x.b1);
    if (x.a1 <= line && x.a0 < line) shift = x.b1 - x.a1;
  }
  return line + shift;
}

function mapEnd(line: number, blocks: readonly Block[]): number {
  let shift = 0;
  for (const x of blocks) {
    if (x.a0 < line && line < x.a1) return Math.min(x.b0 + (line - x.a0), x.b1);
    if (x.a1 <= line) shift = x.b1 - x.a1;
  }
  return line + shift;
}

function rebuilt(then: string[], areas: readonly Area[], hunks: readonly ReviewedHunk[]): string[] {
  const out: string[] = [];
  let at = 0;
  areas.forEach((a, i) => {
    push(out, then, at, a.from);
    out.push(...(hunks[i]?.lines ?? []));
    at = a.to;
  });
  push(out, then, at, then.length);
  return out;
}

function push(out: string[], from: readonly string[], start: number, end: number): void {
  for (let i = start; i < end && i < from.length; i++) out.push(from[i] ?? "");
}

function same(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((line, i) => line === b[i]);
}

/**
 * The lines of a hunk (counted from 0 in it) that differ from the old ones only in white space at their beginning or
 * end. By default VS Code's diff editor does not mark these, so a re-indented line would look unchanged.
 */
export function blankChanges(h: Pick<ReviewedHunk, "old" | "lines">): number[] {
  const out: number[] = [];
  let i = 0;
  let j = 0;
  const trimmed = (lines: string[]) => lines.map((l) => l.trim());
  for (const run of edits(trimmed(h.old), trimmed(h.lines))) {
    for (let n = 0; run.sign === " " && n < run.count; n++) if (h.old[i + n] !== h.lines[j + n]) out.push(j + n);
    if (run.sign !== "+") i += run.count;
    if (run.sign !== "-") j += run.count;
  }
  return out;
}
