// The panel's look at three widths and in four themes: nothing is cut off, and axe finds nothing serious.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import test from "node:test";
import { panels } from "./setup.mjs";
import * as S from "./scenes.mjs";

const require = createRequire(import.meta.url);
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const { open, panel } = panels();

const said = "Fix the total in @cart.go";

/** A card whose files scroll by themselves, with problems that it causes. */
const manyFiles = S.approval({
  files: Array.from({ length: 14 }, (_, i) => ({ path: `${S.cwd}/pkg/${"long_".repeat(12)}${i}.go`, kind: "edit", added: 1204, removed: 311 })),
  problems: { certainty: "fresh", fixed: [], introduced: [{ path: `${S.cwd}/services/${"deep/".repeat(20)}a.go`, line: 1204, severity: "error", message: "undefined: total" }] },
});

for (const width of [300, 420, 700]) {
  test(`${width} px: nothing is cut off, and what a change does to the problems is in sight`, async (t) => {
    const p = await open(t, { width });
    const usage = { used: 34211, size: 200000, cost: 12.34, currency: "USD" };
    /** What sticks out of the box that clips it, in whole pixels. */
    const cut = (inner, box) => p.page.evaluate(([inner, box]) => [...document.querySelectorAll(inner)].filter((e) => e.offsetParent !== null && e.getBoundingClientRect().right > e.closest(box).getBoundingClientRect().right + 1).map((e) => e.className), [inner, box]);
    for (const head of [{ usage }, { usage, running: true }, { usage, running: true, approvals: [manyFiles] }, { running: true, approvals: [S.commandApproval, manyFiles] }]) {
      await p.show(head, S.entries(panel(), S.turn, { said }).list);
      await p.input.fill("words");
      await p.settle();
      assert.deepEqual(await cut(".picker, .meter", ".pickers"), []);
      assert.deepEqual(await cut(".bar > *, .send-actions > *", ".bar"), []);
      assert.deepEqual(await cut(".card *", ".card"), []);
      assert.ok(await p.page.locator(".picker:visible").count() >= 2, "mode and model are always there");
    }
    // Another maker's agent brings options of its own.
    const own = ["Approvals", "Sandbox"].map((name) => ({ id: `agent.${name}`, name, type: "select", currentValue: "on", options: [{ value: "on", name: "On" }, { value: "off", name: "Off" }] }));
    await p.show({ options: [...S.options, ...own] }, []);
    assert.deepEqual(await cut(".picker", ".pickers"), []);
    const looks = await p.page.locator(".picker:visible").evaluateAll((all) => all.map((b) => [...b.children].filter((e) => e.offsetParent !== null && !e.matches(".twist")).map((e) => e.className + e.textContent).join(" ")));
    assert.equal(new Set(looks).size, looks.length, `two options look alike: ${looks.join(", ")}`);
    if (process.env.PILLION_SHOTS) await p.page.screenshot({ path: `${process.env.PILLION_SHOTS}/pickers-${width}.png` });
    const call = { sessionUpdate: "tool_call", toolCallId: "long", title: `read ${S.cwd}/services/checkout/internal/main.go:20:22`, kind: "read", status: "completed", locations: [{ path: `${S.cwd}/services/checkout/internal/main.go` }] };
    await p.show({}, S.entries(panel(), [call]).list);
    assert.ok(await p.page.locator(".tool .place", { hasText: "main.go" }).evaluate((e) => e.scrollWidth <= e.clientWidth + 1), "the file's name is cut off before its folders");
    await p.show({ running: true, approvals: [manyFiles] });
    const [line, foot] = await Promise.all([".problems > .fact", ".card-foot"].map((s) => p.page.locator(s).boundingBox()));
    assert.ok(line.y + line.height <= foot.y, "the problems are below the fold");
    assert.equal(await p.page.locator(".card .files").getAttribute("tabindex"), "0", "what scrolls is reached by keys");
  });
}

for (const theme of ["dark", "light", "hc", "hcLight"]) {
  test(`axe: no serious violation, ${theme}`, async (t) => {
    const p = await open(t, { theme });
    const usage = { used: 34211, size: 200000, cost: 0.04, currency: "USD" };
    const { state, list } = S.entries(panel(), [...S.turn, ...S.after], { said, end: "end_turn" });
    const screens = [
      [{ builtinOnly: true, title: "" }, []],
      [{ usage, selection: { path: "a/b.go", name: "b.go", startLine: 1, endLine: 2, empty: false }, selectionOff: true }, list],
      [{ running: true, usage, approvals: [S.approval()], plan: [{ content: "Find it", status: "completed", priority: "high" }, { content: "Fix it", status: "in_progress", priority: "high" }], queue: [{ id: "1", text: "then this", attachments: 0 }] }, S.entries(panel(), S.turn, { said }).list],
      [{ running: true, questions: [S.question] }, []],
      [{ running: true, approvals: [manyFiles] }, []],
      [{ connection: { state: "failed", message: "ended", actions: [{ id: "restart", label: "Restart Pillion" }] }, reverted: { entries: 2, redo: "x" } }, S.entries(panel(), [{ sessionUpdate: "notice", severity: "warning", title: "Slow", description: "The model is slow" }]).list],
    ];
    await p.page.evaluate(axe);
    for (const [i, [head, entries]] of screens.entries()) {
      await p.show(head, entries);
      await p.settle();
      await p.page.evaluate(() => document.querySelectorAll(".tool > .row[aria-expanded=false], .thought > .row").forEach((b) => b.click()));
      for (const id of ["t1", "t3", "t4", "t6"]) if (entries.length > 5) await p.tell({ type: "detail", id, detail: state.details.get(id) });
      await p.page.waitForFunction(() => !document.querySelector(".decide button:disabled")); // disabled buttons are not looked at
      const found = await p.page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"] }));
      const bad = found.violations.filter((v) => v.impact === "serious" || v.impact === "critical").map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => `${n.html.slice(0, 160)} ${n.any[0]?.message ?? ""}`).join(" | ")}`);
      assert.deepEqual(bad, [], `screen ${i}`);
    }
    assert.deepEqual(p.errors, []);
  });
}
