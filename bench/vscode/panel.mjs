// How smooth the VS Code panel is, in a headless Chromium with the page as it ships:
//   open    5,000 entries, until the last one is drawn
//   scroll  through all of them, a screen in a few frames
//   stream  an answer of 20,000 deltas at 1,000 a second, joined as the extension's host joins them
// A frame counts by the longest task of the page's main thread in it, from Chromium's own trace: processor time, so that other
// work on the machine does not count; "wall" is the same by the clock. The trace of the stream is
// kept beside this file (stream.trace.json.gz: open it in chrome://tracing or DevTools); panel.json has the numbers.
//
//   node bench/vscode/panel.mjs [--keep]
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { gzipSync } from "node:zlib";
import { buildPanel, launch, openPanel } from "../../extension/vscode/test/webview/page.mjs";
import * as scenes from "../../extension/vscode/test/webview/scenes.mjs";

const keep = process.argv.includes("--keep");
const sample = readFileSync(new URL("../../extension/vscode/test/webview/sample.md", import.meta.url), "utf8");
const panel = await buildPanel();
const browser = await launch();
const result = { when: new Date().toISOString(), cpus: cpus().length, load: loadavg()[0], chromium: browser.version() };

const entries = Array.from({ length: 5000 }, (_, i) => {
  if (i % 10 === 0) return { kind: "user", id: `u${i}`, text: `Question ${i}: why is the total wrong?`, attachments: [] };
  if (i % 3 === 0) return { kind: "text", id: `m${i}`, text: `Answer **${i}**\n\n${sample.slice((i * 37) % 400, ((i * 37) % 400) + 500)}` };
  return { kind: "tool", id: `t${i}`, title: `read file${i}.go`, toolKind: "read", status: "completed", locations: [{ path: `/p/file${i}.go` }], files: [], detail: true };
});

/** Runs something with a trace; gives the main thread's tasks in milliseconds, and the trace. */
async function traced(p, run) {
  const client = await p.page.context().newCDPSession(p.page);
  const events = [];
  client.on("Tracing.dataCollected", ({ value }) => events.push(...value));
  await client.send("Tracing.start", { transferMode: "ReportEvents", traceConfig: { includedCategories: ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline", "__metadata"] } });
  await run();
  const done = new Promise((resolve) => client.once("Tracing.tracingComplete", resolve));
  await client.send("Tracing.end");
  await done;
  const main = events.find((e) => e.name === "thread_name" && e.args?.name === "CrRendererMain" && events.some((x) => x.pid === e.pid && x.name === "FunctionCall"));
  const own = events.filter((e) => e.pid === main.pid && e.tid === main.tid && e.ph === "X");
  const sorted = (of) => own.filter((e) => e.name === "RunTask").map((e) => of(e) / 1000).sort((a, b) => b - a);
  return { tasks: sorted((e) => e.tdur ?? e.dur), wall: sorted((e) => e.dur), trace: [...events.filter((e) => e.ph === "M"), ...own.filter((e) => e.dur > 500)] };
}

const summary = ({ tasks, wall }) => ({ wallLongest: round(wall[0]), wallOver50: wall.filter((t) => t > 50).length, longest: round(tasks[0]), p99: round(tasks[Math.floor(tasks.length / 100)]), over16: tasks.filter((t) => t > 16.7).length, over50: tasks.filter((t) => t > 50).length, tasks: tasks.length });
if (process.argv.includes("--hot")) globalThis.hot = (trace) => {
  const long = trace.filter((e) => /RunTask/.test(e.name) && e.tdur > 20_000).sort((a, b) => b.tdur - a.tdur).slice(0, 5);
  for (const l of long) console.log(l.tdur / 1000, trace.filter((e) => e.ts >= l.ts && e.ts < l.ts + l.dur && e !== l && e.tdur > 2000).map((e) => `${e.name} ${Math.round(e.tdur / 1000)}`).join(", "));
};
const round = (x) => Math.round((x ?? 0) * 10) / 10;

{
  const p = await openPanel(browser, panel, { motion: true });
  result.open5000 = round(await p.page.evaluate(async ([head, entries, draft]) => {
    const began = performance.now();
    window.postMessage({ type: "snapshot", head, entries, draft, epoch: 1 }, "*");
    while (![...document.querySelectorAll(".entry")].some((e) => e.dataset.id === "t4999" && e.childElementCount > 0)) await new Promise((r) => setTimeout(r, 1));
    return performance.now() - began;
  }, [scenes.head(), entries, scenes.draft()]));
  let frames;
  const scroll = await traced(p, async () => {
    frames = await p.page.evaluate(async () => {
      const el = document.querySelector(".transcript");
      const gaps = [];
      let blank = 0; // frames that show an entry which is not drawn yet
      let last = performance.now();
      for (let i = 0; i < 400; i++) {
        el.scrollTop -= el.clientHeight / 4;
        await new Promise((r) => requestAnimationFrame(r));
        gaps.push(performance.now() - last);
        const { top, bottom } = el.getBoundingClientRect();
        for (const e of document.querySelectorAll(".entry")) {
          const r = e.getBoundingClientRect();
          if (e.childElementCount === 0 && r.bottom > top && r.top < bottom) {
            blank++;
            break;
          }
        }
        last = performance.now();
      }
      return { gaps: gaps.sort((a, b) => b - a), blank };
    });
  });
  result.scroll = { ...summary(scroll), frameMedian: round(frames.gaps[200]), frameP95: round(frames.gaps[20]), frames: frames.gaps.length, blank: frames.blank, heapMB: round((await p.page.evaluate(() => performance.memory.usedJSHeapSize)) / 1e6) };
  await p.close();
}

{
  const p = await openPanel(browser, panel, { motion: true });
  const { state } = scenes.entries(panel, [], { said: "Explain everything" });
  await p.tell({ type: "snapshot", head: scenes.head({ running: true, runningSince: Date.now() }), entries: [...state.entries.values()], draft: scenes.draft(), epoch: 1 });
  state.take();
  const answer = Array.from({ length: 140 }, (_, i) => sample.replace("# Title", `# Part ${i}`)).join("\n").match(/[\s\S]{1,5}/g).slice(0, 20_000);
  const stream = await traced(p, async () => {
    const began = Date.now();
    for (let at = 0; at < answer.length; ) {
      const due = Math.min(answer.length, Date.now() - began);
      for (; at < due; at++) state.apply({ sessionUpdate: "agent_message_chunk", messageId: "m1", content: { type: "text", text: answer[at] } }, Date.now());
      const { ops } = state.take();
      if (ops.length > 0) await p.tell({ type: "ops", ops, epoch: 1 });
      await new Promise((r) => setTimeout(r, 25));
    }
    await p.settle();
  });
  globalThis.hot?.(stream.trace);
  result.stream20000 = summary(stream);
  result.streamCharacters = answer.join("").length;
  if (keep) writeFileSync(new URL("./stream.trace.json.gz", import.meta.url), gzipSync(JSON.stringify({ traceEvents: stream.trace }), { level: 9 }));
  await p.close();
}

await browser.close();
rmSync(panel.out, { recursive: true, force: true });
result.loadAfter = loadavg()[0];
result.commit = execFileSync("git", ["rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
console.log(JSON.stringify(result, null, 2));
if (process.env.PILLION_BENCH_JSON) writeFileSync(process.env.PILLION_BENCH_JSON, JSON.stringify(result));
if (keep) writeFileSync(new URL("./panel.json", import.meta.url), `${JSON.stringify(result, null, 2)}\n`);
