// The settings in VS Code's own editor: reached from the panel's menu, in groups with titles.
import { world } from "./world.mjs";

const w = world();
const { test } = w;

test("the settings open in the settings editor, in groups", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n" });
  await p.bench.command("Pillion: Open Settings");
  const editor = p.page.locator(".settings-editor");
  await editor.locator(".setting-item-title", { hasText: "Default Agent" }).first().waitFor();
  // those that belong to the machine have a tab of their own here
  for (const group of ["Review", "Problems"]) await editor.locator(".settings-toc-entry", { hasText: group }).first().waitFor();
  await p.shot("settings");
});
