/** The input for prompts. Its text is never lost: each change is stored here at once, and then sent to the host. */
import type { Found, SendHow } from "../common/messages";
import { limits } from "../common/messages";
import type { Attachment, Draft, Head, Mention } from "../common/view";
import type { Bus } from "./bus";
import { button, h, icon, iconButton, setChildren } from "./dom";
import { filesOf, readAttachment, tooMuch } from "./files";
import type { Kept } from "./kept";
import { PickerBar } from "./pickers";
import { Suggest, type Suggestion } from "./suggest";

export class Composer {
  readonly el = h("div", { class: "composer" });
  private readonly input = h("textarea", { class: "input", role: "combobox", aria: { label: "Message to Pillion", expanded: "false", autocomplete: "list", haspopup: "listbox" } });
  private readonly mirror = h("div", { class: "mirror", aria: { hidden: "true" } });
  private readonly chips = h("div", { class: "chips" });
  private readonly actions = h("div", { class: "send-actions" });
  private readonly problem = h("div", { class: "problem-text", role: "alert", hidden: true });
  private readonly suggest: Suggest;
  private readonly pickers: PickerBar;
  private mentions: Mention[] = [];
  private attachments: Attachment[] = [];
  /** Attachments that the host has. */
  private readonly known = new Set<string>();
  private request = 0;
  /** The place of the person in the history; its length: at the present text. */
  private at = -1;
  private parked = "";
  private shown = "";
  /** Whether the host has sent the stored text; before that, nothing may be sent that would replace it. */
  private begun = false;

  constructor(private readonly bus: Bus, private readonly kept: Kept) {
    this.input.rows = 1;
    this.input.spellcheck = false;
    this.suggest = new Suggest(this.input);
    this.pickers = new PickerBar(bus);
    const box = h("div", { class: "box" }, this.chips, h("div", { class: "grow-box" }, this.mirror, this.input),
      h("div", { class: "bar" },
        iconButton("mention", "Mention a file, symbol, problem …", () => this.startMention(), { class: "mention-button" }),
        iconButton("attach", "Attach a picture or PDF (or hold Shift and drop files here)", () => bus.post({ type: "pickFile" })),
        this.pickers.el, this.actions));
    this.el.append(this.suggest.el, this.problem, box);
    this.listen(box);
    this.update(bus.head());
  }

  update(head: Head): void {
    this.pickers.update(head);
    const has = this.hasContent();
    const key = JSON.stringify([head.running, has, head.can.steer, head.selection, head.selectionOff, this.attachments.map((a) => a.id), head.approvals.length > 0]);
    if (key === this.shown) return;
    this.shown = key;
    this.input.placeholder = head.running ? "Queue or steer a message" : "Ask Pillion or describe a task";
    this.drawActions(head, has);
    this.drawChips(head);
  }

  focus(): void {
    this.input.focus();
  }

  /** Called with the text that was stored before this panel existed. What the person has typed since stays after it.
   * Later calls change nothing, because the present text is newer. */
  begin(draft: Draft): void {
    if (this.begun) return;
    this.begun = true;
    this.before(this.kept.newest(draft));
  }

  set(draft: Draft, mode: "replace" | "insert" | "back"): void {
    if (mode === "back") return this.before(draft);
    if (mode === "insert") {
      this.mentions.push(...draft.mentions);
      this.insert(draft.text);
    } else {
      this.input.value = draft.text;
      this.mentions = [...draft.mentions];
      this.attachments = [];
    }
    this.addAttachments(draft.attachments, true);
    this.edited();
  }

  /** Inserts text before the present one; the caret stays at its character. */
  private before(draft: Draft): void {
    const { value, selectionStart: from, selectionEnd: to } = this.input;
    const first = draft.text !== "" && value !== "" && !/\s$/.test(draft.text) ? `${draft.text}\n` : draft.text;
    this.input.value = first + value;
    this.input.setSelectionRange(first.length + from, first.length + to);
    this.mentions.unshift(...draft.mentions);
    this.addAttachments(draft.attachments, true);
  }

