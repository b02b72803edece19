// Writes the packages that only point to the archives, and those of npm: make.mjs VERSION DIST WORK ARCH…
//
// DIST holds pillion-VERSION-linux-ARCH.tar.gz for each ARCH (amd64, arm64), WORK/ARCH/pillion the program; for the ARCH windows-amd64
// pillion-VERSION-windows-amd64.zip and WORK/windows-amd64/pillion.exe. What is made:
//
//   npm/pillion-VERSION.tgz, npm/pillion-dev-linux-x64-VERSION.tgz …   `npx pillion`
//   acp-registry/pillion/{agent.json,icon.svg}   the entry for the ACP registry
//   homebrew/pillion.rb, aur/PKGBUILD, mason/package.yaml
//   scoop/pillion.json, winget/*.yaml   with a program for Windows
//   container/Containerfile, devcontainer/{devcontainer-feature.json,install.sh}
//   install.sh
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [version, dist, work, ...built] = process.argv.slice(2);
const archs = built.filter((arch) => !arch.startsWith("windows-"));
const windows = built.includes("windows-amd64");
const from = dirname(fileURLToPath(import.meta.url));
const root = join(from, "../..");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const home = "https://github.com/pillion-dev/pillion";
const release = `${home}/releases/download/v${version}`;
const archive = (arch) => `pillion-${version}-linux-${arch}.tar.gz`;
const sha256 = (file) => createHash("sha256").update(readFileSync(file)).digest("hex");
const zip = `pillion-${version}-windows-amd64.zip`;
const sums = Object.fromEntries(archs.map((arch) => [arch, sha256(join(dist, archive(arch)))]));

/** The same architecture has three names: Go's and Debian's, Node's, and uname's. */
const node = { amd64: "x64", arm64: "arm64" };
const uname = { amd64: "x86_64", arm64: "aarch64" };

function write(file, text, mode = 0o644) {
  mkdirSync(dirname(join(dist, file)), { recursive: true });
  writeFileSync(join(dist, file), text);
  chmodSync(join(dist, file), mode);
}

