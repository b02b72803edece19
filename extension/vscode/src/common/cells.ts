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
  return cellRanges(text).map(([first]) => first);
}

/** The first and the last line, from 0, of each cell in a notebook's text; none where it is no notebook. */
function cellRanges(text: string): [first: number, last: number][] {
  const cells: [number, number][] = [];
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
      if (depth === 2 && inCells && c === "{") cells.push([line, line]);
      depth++;
    } else if (c === "}" || c === "]") {
      depth--;
      const cell = cells.at(-1);
      if (depth === 2 && inCells && cell) cell[1] = line;
    }
  }
  return cells;
}

/**
 * The hunks of a notebook's text that change a cell (from 0) but not its source, so its outputs or metadata; without a cell, the hunks
 * outside all cells. A hunk that changes both counts as a change of the source.
 */
export function besideSource<H extends { start: number; lines: readonly string[] }>(text: string, hunks: readonly H[], at: number | undefined): H[] {
  const meets = (h: H, first: number, last: number) => h.start <= last && h.start + Math.max(h.lines.length, 1) > first;
  const cells = cellRanges(text);
  const cell = at === undefined ? undefined : cells[at];
  if (at === undefined || !cell) return hunks.filter((h) => !cells.some(([first, last]) => meets(h, first, last)));
  const source = sourceRange(text, at);
  const lineOf = (offset: number) => text.slice(0, offset).split("\n").length - 1;
  return hunks.filter((h) => meets(h, ...cell) && !(source && meets(h, lineOf(source.start), lineOf(source.end))));
}

/**
 * A notebook's text in which one cell (from 0) has another source; undefined where the text is no notebook with that cell. All other
 * characters stay as they are, so that a source which is put back gives the lines that were there.
 */
export function withSource(text: string, at: number, source: string): string | undefined {
  const cell = parse(text)?.cells[at];
  const range = cell && sourceRange(text, at);
  if (!range) return undefined;
  if (typeof cell.source === "string") return text.slice(0, range.start) + JSON.stringify(source) + text.slice(range.end);
  const lines = source.replace(/\r\n/g, "\n").match(/[^\n]*\n|[^\n]+$/g) ?? [];
  // Each line is written as the lines there are: on a line of its own with their indentation, or all in one line.
  const key = /[^\n]*$/.exec(text.slice(0, range.start))?.[0] ?? "";
  const outer = /^\s*/.exec(key)?.[0] ?? "";
  const spread = text.slice(range.start, range.end).includes("\n") || /^\s*"source": $/.test(key);
  const inner = /^\[\s*\n([ \t]*)"/.exec(text.slice(range.start))?.[1] ?? `${outer}${outer.includes("\t") ? "\t" : outer.length % 3 === 0 ? " ".repeat(outer.length / 3) : "  "}`;
  const items = lines.map((l) => JSON.stringify(l));
  const list = items.length === 0 ? "[]" : spread ? `[\n${items.map((i) => inner + i).join(",\n")}\n${outer}]` : `[${items.join(text[range.start - 1] === " " ? ", " : ",")}]`;
  return text.slice(0, range.start) + list + text.slice(range.end);
}

/**
 * The place in a notebook's text of a place in a cell's source; all count from 0, characters in UTF-16. A character behind the end of its
 * line is that end; undefined where there is no such line.
 */
export function placeInText(text: string, at: number, line: number, character: number): { line: number; character: number } | undefined {
  const range = sourceRange(text, at);
  if (!range) return undefined;
  const place = (i: number) => ({ line: text.slice(0, i).split("\n").length - 1, character: i - text.lastIndexOf("\n", i - 1) - 1 });
  let inString = false;
  let l = 0;
  let c = 0;
  let end: number | undefined; // of what there is of the wanted line
  for (let i = range.start; i < range.end; i++) {
    if (!inString) {
      inString = text[i] === '"';
      continue;
    }
    if (l === line) {
      if (c === character && text[i] !== '"') return place(i); // after a quote the same line may go on, or the next one begin
      end = i;
    }
    if (text[i] === '"') inString = false;
    else if (text[i] === "\\") {
      i += text[i + 1] === "u" ? 5 : 1;
      if (text[i - 1] === "\\" && text[i] === "n") {
        if (l === line) return place(i - 1);
        l++;
        c = 0;
      } else c++;
    } else c++;
  }
  return end === undefined ? undefined : place(end);
}

/** Where the source of a cell (from 0) is in a notebook's text, as offsets of its value. */
function sourceRange(text: string, at: number): { start: number; end: number } | undefined {
  let depth = 0;
  let cell = -1;
  let keys: string[] = []; // by depth: the last string there, which before a value is its name
  let start: number | undefined;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    const wanted = cell === at && depth === 3 && keys[1] === "cells" && keys[3] === "source";
    if (c === '"') {
      const from = i + 1;
      for (i++; i < text.length && text[i] !== '"'; i++) if (text[i] === "\\") i++;
      if (wanted && start !== undefined) return { start: from - 1, end: i + 1 }; // one string
      keys[depth] = text.slice(from, i);
    } else if (c === ":" && wanted) start = i + 1;
    else if (c === "," && depth === 3) keys[3] = "";
    else if (c === "{" || c === "[") {
      if (wanted && start !== undefined && c === "[") start = i;
      depth++;
      keys = keys.slice(0, depth);
      if (depth === 3 && c === "{" && keys[1] === "cells") cell++;
    } else if (c === "}" || c === "]") {
      depth--;
      if (c === "]" && start !== undefined && cell === at && depth === 3 && keys[3] === "source") return { start, end: i + 1 };
    }
  }
  return undefined;
}

/** Whether a text is a notebook with cells. */
export function isNotebook(text: string): boolean {
  return parse(text) !== undefined;
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
