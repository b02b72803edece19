/** Line diffs for cards: the changed lines with some context, limited in time and size. */
import type { DiffLine } from "./view";

/** Lines of context around a change. */
const around = 3;
/** Limit of the exact search, in edits. With more edits the middle part that differs counts as replaced. */
const maxEdits = 1000;
/** Lines of a diff that a card keeps. */
const maxLines = 600;
/** Characters that are kept of one line. */
const maxWidth = 2000;

export interface TextDiff {
  lines: DiffLine[];
  more: number;
  added: number;
  removed: number;
}

export function diffTexts(before: string, after: string): TextDiff {
  const a = splitLines(before);
  const b = splitLines(after);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const script = edits(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  return render(a, b, head, script);
}

function splitLines(text: string): string[] {
  if (text === "") return [];
  const lines = text.split("\n");
  if (lines[lines.length - 1] === "") lines.pop();
  return lines;
}

/** Runs of kept, removed and added lines, by Myers' greedy search. */
export function edits(a: string[], b: string[]): { sign: " " | "-" | "+"; count: number }[] {
  const replaced = () => {
    const all: { sign: " " | "-" | "+"; count: number }[] = [];
    if (a.length) all.push({ sign: "-", count: a.length });
    if (b.length) all.push({ sign: "+", count: b.length });
    return all;
  };
  if (a.length === 0 || b.length === 0) return replaced();
  const limit = Math.min(maxEdits, a.length + b.length);
  const trace: Int32Array[] = [];
  let v = new Int32Array(2 * limit + 3);
  const mid = limit + 1;
  let found = -1;
  search: for (let d = 0; d <= limit; d++) {
    trace.push(v.slice(mid - d - 1, mid + d + 2));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && at(v, mid + k - 1) < at(v, mid + k + 1));
      let x = down ? at(v, mid + k + 1) : at(v, mid + k - 1) + 1;
      let y = x - k;
      while (x < a.length && y < b.length && a[x] === b[y]) {
        x++;
        y++;
      }
      v[mid + k] = x;
      if (x >= a.length && y >= b.length) {
        found = d;
        break search;
      }
    }
  }
  if (found < 0) return replaced();
  const back: (" " | "-" | "+")[] = [];
  let x = a.length;
  let y = b.length;
  for (let d = found; d > 0; d--) {
    const row = trace[d] as Int32Array;
    const k = x - y;
    const down = k === -d || (k !== d && at(row, k - 1 + d + 1) < at(row, k + 1 + d + 1));
    const from = down ? k + 1 : k - 1;
    const px = at(row, from + d + 1);
    const py = px - from;
    while (x > px && y > py && x > 0 && y > 0 && a[x - 1] === b[y - 1]) {
      back.push(" ");
      x--;
      y--;
    }
    back.push(down ? "+" : "-");
    x = px;
    y = py;
  }
  while (x > 0) {
    back.push(" ");
    x--;
  }
  const out: { sign: " " | "-" | "+"; count: number }[] = [];
  for (const sign of back.reverse()) {
    const last = out[out.length - 1];
    if (last?.sign === sign) last.count++;
    else out.push({ sign, count: 1 });
  }
  v = new Int32Array(0);
  return out;
}

function at(v: Int32Array, i: number): number {
  return v[i] ?? 0;
}

function render(a: string[], b: string[], head: number, script: { sign: " " | "-" | "+"; count: number }[]): TextDiff {
  const out: DiffLine[] = [];
  let more = 0;
  let added = 0;
  let removed = 0;
  const push = (sign: DiffLine["sign"], text: string) => {
    if (out.length >= maxLines) more++;
    else out.push({ sign, text: text.length > maxWidth ? text.slice(0, maxWidth) + "…" : text });
  };
  let i = head;
  let j = head;
  let shown = 0; // lines of a that were added to the result
  for (const run of script) {
    if (run.sign === " ") {
      i += run.count;
      j += run.count;
      continue;
    }
    if (i > shown || out.length === 0) {
      // the lines after the last change, then those before this one
      for (const end = Math.min(shown + around, i); out.length > 0 && shown < end; shown++) push(" ", a[shown] ?? "");
      const from = Math.max(shown, i - around);
      if (from > shown || out.length === 0) push("@", `@@ line ${String(j - (i - from) + 1)} @@`);
      for (shown = from; shown < i; shown++) push(" ", a[shown] ?? "");
    }
    if (run.sign === "-") {
      for (const end = i + run.count; i < end; i++) push("-", a[i] ?? "");
      removed += run.count;
      shown = i;
    } else {
      for (const end = j + run.count; j < end; j++) push("+", b[j] ?? "");
      added += run.count;
    }
  }
  for (const end = Math.min(shown + around, a.length); out.length > 0 && shown < end; shown++) push(" ", a[shown] ?? "");
  return { lines: out, more, added, removed };
}
