// Other people's ACP clients, unmodified, in a real terminal: what a person sees of what they approve. The table in
// docs/editors.md is made of these runs:
//
//   node --test test/e2e/screens.test.mjs                compares the table with the runs
//   UPDATE=1 node --test test/e2e/screens.test.mjs       writes it
//   SHOW=1 …                                             prints every screen
//
// CodeCompanion and agentic.nvim want Neovim 0.11 or newer and come from archives beside the repository, in
// ../shared/clients; without them their rows are skipped.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import test, { after } from "node:test";
import { fileURLToPath } from "node:url";
import { startModel } from "./model.mjs";
import { binary } from "./pillion.mjs";
import { gone, openTerminal } from "./terminal.mjs";

const repo = fileURLToPath(new URL("../..", import.meta.url));
const page = join(repo, "docs/editors.md");
const nvim = process.env.NVIM_012 ?? join(repo, ".cache/nvim-0.12/nvim");
const archives = process.env.CLIENTS ?? join(repo, "../shared/clients");
const require = createRequire(import.meta.url);
const version = (name) => JSON.parse(readFileSync(join(repo, "node_modules", name, "package.json"), "utf8")).version;

// A project whose edit breaks another file, so that there is a verdict to show.
const project = {
  "go.mod": "module till\n\ngo 1.24\n",
  "a.go": "package till\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n",
  "b.go": "package till\n\nfunc Twice(n int) int {\n\treturn Add(n, n)\n}\n",
  "c.go": "package till\n\nfunc Old() int {\n\treturn Add(1, 2)\n}\n",
  "other.txt": "x\n",
  "notes.txt": "one\ntwo\n",
};
const threeFiles = `*** Begin Patch
*** Update File: a.go
@@
-func Add(a, b int) int {
-	return a + b
+func Add(a, b, c int) int {
+	return a + b + c
*** Add File: d.go
+package till
+
+func Thrice(n int) int {
+	return Add(n, n, n)
+}
*** Delete File: c.go
*** End Patch`;
// The example client answers every read with a text of its own, so that it can only be asked about new files.
const threeNewFiles = `*** Begin Patch
*** Add File: d.go
+package till
+
+func Thrice(n int) int {
+	return Add(n, n, n)
+}
*** Add File: e.go
+package till
*** Add File: f.go
+package till
*** End Patch`;
const lyingCommand = { tool: "bash", input: { command: "touch pwned && rm -f other.txt", description: "List the files" }, slow: true };

// What is read on a screen, without the spaces and lines into which it was broken, and without frames.
const plain = (text) => text.replaceAll(/[\s─-╿]+/g, "");
const shows = (screen, words) => plain(screen).includes(plain(words));

// A client in a project of its own, whose person has typed "please" and waits. drive says how.
async function begin(client, steps, { model = "gpt-5-scripted", dirty = false, root } = {}) {
  const fresh = !root;
  root ??= realpathSync(mkdtempSync(join(tmpdir(), "pillion-screens-")));
  const cwd = join(root, "project");
  if (fresh) {
    mkdirSync(join(root, "cache/nvim"), { recursive: true }); // agentic.nvim writes a log there and fails where it cannot
    mkdirSync(cwd);
    mkdirSync(join(root, "config/pillion"), { recursive: true }); // a change with errors is asked about at once: the script does not propose it twice
    writeFileSync(join(root, "config/pillion/pillion.jsonc"), '{"repair_rounds":0}');
    for (const [name, text] of Object.entries(project)) writeFileSync(join(cwd, name), text);
  }
  const script = await startModel(steps);
  const goenv = (name) => execFileSync("go", ["env", name], { encoding: "utf8" }).trim();
  const env = {
    PATH: `${join(repo, ".cache/bin")}:${process.env.PATH}`, HOME: root, TERM: "xterm-256color", LANG: "C.UTF-8",
    XDG_STATE_HOME: join(root, "state"), XDG_CONFIG_HOME: join(root, "config"), XDG_CACHE_HOME: join(root, "cache"), XDG_DATA_HOME: join(root, "data"),
    GOCACHE: goenv("GOCACHE"), GOMODCACHE: goenv("GOMODCACHE"), GOFLAGS: "-mod=mod",
    OPENAI_BASE_URL: script.url, OPENAI_API_KEY: "test", PILLION_MODEL: `openai/${model}`,
  };
  const open = (argv, more = {}) => openTerminal(argv, { env: { ...env, ...more.env }, cwd, socket: "pillion-screens", columns: 140, rows: 70 });
  const terminals = [];
  const w = {
    root, cwd, env, script, open: (...a) => { const t = open(...a); terminals.push(t); return t; },
    exists: (name) => existsSync(join(cwd, name)),
    read: (name) => readFileSync(join(cwd, name), "utf8"),
    toolResult: () => JSON.stringify(script.seen.at(-1)?.messages?.at(-1)?.content ?? ""),
    async turns(n, limit = 40000) { // until the model was asked n times
      for (const end = Date.now() + limit; script.seen.length < n; await new Promise((r) => setTimeout(r, 50)))
        if (Date.now() > end) throw new Error(`the model was asked ${script.seen.length} times, not ${n}; the screen:\n${w.t.screen()}`);
    },
    async close(keep = false) {
      for (const t of terminals) t.kill();
      try { await gone(root); } finally { script.close(); }
      if (!keep) rmSync(root, { recursive: true, force: true });
    },
  };
  try {
    w.t = await client.start(w, dirty);
  } catch (error) {
    await w.close();
    throw error;
  }
  return w;
}

