/**
 * The transcript: only entries near the visible part exist as elements. The heights of the others are measured or
 * estimated. If an estimate was wrong, the browser's scroll anchoring keeps the visible text in place.
 */
import type { Op } from "../common/messages";
import type { Entry } from "../common/view";
import type { Bus } from "./bus";
import { h, setChildren } from "./dom";
import { createView, labelOf } from "./entries";
import type { View } from "./entryview";
import type { Store } from "./store";

/** Pixels above and below the visible part that are drawn. */
const over = 600;
/** Milliseconds of a frame for drawing entries. */
const budget = 8;
/** This close to the end, in pixels, counts as at the end. */
const nearEnd = 24;
/** Milliseconds after a wheel, key or pointer event in which scrolling counts as the person's. */
const gestureTime = 1000;

interface Row {
  el: HTMLElement;
  view?: View;
}

export class Transcript {
  readonly el = h("div", { class: "transcript", tab: 0 });
  readonly jump = h("button", { class: "jump", hidden: true, title: "To the newest" });
  private readonly above = h("div", { class: "spacer" });
  private readonly below = h("div", { class: "spacer" });
  private readonly list = h("div", { class: "entries" });
  private readonly rows = new Map<string, Row>();
  private readonly heights = new Map<string, number>();
  private readonly sizes: ResizeObserver;
  private scheduled = false;
  private stick = true;
  /** Its place and size when it was last measured, in pixels. */
  private lastTop = 0;
  private lastClient = 0;
  private lastScroll = 0;
  /** When the person last did something that scrolls. */
  private gesture = -Infinity;
  private active: string | undefined;
  private tops: number[] = [0];
  private topsStale = true;

  constructor(private readonly store: Store, private readonly bus: Bus, tail: HTMLElement) {
    this.el.append(this.above, this.list, this.below, tail);
    this.sizes = new ResizeObserver((changes) => this.measured(changes));
    this.el.addEventListener("scroll", () => this.scrolled(), { passive: true });
    for (const kind of ["wheel", "touchmove", "pointerdown", "keydown"]) this.el.addEventListener(kind, () => (this.gesture = performance.now()), { passive: true });
    this.el.addEventListener("keydown", (e) => this.key(e));
    this.el.addEventListener("focusin", (e) => this.focused(e.target as Element));
    this.jump.addEventListener("click", () => this.toEnd());
    this.jump.setAttribute("aria-label", "To the newest");
    new ResizeObserver(() => this.schedule()).observe(this.el);
    new ResizeObserver(() => this.follow()).observe(tail);
  }

  /** The copy of the entries was replaced. */
  reset(): void {
    for (const [id, row] of this.rows) this.drop(id, row);
    this.heights.clear();
    this.topsStale = true;
    this.stick = true;
    this.frame();
  }

  /** The copy of the entries was changed by these ops. */
  changed(ops: readonly Op[]): void {
    for (const op of ops) {
      if (op.op === "put" && this.sentJustNow(op.entry)) this.stick = true;
      const id = op.op === "put" ? op.entry.id : op.op === "cut" ? "" : op.id;
      const e = this.store.entries.get(id);
      if (op.op === "cut" || op.op === "remove") {
        for (const [rowId, row] of this.rows) if (!this.store.entries.has(rowId)) this.drop(rowId, row);
      } else if (e) this.changedEntry(op, e);
    }
    this.topsStale = true;
    this.schedule();
  }

  detail(id: string, detail: Parameters<NonNullable<View["detail"]>>[1]): void {
    let top = this.store.entries.get(id);
    while (top?.parent !== undefined && this.store.entries.has(top.parent)) top = this.store.entries.get(top.parent);
    this.rows.get(top?.id ?? "")?.view?.detail?.(id, detail);
  }

  toEnd(): void {
    this.stick = true;
    this.el.scrollTop = this.el.scrollHeight;
    this.schedule();
  }

  focus(): void {
    const id = this.active !== undefined && this.store.entries.has(this.active) ? this.active : this.store.order[this.store.order.length - 1];
    if (id === undefined) this.el.focus();
    else this.go(id);
  }

  /** A prompt that was sent from this window: unlike all others it has no id of the sidecar yet. */
  private sentJustNow(e: Entry): boolean {
    return e.kind === "user" && e.parent === undefined && e.messageId === undefined && !this.rows.has(e.id) && !this.heights.has(e.id);
  }