// npm: one package for the name, and one for each platform, of which npm installs the one whose os and cpu fit.
const shared = { version, license: manifest.license, repository: manifest.repository, homepage: home, engines: { node: ">=18" } };
function npm(name, more, files) {
  const folder = join(work, "npm", name.replaceAll(/[@/]/g, "_"));
  rmSync(folder, { recursive: true, force: true });
  for (const [to, { source, mode = 0o644 }] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, to)), { recursive: true });
    copyFileSync(source, join(folder, to));
    chmodSync(join(folder, to), mode);
  }
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name, description: manifest.description, ...shared, ...more }, null, 2) + "\n");
  mkdirSync(join(dist, "npm"), { recursive: true });
  execFileSync("npm", ["pack", "--silent", "--ignore-scripts", "--pack-destination", join(dist, "npm")], { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
}
const licence = { LICENSE: { source: join(root, "LICENSE") } };
for (const arch of archs) {
  npm(`@pillion-dev/linux-${node[arch]}`, { os: ["linux"], cpu: [node[arch]], libc: ["glibc"], preferUnplugged: true, files: ["bin", "THIRD-PARTY-NOTICES.txt"] }, {
    ...licence,
    "bin/pillion": { source: join(work, arch, "pillion"), mode: 0o755 },
    "THIRD-PARTY-NOTICES.txt": { source: join(work, arch, "THIRD-PARTY-NOTICES.txt") },
  });
}
if (windows) {
  npm("@pillion-dev/win32-x64", { os: ["win32"], cpu: ["x64"], preferUnplugged: true, files: ["bin", "THIRD-PARTY-NOTICES.txt"] }, {
    ...licence,
    "bin/pillion.exe": { source: join(work, "windows-amd64/pillion.exe"), mode: 0o755 },
    "THIRD-PARTY-NOTICES.txt": { source: join(work, "windows-amd64/THIRD-PARTY-NOTICES.txt") },
  });
}
npm("pillion", {
  keywords: manifest.keywords, bin: { pillion: "pillion.mjs" }, files: ["pillion.mjs"],
  optionalDependencies: Object.fromEntries([...archs.map((arch) => `linux-${node[arch]}`), ...(windows ? ["win32-x64"] : [])].map((name) => [`@pillion-dev/${name}`, version])),
}, {
  ...licence,
  "README.md": { source: join(from, "npm/README.md") },
  "pillion.mjs": { source: join(from, "npm/pillion.mjs"), mode: 0o755 },
});

// The ACP registry: https://github.com/agentclientprotocol/registry, agent.schema.json and the rules in CONTRIBUTING.md.
write("acp-registry/pillion/agent.json", JSON.stringify({
  id: "pillion", name: "Pillion", version, description: manifest.description, repository: home, website: home,
  authors: ["The Pillion authors"], license: manifest.license,
  distribution: {
    binary: Object.fromEntries([
      ...archs.map((arch) => [`linux-${uname[arch]}`, {
        archive: `${release}/${archive(arch)}`, sha256: sums[arch], cmd: `./pillion-${version}-linux-${arch}/pillion`, args: ["acp"],
      }]),
      ...(windows ? [["windows-x86_64", { archive: `${release}/${zip}`, sha256: sha256(join(dist, zip)), cmd: `./${zip.slice(0, -4)}/pillion.exe`, args: ["acp"] }]] : []),
    ]),
    npx: { package: `pillion@${version}`, args: ["acp"] },
  },
}, null, 2) + "\n");
copyFileSync(join(from, "icon.svg"), join(dist, "acp-registry/pillion/icon.svg"));

write("homebrew/pillion.rb", `class Pillion < Formula
  desc "Coding agent that shows every change and its problems before it is written"
  homepage "${home}"
  version "${version}"
  license "${manifest.license}"

  depends_on :linux
  depends_on "ripgrep"

${archs.map((arch) => `  on_${arch === "amd64" ? "intel" : "arm"} do
    url "${release}/${archive(arch)}"
    sha256 "${sums[arch]}"
  end
`).join("\n")}
  def install
    bin.install "pillion"
    man1.install "man/pillion.1"
    bash_completion.install "completions/pillion.bash" => "pillion"
    zsh_completion.install "completions/pillion.zsh" => "_pillion"
    fish_completion.install "completions/pillion.fish"
    doc.install "THIRD-PARTY-NOTICES.txt"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/pillion version")
  end
end
`);

// A hyphen separates the version from the release there.
const archVersion = version.replaceAll("-", "_");
write("aur/PKGBUILD", `# Maintainer: The Pillion authors <pillion-dev@users.noreply.github.com>
pkgname=pillion-bin
pkgver=${archVersion}
pkgrel=1
pkgdesc='Coding agent that shows every change and its problems before it is written'
arch=(${archs.map((a) => `'${uname[a]}'`).join(" ")})
url='${home}'
license=('${manifest.license}')
depends=('glibc')
optdepends=('git: checkpoints and reviews of commits' 'ripgrep: faster search')
provides=('pillion')
conflicts=('pillion')
options=('!strip')
${archs.map((a) => `source_${uname[a]}=('${release}/${archive(a)}')\nsha256sums_${uname[a]}=('${sums[a]}')`).join("\n")}

package() {
  cd "$srcdir"/pillion-*-linux-*/
  install -Dm755 pillion "$pkgdir/usr/bin/pillion"
  install -Dm644 man/pillion.1 "$pkgdir/usr/share/man/man1/pillion.1"
  install -Dm644 completions/pillion.bash "$pkgdir/usr/share/bash-completion/completions/pillion"
  install -Dm644 completions/pillion.zsh "$pkgdir/usr/share/zsh/site-functions/_pillion"
  install -Dm644 completions/pillion.fish "$pkgdir/usr/share/fish/vendor_completions.d/pillion.fish"
  install -Dm644 LICENSE THIRD-PARTY-NOTICES.txt -t "$pkgdir/usr/share/licenses/pillion-bin"
}
`);

write("container/Containerfile", `# Pillion with Git and ripgrep: podman build -t pillion .; podman run -it --rm -v "$PWD:/work" pillion
FROM docker.io/library/debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates curl git ripgrep && rm -rf /var/lib/apt/lists/*
ADD install.sh /tmp/install.sh
RUN XDG_DATA_HOME=/opt PILLION_BIN=/usr/local/bin sh /tmp/install.sh ${version} && rm /tmp/install.sh
WORKDIR /work
ENTRYPOINT ["pillion"]
`);
mkdirSync(join(dist, "container"), { recursive: true });
writeFileSync(join(dist, "container/install.sh"), installer());

// https://containers.dev/implementors/features: the file's name and the entry point's are fixed.
write("devcontainer/devcontainer-feature.json", JSON.stringify({
  id: "pillion", version: version.split("-")[0], name: "Pillion", documentationURL: home, description: manifest.description,
  options: { version: { type: "string", default: version, description: "The release to install" } },
  customizations: { vscode: { extensions: ["pillion-dev.pillion"] } },
}, null, 2) + "\n");
write("devcontainer/install.sh", `#!/bin/sh
# Runs as root while the container's image is built; VERSION is the option above.
set -eu
command -v curl >/dev/null || { apt-get update && apt-get install -y --no-install-recommends ca-certificates curl; }
curl -fsSL ${release}/install.sh -o /tmp/pillion-install.sh
XDG_DATA_HOME=/opt PILLION_BIN=/usr/local/bin sh /tmp/pillion-install.sh "\${VERSION:-${version}}"
rm /tmp/pillion-install.sh
`, 0o755);

write("install.sh", installer(), 0o755);

/** install.sh with the keys that sign releases. A quote cannot be in them: it would end the shell's string. */
function installer() {
  const signers = readFileSync(join(from, "signers"), "utf8").split("\n").filter((line) => line.trim() !== "" && !line.startsWith("#"));
  if (signers.some((line) => line.includes("'"))) throw new Error("scripts/packages/signers: a line has a single quote");
  const script = readFileSync(join(from, "install.sh"), "utf8");
  if (!script.includes("\nsigners=''\n")) throw new Error("install.sh has no place for the signers");
  return script.replace("\nsigners=''\n", () => `\nsigners='${signers.join("\n")}'\n`);
}

// mason.nvim: packages/pillion/package.yaml of github.com/mason-org/mason-registry. It installs the npm package.
write("mason/package.yaml", `---
name: pillion
description: ${manifest.description}
homepage: ${home}
licenses:
  - ${manifest.license}
languages: []
categories:
  - LSP

source:
  id: pkg:npm/pillion@${version}

bin:
  pillion: npm:pillion
`);

if (windows) {
  const hash = sha256(join(dist, zip));
  // https://github.com/ScoopInstaller/Scoop/blob/master/schema.json
  write("scoop/pillion.json", JSON.stringify({
    version, description: manifest.description, homepage: home, license: manifest.license,
    suggest: { "Git, whose bash runs commands": "main/git", "faster search": "main/ripgrep" },
    architecture: { "64bit": { url: `${release}/${zip}`, hash, extract_dir: zip.slice(0, -4) } },
    bin: "pillion.exe",
    checkver: { github: home },
    autoupdate: {
      architecture: { "64bit": { url: `${home}/releases/download/v$version/pillion-$version-windows-amd64.zip`, extract_dir: "pillion-$version-windows-amd64" } },
      hash: { url: "$baseurl/SHA256SUMS" },
    },
  }, null, 4) + "\n");

  // https://github.com/microsoft/winget-pkgs, manifests/p/pillion-dev/Pillion/VERSION. A YAML string in JSON's quotes needs no more care.
  const id = "pillion-dev.Pillion";
  const winget = (file, type, fields) => write(`winget/${file}.yaml`,
    `# yaml-language-server: $schema=https://aka.ms/winget-manifest.${type}.1.6.0.schema.json\n` +
      [["PackageIdentifier", id], ["PackageVersion", version], ...fields, ["ManifestType", type], ["ManifestVersion", "1.6.0"]].map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`).join(""));
  winget(id, "version", [["DefaultLocale", "en-US"]]);
  winget(`${id}.locale.en-US`, "defaultLocale", [
    ["PackageLocale", "en-US"], ["Publisher", "The Pillion authors"], ["PackageName", "Pillion"], ["PackageUrl", home], ["License", manifest.license], ["LicenseUrl", `${home}/blob/main/LICENSE`],
    ["ShortDescription", manifest.description], ["Tags", manifest.keywords.map((word) => word.replaceAll(" ", "-"))], ["ReleaseNotesUrl", `${home}/blob/main/CHANGELOG.md`],
  ]);
  winget(`${id}.installer`, "installer", [
    ["InstallerType", "zip"], ["NestedInstallerType", "portable"],
    ["NestedInstallerFiles", [{ RelativeFilePath: `${zip.slice(0, -4)}\\pillion.exe`, PortableCommandAlias: "pillion" }]],
    ["Installers", [{ Architecture: "x64", InstallerUrl: `${release}/${zip}`, InstallerSha256: hash.toUpperCase() }]],
  ]);
}
