// Jupyter notebooks (.ipynb, nbformat 4) as the text that an agent edits and the cells that a person sees.
// https://nbformat.readthedocs.io/en/latest/format_description.html

/** A cell as the file has it; `source` is one string or one of each line. */
interface FileCell {
  id?: string;
  cell_type: string;
  source: string | string[];
  outputs?: unknown[];
  metadata?: Record<string, unknown>;
}

export interface NewCell {
  kind: "code" | "markdown" | "raw";
  source: string;
  id: string | undefined;
  metadata: Record<string, unknown>;
  /** The cell, from 0, whose outputs it keeps. */
  outputsOf: number | undefined;
}

/** Another source for one cell, or other cells in the place of some. Cells are counted from 0, as they are before the change. */
export type CellChange = { kind: "source"; at: number; source: string } | { kind: "replace"; start: number; count: number; cells: NewCell[] };

/** What leads from one text of a notebook to another, cell by cell, in their order; or why cells alone cannot say it. */
export function cellChanges(before: string, after: string): CellChange[] | string {
  const old = parse(before);
  const now = parse(after);
  if (!old || !now) return "the result is not a notebook";
  if (!same(old.rest, now.rest)) return "only the cells of an open notebook can be changed, not its metadata";
  const [a, b] = [old.cells, now.cells];
  let start = 0;
  while (start < a.length && start < b.length && same(a[start], b[start])) start++;
  let end = 0; // cells that are the same at the end
  while (end < a.length - start && end < b.length - start && same(a[a.length - 1 - end], b[b.length - 1 - end])) end++;
  // the same number of cells: each takes the place of one, and keeps its outputs while only its source changes
  const pairs = a.length === b.length ? b.slice(start, b.length - end).map((_, i) => [start + i, 1] as const) : [[start, a.length - start - end] as const];
  const changes: CellChange[] = [];
  for (const [at, count] of pairs) {
    const was = a[at];
    const is = b[at];
    if (count === 1 && was && is && a.length === b.length) {
      if (same(was, is)) continue;
      if (same({ ...was, source: "" }, { ...is, source: "" })) {
        changes.push({ kind: "source", at, source: textOf(is) });
        continue;
      }
    }
    const cells = (a.length === b.length ? b.slice(at, at + 1) : b.slice(start, b.length - end)).map((c) => newCell(c, a));
    if (cells.some((c) => c === undefined)) return "the outputs of a cell in an open notebook cannot be written";
    changes.push({ kind: "replace", start: at, count, cells: cells.flatMap((c) => c ?? []) });
  }
  return changes;
}

/** The lines, from 0, in which the cells of a notebook's text begin; none where it is no notebook. */
export function cellLines(text: string): number[] {
  const lines: number[] = [];
  let line = 0;
  let depth = 0;
  let key = ""; // the last string in the outermost object: before an array it is that array's name
  let inCells = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (c === "\n") line++;
    else if (c === '"') {
      const from = i + 1;
      for (i++; i < text.length && text[i] !== '"'; i++) if (text[i] === "\\") i++;
      if (depth === 1) key = text.slice(from, i);
    } else if (c === "{" || c === "[") {
      if (depth === 1) inCells = c === "[" && key === "cells";
      if (depth === 2 && inCells && c === "{") lines.push(line);
      depth++;
    } else if (c === "}" || c === "]") depth--;
  }
  return lines;
}

function newCell(c: FileCell, old: readonly FileCell[]): NewCell | undefined {
  const from = old.findIndex((o) => (c.id !== undefined && o.id === c.id) || (c.id === undefined && textOf(o) === textOf(c)));
  const outputs = c.outputs ?? [];
  const kept = from >= 0 && same(old[from]?.outputs ?? [], outputs);
  if (!kept && outputs.length > 0) return undefined;
  const kind = c.cell_type === "markdown" || c.cell_type === "raw" ? c.cell_type : "code";
  return { kind, source: textOf(c), id: c.id, metadata: c.metadata ?? {}, outputsOf: kept ? from : undefined };
}

function textOf(c: FileCell): string {
  return typeof c.source === "string" ? c.source : c.source.join("");
}

function parse(text: string): { cells: FileCell[]; rest: unknown } | undefined {
  try {
    const { cells, ...rest } = JSON.parse(text) as { cells?: unknown };
    const isCell = (c: unknown): c is FileCell => {
      const { cell_type: type, source } = (c ?? {}) as Partial<FileCell>;
      return typeof type === "string" && (typeof source === "string" || (Array.isArray(source) && source.every((l) => typeof l === "string")));
    };
    return Array.isArray(cells) && cells.every(isCell) ? { cells, rest } : undefined;
  } catch {
    return undefined;
  }
}

/** Whether two values of JSON are equal, whatever the order of their keys. */
function same(a: unknown, b: unknown): boolean {
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [x, y] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const keys = Object.keys(x);
  return keys.length === Object.keys(y).length && keys.every((k) => k in y && same(x[k], y[k]));
}