  private changedEntry(op: Op, e: Entry): void {
    if (e.parent !== undefined) {
      let top: Entry | undefined = e;
      while (top?.parent !== undefined) top = this.store.entries.get(top.parent);
      if (top) this.rows.get(top.id)?.view?.update(top);
      return;
    }
    const view = this.rows.get(e.id)?.view;
    if (!view) return;
    if (op.op === "append" && view.append) view.append(op.text);
    else view.update(e);
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.frame();
    });
  }

  /** Draws what is near, removes what is far, and continues in the next frame when the time is used up. */
  private frame(): void {
    const order = this.store.order;
    this.describe(order.length > 0);
    const tops = this.positions();
    const end = tops[order.length] ?? 0;
    const height = this.el.clientHeight;
    const at = this.stick ? Math.max(0, end - height) : this.el.scrollTop;
    const from = Math.max(0, indexAt(tops, at - over));
    const to = Math.min(order.length, indexAt(tops, at + height + over) + 1);
    const wanted = order.slice(from, to);
    const near = new Set(wanted);
    for (const [id, row] of this.rows) if (!near.has(id)) this.drop(id, row);
    for (const [i, id] of wanted.entries()) this.row(id, from + i);
    this.above.style.height = `${String(tops[from] ?? 0)}px`;
    this.below.style.height = `${String(end - (tops[to] ?? end))}px`;
    setChildren(this.list, wanted.flatMap((id) => this.rows.get(id)?.el ?? []));
    this.fill(wanted, tops, from, at, height);
    this.follow();
  }

  /** Without articles the element must not have the role "feed". */
  private describe(full: boolean): void {
    if (this.el.hasAttribute("role") === full) return;
    if (full) {
      this.el.setAttribute("role", "feed");
      this.el.setAttribute("aria-label", "Conversation");
    } else for (const a of ["role", "aria-label"]) this.el.removeAttribute(a);
    this.el.tabIndex = full ? 0 : -1;
  }

  private fill(wanted: string[], tops: number[], from: number, at: number, height: number): void {
    const middle = at + height / 2;
    const empty = wanted.map((id, i) => ({ id, distance: Math.abs((tops[from + i] ?? 0) - middle) })).filter(({ id }) => !this.rows.get(id)?.view);
    empty.sort((a, b) => a.distance - b.distance);
    const until = performance.now() + budget;
    for (const [n, { id }] of empty.entries()) {
      const row = this.rows.get(id);
      const e = this.store.entries.get(id);
      if (!row || !e) continue;
      if (n > 0 && performance.now() > until) {
        this.schedule();
        return;
      }
      row.view = createView(e, this.store, this.bus);
      row.el.style.minHeight = "";
      row.el.append(row.view.el);
      row.el.dataset["kind"] = e.kind;
      row.el.setAttribute("aria-label", labelOf(e));
    }
  }

  private row(id: string, index: number): void {
    let row = this.rows.get(id);
    if (!row) {
      row = { el: h("div", { class: "entry", role: "article", tab: -1 }) };
      row.el.dataset["id"] = id;
      row.el.style.minHeight = `${String(this.guess(id))}px`;
      this.rows.set(id, row);
      this.sizes.observe(row.el);
    }
    row.el.setAttribute("aria-posinset", String(index + 1));
    row.el.setAttribute("aria-setsize", String(this.store.order.length));
  }

  private drop(id: string, row: Row): void {
    if (row.el.contains(document.activeElement)) this.el.focus({ preventScroll: true });
    this.sizes.unobserve(row.el);
    row.view?.dispose?.();
    row.el.remove();
    this.rows.delete(id);
  }

  private measured(changes: ResizeObserverEntry[]): void {
    let moved = false;
    for (const c of changes) {
      const el = c.target as HTMLElement;
      const id = el.dataset["id"] ?? "";
      const height = c.borderBoxSize[0]?.blockSize ?? el.offsetHeight;
      if (!this.rows.get(id)?.view || this.heights.get(id) === height) continue;
      this.heights.set(id, height);
      moved = true;
    }
    if (!moved) return;
    this.topsStale = true;
    this.follow();
    this.schedule();
  }

  /** Where each entry begins, and where the last one ends. */
  private positions(): number[] {
    if (!this.topsStale) return this.tops;
    this.topsStale = false;
    let y = 0;
    this.tops = [0];
    for (const id of this.store.order) this.tops.push((y += this.heights.get(id) ?? this.guess(id)));
    return this.tops;
  }

  private guess(id: string): number {
    const known = this.heights.get(id);
    if (known !== undefined) return known;
    const e = this.store.entries.get(id);
    const width = Math.max(200, this.el.clientWidth - 32);
    if (e?.kind === "text" || e?.kind === "user") return 28 + Math.ceil((e.text.length * 6.5) / width) * 20;
    return e?.kind === "notice" ? 56 : 30;
  }

  /**
   * Whether to stay at the end. Only the person leaves the end: if a card or an output is folded, the browser moves the
   * visible part too, and new text would then be out of sight.
   */
  private scrolled(): void {
    const top = this.el.scrollTop;
    const fromEnd = this.el.scrollHeight - top - this.el.clientHeight;
    const laidOut = this.el.clientHeight !== this.lastClient || this.el.scrollHeight !== this.lastScroll;
    const person = !laidOut || performance.now() - this.gesture < gestureTime;
    if (fromEnd < 4) this.stick = true;
    else if (person && (top < this.lastTop - 1 || fromEnd > nearEnd)) this.stick = false;
    if (this.stick) this.follow();
    else this.noteLayout();
    this.jump.hidden = this.stick;
    this.schedule();
  }

  private noteLayout(): void {
    this.lastTop = this.el.scrollTop;
    this.lastClient = this.el.clientHeight;
    this.lastScroll = this.el.scrollHeight;
  }

  /** If the view is at the end, it stays there. */
  private follow(): void {
    if (this.stick) {
      const top = this.el.scrollHeight - this.el.clientHeight;
      if (Math.abs(this.el.scrollTop - top) > 1) this.el.scrollTop = top;
      this.noteLayout();
    }
    this.jump.hidden = this.stick;
  }

  private focused(target: Element): void {
    const el = target.closest<HTMLElement>(".entry");
    for (const b of this.el.querySelectorAll<HTMLElement>(".entry.active [tabindex='0']")) b.tabIndex = -1;
    this.el.querySelector(".entry.active")?.classList.remove("active");
    if (!el) return;
    this.active = el.dataset["id"];
    el.classList.add("active");
    this.openTabs(el);
  }

  /** Buttons in the focused entry are reached by Tab; those of other entries are not. */
  private openTabs(el: Element): void {
    for (const b of el.querySelectorAll<HTMLElement>("button, [role=link], [role=button], summary, pre")) b.tabIndex = 0;
  }

  private key(e: KeyboardEvent): void {
    const onEntry = e.target === this.el || (e.target as Element).classList.contains("entry");
    const order = this.store.order;
    const at = order.indexOf(this.active ?? "");
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 }[e.key];
    if (step !== undefined && onEntry) this.go(order[Math.max(0, Math.min(order.length - 1, (at < 0 ? order.length : at) + step))]);
    else if (e.key === "Home" && onEntry) this.go(order[0]);
    else if (e.key === "End" && onEntry) this.go(order[order.length - 1]);
    else if ((e.key === "Enter" || e.key === " ") && onEntry && this.active !== undefined) this.rows.get(this.active)?.view?.toggle?.();
    else if ((e.key === "ArrowLeft" || e.key === "Backspace") && !onEntry) (e.target as Element).closest<HTMLElement>(".entry")?.focus();
    else return;
    e.preventDefault();
    const active = this.active !== undefined ? this.rows.get(this.active)?.el : undefined;
    if (active) this.openTabs(active);
  }

  private go(id: string | undefined): void {
    if (id === undefined) return;
    this.active = id;
    if (!this.rows.get(id)?.view) {
      this.stick = false;
      this.el.scrollTop = (this.positions()[this.store.order.indexOf(id)] ?? 0) - 40;
      this.frame();
    }
    this.rows.get(id)?.el.focus();
    this.rows.get(id)?.el.scrollIntoView({ block: "nearest" });
  }
}

/** The last entry that begins at y or above. */
function indexAt(tops: number[], y: number): number {
  let low = 0;
  let high = tops.length - 1;
  while (low < high) {
    const mid = (low + high + 1) >> 1;
    if ((tops[mid] ?? 0) <= y) low = mid;
    else high = mid - 1;
  }
  return low;
}
