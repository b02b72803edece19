/** Mode, model and the other options of the session, and how full the context is. */
import type { SessionConfigOption, SessionConfigSelectGroup, SessionConfigSelectOption } from "../common/protocol";
import type { Head } from "../common/view";
import type { Bus } from "./bus";
import { h, icon, setChildren, type Icon } from "./dom";
import { money } from "./entries";
import { Menu, type MenuItem } from "./menu";

const order = ["mode", "model", "thought_level", "permission"];
const icons: Record<string, Icon> = { mode: "agent", model: "sparkle", thought_level: "lightbulb", permission: "shield", review: "git-compare" };

export class PickerBar {
  readonly el = h("div", { class: "pickers" });
  private readonly meter = h("span", { class: "meter", role: "img" });
  private readonly buttons = new Map<string, HTMLButtonElement>();
  private shown = "";

  constructor(private readonly bus: Bus) {}

  update(head: Head): void {
    const key = JSON.stringify([head.options, head.usage]);
    if (key === this.shown) return;
    this.shown = key;
    const list = head.options.filter((o) => items(o).length > 0);
    list.sort((a, b) => rank(a) - rank(b));
    // Options of another maker's agent may have one icon and values such as "On"; then their names tell them apart.
    const alike = (o: SessionConfigOption): boolean => list.filter((x) => iconOf(x) === iconOf(o)).length > 1;
    setChildren(this.el, [...list.map((o) => this.button(o, alike(o))), ...(head.usage ? [this.drawMeter(head.usage)] : [])]);
  }

  private button(o: SessionConfigOption, named: boolean): HTMLElement {
    const now = items(o).find((i) => i.current);
    let b = this.buttons.get(o.id);
    if (!b) {
      b = h("button", { aria: { haspopup: "listbox", expanded: "false" }, click: () => this.open(o.id) });
      b.type = "button";
      this.buttons.set(o.id, b);
    }
    b.className = `picker p-${o.category ?? o.id}`;
    b.title = `${o.name}: ${now?.label ?? ""}${o.description ? `\n${o.description}` : ""}`;
    b.setAttribute("aria-label", `${o.name}: ${now?.label ?? ""}`);
    setChildren(b, [icon(iconOf(o)), ...(named ? [h("span", { class: "picker-letter" }, o.name.slice(0, 1).toUpperCase())] : []), h("span", { class: "picker-text" }, `${named ? `${o.name}: ` : ""}${shortName(now?.label ?? "")}`), icon("chevron-down", "twist")]);
    return b;
  }

  private open(id: string): void {
    const o = this.bus.head().options.find((x) => x.id === id);
    const anchor = this.buttons.get(id);
    if (!o || !anchor) return;
    const all = items(o);
    Menu.open(anchor, { label: o.name, filter: all.length > 8, items: all, pick: (value) => this.bus.post({ type: "config", id, value }) });
  }

  private drawMeter(u: NonNullable<Head["usage"]>): HTMLElement {
    const part = u.size > 0 ? Math.min(1, u.used / u.size) : 0;
    const percent = Math.round(part * 100);
    const cost = u.cost ? money(u.cost, u.currency) : "";
    const label = `Context: ${u.used.toLocaleString("en")} of ${u.size.toLocaleString("en")} tokens (${String(percent)} %)${cost ? `; cost so far ${cost}` : ""}`;
    this.meter.title = label;
    this.meter.setAttribute("aria-label", label);
    this.meter.classList.toggle("full", part > 0.85);
    const ring = h("span", { class: "ring" });
    ring.style.setProperty("--part", `${String(percent)}%`);
    setChildren(this.meter, [ring, h("span", { class: "meter-text" }, cost || `${String(percent)}%`)]);
    return this.meter;
  }
}

function iconOf(o: SessionConfigOption): Icon {
  return icons[o.category ?? ""] ?? icons[o.id] ?? (o.id.includes("review") ? "git-compare" : "settings");
}

function rank(o: SessionConfigOption): number {
  const i = order.indexOf(o.category ?? o.id);
  return i < 0 ? order.length : i;
}

function items(o: SessionConfigOption): MenuItem[] {
  if (o.type === "boolean") {
    return [true, false].map((v) => ({ id: String(v), label: v ? "On" : "Off", current: o.currentValue === v }));
  }
  const one = (x: SessionConfigSelectOption, group?: string): MenuItem => ({ id: x.value, label: x.name, detail: x.description ?? (x.name !== x.value && o.category === "model" ? x.value : undefined), current: x.value === o.currentValue, group });
  return (o.options ?? []).flatMap((x: SessionConfigSelectOption | SessionConfigSelectGroup) => ("options" in x ? x.options.map((y) => one(y, x.name)) : [one(x)]));
}

/** "provider/model" → "model": the full name is in the tooltip. */
function shortName(label: string): string {
  return label.split("/").pop() ?? label;
}
