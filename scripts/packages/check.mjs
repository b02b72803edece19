// Checks what make.mjs wrote, against the archives and the rules of those who take it: check.mjs DIST VERSION
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

const [dist, version] = process.argv.slice(2);
const read = (file) => readFileSync(join(dist, file), "utf8");
const wrong = [];
const must = (what, holds) => holds || wrong.push(what);
const archives = readdirSync(dist).filter((f) => /^pillion-.*-(linux-.*\.tar\.gz|windows-.*\.zip)$/.test(f));
const linux = archives.filter((f) => f.endsWith(".tar.gz"));
const zip = archives.find((f) => f.endsWith(".zip"));
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
  must(`agent.json: cmd of ${platform}`, cmd === `./${file.replace(/\.tar\.gz$|\.zip$/, "")}/pillion${platform.startsWith("windows-") ? ".exe" : ""}`);
}
must("agent.json: npx", entry.distribution.npx.package === `pillion@${version}` && existsSync(join(dist, `npm/pillion-${version}.tgz`)));
const icon = read("acp-registry/pillion/icon.svg");
must("icon.svg: 16 x 16", icon.includes('width="16" height="16"'));
must("icon.svg: only currentColor", [...icon.matchAll(/(?:fill|stroke)="([^"]*)"/g)].every(([, v]) => v === "none" || v === "currentColor"));

for (const file of ["homebrew/pillion.rb", "aur/PKGBUILD"]) {
  for (const archive of linux) must(`${file}: ${archive} and its checksum`, read(file).includes(archive) && read(file).includes(sum(archive)));
}
must("aur/PKGBUILD: pkgver", /^pkgver=[^-\s]+$/m.test(read("aur/PKGBUILD")));
must("container: the version", read("container/Containerfile").includes(version) && read("container/install.sh") === read("install.sh"));
const feature = JSON.parse(read("devcontainer/devcontainer-feature.json"));
must("devcontainer: id, version, option", feature.id === "pillion" && /^\d+\.\d+\.\d+$/.test(feature.version) && feature.options.version.default === version);

const mason = read("mason/package.yaml");
must("mason: the npm package and its program", mason.includes(`id: pkg:npm/pillion@${version}\n`) && mason.includes("pillion: npm:pillion\n"));
if (zip) {
  const scoop = JSON.parse(read("scoop/pillion.json"));
  const { url, hash, extract_dir } = scoop.architecture["64bit"];
  must("scoop: version, address, checksum, folder", scoop.version === version && url.endsWith(`/v${version}/${zip}`) && hash === sum(zip) && `${extract_dir}.zip` === zip && scoop.bin === "pillion.exe");
  must("scoop: the next version's address", scoop.autoupdate.architecture["64bit"].url.replaceAll("$version", version) === url);
  // Three files of one package and version; the fields are JSON, each on a line.
  const winget = ["", ".locale.en-US", ".installer"].map((part) =>
    Object.fromEntries(read(`winget/pillion-dev.Pillion${part}.yaml`).split("\n").filter((l) => l !== "" && !l.startsWith("#")).map((l) => [l.slice(0, l.indexOf(":")), JSON.parse(l.slice(l.indexOf(":") + 1))])));
  must("winget: one package, version and format", winget.every((m) => m.PackageIdentifier === "pillion-dev.Pillion" && m.PackageVersion === version && m.ManifestVersion === "1.6.0"));
  must("winget: the kinds of manifests", winget.map((m) => m.ManifestType).join() === "version,defaultLocale,installer" && winget[0].DefaultLocale === winget[1].PackageLocale);
  must("winget: a short description", winget[1].ShortDescription.length >= 3 && winget[1].ShortDescription.length <= 256);
  const [installer] = winget[2].Installers;
  must("winget: address, checksum", installer.InstallerUrl === url && installer.InstallerSha256 === sum(zip).toUpperCase());
  const inside = execFileSync("unzip", ["-Z1", join(dist, zip)], { encoding: "utf8" }).split("\n");
  must("winget and scoop: the program is in the zip", inside.includes(winget[2].NestedInstallerFiles[0].RelativeFilePath.replaceAll("\\", "/")) && inside.includes(`${extract_dir}/pillion.exe`));
}

for (const line of wrong) console.error(`packages: ${line} is wrong`);
process.exit(wrong.length ? 1 : 0);
