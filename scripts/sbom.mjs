// CycloneDX from `go version -m` (standard input) and package-lock.json. The same input gives the same bytes.
import { readFileSync } from "node:fs"

const lines = readFileSync(0, "utf8").split("\n").map(l => l.trim().split("\t"))
const go = []
let main = { path: "github.com/pillion-dev/pillion", version: "" }
let toolchain = lines[0]?.[0]?.match(/go[\d.]+\S*/)?.[0] ?? ""
for (const [kind, path, version, sum] of lines) {
  if (kind === "mod") main = { path, version }
  else if (kind === "dep") go.push({ path, version, sum })
  else if (kind === "=>" && go.length) Object.assign(go.at(-1), { path, version, sum }) // a replacement
}
const component = (purl, name, version, hash, scope) => ({
  type: "library", "bom-ref": purl, name, version, purl, ...(scope && { scope }), ...(hash && { hashes: [hash] }),
})
const sha512 = integrity => {
  const found = integrity?.match(/sha512-(\S+)/)
  return found && { alg: "SHA-512", content: Buffer.from(found[1], "base64").toString("hex") }
}
const components = go.map(m => ({
  ...component(`pkg:golang/${m.path}@${m.version}`, m.path, m.version),
  properties: m.sum ? [{ name: "go:sum", value: m.sum }] : [],
}))
const lock = JSON.parse(readFileSync("package-lock.json", "utf8"))
for (const [at, p] of Object.entries(lock.packages)) {
  if (!at || p.link) continue
  const name = p.name ?? at.slice(at.lastIndexOf("node_modules/") + "node_modules/".length)
  const purl = `pkg:npm/${name.replace(/^@/, "%40")}@${p.version}`
  if (components.some(c => c.purl === purl)) continue
  components.push(component(purl, name, p.version, sha512(p.integrity), p.dev ? "excluded" : "required"))
}
components.sort((a, b) => (a.purl < b.purl ? -1 : 1))
console.log(JSON.stringify({
  bomFormat: "CycloneDX", specVersion: "1.6", version: 1,
  metadata: {
    component: {
      type: "application", "bom-ref": "pillion", name: "pillion", version: main.version || "devel",
      hashes: [{ alg: "SHA-256", content: process.argv[2] }], properties: [{ name: "go:toolchain", value: toolchain }],
    },
  },
  components,
}, null, 2))
