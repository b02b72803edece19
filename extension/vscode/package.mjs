// Makes the .vsix of this platform, or of others for which a binary is given.
//
//   node extension/vscode/package.mjs                                  this platform, with bin/pillion
//   node extension/vscode/package.mjs linux-arm64=dist/pillion-arm64   another one, with a binary built elsewhere
//   node extension/vscode/package.mjs none                             any platform, without a binary (it is found on the PATH)
import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { root, stage } from "./stage.mjs";

const require = createRequire(import.meta.url);
const { version } = require("../../package.json");
const platforms = { linux: "linux", darwin: "darwin", win32: "win32" };
const here = `${platforms[process.platform] ?? process.platform}-${process.arch}`;
const wanted = process.argv.length > 2 ? process.argv.slice(2) : [`${here}=${join(root, "bin", process.platform === "win32" ? "pillion.exe" : "pillion")}`];
const vsce = require.resolve("@vscode/vsce/vsce");

execFileSync(process.execPath, [join(root, "extension/vscode/build.mjs"), "--production"], { stdio: "inherit" });
mkdirSync(join(root, "dist"), { recursive: true });
for (const one of wanted) {
  const [target, binary] = one.split("=");
  const folder = stage(join(root, "dist", `vsix-${target}`), { binary, windows: target.startsWith("win32") });
  const out = join(root, "dist", target === "none" ? `pillion-${version}.vsix` : `pillion-${target}-${version}.vsix`);
  const args = ["package", "--no-dependencies", "--skip-license", "--out", out, ...(target === "none" ? [] : ["--target", target])];
  execFileSync(process.execPath, [vsce, ...args], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
  rmSync(folder, { recursive: true });
  console.log(`${out} ${(statSync(out).size / 1e6).toFixed(1)} MB`);
}
