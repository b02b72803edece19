/**
 * Draws the model's Markdown while it is streamed. markdown-it parses it without HTML; its tokens are drawn here, with
 * text as text. Nothing is loaded: images become links, and the host checks the scheme of links. Finished blocks are
 * drawn once; only the last block is drawn again when more text arrives.
 */
import MarkdownIt, { type Token } from "markdown-it";
import { CodeBlock } from "./code";
import { button, h, plural } from "./dom";
import type { Bus } from "./bus";
import { plain } from "./visible";

const parser = new MarkdownIt({ html: false, linkify: true, typographer: false, breaks: false });
parser.validateLink = (href) => safeLink(href) !== undefined || !/^[a-z][a-z0-9+.-]*:/i.test(href.trim());

/** Items of a streamed list after which the finished ones are moved into an element of their own. */
const longList = 24;
/** Blocks in one element. */
const partSize = 12;
/** Rows of a table that are drawn at a time. */
const manyRows = 500;

export function safeLink(href: string): string | undefined {
  const s = href.trim();
  return /^(https?|mailto|file):/i.test(s) && s.length < 4096 ? s : undefined;
}

export class Markdown {
  readonly el = h("div", { class: "md" });
  private text = "";
  /** Where the unfinished block begins. */
  private stable = 0;
  private openNodes: Node[] = [];
  private openCode: CodeBlock | undefined;
  private fence: { start: number; mark: RegExp; seen: number } | undefined;
  private streams = false;
  private nextAt = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly bus: Bus) {}

  set(text: string): void {
    if (text === this.text) return;
    if (text.startsWith(this.text) && this.text !== "") return this.append(text.slice(this.text.length));
    this.text = text;
    this.redraw();
  }

  append(more: string): void {
    this.text += more;
    this.streams = true;
    // a block that is slow to draw is drawn less often
    const wait = this.nextAt - performance.now();
    if (wait <= 0) this.draw();
    else this.timer ??= setTimeout(() => this.draw(), wait);
  }

  /** The text is complete. A reference at its end may define a link far above it, so it is parsed as a whole. */
  close(): void {
    if (/^ {0,3}\[[^\]\n]+\]:/m.test(this.text) && this.stable > 0) this.redraw();
    else this.draw();
  }

  private redraw(): void {
    this.streams = false;
    this.el.replaceChildren();
    this.stable = 0;
    this.openNodes = [];
    this.openCode = this.fence = undefined;
    this.draw();
  }

  private draw(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    const began = performance.now();
    if (!this.growFence()) this.drawTail();
    const took = performance.now() - began;
    this.nextAt = performance.now() + took * 4;
  }

  /** Inside an unfinished block of code new text is only appended. */
  private growFence(): boolean {
    if (!this.fence || !this.openCode) return false;
    const body = this.text.slice(this.fence.start);
    // only lines that were not complete before can be the closing fence
    if (this.fence.mark.test(body.slice(this.fence.seen))) return false;
    this.fence.seen = body.lastIndexOf("\n") + 1;
    this.openCode.grow(body);
    return true;
  }

  private drawTail(): void {
    const tail = this.text.slice(this.stable);
    const tokens = parser.parse(tail, {});
    const starts = lineStarts(tail);
    const blocks = topBlocks(tokens);
    const last = blocks[blocks.length - 1];
    for (const n of this.openNodes) n.parentNode?.removeChild(n);
    this.openNodes = [];
    this.openCode = this.fence = undefined;
    for (const b of blocks) {
      const node = this.block(b);
      this.place().append(node);
      if (b === last) this.openNodes = [node];
    }
    if (!last) return;
    const lastLine = last[0]?.map?.[0] ?? 0;
    this.stable += starts[lastLine] ?? 0;
    if (last[0]?.type === "fence") this.watchFence(last[0], this.openNodes[0]);
    else if (last[0]?.type.endsWith("list_open")) this.splitList(last);
  }

  /** The place for blocks: elements with a few of them each, so that a growing block does not make the browser lay
   * out those before it. */
  private place(): Element {
    const part = this.el.lastElementChild;
    if (part && part.childElementCount < partSize) return part;
    // finished blocks that were on the screen are laid out again only while they are visible
    if (this.streams) part?.classList.add("done");
    const next = h("div", { class: part ? "part" : "part first" });
    this.el.append(next);
    return next;
  }

  private watchFence(t: Token, node: Node | undefined): void {
    const code = this.codes.get(node as Element);
    const open = this.text.slice(this.stable).indexOf("\n");
    if (!code || open < 0 || /^\s*[>\-*+\d]/.test(this.text.slice(this.stable))) return;
    const mark = (t.markup[0] ?? "`").replace("`", "\\`");
    this.fence = { start: this.stable + open + 1, mark: new RegExp(`^ {0,3}${mark}{${String(t.markup.length)},}[ \\t]*$`, "m"), seen: 0 };
    this.openCode = code;
  }

  private readonly codes = new WeakMap<Element, CodeBlock>();

  /** In a long list that still grows, all items before the last one are finished. */
  private splitList(tokens: Token[]): void {
    const items = tokens.filter((t) => t.type === "list_item_open" && t.level === 1);
    const lastItem = items[items.length - 1];
    if (items.length < longList || !lastItem?.map) return;
    const tail = this.text.slice(this.stable);
    const at = lineStarts(tail)[lastItem.map[0]];
    const list = this.openNodes[0] as Element | undefined;
    const rest = list?.lastElementChild;
    if (at === undefined || !list || !rest) return;
    const again = h(list.tagName === "OL" ? "ol" : "ul", { class: "continued" }, rest);
    if (again instanceof HTMLOListElement) again.start = Number(/^\d+/.exec(tail.slice(at).trim())?.[0] ?? 1);
    this.place().append(again);
    this.openNodes = [again];
    this.stable += at;
  }

  private block(tokens: Token[]): Node {
    const rows = tokens[0]?.type === "table_open" ? tokens.flatMap((t, i) => (t.type === "tr_open" ? [i] : [])) : [];
    if (rows.length > manyRows + 1) return this.longTable(tokens, rows.slice(1));
    const root = this.fill(tokens);
    return root.childNodes.length === 1 && root.firstChild ? root.firstChild : h("div", {}, root);
  }

  /** A table whose further rows are drawn on request. */
  private longTable(tokens: Token[], rows: number[]): Node {
    const end = tokens.findIndex((t) => t.type === "tbody_close");
    const el = this.fill([...tokens.slice(0, rows[0]), ...tokens.slice(end)]).firstElementChild;
    const body = el?.querySelector("tbody");
    if (!el || !body) return h("div");
    let drawn = 0;
    const more = button("", "link more", () => draw(), undefined, { tab: -1 });
    const draw = () => {
      const next = drawn + manyRows;
      body.append(this.fill(tokens.slice(rows[drawn], rows[next] ?? end)));
      drawn = Math.min(next, rows.length);
      const left = rows.length - drawn;
      more.textContent = left > manyRows ? `Show ${String(manyRows)} more of ${plural(left, "row")}` : `Show ${plural(left, "more row")}`;
      if (left === 0) more.remove();
    };
    el.append(more);
    draw();
    return el;
  }

  private fill(tokens: Token[]): DocumentFragment {
    const root = document.createDocumentFragment();
    const stack: (Element | DocumentFragment)[] = [root];
    for (const t of tokens) {
      const top = stack[stack.length - 1] ?? root;
      if (t.nesting === 1) {
        const el = this.open(t);
        top.append(el);
        // a wide table scrolls without the rest
        stack.push(t.type === "table_open" ? (el.firstElementChild ?? el) : el);
      } else if (t.nesting === -1) stack.pop();
      else if (t.type === "inline") top.append(...inline(t.children ?? [], this.bus));
      else if (t.type === "fence" || t.type === "code_block") {
        const code = new CodeBlock(this.bus, t.content, t.info.trim());
        this.codes.set(code.el, code);
        top.append(code.el);
      } else if (t.type === "hr") top.append(h("hr"));
      else top.append(t.content);
    }
    return root;
  }

  private open(t: Token): HTMLElement {
    switch (t.tag) {
      case "h1":
      case "h2":
      case "h3":
      case "h4":
      case "h5":
      case "h6":
        return h("div", { class: `heading ${t.tag}`, role: "heading", aria: { level: String(Number(t.tag[1]) + 2) } });
      case "table":
        return h("div", { class: "table", tab: -1 }, h("table"));
      case "ol": {
        const ol = h("ol");
        if (attr(t, "start") !== "") ol.start = Number(attr(t, "start")) || 1;
        return ol;
      }
      case "p":
        return t.hidden ? h("span", { class: "tight" }) : h("p");
      case "th":
      case "td": {
        const cell = h(t.tag);
        const align = /text-align:(left|right|center)/.exec(attr(t, "style"))?.[1];
        if (align) cell.style.textAlign = align;
        return cell;
      }
      case "ul":
      case "li":
      case "blockquote":
      case "thead":
      case "tbody":
      case "tr":
        return h(t.tag);
    }
    return h("div");
  }
}