  addAttachments(list: readonly Attachment[], fromHost: boolean): void {
    for (const a of list) {
      const why = tooMuch(a, this.attachments);
      if (why) this.complain(why);
      else if (!this.attachments.some((b) => b.id === a.id)) {
        this.attachments.push(a);
        if (fromHost) this.known.add(a.id);
      }
    }
    this.edited();
  }

  complain(text: string): void {
    this.problem.textContent = text;
    this.problem.hidden = text === "";
  }

  found(request: number, items: readonly Found[]): void {
    if (request !== this.request) return; // the answer to an older query
    const range = this.mentionRange();
    if (!range) return;
    this.suggest.show(items.map((f) => ({ icon: f.icon, name: f.name, detail: f.detail, hits: f.hits, take: () => this.takeMention(f.mention) })), "Mention");
  }

  /** Sends a text that is not the draft, from a button. */
  sendText(text: string): void {
    this.bus.post({ type: "send", draft: { text, mentions: [], attachments: [] }, how: "prompt" });
  }

  private listen(box: HTMLElement): void {
    this.input.addEventListener("input", () => {
      this.at = -1;
      this.complain("");
      this.edited();
      this.look();
    });
    this.input.addEventListener("keydown", (e) => this.key(e));
    this.input.addEventListener("scroll", () => (this.mirror.scrollTop = this.input.scrollTop));
    this.input.addEventListener("blur", () => setTimeout(() => document.activeElement !== this.input && this.suggest.hide(), 0));
    this.input.addEventListener("click", () => this.look());
    this.input.addEventListener("paste", (e) => {
      const files = [...(e.clipboardData?.files ?? [])];
      if (files.length === 0) return;
      e.preventDefault();
      void this.takeFiles(files); // the panel shows errors
    });
    box.addEventListener("dragover", (e) => {
      e.preventDefault();
      box.classList.add("over");
    });
    box.addEventListener("dragleave", () => box.classList.remove("over"));
    box.addEventListener("drop", (e) => {
      e.preventDefault();
      box.classList.remove("over");
      this.drop(e.dataTransfer);
    });
  }

  private drop(data: DataTransfer | null): void {
    const named = data ? filesOf(data) : [];
    for (const m of named) {
      this.mentions.push(m);
      this.insert(`${m.label} `);
    }
    const files = [...(data?.files ?? [])];
    if (named.length === 0 && files.length === 0) this.insert(data?.getData("text/plain") ?? "");
    else if (named.length === 0) void this.takeFiles(files);
    this.edited();
    this.focus();
  }

  private async takeFiles(files: File[]): Promise<void> {
    for (const f of files) {
      const a = await readAttachment(f);
      if (typeof a === "string") this.complain(a);
      else this.addAttachments([a], false);
    }
  }

  private hasContent(): boolean {
    return this.input.value.trim() !== "" || this.attachments.length > 0;
  }

  private draft(): Draft {
    const text = this.input.value;
    const attachments = this.attachments.map((a) => (this.known.has(a.id) ? { ...a, data: "" } : a));
    for (const a of this.attachments) this.known.add(a.id);
    return { text, mentions: this.mentions.filter((m) => text.includes(m.label)), attachments };
  }

  private edited(): void {
    this.drawMirror();
    if (this.begun) this.tell();
    else this.kept.writeEarly(this.input.value);
    this.update(this.bus.head());
  }

  private tell(): void {
    const draft = this.draft();
    draft.at = this.kept.write(draft);
    this.bus.post({ type: "draft", draft });
  }

  /** After a change of the text: sets the height of the field and colours mentions. */
  private drawMirror(): void {
    const text = this.input.value;
    const labels = [...new Set(this.mentions.map((m) => m.label))].filter((l) => text.includes(l)).sort((a, b) => b.length - a.length);
    const parts: (string | HTMLElement)[] = [];
    let rest = text;
    while (rest !== "" && labels.length > 0) {
      const hits = labels.map((l) => ({ l, i: rest.indexOf(l) })).filter((x) => x.i >= 0).sort((a, b) => a.i - b.i || b.l.length - a.l.length);
      const hit = hits[0];
      if (!hit) break;
      parts.push(rest.slice(0, hit.i), h("mark", {}, hit.l));
      rest = rest.slice(hit.i + hit.l.length);
    }
    this.mirror.replaceChildren(...parts, `${rest}\u200b`);
  }

