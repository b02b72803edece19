// The licences of the npm packages that the bundles hold, found by what was bundled: notices(metafiles) → text.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "./stage.mjs";

/** Whose work it is, where a licence asks for more than its own text. */
const credits = {
  "@vscode/codicons": "Icons: Codicons by Microsoft Corporation, https://github.com/microsoft/vscode-codicons, under CC-BY-4.0, unchanged.",
};

export function notices(metafiles) {
  const packages = new Set();
  for (const { inputs } of metafiles) {
    for (const input of Object.keys(inputs)) {
      const found = /.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input);
      if (found) packages.add(found[0]);
    }
  }
  const parts = ["Pillion's extension holds these works of others, each under its own licence."];
  for (const folder of [...packages].sort()) {
    const { name, version, license } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"));
    const files = readdirSync(join(root, folder)).filter((f) => /^(licen[sc]e|copying|notice)/i.test(f)).sort();
    if (files.length === 0) throw new Error(`${name} (${license}) has no licence file in ${folder}`);
    parts.push("-".repeat(80), `${name} ${version} (${license})`);
    if (credits[name]) parts.push(credits[name]);
    parts.push(...files.map((f) => readFileSync(join(root, folder, f), "utf8").replace(/^\uFEFF/, "").trim()));
  }
  return parts.join("\n\n") + "\n";
}