function attr(t: Token, name: string): string {
  return String(t.attrs?.find(([k]) => k === name)?.[1] ?? "");
}

function topBlocks(tokens: Token[]): Token[][] {
  const out: Token[][] = [];
  for (const t of tokens) {
    if (t.level === 0 && t.nesting !== -1) out.push([t]);
    else out[out.length - 1]?.push(t);
  }
  return out;
}

function lineStarts(text: string): number[] {
  const out = [0];
  for (let i = text.indexOf("\n"); i >= 0; i = text.indexOf("\n", i + 1)) out.push(i + 1);
  return out;
}

function inline(tokens: Token[], bus: Bus): Node[] {
  const root = document.createDocumentFragment();
  const stack: (Element | DocumentFragment)[] = [root];
  for (const t of tokens) {
    const top = stack[stack.length - 1] ?? root;
    if (t.nesting === -1) {
      stack.pop();
      continue;
    }
    if (t.nesting === 1) {
      const el = t.type === "link_open" ? link(attr(t, "href"), bus) : h(t.tag === "em" ? "em" : t.tag === "s" ? "s" : "strong");
      top.append(el);
      stack.push(el);
      continue;
    }
    if (t.type === "code_inline") top.append(codeSpan(t.content, bus));
    else if (t.type === "softbreak") top.append("\n");
    else if (t.type === "hardbreak") top.append(h("br"));
    else if (t.type === "image") {
      // an image would be fetched from an address that the model chose; it becomes a link
      const a = link(attr(t, "src"), bus);
      a.append(t.content || "picture");
      top.append(a);
    } else top.append(t.content);
  }
  return [...root.childNodes];
}