  private send(how: SendHow): void {
    if (!this.hasContent()) return;
    const draft = this.draft();
    draft.at = this.kept.write({ text: "", mentions: [], attachments: [] }, draft.text);
    this.bus.post({ type: "send", draft, how });
    this.input.value = "";
    this.mentions = [];
    this.attachments = [];
    this.at = -1;
    this.complain("");
    this.suggest.hide();
    this.edited();
  }

  private key(e: KeyboardEvent): void {
    if (e.isComposing) return;
    if (this.suggest.key(e)) return;
    const head = this.bus.head();
    if (e.key === "Enter" && !e.shiftKey && !e.altKey) {
      e.preventDefault();
      // Enter only sends or queues; it never answers an approval request
      this.send(head.running ? ((e.ctrlKey || e.metaKey) && head.can.steer ? "steer" : "queue") : "prompt");
    } else if (e.key === "Escape" && head.running) {
      e.preventDefault();
      this.bus.post({ type: "stop" });
    } else if ((e.key === "ArrowUp" || e.key === "ArrowDown") && !e.shiftKey && this.history(e.key === "ArrowUp" ? -1 : 1)) e.preventDefault();
  }

  /** Up in the first line and Down in the last one go through the history. */
  private history(step: -1 | 1): boolean {
    const { history } = this.bus.head();
    const { value, selectionStart: from, selectionEnd: to } = this.input;
    if (from !== to || history.length === 0) return false;
    const inside = step < 0 ? value.slice(0, from).includes("\n") || (from > 0 && this.at < 0) : value.slice(to).includes("\n");
    const at = this.at < 0 ? history.length : this.at;
    const next = at + step;
    if (inside || next < 0 || next > history.length || (this.at < 0 && step > 0)) return false;
    if (this.at < 0) this.parked = value;
    this.at = next === history.length ? -1 : next;
    this.input.value = this.at < 0 ? this.parked : (history[next] ?? "");
    const end = step < 0 ? 0 : this.input.value.length;
    this.input.setSelectionRange(end, end);
    this.edited();
    return true;
  }

  private startMention(): void {
    const before = this.input.value.slice(0, this.input.selectionStart);
    this.focus();
    this.insert(before === "" || /\s$/.test(before) ? "@" : " @");
    this.edited();
    this.look();
  }

