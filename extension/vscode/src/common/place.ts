/** Where code of an answer belongs in a file: a declaration replaces the one with the same beginning. */

export interface Place {
  /** Lines of the file, from 0, the last one included. */
  from: number;
  to: number;
  /** The indentation to add before each line of the code, so that it is indented like what it replaces. */
  indent: string;
}

/** The lines that the code replaces; undefined if no line of the file has the same beginning, or more than one. */
export function placeOf(file: readonly string[], code: readonly string[]): Place | undefined {
  const head = code.findIndex((l) => l.trim() !== "");
  const first = code[head];
  const last = [...code].reverse().find((l) => l.trim() !== "");
  if (first === undefined || last === undefined) return undefined;
  const starts = file.flatMap((l, i) => (l.trim() === first.trim() ? [i] : []));
  const from = starts[0];
  if (from === undefined || starts.length > 1) return undefined;
  const have = margin(file[from] ?? "");
  const own = margin(first);
  const indent = have.startsWith(own) ? have.slice(own.length) : "";
  const to = endOf(file, from, code.slice(head), last);
  return to === undefined ? undefined : { from, to, indent };
}

function endOf(file: readonly string[], from: number, code: readonly string[], last: string): number | undefined {
  const depth = margin(code[0] ?? "").length;
  const fileDepth = margin(file[from] ?? "").length;
  const body = code.slice(1).filter((l) => l.trim() !== "");
  if (body.length > 0 && margin(last).length <= depth) {
    // closed by a line of its own, with the same indentation as the first
    for (let i = from + 1; i < file.length; i++) {
      const line = file[i] ?? "";
      if (line.trim() === "" || margin(line).length > fileDepth) continue;
      return line.trim() === last.trim() ? i : undefined;
    }
    return undefined;
  }
  if (body.length > 0) {
    // as long as the lines are indented further
    let to = from;
    for (let i = from + 1; i < file.length; i++) {
      const line = file[i] ?? "";
      if (line.trim() === "") continue;
      if (margin(line).length <= fileDepth) break;
      to = i;
    }
    return to;
  }
  return from;
}

function margin(line: string): string {
  return /^[ \t]*/.exec(line)?.[0] ?? "";
}
