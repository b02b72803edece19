/** The change of a file to read and copy, whatever was decided about it. */
import type { FileDiff } from "../common/view";
import type { Bus } from "./bus";
import { h, iconButton, plural, shortPath } from "./dom";
import { visible } from "./visible";

/** Lines that are drawn at first. */
const first = 120;

export function diffView(f: FileDiff, bus: Bus, named: boolean): HTMLElement {
  const pre = h("pre", { class: "diff", tab: -1, role: "group", aria: { label: `Change to ${shortPath(f.path, bus.head().cwd)}` } });
  const draw = (from: number, to: number) => {
    for (const l of f.lines.slice(from, to)) {
      const cls = l.sign === "+" ? "add" : l.sign === "-" ? "del" : l.sign === "@" ? "at" : "";
      pre.append(h("span", { class: `dl ${cls}` }, ...visible(l.sign === "@" ? l.text : `${l.sign}${l.text.replace(/\r$/, "")}`), "\n"));
    }
  };
  draw(0, first);
  const box = h("div", { class: "diff-box" }, named && h("div", { class: "diff-name" }, ...visible(shortPath(f.path, bus.head().cwd))), pre,
    h("div", { class: "output-actions" },
      iconButton("copy", "Copy the new lines", () => bus.post({ type: "copy", text: f.lines.filter((l) => l.sign === "+").map((l) => `${l.text}\n`).join("") }), { tab: -1 })));
  const left = f.lines.length - first;
  if (left > 0) {
    const b = h("button", { class: "link more", tab: -1 }, `Show ${plural(left, "more line")}`);
    b.addEventListener("click", () => {
      draw(first, f.lines.length);
      b.remove();
    });
    box.append(b);
  }
  if (f.more > 0) box.append(h("div", { class: "muted more" }, `${plural(f.more, "line")} left out; open the file's change to see all`));
  return box;
}
