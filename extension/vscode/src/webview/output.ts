/** The output of a command or tool, with a terminal's colours. */
import type { Detail } from "../common/view";
import { ansiLines } from "./ansi";
import type { Bus } from "./bus";
import { button, h, iconButton } from "./dom";

/** Lines that are drawn; the others can be read in the editor. */
const maxLines = 400;

export function outputView(d: Detail, bus: Bus, id: string, running: boolean): HTMLElement {
  const { text, notes } = splitNotes(d.output ?? "");
  const all = ansiLines(text);
  const lines = all.slice(-maxLines);
  const left = all.length - lines.length > 0 || (d.omitted ?? 0) > 0;
  const pre = h("pre", { class: `output${running ? " live" : ""}`, tab: -1, role: "group", aria: { label: "Output" } });
  for (const [i, line] of lines.entries()) {
    for (const p of line) {
      if (!p.style) pre.append(p.text);
      else {
        const span = h("span", {}, p.text);
        span.style.cssText = p.style;
        pre.append(span);
      }
    }
    if (i < lines.length - 1) pre.append("\n");
  }
  if (running) queueMicrotask(() => (pre.scrollTop = pre.scrollHeight));
  return h("div", { class: "output-box" },
    left && h("div", { class: "muted more" }, button("Earlier output is hidden; show all in an editor", "link", () => bus.post({ type: "showOutput", id }), undefined, { tab: -1 })),
    lines.length > 0 && pre,
    lines.length > 0 && h("div", { class: "output-actions" },
      iconButton("copy", "Copy the output", () => bus.post({ type: "copy", text: all.map((l) => l.map((p) => p.text).join("")).join("\n") }), { tab: -1 }),
      iconButton("go-to-file", "Show in an editor", () => bus.post({ type: "showOutput", id }), { tab: -1 })),
    notes && h("div", { class: "muted notes" }, notes));
}

/** Separates the notes that the sidecar adds for the model from the command's output. */
function splitNotes(text: string): { text: string; notes: string } {
  const m = /\n*<bash_metadata>\n([\s\S]*?)\n<\/bash_metadata>\s*$/.exec(text);
  // the card's row shows the exit code already
  return m ? { text: text.slice(0, m.index), notes: (m[1] ?? "").replace(/^exit code: -?\d+\n?/gm, "").trim() } : { text, notes: "" };
}
