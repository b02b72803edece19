// Pictures of the panel alone, at three widths side by side: the page of the webview's tests with its recorded sessions.
import { rmSync } from "node:fs";
import { buildPanel, openPanel } from "./webview/page.mjs";
import * as S from "./webview/scenes.mjs";

const kinds = { dark: "dark", light: "light", contrast: "hc" };
const height = 760; // px
const said = "Fix the total in @cart.go, and see that the count of each item is in it";
const usage = { used: 64211, size: 200000, cost: 0.0421, currency: "USD" };
const selection = { path: "cart/cart.go", name: "cart.go", startLine: 3, endLine: 9, empty: false };
const plan = [
  { content: "Find where the total is computed", status: "completed", priority: "high" },
  { content: "Correct the loop and take the count of each item into it", status: "in_progress", priority: "high" },
  { content: "Add a test", status: "pending", priority: "low" },
];
const queue = [{ id: "a", text: "Then write a changelog entry", attachments: 0 }, { id: "b", text: "and bump the version", attachments: 0 }];
const test = "go test -race ./...";
const tests = {
  sessionUpdate: "tool_call", toolCallId: "r", title: test, kind: "execute", status: "in_progress", rawInput: { command: test },
  content: [{ type: "content", content: { type: "text", text: `\`\`\`\n${["cart", "checkout", "ledger", "mail", "store", "web"].map((n) => `\u001b[32mok\u001b[0m  \tshop/${n}\t0.21s`).join("\n")}\n\`\`\`` } }],
  _meta: { pillion: { terminalId: "x" } },
};

/** Name → what stands in it from left to right: a width, and what the host says. */
const pictures = {
  panel: [
    [300, { title: "", builtinOnly: true, selection, options: S.options.map((o) => (o.id === "model" ? { ...o, currentValue: "builtin/quickfix" } : o)) }],
    [420, { running: true, usage, selection, approvals: [S.approval()], plan }, S.turn],
    [700, { usage, selection }, [...S.turn, ...S.after], { end: "end_turn", open: ["t3", "t4"] }],
  ],
  cards: [
    [300, { running: true, usage, approvals: [S.commandApproval, S.approval()] }, S.turn.slice(0, 4)],
    [420, { running: true, runningSince: 1, usage, plan, queue, selection }, [...S.turn.slice(0, 4), tests], { draft: "Also look at @checkout.go", open: ["r"], unfoldPlan: true }],
    [700, { running: true, usage, questions: [{ ...S.question, message: S.question.fields[0].description }] }, S.turn.slice(0, 7)],
  ],
};

/** Takes them in a theme; `save` is given a name and a PNG. */
export async function panelPictures(browser, theme, save) {
  const panel = await buildPanel();
  for (const [name, parts] of Object.entries(pictures)) {
    const shots = [];
    for (const [width, head, updates = [], more = {}] of parts) {
      const p = await openPanel(browser, panel, { width, height, theme: kinds[theme] });
      const { state, list } = S.entries(panel, updates, { said: updates.length > 0 ? said : undefined, end: more.end });
      if (head.runningSince) head.runningSince = Date.now() - 73_000;
      await p.tell({ type: "snapshot", head: S.head(head), entries: list, draft: S.draft(more.draft), epoch: 1 });
      await p.settle();
      for (const id of more.open ?? []) {
        const title = state.entries.get(id).title;
        const row = p.page.locator('.tool > .row[aria-expanded="false"]', { hasText: title });
        if ((await row.count()) > 0) await row.first().click();
        await p.tell({ type: "detail", id, detail: state.details.get(id) });
      }
      if (more.unfoldPlan) await p.page.locator(".plan .row").click();
      await p.page.waitForFunction(() => !document.querySelector(".decide button:disabled"));
      await p.page.mouse.move(2, height - 2); // over nothing that shows more then
      await p.settle();
      shots.push({ width, png: (await p.page.screenshot()).toString("base64") });
      await p.close();
    }
    const gap = 8; // px
    const page = await browser.newPage({ viewport: { width: shots.reduce((sum, s) => sum + s.width + gap, gap), height: height + 2 * gap } });
    await page.setContent(`<body style="margin:0;padding:${gap}px;display:flex;gap:${gap}px;background:#808080">${shots.map((s) => `<img width="${s.width}" height="${height}" src="data:image/png;base64,${s.png}">`).join("")}</body>`);
    await page.waitForFunction(() => [...document.images].every((i) => i.complete));
    save(name, await page.screenshot());
    await page.close();
  }
  rmSync(panel.out, { recursive: true, force: true });
}
