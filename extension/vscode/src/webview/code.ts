/** A block of code: coloured, with copy, insert and apply; it grows while it is streamed. */
import type { Bus } from "./bus";
import { h, iconButton, setText, type Props } from "./dom";
import { Highlighter } from "./highlight";

/** Lines in one element: the browser can then lay out a long block in parts. */
const chunk = 60;
/** Lines that are coloured; longer blocks are rarely read in a panel. */
const coloured = 2000;

export class CodeBlock {
  readonly el: HTMLElement;
  private readonly body = h("code");
  private highlighter: Highlighter;
  private readonly language: string;
  private text = "";
  /** Length of the text in whole lines that are drawn. */
  private drawn = 0;
  private lines = 0;
  private rest: HTMLElement | undefined;
  private at: HTMLElement | undefined;

  constructor(bus: Bus, text: string, info: string) {
    const [language = "", ...more] = info.split(/\s+/);
    this.language = language.replace(/^\{?\.?|\}$/g, "").split(":")[0] ?? "";
    const name = (language.includes(":") ? language.split(":").slice(1).join(":") : more.join(" ")).replace(/^(title|file|path)=/, "").replace(/"/g, "");
    this.highlighter = new Highlighter(this.language);
    const tab: Props = { tab: -1 };
    const send = (action: "insert" | "apply" | "copy") => bus.post({ type: "code", action, text: this.text, language: this.language, ...(name ? { path: name } : {}) });
    const copy = iconButton("copy", "Copy", () => {
      send("copy");
      bus.say("Copied");
    }, tab);
    this.el = h("div", { class: "code" },
      h("div", { class: "code-head" }, h("span", { class: "code-name" }, name || this.language || "text"),
        h("span", { class: "code-actions" }, copy, iconButton("insert", "Insert at the cursor", () => send("insert"), tab), iconButton("replace", name ? `Apply to ${name}` : "Apply to the active file", () => send("apply"), tab))),
      h("pre", { tab: -1, role: "group", aria: { label: `Code ${name || this.language}`.trim() } }, this.body));
    this.grow(text);
  }

  /** Sets the text: the same, or the same with more at the end. */
  grow(text: string): void {
    if (!text.startsWith(this.text)) {
      this.body.replaceChildren();
      this.drawn = this.lines = 0;
      this.rest = this.at = undefined;
      this.highlighter = new Highlighter(this.language);
    }
    this.text = text;
    for (let end = text.indexOf("\n", this.drawn); end >= 0; end = text.indexOf("\n", this.drawn)) {
      this.rest?.remove();
      this.rest = undefined;
      this.line(text.slice(this.drawn, end));
      this.drawn = end + 1;
    }
    const rest = text.slice(this.drawn);
    if (rest === "") return;
    if (!this.rest) {
      this.rest = h("span", { class: "line" });
      this.place().append(this.rest);
    }
    setText(this.rest, rest);
  }

  private line(text: string): void {
    const el = h("span", { class: "line" });
    if (this.lines >= coloured) el.append(text);
    else for (const s of this.highlighter.line(text)) el.append(s.kind ? h("span", { class: `hl-${s.kind}` }, s.text) : s.text);
    el.append("\n");
    this.place().append(el);
    this.lines++;
  }

  private place(): HTMLElement {
    if (!this.at || this.at.childElementCount >= chunk) {
      this.at = h("span", { class: "lines" });
      this.body.append(this.at);
    }
    return this.at;
  }
}
