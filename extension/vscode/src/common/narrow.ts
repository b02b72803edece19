/** Converts unknown values of the wire to types; each message passes through these functions first. */

export type Tree = Record<string, unknown>;

export function tree(v: unknown): Tree | undefined {
  return typeof v === "object" && v !== null && !Array.isArray(v) ? (v as Tree) : undefined;
}

export function list(v: unknown): unknown[] {
  return Array.isArray(v) ? v : [];
}

export function text(v: unknown): string | undefined {
  return typeof v === "string" ? v : undefined;
}

export function number(v: unknown): number | undefined {
  return typeof v === "number" && Number.isFinite(v) ? v : undefined;
}

export function texts(v: unknown): string[] {
  return list(v).filter((x): x is string => typeof x === "string");
}

/** `_meta.pillion` of an object. */
export function pillion(v: unknown): Tree {
  return tree(tree(tree(v)?.["_meta"])?.["pillion"]) ?? {};
}

/** An RFC 3339 time as milliseconds since 1970. */
export function time(v: unknown): number | undefined {
  const t = typeof v === "string" ? Date.parse(v) : NaN;
  return Number.isNaN(t) ? undefined : t;
}

/** The value if it is one of the words, else the default. */
export function word<T extends string>(v: unknown, words: readonly T[], other: T): T {
  return words.includes(v as T) ? (v as T) : other;
}
