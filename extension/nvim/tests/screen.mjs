// Types keys in a real terminal (tmux) and compares what the screen shows with golden files.
//   node screen.mjs NVIM [--update] [--shots DIR]
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { startModel } from "../../../test/e2e/model.mjs";
import { gone, openTerminal } from "../../../test/e2e/terminal.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const repo = join(here, "../../..");
const nvim = (process.argv[2] ?? "nvim").includes("/") ? resolve(process.argv[2]) : (process.argv[2] ?? "nvim");
const update = process.argv.includes("--update");
const shots = process.argv.includes("--shots") ? process.argv[process.argv.indexOf("--shots") + 1] : undefined;
const version = /NVIM v(\d+\.\d+)/.exec(execFileSync(nvim, ["--version"], { encoding: "utf8" }))[1];
const binary = process.env.PILLION_BIN ?? join(repo, "bin/pillion");
let failed = 0;

// A terminal with Neovim in a project of its own.
async function terminal(steps, files, { builtin = false, columns = 120, rows = 34 } = {}) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "pillion-screen-")));
  const project = join(root, "till");
  mkdirSync(project);
  if (typeof files === "string") cpSync(files, project, { recursive: true });
  else for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text);
  const model = await startModel(steps ?? []);
  if (!builtin) { // no language server: what is installed here must not change the picture
    mkdirSync(join(root, "config/pillion"), { recursive: true });
    writeFileSync(join(root, "config/pillion/pillion.jsonc"), '{ "lsp": false }\n');
  }
  const goenv = (name) => execFileSync("go", ["env", name], { encoding: "utf8" }).trim();
  const env = {
    PATH: `${join(repo, ".cache/bin")}:${process.env.PATH}`, HOME: root, TERM: "xterm-256color", LANG: "C.UTF-8",
    XDG_STATE_HOME: join(root, "state"), XDG_CONFIG_HOME: join(root, "config"), XDG_CACHE_HOME: join(root, "cache"), XDG_DATA_HOME: join(root, "data"),
    PILLION_BIN: binary, PILLION_COLORS: shots ? "1" : "0", COLORTERM: shots ? "truecolor" : "",
    ...(process.env.PILLION_SCHEME ? { PILLION_SCHEME: process.env.PILLION_SCHEME } : {}),
    ...(builtin
      ? { PILLION_MODEL: "builtin/quickfix", GOCACHE: goenv("GOCACHE"), GOMODCACHE: goenv("GOMODCACHE"), GOFLAGS: "-mod=mod" }
      : { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: "test", OPENAI_MODEL: "scripted", PILLION_MODEL: "openai/scripted" }),
  };
  const t = openTerminal([nvim, "-u", join(here, "init.lua"), "-i", "NONE"], { env, cwd: project, socket: "nvimtest", columns, rows });
  Object.assign(t, {
    project, model,
    // Closes the terminal as a window manager does. Everything that was started in it ends by itself, or this fails.
    async close() {
      t.kill();
      try { await gone(root); } finally { model.close(); }
      rmSync(root, { recursive: true, force: true });
    },
  });
  t.keys("Escape");
  return t;
}

// What differs from run to run.
const settle = (screen) => screen.replace(/\d+% of context/g, "N% of context").replace(/\d+ seconds? ago|\d\d:\d\d:\d\d/g, "now").replace(/pillion-screen-\w{6}/g, "pillion-screen-XXXXXX");

function golden(name, screen) {
  const file = join(here, "golden", `${name}.${version}.txt`);
  const text = settle(screen) + "\n";
  if (update || !existsSync(file)) {
    writeFileSync(file, text);
    console.log(`wrote ${file}`);
    return;
  }
  const want = readFileSync(file, "utf8");
  if (want !== text) throw new Error(`the screen is not ${name}.${version}.txt (UPDATE with --update):\n${text}\nwant\n${want}`);
}

