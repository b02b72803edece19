import { world } from "./world.mjs";

const w = world({ machine: { "pillion.config": { tools: { apply_patch: true } } } });
const { test } = w;
const read = (filePath) => ({ tool: "read", input: { filePath } });

test("several files: one after the other in one tab, then all together", async (t) => {
  const p = await w.open(t, { "a.txt": "one\n", "b.txt": "two\n" });
  const patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+ONE\n*** Update File: b.txt\n@@\n-two\n+TWO\n*** Add File: c.txt\n+three\n*** End Patch";
  await p.bench.openFile("a.txt");
  await p.ask([read("a.txt"), read("b.txt"), { tool: "apply_patch", input: { patchText: patch } }, "Done."]);
  await p.lens("Accept").waitFor();
  await p.tab("a.txt (1 of 3)").waitFor();
  await p.bench.command("Pillion: Review All Files Together");
  await p.page.locator(".multiDiffEntry").nth(2).waitFor();
  await p.page.locator(".multiDiffEntry .codelens-decoration", { hasText: "Accept all 3 files" }).first().waitFor();
  await p.shot("review-several");
  await p.page.locator(".multiDiffEntry .codelens-decoration a", { hasText: "Accept all 3 files" }).first().click();
  await p.onDisk("c.txt", "three\n");
  await p.onDisk("a.txt", "ONE\n");
  await p.page.locator(".tab", { hasText: "Pillion proposes" }).first().waitFor({ state: "detached" });
});

