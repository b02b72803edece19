/** The files of the nth of m parts ("n/m") that take about equally long: each file goes to the lightest part so far, the heaviest file first. */
export function part(weighed, which) {
  const [n, m] = which.split("/").map(Number);
  if (!(Number.isInteger(n) && Number.isInteger(m) && n >= 1 && n <= m)) throw new Error(`PILLION_SHARD=${which}: say 1/2 or 2/2`);
  const parts = Array.from({ length: m }, () => ({ files: [], weight: 0 }));
  for (const [file, weight] of [...weighed].sort((a, b) => b[1] - a[1])) {
    const least = parts.reduce((a, b) => (b.weight < a.weight ? b : a));
    least.files.push(file);
    least.weight += weight;
  }
  return parts[n - 1].files.sort();
}
