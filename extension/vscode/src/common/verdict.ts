/** What of a problem decides how it is counted. */
interface Counted {
  severity: string;
}

/** How many errors a change introduces and fixes, and in words how many lesser problems; those are counted apart, because analysers stay silent about code that does not build. */
export function countVerdict(v: { fixed: readonly Counted[]; introduced: readonly Counted[] }): { fixed: number; introduced: number; lesser: string } {
  const errors = (list: readonly Counted[]) => list.filter((p) => p.severity === "error").length;
  const fixed = errors(v.fixed);
  const introduced = errors(v.introduced);
  const lesser = [
    [v.fixed.length - fixed, "fixed"],
    [v.introduced.length - introduced, "introduced"],
  ] as const;
  const words = lesser.filter(([n]) => n > 0).map(([n, what]) => `${n === 1 ? "1 warning or hint" : `${String(n)} warnings or hints`} ${what}`);
  return { fixed, introduced, lesser: words.join(", ") };
}

/** The verdict in one line, as the sidecar words it: "Fixes 0 errors, introduces 1; 2 warnings or hints fixed". */
export function verdictHeadline(v: { fixed: readonly Counted[]; introduced: readonly Counted[] }): string {
  const { fixed, introduced, lesser } = countVerdict(v);
  return `Fixes ${fixed === 1 ? "1 error" : `${String(fixed)} errors`}, introduces ${String(introduced)}${lesser ? `; ${lesser}` : ""}`;
}
