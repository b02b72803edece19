// Review "draft": the turn works in a copy, commands included, and its one proposal is reviewed with what was run on it.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { world } from "./world.mjs";

const w = world();
const { test } = w;
const text = Array.from({ length: 9 }, (_, i) => `line ${i + 1}\n`).join("");
const bash = (command) => ({ tool: "bash", input: { command, description: "works" } });

test("a draft: commands leave the tree alone, one proposal over all files comes with its evidence, some of it is written", async (t) => {
  const p = await w.open(t, { "a.txt": text, "b.txt": text }, {
    machine: { "pillion.review.mode": "draft", "pillion.config": { verify: ["grep -c LINE a.txt", "! grep LINE b.txt"], repair_rounds: 0, permission: { verify: "allow", bash: "allow" } } },
  });
  await p.bench.openFile("a.txt");
  const panel = await p.panel();
  await panel.say("work", [bash("sed -i 's/line 2$/LINE 2/' a.txt"), bash("sed -i 's/line 8$/LINE 8/' b.txt && echo new > c.txt"), "I have changed two files and made one.", "Understood."]);
  const card = panel.frame.locator(".dock .permission");
  await card.getByText("Write the draft to 3 files?").waitFor();
  assert.equal(p.read("a.txt") + p.read("b.txt"), text + text, "the tree was touched before the decision");
  const tree = card.getByRole("tree");
  await tree.getByRole("treeitem", { name: /^grep -c LINE a\.txt, passed/ }).waitFor();
  await tree.getByRole("treeitem", { name: /^! grep LINE b\.txt, failed · exit 1/ }).waitFor();
  await p.shot("draft-card");
  await card.getByRole("button", { name: "Review 3 hunks" }).click();
  await p.page.locator(".multiDiffEntry").nth(2).waitFor();
  await p.lens("Checks: 1 failed, 1 passed").waitFor();
  await p.shot("draft-review");
  // the person goes on in the tree meanwhile, and decides file by file from the panel
  writeFileSync(join(p.folder, "a.txt"), text.replace("line 9\n", "line 9\nmine\n"));
  await card.locator(".file", { hasText: "b.txt" }).click();
  await p.tab("b.txt (2 of 3)").waitFor();
  await p.lens("a.txt has changed since the proposal").waitFor(); // the row of lenses is drawn anew for it, and a click on the old one is lost
  await p.lens("Reject file").click();
  await p.tab("a.txt (1 of 3)").waitFor(); // it goes on to what is undecided
  await p.bench.command("Pillion: Accept All");
  await p.onDisk("a.txt", text.replace("line 2\n", "LINE 2\n").replace("line 9\n", "line 9\nmine\n"));
  await p.onDisk("c.txt", "new\n");
  await panel.idle();
  assert.equal(p.read("b.txt"), text);
  assert.match(panel.told(), /NOT written.*b\.txt line 8.*LINE 8/s, "the model hears what was rejected");
});

test("a draft that is rejected leaves nothing behind in the project", async (t) => {
  const p = await w.open(t, { "a.txt": text }, { machine: { "pillion.review.mode": "draft", "pillion.config": { verify: [], permission: { bash: "allow" } } } });
  const panel = await p.panel();
  await panel.say("work", [bash("rm a.txt; mkdir d; echo x > d/x.txt"), "Done.", "Understood."]);
  const card = panel.frame.locator(".dock .permission");
  await card.getByText("Write the draft to 2 files?").waitFor();
  assert.equal(await card.getByRole("tree").count(), 0, "nothing was to be run");
  await card.getByRole("button", { name: "Reject", exact: true }).click();
  await panel.idle();
  assert.equal(p.read("a.txt"), text);
  await panel.frame.locator(".notice", { hasText: "The project did not change" }).waitFor();
});
