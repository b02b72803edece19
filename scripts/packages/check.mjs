// Checks what make.mjs wrote, against the archives and the rules of those who take it: check.mjs DIST VERSION
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const [dist, version] = process.argv.slice(2);
const read = (file) => readFileSync(join(dist, file), "utf8");
const wrong = [];
const must = (what, holds) => holds || wrong.push(what);
const archives = readdirSync(dist).filter((f) => /^pillion-.*-linux-.*\.tar\.gz$/.test(f));
const sum = (file) => createHash("sha256").update(readFileSync(join(dist, file))).digest("hex");

// The ACP registry's schema and the rules in its CONTRIBUTING.md.
const entry = JSON.parse(read("acp-registry/pillion/agent.json"));
must("agent.json: id", /^[a-z][a-z0-9-]*$/.test(entry.id));
must("agent.json: version", /^\d+\.\d+\.\d+/.test(entry.version) && entry.version === version);
for (const key of ["name", "description"]) must(`agent.json: ${key}`, entry[key]?.length > 0);
const platforms = ["darwin-aarch64", "darwin-x86_64", "linux-aarch64", "linux-x86_64", "windows-aarch64", "windows-x86_64"];
must("agent.json: an archive for each that was built", Object.keys(entry.distribution.binary).length === archives.length);
for (const [platform, { archive, sha256, cmd, args, ...rest }] of Object.entries(entry.distribution.binary)) {
  const file = archive.split("/").at(-1);
  must(`agent.json: ${platform}`, platforms.includes(platform) && Object.keys(rest).length === 0 && args.join() === "acp");
  must(`agent.json: ${archive}`, archive.startsWith("https://") && archive.includes(`/v${version}/`) && !archive.includes("/latest/"));
  must(`agent.json: sha256 of ${file}`, archives.includes(file) && sum(file) === sha256);
  must(`agent.json: cmd of ${platform}`, cmd === `./${file.replace(".tar.gz", "")}/pillion`);
}
must("agent.json: npx", entry.distribution.npx.package === `pillion@${version}` && existsSync(join(dist, `npm/pillion-${version}.tgz`)));
const icon = read("acp-registry/pillion/icon.svg");
must("icon.svg: 16 x 16", icon.includes('width="16" height="16"'));
must("icon.svg: only currentColor", [...icon.matchAll(/(?:fill|stroke)="([^"]*)"/g)].every(([, v]) => v === "none" || v === "currentColor"));

for (const file of ["homebrew/pillion.rb", "aur/PKGBUILD"]) {
  for (const archive of archives) must(`${file}: ${archive} and its checksum`, read(file).includes(archive) && read(file).includes(sum(archive)));
}
must("aur/PKGBUILD: pkgver", /^pkgver=[^-\s]+$/m.test(read("aur/PKGBUILD")));
must("container: the version", read("container/Containerfile").includes(version) && read("container/install.sh") === read("install.sh"));
const feature = JSON.parse(read("devcontainer/devcontainer-feature.json"));
must("devcontainer: id, version, option", feature.id === "pillion" && /^\d+\.\d+\.\d+$/.test(feature.version) && feature.options.version.default === version);

for (const line of wrong) console.error(`packages: ${line} is wrong`);
process.exit(wrong.length ? 1 : 0);