/** Without href, so that only the host can open it. */
function link(href: string, bus: Bus): HTMLElement {
  const target = decode(href);
  const a = h("span", { class: "link", role: "link", tab: -1, title: plain(target) });
  const go = (e: Event) => {
    e.preventDefault();
    bus.post(safeLink(href) ? { type: "link", href } : { type: "open", ...placeOf(target) });
  };
  a.addEventListener("click", go);
  a.addEventListener("keydown", (e) => {
    if (e.key === "Enter") go(e);
  });
  return a;
}

function decode(s: string): string {
  try {
    return decodeURI(s);
  } catch {
    return s;
  }
}

/** A place in a file, such as "src/a.go:12" or "src/a.go#L12". */
function placeOf(s: string): { path: string; line?: number } {
  const m = /^(.*?)(?::(\d+)(?::\d+)?|#L(\d+)(?:-L?\d+)?)?$/.exec(s);
  const line = Number(m?.[2] ?? m?.[3]);
  return { path: m?.[1] ?? s, line: line > 0 ? line : undefined };
}

/** Inline code; if it looks like a file, a click opens it. */
function codeSpan(content: string, bus: Bus): HTMLElement {
  const code = h("code", {}, content);
  if (!/^(?:[\w.@-]+[\\/])*[\w@-][\w.@-]*\.\w{1,8}(?::\d+(?::\d+)?)?$/.test(content) || !/[\\/]|:\d/.test(content)) return code;
  code.classList.add("place");
  code.setAttribute("role", "link");
  code.tabIndex = -1;
  const go = () => bus.post({ type: "open", ...placeOf(content) });
  code.addEventListener("click", go);
  code.addEventListener("keydown", (e) => {
    if (e.key === "Enter") go();
  });
  return code;
}
