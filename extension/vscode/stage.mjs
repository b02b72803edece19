// Lays out what a package holds: the manifest without its development parts, the bundles, the pictures, the binary.
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

export const root = fileURLToPath(new URL("../..", import.meta.url));

/**
 * The version of a package made here: that of package.json on its tag, else that version followed by the commit, so that what was
 * built between two releases is not taken for the next one. scripts/dist.sh names its packages by the same rule.
 */
export function version() {
  const base = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).version;
  const git = (...args) => execFileSync("git", ["-C", root, ...args], { stdio: ["ignore", "pipe", "ignore"], encoding: "utf8" }).trim();
  try {
    const hash = git("rev-parse", "--short=12", "HEAD");
    try {
      if (git("describe", "--exact-match", "--tags", "--match", `v${base}`) === `v${base}`) return base;
    } catch {
      // no tag here
    }
    return `${base}-dev.g${hash}`; // g: a hash of digits only may not begin with 0 in a version
  } catch {
    return base; // sources without their history
  }
}

/** Writes the package's files to a folder. Without a binary the extension finds one by its setting or on the PATH. `dist`: bundles made elsewhere. */
export function stage(folder, { binary, windows = false, dist = join(root, "extension/vscode/dist") } = {}) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
  for (const key of ["devDependencies", "scripts", "private", "allowScripts"]) delete manifest[key];
  manifest.version = version();
  manifest.files = ["extension", ...(binary ? ["bin"] : []), "README.md", "CHANGELOG.md", "LICENSE.txt"];
  writeFileSync(join(folder, "package.json"), JSON.stringify(manifest, null, 2) + "\n");
  const copy = (from, to = from) => {
    mkdirSync(dirname(join(folder, to)), { recursive: true });
    cpSync(resolve(root, from), join(folder, to), { recursive: true, filter: (f) => !f.endsWith(".map") && !f.includes(join("dist", "test")) });
  };
  copy(dist, "extension/vscode/dist");
  copy("extension/vscode/media");
  copy("extension/vscode/README.md", "README.md");
  copy("extension/vscode/CHANGELOG.md", "CHANGELOG.md");
  copy("LICENSE", "LICENSE.txt");
  if (binary) {
    if (!existsSync(binary)) throw new Error(`${binary} is missing; run "make build" first`);
    const name = windows ? "pillion.exe" : "pillion";
    mkdirSync(join(folder, "bin"));
    cpSync(binary, join(folder, "bin", name), { dereference: true });
    chmodSync(join(folder, "bin", name), 0o755);
    const licences = join(dirname(binary), "THIRD-PARTY-NOTICES.txt"); // of what the program holds; scripts/dist.sh writes it
    if (existsSync(licences)) cpSync(licences, join(folder, "bin", "THIRD-PARTY-NOTICES.txt"));
  }
  return folder;
}
