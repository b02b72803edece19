// What the tests of the panel's page begin with: one browser and one build for a file, a page for each test.
import { rmSync } from "node:fs";
import { after, before } from "node:test";
import { buildPanel, launch, openPanel } from "./page.mjs";
import * as S from "./scenes.mjs";

/** Declares the file's set-up. `panel()` is the build; `open(t)` a page with the composer at hand, on which `show` draws a transcript to its end. */
export function panels() {
  let panel, browser;
  before(async () => {
    [panel, browser] = await Promise.all([buildPanel(), launch()]);
  });
  after(async () => {
    await browser?.close();
    if (panel) rmSync(panel.out, { recursive: true, force: true });
  });
  return {
    panel: () => panel,
    async open(t, o = {}) {
      const p = await openPanel(browser, panel, o);
      t.after(() => p.close());
      p.show = async (head = {}, entries = [], draft = S.draft(), epoch = 1) => {
        await p.tell({ type: "snapshot", head: S.head(head), entries, draft, epoch });
        await p.settle();
      };
      p.input = p.page.locator("textarea.input");
      return p;
    },
  };
}