async function shot(t, name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  const html = execFileSync("aha", ["--black", "--title", name], { input: t.colors(), encoding: "utf8" })
    .replace("</head>", "<style>body,pre{background:#14161b!important} body{margin:0;padding:14px} pre{font:15px/1.25 'DejaVu Sans Mono',monospace;margin:0;color:#e0e2ea}</style></head>");
  const page = join(shots, `${name}.html`);
  writeFileSync(page, html);
  execFileSync("chromium", ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", `--window-size=${Math.max(1130, Math.round(t.columns * 9.04) + 40)},690`, `--screenshot=${join(shots, name + ".png")}`, page], { stdio: "ignore" });
  rmSync(page);
}

const till = {
  "basket.lua": "local Basket = {}\n\nfunction Basket.new()\n  return { items = {} }\nend\n\nfunction Basket.add(self, name, price)\n  self.items[#self.items + 1] = { name, price }\nend\n\nfunction Basket.total(self)\n  local sum = 0\n  for _, item in ipairs(self.items) do\n    sum = sum + item[1]\n  end\n  return sum\nend\n\nreturn Basket\n",
};
const steps = () => [
  { tool: "read", input: { filePath: "basket.lua" } },
  { tool: "multiedit", input: { filePath: "basket.lua", edits: [
    { oldString: "function Basket.add(self, name, price)\n", newString: "---@param price integer cents\nfunction Basket.add(self, name, price)\n  assert(price >= 0, \"a price is not negative\")\n" },
    { oldString: "    sum = sum + item[1]\n", newString: "    sum = sum + item[2]\n" },
  ] } },
  "`total` summed the **names**. It sums the prices now, and `add` refuses negative ones.",
];

const tests = {
  async "ask, review with keys, undo"() {
    const t = await terminal(steps(), till);
    try {
      t.type(":edit basket.lua"); t.keys("Enter");
      t.type(":Pillion the total is wrong"); t.keys("Enter");
      golden("proposal", await t.until(/1 file, 3 hunks[\s\S]*\(1\) Allow/));
      await shot(t, "review");
      t.type("]h");
      await t.until(/ga accept/);
      t.type("ga");
      golden("one-left", await t.until(/2\/3/));
      t.type("gr");
      await t.until(/3\/3/);
      t.type("ga");
      golden("done", await t.until(/2 accepted, 1 rejected[\s\S]*refuses negative/));
      await shot(t, "done");
      t.type("u");
      golden("undone", await t.until(/before #/));
    } finally { await t.close(); }
  },
  async "the chat: typing, folds, leaving"() {
    const t = await terminal([{ tool: "read", input: { filePath: "basket.lua" } }, "It is a **basket** with two functions:\n\n- `add`\n- `total`\n"], till);
    try {
      t.type(" pp");
      await t.until(/adds files/);
      t.type("what is in @bas");
      await t.until(/@basket\.lua/);
      t.keys("C-n"); t.keys("C-y");
      t.type("?");
      t.keys("C-s");
      golden("chat", await t.until(/It is a[\s\S]*total/));
      t.keys("Escape");
      t.keys("C-w", "k");
      t.type("gg");
      t.type("/read"); t.keys("Enter");
      golden("unfolded", await t.until(/function Basket\.new/));
      t.type("q");
      await t.until(/^(?![\s\S]*It is a)/);
    } finally { await t.close(); }
  },
  async "side by side"() {
    const t = await terminal(steps(), till, { columns: 150 });
    try {
      t.type(":edit basket.lua"); t.keys("Enter");
      t.type(":Pillion the total is wrong"); t.keys("Enter");
      await t.until(/\(1\) Allow/);
      t.type("gs");
      golden("split", await t.until(/pillion:\/\/proposal/));
      await shot(t, "split");
      t.type(":w"); t.keys("Enter");
      await t.until(/3 accepted/);
    } finally { await t.close(); }
  },
  async "the sign column comes with the first sign"() {
    const t = await terminal(steps(), till);
    try {
      t.type(":set signcolumn=auto nonumber"); t.keys("Enter");
      t.type(":edit basket.lua"); t.keys("Enter");
      t.type(":Pillion the total is wrong"); t.keys("Enter");
      const screen = await t.until(/1 file, 3 hunks[\s\S]*\(1\) Allow[\s\S]*number here/);
      for (const line of [/^\+ ---@param price integer cents/m, /^ {2}function Basket\.add/m, /^\+ {3}assert\(price/m]) if (!line.test(screen)) throw new Error(`no line ${line} on this screen:\n${screen}`);
    } finally { await t.close(); }
  },
  async "the built-in model mends the broken example"() {
    const t = await terminal(null, join(repo, "examples/go-broken"), { builtin: true });
    try {
      t.type(":edit shop/basket.go"); t.keys("Enter");
      t.type(":Pillion fix all errors"); t.keys("Enter");
      const screen = await t.until(/hunks? · (fixes [1-9]|problems)/, 90000);
      if (!/introduces 0/.test(screen)) console.log("note: the first proposal introduces problems\n" + screen);
      t.type(":Pillion review"); t.keys("Enter");
      await t.until(/gA accept all/);
      await shot(t, "fixes");
      t.type(":Pillion accept all"); t.keys("Enter");
      await t.until(/accepted/);
    } finally { await t.close(); }
  },
};

for (const [name, run] of Object.entries(tests)) {
  if (process.env.ONLY && !name.includes(process.env.ONLY)) continue;
  if (name.includes("built-in") && version !== "0.12" && !process.env.ONLY) continue; // once is enough: it is about the sidecar
  const begun = performance.now();
  try {
    await run();
    console.log(`ok   ${version} ${name} (${Math.round(performance.now() - begun)} ms)`);
  } catch (error) {
    failed++;
    console.log(`FAIL ${version} ${name}\n${error.stack}`);
  }
}
process.exit(failed ? 1 : 0);