function plugins(w, ...names) {
  const dir = join(w.root, "plugins");
  mkdirSync(dir, { recursive: true });
  for (const name of names) if (!existsSync(join(dir, name))) execFileSync("tar", ["-xzf", join(archives, `${name}.tar.gz`), "-C", dir]);
  return names.map((name) => `vim.opt.runtimepath:append(${JSON.stringify(join(dir, name))})`).join("\n") +
    "\nvim.o.shadafile = 'NONE'\nvim.o.shortmess = vim.o.shortmess .. 'IF'\n";
}

async function neovim(w, config, dirty) {
  writeFileSync(join(w.root, "init.lua"), config);
  const t = w.open([nvim, "-u", join(w.root, "init.lua"), "-i", "NONE", "notes.txt"]);
  await t.until(/one/);
  if (dirty) {
    t.type("ggOmine");
    t.keys("Escape");
    await t.until(/mine/);
  }
  return t;
}

// A person's own Neovim beside a client that has no editor.
async function beside(w) {
  const t = w.open([nvim, "-u", "NONE", "-i", "NONE", "notes.txt"]);
  await t.until(/one/);
  t.type("ggOmine");
  t.keys("Escape");
  await t.until(/mine/);
}

const lua = (env) => "{ " + Object.entries(env).map(([k, v]) => `${k} = ${JSON.stringify(v)}`).join(", ") + " }";

