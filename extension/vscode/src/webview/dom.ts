/** Creates elements. Text is always set as text: nothing in this folder parses HTML. */

type Child = Node | string | undefined | null | false;

export interface Props {
  class?: string;
  title?: string;
  role?: string;
  tab?: number;
  hidden?: boolean;
  disabled?: boolean;
  aria?: Record<string, string | undefined>;
  data?: Record<string, string>;
  click?: (e: MouseEvent) => void;
}

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const el = document.createElement(tag);
  if (props.class) el.className = props.class;
  if (props.title) el.title = props.title;
  if (props.role) el.setAttribute("role", props.role);
  if (props.tab !== undefined) el.tabIndex = props.tab;
  if (props.hidden) el.hidden = true;
  if (props.disabled) el.setAttribute("disabled", "");
  for (const [k, v] of Object.entries(props.aria ?? {})) if (v !== undefined) el.setAttribute(`aria-${k}`, v);
  for (const [k, v] of Object.entries(props.data ?? {})) el.dataset[k] = v;
  if (props.click) el.addEventListener("click", props.click as EventListener);
  el.append(...children.filter((c): c is Node | string => c !== undefined && c !== null && c !== false));
  return el;
}

/** Codicons by name, so that the style sheet need not contain them all. */
const glyphs = {
  account: 0xeb99, add: 0xea60, agent: 0xec67, attach: 0xec34, check: 0xeab2, checklist: 0xeab3, "chevron-down": 0xeab4, "chevron-right": 0xeab6,
  "chevron-up": 0xeab7, "circle-filled": 0xea71, "circle-outline": 0xeabc, "circle-slash": 0xeabd, close: 0xea76, copy: 0xebcc, "debug-stop": 0xead7,
  diff: 0xeae1, discard: 0xeae2, edit: 0xea73, error: 0xea87, "arrow-down": 0xea9a, "arrow-up": 0xeaa1, file: 0xea7b, "file-media": 0xeaea, "file-pdf": 0xeaeb,
  folder: 0xea83, "git-compare": 0xeafd, globe: 0xeb01, "go-to-file": 0xea94, history: 0xea82, info: 0xea74, insert: 0xec11, key: 0xeb11, layers: 0xebd2,
  lightbulb: 0xea61, "link-external": 0xeb14, loading: 0xeb19, mention: 0xeb1f, output: 0xeb9d, "pass-filled": 0xebb3, play: 0xeb2c, question: 0xeb32,
  redo: 0xebb0, replace: 0xeb3d, rocket: 0xeb44, search: 0xea6d, send: 0xec0f, settings: 0xeb52, shield: 0xeb53, sparkle: 0xec10, "symbol-misc": 0xeb63,
  "symbol-method": 0xea8c, "list-selection": 0xeb85, terminal: 0xea85, thinking: 0xec59, tools: 0xeb6d, trash: 0xea81, wand: 0xebcf, warning: 0xea6c,
  rename: 0xec61, "debug-pause": 0xead1, "new-file": 0xea7f, "comment-discussion": 0xeac7, hubot: 0xeb08, sync: 0xea77, "list-ordered": 0xeb16,
} as const;

export type Icon = keyof typeof glyphs;

export function icon(name: Icon, cls = ""): HTMLElement {
  return h("span", { class: `icon ${cls}`, aria: { hidden: "true" } }, String.fromCharCode(glyphs[name]));
}

export function isIcon(name: string): name is Icon {
  return Object.hasOwn(glyphs, name);
}

/** A button with only an icon; its label is the accessible name and the tooltip. */
export function iconButton(name: Icon, label: string, click: (e: MouseEvent) => void, props: Props = {}): HTMLButtonElement {
  const b = h("button", { ...props, class: `ghost ${props.class ?? ""}`, title: label, aria: { label, ...props.aria }, click }, icon(name));
  b.type = "button";
  return b;
}

export function button(label: string, cls: string, click: (e: MouseEvent) => void, before?: Icon, props: Props = {}): HTMLButtonElement {
  const b = h("button", { ...props, class: cls, click }, before && icon(before), h("span", {}, label));
  b.type = "button";
  return b;
}

/** Sets a text only if it differs, so that it is not laid out or announced again. */
export function setText(el: Element, text: string): void {
  if (el.textContent !== text) el.textContent = text;
}

/** Makes these elements the children of a parent, with as few moves as possible. */
export function setChildren(parent: Element, children: readonly Node[]): void {
  let at = parent.firstChild;
  for (const c of children) {
    if (at === c) at = at.nextSibling;
    else parent.insertBefore(c, at);
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
}

export function baseName(path: string): string {
  return path.replace(/[\\/]+$/, "").split(/[\\/]/).pop() || path;
}

/** A path as shown to a person: relative to the project's folder. */
export function shortPath(path: string, cwd: string): string {
  const folder = cwd.replace(/[\\/]+$/, "");
  return folder && (path.startsWith(`${folder}/`) || path.startsWith(`${folder}\\`)) ? path.slice(folder.length + 1) : path;
}

export function duration(ms: number): string {
  const s = ms / 1000;
  if (s < 0.95) return `${String(Math.max(0, Math.round(s * 10) / 10))} s`;
  if (s < 60) return `${String(s < 10 ? Math.round(s * 10) / 10 : Math.round(s))} s`;
  return `${String(Math.floor(s / 60))} min ${String(Math.round(s % 60))} s`;
}

export function plural(n: number, one: string, many = `${one}s`): string {
  return `${String(n)} ${n === 1 ? one : many}`;
}
