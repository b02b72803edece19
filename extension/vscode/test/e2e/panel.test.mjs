// The panel in a real workbench: what a person sees and presses, with the real binary behind it.
import assert from "node:assert/strict";
import test from "node:test";
import { world } from "./world.mjs";

const w = world();
const read = (filePath) => ({ tool: "read", input: { filePath } });
const write = (filePath, content) => ({ tool: "write", input: { filePath, content } });
const bash = (command) => ({ tool: "bash", input: { command, description: command } });

/** Opens the panel; `say` writes a message and sends it with Enter. */
async function panel(p) {
  await p.bench.command("Pillion: Open Panel");
  const frame = p.bench.webview("pillion-dev.pillion");
  const input = frame.locator("textarea.input");
  await input.waitFor();
  await frame.locator(".picker.p-model").waitFor();
  return {
    frame, input,
    async say(text, steps = []) {
      w.steps.push(...steps);
      await input.fill(text);
      await input.press("Enter");
    },
    idle: () => frame.locator(".send").waitFor(),
  };
}

test("an answer streams as Markdown; the turn ends; what was said is shown", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  const c = await panel(p);
  await c.say("hello there", ["# Hello\n\nThis is **bold** and `code`.\n\n```js\nlet x = 1;\n```\n"]);
  await c.frame.locator(".user .said", { hasText: "hello there" }).waitFor();
  await c.frame.locator(".md strong", { hasText: "bold" }).waitFor();
  await c.frame.locator(".code .hl-number", { hasText: "1" }).waitFor();
  await c.idle();
  assert.equal(await c.frame.locator(".md .h1").innerText(), "Hello");
});