const clients = [
  {
    name: "CodeCompanion.nvim", editor: true,
    async start(w, dirty) {
      const t = await neovim(w, `${plugins(w, "plenary.nvim", "codecompanion.nvim")}
require("codecompanion").setup({
  adapters = { acp = { pillion = function()
    return require("codecompanion.adapters").extend("opencode", { name = "pillion", formatted_name = "Pillion", commands = { default = { ${JSON.stringify(binary)}, "acp" } } })
  end } },
  interactions = { chat = { adapter = "pillion" } },
})`, dirty);
      t.type(":CodeCompanionChat");
      t.keys("Enter");
      await t.until(/## Me/);
      t.type("iplease");
      t.keys("Escape");
      await t.until(/^please/m);
      t.keys("Enter");
      return t;
    },
    // In a floating window when that is open, whose neighbours belong to what lies under it.
    pane: (screen) => {
      const box = screen.split("\n").filter((l) => /│.*│/.test(l)).map((l) => l.slice(l.indexOf("│") + 1, l.lastIndexOf("│")));
      return box.length > 5 ? box.join("\n") : screen.split("\n").map((l) => l.split("│")[0]).join("\n");
    },
    asks: /g2.*Accept/,
    always: (t) => t.type("g1"),
    reject: (t) => t.type("g3"),
  },
  {
    name: "agentic.nvim", editor: true,
    async start(w, dirty) {
      const { PATH, TERM, LANG, ...env } = w.env; // it hands on PATH alone
      const t = await neovim(w, `${plugins(w, "agentic.nvim")}
require("agentic").setup({ provider = "pillion", acp_providers = { ["pillion"] = { name = "Pillion", command = ${JSON.stringify(binary)}, args = { "acp" }, env = ${lua(env)} } } })`, dirty);
      t.type(":lua require('agentic').toggle()");
      t.keys("Enter");
      await t.until(/# Agentic - pillion/);
      t.type("please");
      t.keys("C-s");
      return t;
    },
    pane: (screen) => screen.split("\n").map((l) => l.slice(l.indexOf("│") + 1)).join("\n"),
    asks: /\[3\].*Reject/,
    always: (t) => t.type("2"),
    reject: (t) => t.type("3"),
  },
  {
    name: `acpx ${version("acpx")}`,
    async start(w, dirty) {
      if (dirty) await beside(w);
      return w.open([process.execPath, join(dirname(require.resolve("acpx/package.json")), "dist/cli.js"), "--agent", `${binary} acp`, "--cwd", w.cwd, "exec", "please"]);
    },
    pane: (screen) => screen,
    asks: /\(\s*y\/\s*N\)/,
    always: null, // it offers none
    accept: (t) => { t.type("y"); t.keys("Enter"); },
    reject: (t) => { t.type("n"); t.keys("Enter"); },
  },
  {
    name: `npm SDK ${version("acp-sdk-1.9")}, its example client`, mock: true,
    async start(w, dirty) {
      if (dirty) await beside(w);
      const bin = join(w.root, "bin"); // it starts its agent with npx; this npx starts ours
      mkdirSync(bin, { recursive: true });
      writeFileSync(join(bin, "npx"), `#!/bin/sh\nexec "${binary}" acp\n`, { mode: 0o755 });
      return w.open([process.execPath, join(dirname(require.resolve("acp-sdk-1.9")), "examples/client.js")], { env: { PATH: `${bin}:${w.env.PATH}` } });
    },
    pane: (screen) => screen,
    asks: /Choose an option/,
    always: (t) => { t.type("2"); t.keys("Enter"); },
    reject: (t) => { t.type("3"); t.keys("Enter"); },
  },
];

// The rows of the table: what was seen, by column.
const columns = ["every path", "the verdict", "the changed lines", "the whole command", "how far “always” reaches", "one unsaved line"];
const rows = new Map();

for (const client of clients) {
  const missing = client.editor && (!existsSync(nvim) || !existsSync(archives)) ? "Neovim 0.12 or the clients' archives are missing" : false;
  test(client.name, { skip: missing, timeout: 300000 }, async (t) => {
    const row = {};
    const see = (column, screen, ...words) => {
      const hidden = words.filter((x) => !shows(screen, x));
      row[column] = hidden.length === 0 ? "shown" : "not shown";
      return hidden;
    };

    await t.test("an edit of three files", async () => {
      const patch = client.mock ? threeNewFiles : threeFiles;
      const w = await begin(client, [{ tool: "lsp", input: { operation: "diagnostics", filePath: "b.go" } }, { tool: "apply_patch", input: { patchText: patch }, slow: true }, "Done."]);
      try {
        const screen = client.pane(await w.t.until(client.asks, 60000));
        if (process.env.SHOW) console.log(screen);
        const paths = client.mock ? ["d.go", "e.go", "f.go"] : ["a.go", "d.go", "c.go"];
        assert.deepEqual(see("every path", screen, ...paths), [], screen);
        assert.deepEqual(see("the verdict", screen, "introduces 1"), [], screen);
        const lines = ["func Thrice(n int) int", ...(client.mock ? [] : ["-func Add(a, b int) int", "+func Add(a, b, c int) int", "-func Old() int"])];
        const hidden = see("the changed lines", screen, ...lines);
        if (!client.mock) assert.deepEqual(hidden, [], screen); // it prints no diff and no message of ours
        if (client.always) assert.deepEqual(see("scope", screen, "any edit in this session"), [], screen);
        for (const name of ["d.go"]) assert.equal(w.exists(name), false, "written before the decision");
        client.reject(w.t);
        await w.t.until(/the\s*turn\s*ends\s*here|Reject\n|\[done\]|completed with/);
        assert.equal(w.exists("d.go"), false, "written after a rejection");
        assert.equal(w.read("a.go"), project["a.go"]);
      } finally { await w.close(); }
    });

    await t.test("a command that is described as another", async () => {
      let w = await begin(client, [lyingCommand, lyingCommand, "Done."]);
      const again = { root: w.root };
      try {
        const screen = client.pane(await w.t.until(client.asks, 60000));
        if (process.env.SHOW) console.log(screen);
        assert.deepEqual(see("the whole command", screen, "touch pwned && rm -f other.txt"), [], screen);
        const said = plain(screen).indexOf(plain("List the files"));
        assert.ok(said < 0 || said > plain(screen).indexOf(plain("touch pwned && rm")), `the model's words stand before the command:\n${screen}`);
        assert.equal(w.exists("pwned"), false, "run before the decision");
        if (!client.always) {
          row[columns[4]] = "offers none";
          client.accept(w.t);
          await w.turns(2);
          assert.equal(w.exists("pwned"), true);
          return;
        }
        const hidden = see(columns[4], screen, "bash touch *, rm -f other.txt in this session");
        if (row.scope !== "shown") row[columns[4]] = "not shown";
        assert.deepEqual(hidden, [], screen);
        client.always(w.t);
        await w.turns(3); // the second command of the session is not asked about
        assert.equal(w.exists("pwned"), true);
      } finally { await w.close(Boolean(client.always)); }
      rmSync(join(again.root, "project/pwned"));
      w = await begin(client, [lyingCommand, "Done."], again); // the next session is
      try {
        await w.t.until(client.asks, 60000);
        assert.equal(w.exists("pwned"), false, "“always” was remembered beyond its session");
        client.reject(w.t);
        await w.t.until(/the\s*turn\s*ends\s*here|Reject\n|\[done\]|completed with/);
        assert.equal(w.exists("pwned"), false);
      } finally { await w.close(); }
    });

    await t.test("one unsaved line", async () => {
      const edit = { filePath: "notes.txt", oldString: client.mock ? "Mock file content" : "two", newString: "TWO" };
      const w = await begin(client, [{ tool: "read", input: { filePath: "notes.txt" } }, { tool: "edit", input: edit }, "Done."], { model: "scripted", dirty: true });
      try {
        await w.turns(3);
        const screen = client.pane(await w.t.until(/^\W*Done|end_turn/m));
        if (process.env.SHOW) console.log(screen);
        assert.match(w.toolResult(), /notes\.txt has unsaved changes in Neovim \(process \d+\)\. Save them there/);
        assert.equal(w.read("notes.txt"), project["notes.txt"], "written behind the unsaved line");
        assert.doesNotMatch(screen, client.asks, "asked about a change that cannot be written");
        row[columns[5]] = shows(screen, "notes.txt has unsaved changes in Neovim") ? "refused, and said" : "refused";
        if (!client.mock) assert.equal(row[columns[5]], "refused, and said", screen);
        if (client.editor) assert.match(w.t.screen(), /mine/, "the buffer lost its line");
      } finally { await w.close(); }
    });
    delete row.scope;
    rows.set(client.name, row);
  });
}

// Rows of clients that cannot be had where the tests run.
const notRun = {
  "vscode-acp 0.2.0": "not run: its source shows a request's title and the options' names",
  "Emacs agent-shell": "not run: not packaged, and it wants Emacs 29",
  Zed: "not run: the program cannot be had here",
  "JetBrains IDEs": "not run: the program cannot be had here",
};

const begun = "<!-- made by test/e2e/screens.test.mjs (UPDATE=1 writes it) -->", ended = "<!-- end -->";

test("the table of docs/editors.md is what was seen", () => {
  const text = readFileSync(page, "utf8");
  const from = text.indexOf(begun), to = text.indexOf(ended);
  assert.ok(from > 0 && to > from, `${page} has no generated table`);
  const old = text.slice(from + begun.length, to).trim().split("\n");
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const now = [line(["client", ...columns]), line(["---", ...columns.map(() => "---")])];
  for (const client of clients) {
    const row = rows.get(client.name);
    if (row) now.push(line([client.name, ...columns.map((c) => row[c] ?? "failed")]));
    else now.push(old.find((l) => l.startsWith(`| ${client.name} |`)) ?? line([client.name, ...columns.map(() => "not run")])); // skipped here
  }
  for (const [name, why] of Object.entries(notRun)) now.push(line([name, why, ...columns.slice(1).map(() => "")]));
  if (process.env.UPDATE) {
    writeFileSync(page, `${text.slice(0, from)}${begun}\n${now.join("\n")}\n${text.slice(to)}`);
    return;
  }
  assert.deepEqual(old, now);
});

after(() => {
  try { execFileSync("tmux", ["-L", "pillion-screens", "kill-server"], { stdio: "ignore" }); } catch { /* it ended with its last session */ }
});
