// The changes of a turn for the gutter: the text to compare with, and which hunk a place belongs to.
import { linesOf, reviewed } from "./hunks";
import type { TurnFile, TurnHunk } from "./protocol";

/**
 * The text that a file is compared with: the text before the turn, with the hunks that the person kept. Hunks that were
 * kept or undone are then no differences.
 */
export function comparedWith(file: TurnFile): string | undefined {
  if (file.binary || (file.baseText == null && file.kind !== "create")) return undefined;
  const base = linesOf(file.baseText ?? "");
  const now = linesOf(file.text ?? "");
  const out: string[] = [];
  let at = 0;
  for (const h of file.hunks) {
    const from = h.oldLines > 0 ? h.oldStart - 1 : h.oldStart;
    out.push(...base.slice(at, from));
    if (h.state === "kept") {
      const start = h.newLines > 0 ? h.newStart - 1 : h.newStart;
      out.push(...now.slice(start, start + h.newLines));
    } else out.push(...base.slice(from, from + h.oldLines));
    at = from + h.oldLines;
  }
  out.push(...base.slice(at));
  const eol = /\r\n/.test(file.baseText ?? file.text ?? "") ? "\r\n" : "\n";
  const ended = /\n$/.test(file.baseText ?? file.text ?? "\n");
  return out.length === 0 ? "" : out.join(eol) + (ended ? eol : "");
}

/** The open hunks that touch the given lines (from 1, both ends included; if the end is before the start, it is the
 * line before a deletion). */
export function hunksAt(file: TurnFile, first: number, last: number): TurnHunk[] {
  const end = Math.max(first, last);
  return file.hunks.filter((h) => {
    if (h.state !== "open") return false;
    const from = h.newStart;
    const to = h.newStart + Math.max(h.newLines - 1, 0);
    return from <= end && to >= first;
  });
}

export function openHunks(file: TurnFile): TurnHunk[] {
  return file.hunks.filter((h) => h.state === "open");
}

/** Hunks by change set, the latest first: changes are undone in the reverse order. */
export function byChange(hunks: readonly TurnHunk[]): [changeSet: string, hunks: string[]][] {
  const sets = new Map<string, string[]>();
  for (const m of hunks.flatMap((h) => h.members)) {
    const list = sets.get(m.changeSet) ?? [];
    if (!list.includes(m.hunk)) list.push(m.hunk);
    sets.set(m.changeSet, list);
  }
  return [...sets].reverse();
}

/** Where the open hunks are in a text that the person may have changed since. `start` counts lines from 0; a
 * deletion has no lines. */
export function placedHunks(file: TurnFile, current: string): { id: string; start: number; count: number }[] {
  const open = new Set(openHunks(file).map((h) => h.id));
  const placed = reviewed(file.baseText ?? "", file.text ?? "", file.hunks, current).hunks;
  return placed.filter((h) => open.has(h.id)).map(({ id, start, lines }) => ({ id, start, count: lines.length }));
}