  /** The @word at the caret. */
  private mentionRange(): { from: number; to: number; query: string } | undefined {
    const to = this.input.selectionStart;
    if (to !== this.input.selectionEnd) return undefined;
    const m = /(?:^|[\s(])@([^\s@]*)$/.exec(this.input.value.slice(0, to));
    return m ? { from: to - (m[1] ?? "").length - 1, to, query: m[1] ?? "" } : undefined;
  }

  private look(): void {
    const range = this.mentionRange();
    if (range) {
      if (!this.mentions.some((m) => m.label === `@${range.query}`)) this.bus.post({ type: "search", request: ++this.request, query: range.query });
      else this.suggest.hide();
      return;
    }
    this.request++;
    const m = /^\/([\w:-]*)$/.exec(this.input.value.slice(0, this.input.selectionStart));
    if (m) this.suggest.show(this.commands(m[1] ?? ""), "Commands");
    else this.suggest.hide();
  }

  private commands(query: string): Suggestion[] {
    const q = query.toLowerCase();
    const all = this.bus.head().commands.filter((c) => c.name.toLowerCase().includes(q));
    all.sort((a, b) => Number(b.name.toLowerCase().startsWith(q)) - Number(a.name.toLowerCase().startsWith(q)));
    return all.map((c) => {
      const at = c.name.toLowerCase().indexOf(q);
      return {
        icon: "play", name: `/${c.name}`, detail: c.description, hits: q ? Array.from(q, (_, i) => at + i + 1) : [],
        take: () => {
          const rest = this.input.value.slice(this.input.selectionStart);
          this.input.value = `/${c.name}${rest.startsWith(" ") ? "" : " "}${rest}`;
          const end = c.name.length + 2;
          this.input.setSelectionRange(end, end);
          this.suggest.hide();
          this.edited();
        },
      };
    });
  }

  private takeMention(m: Mention): void {
    const range = this.mentionRange();
    this.suggest.hide();
    if (!range) return;
    this.input.setRangeText(`${m.label} `, range.from, range.to, "end");
    this.mentions.push(m);
    this.edited();
  }

  private insert(text: string): void {
    const { value, selectionStart: from, selectionEnd: to } = this.input;
    const gap = text !== "" && from > 0 && !/\s$/.test(value.slice(0, from)) && !text.startsWith(" ") && !text.startsWith("\n") ? " " : "";
    this.input.setRangeText(gap + text, from, to, "end");
  }

  private drawActions(head: Head, has: boolean): void {
    const focused = this.actions.contains(document.activeElement);
    const nodes: HTMLElement[] = [];
    if (!head.running) {
      nodes.push(iconButton("arrow-up", "Send (Enter)", () => this.send("prompt"), { class: "send", disabled: !has }));
    } else {
      if (has) {
        nodes.push(button("Queue", "secondary small", () => this.send("queue"), "list-ordered", { title: "Send after this turn (Enter)" }));
        if (head.can.steer) nodes.push(button("Steer", "secondary small", () => this.send("steer"), "insert", { title: "Steer: add to the running turn (Ctrl+Enter)" }));
      }
      nodes.push(iconButton("debug-stop", "Stop (Escape)", () => this.bus.post({ type: "stop" }), { class: "stop" }));
    }
    setChildren(this.actions, nodes);
    if (focused) this.input.focus();
  }

  private drawChips(head: Head): void {
    const nodes: HTMLElement[] = [];
    const s = head.selection;
    if (s) {
      const where = s.empty ? s.name : `${s.name}:${s.startLine === s.endLine ? String(s.startLine) : `${String(s.startLine)}–${String(s.endLine)}`}`;
      const on = !head.selectionOff;
      const chip = h("button", {
        class: `chip selection${on ? "" : " off"}`, title: on ? `${s.path}\nSent with your message. Click to leave it out.` : `${s.path}\nNot sent with your message. Click to include it.`,
        aria: { pressed: String(on), label: `${s.empty ? "Open file" : "Selection"} ${where}, sent with the message` }, click: () => this.bus.post({ type: "selection", on: !on }),
      }, icon(s.empty ? "file" : "list-selection"), h("span", { class: "chip-text" }, where), icon(on ? "check" : "add", "chip-state"));
      chip.type = "button";
      nodes.push(chip);
    }
    for (const a of this.attachments) nodes.push(this.attachmentChip(a));
    setChildren(this.chips, nodes);
    this.chips.hidden = nodes.length === 0;
  }

  private attachmentChip(a: Attachment): HTMLElement {
    const picture = h("img", { class: "chip-thumb" });
    picture.alt = "";
    const shows = /^image\/(png|jpeg|gif|webp)$/.test(a.mime) && a.data !== "";
    if (shows) picture.src = `data:${a.mime};base64,${a.data}`;
    return h("span", { class: "chip", title: `${a.name}, ${size(a.size)}` }, shows ? picture : icon(a.mime === "application/pdf" ? "file-pdf" : "file-media"), h("span", { class: "chip-text" }, a.name),
      iconButton("close", `Remove ${a.name}`, () => {
        this.attachments = this.attachments.filter((b) => b.id !== a.id);
        this.complain("");
        this.edited();
        this.focus();
      }));
  }
}

export function size(bytes: number): string {
  return bytes >= 1 << 20 ? `${(bytes / (1 << 20)).toFixed(1)} MB` : `${String(Math.max(1, Math.round(bytes / 1024)))} kB`;
}

export const limitText = `pictures up to ${size(limits.image)}, PDFs up to ${size(limits.pdf)}, ${size(limits.total)} together`;
