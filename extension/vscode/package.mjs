// Makes the .vsix of this platform, or of others for which a binary is given.
//
//   node extension/vscode/package.mjs                                  this platform, with bin/pillion
//   node extension/vscode/package.mjs linux-arm64=dist/pillion-arm64   another one, with a binary built elsewhere
//   node extension/vscode/package.mjs none                             any platform, without a binary (it is found on the PATH)
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { existsSync, mkdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { root, stage, version } from "./stage.mjs";
import { wanted } from "./target.mjs";

const require = createRequire(import.meta.url);

/** The platform's name as the marketplace has it. */
export const here = `${process.platform}-${process.arch}`;

/** Packs the bundles as they are, with a binary or without; returns the package's path. */
export function makeVsix({ target, binary, folder }) {
  const staged = stage(join(folder, `vsix-${target}`), { binary, windows: target.startsWith("win32") });
  const out = join(folder, target === "none" ? `pillion-${version()}.vsix` : `pillion-${target}-${version()}.vsix`);
  const args = ["package", "--no-dependencies", "--skip-license", "--out", out, ...(target === "none" ? [] : ["--target", target])];
  execFileSync(process.execPath, [require.resolve("@vscode/vsce/vsce"), ...args], { cwd: staged, stdio: ["ignore", "ignore", "inherit"] });
  rmSync(staged, { recursive: true });
  return out;
}

/** The licences of what a binary holds go into the package with it. scripts/dist.sh has written them for its own. */
function noticesBeside(binary, target) {
  const file = join(dirname(binary), "THIRD-PARTY-NOTICES.txt");
  const arch = { x64: "amd64", arm64: "arm64" }[target.split("-").at(-1)] ?? "amd64";
  if (existsSync(file) && statSync(file).mtimeMs >= statSync(binary).mtimeMs) return;
  writeFileSync(file, execFileSync(join(root, "scripts/notices.sh"), [arch], { maxBuffer: 64 << 20 }));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const args = process.argv.length > 2 ? process.argv.slice(2) : [`${here}=${join(root, "bin", process.platform === "win32" ? "pillion.exe" : "pillion")}`];
  let all;
  try {
    all = args.map(wanted);
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
  execFileSync(process.execPath, [join(root, "extension/vscode/build.mjs"), "--production"], { stdio: "inherit" });
  mkdirSync(join(root, "dist"), { recursive: true });
  for (const { target, binary } of all) {
    if (binary) noticesBeside(binary, target);
    const out = makeVsix({ target, binary, folder: join(root, "dist") });
    console.log(`${out} ${(statSync(out).size / 1e6).toFixed(1)} MB`);
  }
}
