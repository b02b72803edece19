// Makes docs/images/draft.png: a turn in a draft as a terminal shows it, from the prompt to the written files.
//   node test/e2e/filmstrip.mjs docs/images/draft.png      needs tmux, aha, chromium and bin/pillion (or PILLION_BIN)
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { startModel } from "./model.mjs";
import { gone, openTerminal } from "./terminal.mjs";

const repo = resolve(dirname(fileURLToPath(import.meta.url)), "../..");
const out = resolve(process.argv[2] ?? join(repo, "docs/images/draft.png"));
const root = realpathSync(mkdtempSync(join(tmpdir(), "pillion-film-")));
const project = join(root, "shop");
mkdirSync(project);
mkdirSync(join(root, "config/pillion"), { recursive: true });
writeFileSync(join(root, "config/pillion/pillion.jsonc"), '{ "verify": ["go test ./..."], "permission": { "verify": "allow" } }\n');
const files = {
  "go.mod": "module shop\n\ngo 1.22\n",
  "price.go": "package shop\n\n//go:generate sh names.sh\n\n// Load is the price of an article in cents.\nfunc Load(id string) int { return len(id) * 100 }\n",
  "names.sh": "sed -n 's/^func \\([A-Z][a-z]*\\).*/\\1/p' price.go total.go > names.txt\n",
  "total.go": "package shop\n\n// Total is the price of all.\nfunc Total(ids []string) (sum int) {\n\tfor _, id := range ids {\n\t\tsum += Load(id)\n\t}\n\treturn sum\n}\n",
  "total_test.go": "package shop\n\nimport \"testing\"\n\nfunc TestTotal(t *testing.T) {\n\tif Total([]string{\"a\", \"bc\"}) != 300 || Load(\"a\") != 100 {\n\t\tt.Fatal(\"wrong\")\n\t}\n}\n",
  "names.txt": "Load\nTotal\n",
};
for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text);
const git = (...args) => execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: project });
git("init", "-q"); git("add", "-A"); git("commit", "-qm", "shop");

const model = await startModel([
  { tool: "bash", input: { command: "sed -i 's/\\bLoad\\b/Price/g' price.go total.go total_test.go", description: "Rename Load to Price" } },
  { tool: "bash", input: { command: "go generate && go test ./...", description: "Run the generator and the tests" } },
  "`Load` is `Price` now, everywhere; the list of names is generated anew.",
  "Done.",
]);
const goenv = (name) => execFileSync("go", ["env", name], { encoding: "utf8" }).trim();
const env = {
  PATH: process.env.PATH, HOME: root, TERM: "xterm-256color", LANG: "C.UTF-8", COLORTERM: "truecolor", GOCACHE: goenv("GOCACHE"), GOFLAGS: "-mod=mod",
  XDG_STATE_HOME: join(root, "state"), XDG_CONFIG_HOME: join(root, "config"), PS1: "$ ",
  OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "test", OPENAI_MODEL: "scripted", PILLION_MODEL: "openai/scripted",
};
const bin = join(root, "bin");
mkdirSync(bin);
execFileSync("ln", ["-s", process.env.PILLION_BIN ?? join(repo, "bin/pillion"), join(bin, "pillion")]);
env.PATH = `${bin}:${env.PATH}`;
const t = openTerminal(["bash", "--norc", "--noprofile"], { env, cwd: project, socket: "film", columns: 92, rows: 30 });
const frames = [];
const frame = (title) => frames.push({ title, html: execFileSync("aha", ["--no-header"], { input: t.colors().trimEnd(), encoding: "utf8" }) });
try {
  await t.until(/\$/);
  t.type('pillion run --review draft "rename Load to Price, run the generator"'); t.keys("Enter");
  const question = /\[y,n[^\]]*\]\?/g;
  await t.until({ test: (screen) => (screen.match(question) ?? []).length > 0 }, 180_000); // gopls reads the standard library first
  frame("1  The agent has worked in a draft: sed, go generate, go test. One proposal with its evidence, nothing is written yet.");
  // One decision after the other: the next question, or the shell's prompt after the last.
  const asked = () => (t.scrollback().match(question) ?? []).length;
  for (let n = asked(), last = false; !last; n = asked()) {
    t.type("y");
    await t.until({ test: (screen) => asked() > n || (last = /\n\$$/.test(screen)) });
  }
  frame("2  What a program has made exactly so is one decision; all that was accepted is written at once.");
  t.type("clear; git status --short; cat names.txt"); t.keys("Enter");
  await t.until(/Price\n/);
  frame("3  What the project has now.");
} finally {
  t.kill();
  await gone(root);
  model.close();
  rmSync(root, { recursive: true, force: true });
}
const page = `${out}.html`;
writeFileSync(page, `<meta charset="utf-8"><style>body{margin:0;padding:14px;background:#14161b;color:#e0e2ea} h2{font:600 15px sans-serif;margin:8px 0} pre{font:13px/1.25 'DejaVu Sans Mono',monospace;margin:0 0 14px;padding:8px;border:1px solid #3a3f4b}</style>${frames.map((f) => `<h2>${f.title}</h2><pre>${f.html}</pre>`).join("\n")}`);
const lines = frames.reduce((n, f) => n + f.html.split("\n").length, 0);
execFileSync("chromium", ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", `--window-size=790,${lines * 17 + frames.length * 62 + 30}`, `--screenshot=${out}`, page], { stdio: "ignore" });
rmSync(page);
