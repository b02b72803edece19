/** The panel before the first message: what can be done at once, and what else there is. */
import type { Head } from "../common/view";
import type { Bus } from "./bus";
import { button, h, icon, setChildren, type Icon } from "./dom";

interface Try {
  icon: Icon;
  label: string;
  detail: string;
  text: string;
}

const tries: Try[] = [
  { icon: "wand", label: "Fix the problems", detail: "What the language servers report, as a change to review", text: "/fix" },
  { icon: "lightbulb", label: "Explain the problems", detail: "What they mean and what causes them", text: "/explain" },
  { icon: "list-ordered", label: "Organize imports", detail: "In the active file", text: "/organize-imports" },
];

const modelTries: Try[] = [
  { icon: "search", label: "Explain this project", detail: "A tour of what is where", text: "Explain how this project is organised: its main parts, entry points and how they fit together." },
  { icon: "wand", label: "Fix the problems", detail: "What the language servers report, as a change to review", text: "/fix" },
  { icon: "checklist", label: "Write a missing test", detail: "For code without tests", text: "Find an important function without a test and write one." },
];

export class Empty {
  readonly el = h("div", { class: "empty" });
  private shown = "";

  constructor(private readonly bus: Bus, private readonly send: (text: string) => void) {}

  update(head: Head, hasEntries: boolean): void {
    const show = !hasEntries && head.connection.state !== "failed" && head.connection.state !== "restarting" && !head.running;
    this.el.hidden = !show;
    const key = JSON.stringify([show, head.connection.state, head.builtinOnly, head.selection?.name, head.busy]);
    if (!show || key === this.shown) return;
    this.shown = key;
    const one = (t: Try) => h("button", { class: "try", click: () => this.send(t.text) }, icon(t.icon), h("span", { class: "try-text" }, h("span", { class: "try-label" }, t.label), h("span", { class: "muted" }, t.detail)));
    setChildren(this.el, [
      h("div", { class: "empty-mark", aria: { hidden: "true" } }, icon("sparkle")),
      h("div", { class: "empty-title", role: "heading", aria: { level: "2" } }, "What do you want to work on?"),
      h("p", { class: "muted empty-lead" }, "You see every change first: as a diff, with the problems it fixes and introduces."),
      ...(head.connection.state === "noFolder" ? [] : [h("div", { class: "tries" }, ...(head.builtinOnly ? tries : modelTries).map(one))]), // these are about a project
      ...(head.builtinOnly ? [h("div", { class: "builtin" }, h("p", {}, "The built-in model needs no API key and no network. It fixes and explains what language servers report."),
        h("div", { class: "actions" }, button("Add a key for a large model", "secondary", () => this.bus.post({ type: "action", id: "addKey" }), "key"), button("Choose a model", "secondary", () => this.bus.post({ type: "action", id: "chooseModel" }))))] : []),
      h("p", { class: "muted hints" }, ...[["@", "files and more"], ["/", "commands"], ["↑", "earlier messages"]].map(([key, what]) => h("span", { class: "hint" }, h("kbd", {}, key), ` ${what ?? ""}`))),
    ]);
  }
}
