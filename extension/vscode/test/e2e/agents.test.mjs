// Another maker's agent, as npm has it, chosen in the picker: its turn is reviewed like one of Pillion's own, and it is stopped, reloaded
// and killed in the middle.
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after } from "node:test";
import { startModel } from "../../../../test/e2e/model.mjs";
import { root } from "../../stage.mjs";
import { shots, world } from "./world.mjs";

const peers = join(root, ".cache/peers/node_modules/.bin");
const w = world();
const steps = [];
/** Its own model: OpenCode asks for a title at a moment that nobody can foresee. */
const model = await startModel(steps, { aside: "A title" });
after(() => model.close());

const settings = { model: "scripted/m", autoupdate: false, share: "disabled", snapshot: false, lsp: false, small_model: "scripted/m",
  provider: { scripted: { npm: "@ai-sdk/openai-compatible", name: "Scripted", options: { baseURL: model.url, apiKey: "none" }, models: { m: { name: "m", tool_call: true, limit: { context: 1e6, output: 1e4 } } } } } };
const machine = {
  "pillion.env": { PATH: `${peers}:${join(root, ".cache/bin")}:${process.env.PATH}`, OPENCODE_CONFIG_CONTENT: JSON.stringify(settings), OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1", NO_PROXY: "*" },
  "pillion.config": { agents: { opencode: { keys: ["OPENCODE_CONFIG_CONTENT"] } }, repair_rounds: 0, verify: [] },
};
const files = {
  "go.mod": "module shop\n\ngo 1.22\n",
  "price.go": "package shop\n\n// Price is in cents.\nfunc Price(id string) int { return len(id) * 100 }\n",
  "total.go": "package shop\n\n// Total is the price of all.\nfunc Total(ids []string) (sum int) {\n\tfor _, id := range ids {\n\t\tsum += Price(id)\n\t}\n\treturn sum\n}\n\n// none\n",
};
const bash = (command) => ({ tool: "bash", input: { command, description: "works" } });

w.test("OpenCode: three files and two commands, a part accepted, stopped, reloaded, killed", { limit: 400_000, skip: !existsSync(join(peers, "opencode")) && "not installed; run scripts/setup-peers.sh .cache" }, async (t) => {
  const p = await w.open(t, files, { machine });
  const inside = (name) => join(p.folder, name);
  const shot = async (name) => shots && (await p.shot(`agents-${name}`));
  steps.length = 0;
  await p.bench.openFile("total.go");
  const panel = await p.panel();
  const say = async (text, ...then) => {
    steps.push(...then);
    await panel.input.fill(text);
    await panel.input.press("Enter");
  };
  const told = () => JSON.stringify(model.seen.at(-1).messages);
  await panel.frame.locator(".picker.p-model").click();
  await panel.frame.locator(".menu .menu-item", { hasText: "OpenCode" }).first().waitFor();
  await shot("1-picker");
  await panel.frame.locator(".menu .menu-item", { hasText: "OpenCode" }).first().click();
  await panel.frame.locator(".picker.p-model", { hasText: "OpenCode" }).waitFor();

  await say("work",
    { tool: "read", input: { filePath: inside("price.go") } },
    { tool: "edit", input: { filePath: inside("price.go"), oldString: "in cents", newString: "in euro cents" } },
    { tool: "read", input: { filePath: inside("total.go") } },
    { tool: "edit", input: { filePath: inside("total.go"), oldString: "the price of all", newString: "the price of all together" } },
    { tool: "edit", input: { filePath: inside("total.go"), oldString: "// none", newString: "var wrong int = \"text\"" } },
    { tool: "write", input: { filePath: inside("notes.txt"), content: "first\nsecond\n" } },
    bash("cat notes.txt price.go"), bash("wc -l *.go > lines.txt; cat lines.txt"),
    "All of it is done.", "I see.");
  const card = panel.frame.locator(".dock .permission");
  await card.getByText("Write the draft to 4 files?").waitFor();
  await shot("2-card");
  for (const [name, text] of Object.entries(files)) assert.equal(p.read(name), text);
  assert.ok(!existsSync(inside("notes.txt")));
  await card.getByRole("button", { name: /^Review \d hunks/ }).click();
  await p.page.locator(".multiDiffEntry").nth(2).waitFor();
  await card.getByText("Fixes 0 errors, introduces 1").waitFor();
  await shot("3-review");
  await card.locator(".file", { hasText: "total.go" }).click();
  await p.tab("total.go").waitFor();
  await shot("4-file");
  await p.reject(1).click();
  await shot("5-rejected-one");
  await p.bench.command("Pillion: Accept All");
  await p.onDisk("total.go", files["total.go"].replace("of all", "of all together"));
  await p.onDisk("notes.txt", "first\nsecond\n");
  await panel.idle();
  await shot("6-done");
  assert.match(told(), /rejected 1 of 5 changes.*total\.go line 11/s, "the agent is told what was rejected");

  const hanging = model.hanging();
  await say("more", { tool: "write", input: { filePath: inside("never.txt"), content: "never\n" } }, { hang: true });
  await hanging;
  await shot("7-hanging");
  await p.bench.command("Pillion: Stop");
  await panel.idle();
  await shot("8-stopped");
  assert.ok(!existsSync(inside("never.txt")));

  await p.reload();
  await panel.input.waitFor();
  await panel.frame.locator(".picker.p-model", { hasText: "OpenCode" }).waitFor();
  await shot("9-reloaded");
  await say("go on", "I am still here.");
  await panel.answer("I am still here.");
  assert.match(told(), /All of it is done/, "it goes on with the conversation");
  await card.getByText("Write the draft to 1 file?").waitFor(); // what the stopped turn had done
  await shot("10-went-on");
  await card.getByRole("button", { name: "Reject", exact: true }).click();
  await panel.idle();
  assert.ok(!existsSync(inside("never.txt")));

  const again = model.hanging();
  await say("and more", { tool: "write", input: { filePath: inside("never.txt"), content: "never\n" } }, { hang: true });
  await again;
  const running = agents(w.server.home);
  assert.ok(running.length > 0);
  for (const pid of running) process.kill(pid, "SIGKILL");
  await panel.frame.getByText(/OpenCode stopped \(/).first().waitFor();
  await panel.idle();
  await shot("11-killed");
  assert.ok(!existsSync(inside("never.txt")));
  await say("back?", "I am back.");
  await panel.answer("I am back.");
  assert.match(told(), /and more/, "the next process goes on with the conversation");
  await card.getByRole("button", { name: "Reject", exact: true }).click();
  await panel.idle();
  await shot("12-back");
});

/** The processes of OpenCode whose HOME this is. */
function agents(home) {
  return readdirSync("/proc").filter((n) => /^\d+$/.test(n)).flatMap((pid) => {
    try {
      const own = readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(`HOME=${home}`);
      return own && readFileSync(`/proc/${pid}/comm`, "latin1").trim() === "opencode" ? [Number(pid)] : [];
    } catch {
      return []; // it ended while we looked, or is not ours
    }
  });
}
