// Compares the releases of the extension and of the program. Before 1.0 a minor version may change settings and methods, so a
// difference there matters; a patch does not.

/** How the program's release differs from the extension's; undefined: it does not, or one of them names none. */
export function compareReleases(program: string, extension: string): "older" | "newer" | undefined {
  const [a, b] = [release(program), release(extension)];
  if (!a || !b) return undefined;
  for (const i of [0, 1] as const) {
    if (a[i] !== b[i]) return a[i] < b[i] ? "older" : "newer";
  }
  return undefined;
}

/** Major and minor of a version such as 0.2.0 or 0.2.0-dev.g1a2b3c. */
function release(version: string): [number, number] | undefined {
  const parts = /^v?(\d+)\.(\d+)\.\d+(?:[-+.]|$)/.exec(version);
  return parts ? [Number(parts[1]), Number(parts[2])] : undefined;
}
