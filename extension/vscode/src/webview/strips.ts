/** The strips between the transcript and the composer: plan, restored state, queue. The state of the connection is
 * above all others. */
import type { Head } from "../common/view";
import type { Bus } from "./bus";
import { button, h, icon, iconButton, plural, setChildren, shortPath } from "./dom";
import { counts, fileRow } from "./tool";

/** Draws again only if the shown state has changed. */
class Strip {
  private shown: string | undefined;

  constructor(readonly el: HTMLElement, private readonly draw: (head: Head) => Node[] | undefined, private readonly of: (head: Head) => unknown) {
    el.hidden = true;
  }

  update(head: Head): void {
    const key = JSON.stringify(this.of(head) ?? null);
    if (key === this.shown) return;
    this.shown = key;
    this.again(head);
  }

  again(head: Head): void {
    const nodes = this.draw(head);
    this.el.hidden = nodes === undefined;
    setChildren(this.el, nodes ?? []);
  }
}

const statusIcon = { pending: "circle-outline", in_progress: "play", completed: "pass-filled" } as const;

export function planStrip(bus: Bus): Strip {
  let open = false;
  const el = h("section", { class: "plan", aria: { label: "Plan" } });
  const strip: Strip = new Strip(el, ({ plan }) => {
    if (plan.length === 0) return undefined;
    const done = plan.filter((p) => p.status === "completed").length;
    const now = plan.find((p) => p.status === "in_progress") ?? plan.find((p) => p.status === "pending");
    const head = h("button", { class: "row", aria: { expanded: String(open) }, click: () => {
      open = !open;
      strip.again(bus.head());
      el.querySelector<HTMLElement>(".row")?.focus();
    } }, icon("checklist", "kind"), h("span", { class: "title" }, `Plan ${String(done)}/${String(plan.length)}`, h("span", { class: "muted" }, !open && now ? ` · ${now.content}` : "")), icon("chevron-right", "twist"));
    el.classList.toggle("open", open);
    return [head, ...(open ? [h("ol", { class: "plan-list" }, ...plan.map((p) => h("li", { class: p.status }, icon(statusIcon[p.status]), h("span", {}, p.content, h("span", { class: "sr" }, p.status === "completed" ? " (done)" : p.status === "in_progress" ? " (now)" : "")))))] : [])];
  }, (h2) => h2.plan);
  return strip;
}

/** What the last turn wrote without a review: one line for all, unfolded file by file. */
export function changesStrip(bus: Bus): Strip {
  let open = false;
  const el = h("section", { class: "changes", aria: { label: "Changes of the last turn" } });
  const strip: Strip = new Strip(el, ({ changes, cwd }) => {
    if (changes.length === 0) return undefined;
    const act = (action: "keep" | "undo" | "open", path = "") => bus.post({ type: "changes", action, path });
    const row = (path: string, el2: HTMLElement) => {
      el2.tabIndex = 0; // the rows of a card are reached through the card; this list has none
      el2.title = `Open ${shortPath(path, cwd)}`;
      return el2;
    };
    const total = changes.reduce((n, f) => ({ added: n.added + f.added, removed: n.removed + f.removed }), { added: 0, removed: 0 });
    const head = h("div", { class: "changes-head" },
      h("button", { class: "row", aria: { expanded: String(open) }, click: () => {
        open = !open;
        strip.again(bus.head());
        el.querySelector<HTMLElement>(".row")?.focus();
      } }, icon("chevron-right", "twist"), h("span", { class: "title" }, plural(changes.length, "file"), h("span", { class: "sr" }, " changed"), " "), counts(total)),
      button("Keep", "primary small", () => act("keep"), undefined, { title: "Keep all changes of the last turn" }),
      button("Undo", "secondary small", () => act("undo"), undefined, { title: "Undo all changes of the last turn" }),
      iconButton("diff", "Show all changes of the turn", () => act("open")));
    el.classList.toggle("open", open);
    return [head, ...(open ? [h("ul", { class: "changes-list" }, ...changes.map((f) => h("li", {},
      row(f.path, fileRow(f, bus, () => act("open", f.path))),
      iconButton("check", `Keep ${shortPath(f.path, cwd)}`, () => act("keep", f.path)),
      iconButton("discard", `Undo ${shortPath(f.path, cwd)}`, () => act("undo", f.path)))))] : [])];
  }, (h2) => [h2.changes, h2.cwd]);
  return strip;
}

export function revertedStrip(bus: Bus): Strip {
  return new Strip(h("section", { class: "reverted", role: "status" }), ({ reverted }) =>
    reverted && [icon("history"), h("span", { class: "grow" }, reverted.entries > 0 ? `Restored: removed ${plural(reverted.entries, "entry", "entries")}. The next message continues from here.` : "Files restored."), button("Redo", "secondary", () => bus.post({ type: "redo" }), "redo")], (h2) => h2.reverted);
}

export function queueStrip(bus: Bus): Strip {
  let editing: string | undefined;
  const el = h("section", { class: "queue", aria: { label: "Queued messages" } });
  const strip: Strip = new Strip(el, ({ queue, queueHeld, can, running }) => {
    if (queue.length === 0) return undefined;
    const row = (q: Head["queue"][number], i: number) => {
      const act = (action: "remove" | "up" | "down" | "steer") => bus.post({ type: "queue", action, id: q.id });
      if (editing === q.id) return editor(q);
      return h("li", {}, h("span", { class: "queue-text", title: q.text }, q.text.split("\n")[0] || "(attachment)", q.attachments > 0 && h("span", { class: "muted" }, ` +${plural(q.attachments, "attachment")}`)),
        q.steer && h("span", { class: "muted queue-when" }, "at the next step"),
        h("span", { class: "queue-actions" },
          can.steer && !q.steer && running && iconButton("insert", "Steer: add to the running turn", () => act("steer")),
          !q.steer && i > 0 && !queue[i - 1]?.steer && iconButton("arrow-up", "Earlier", () => act("up")),
          !q.steer && i < queue.length - 1 && iconButton("arrow-down", "Later", () => act("down")),
          iconButton("edit", "Edit", () => {
            editing = q.id;
            strip.again(bus.head());
            el.querySelector("textarea")?.focus();
          }),
          iconButton("trash", "Remove", () => act("remove"))));
    };
    const editor = (q: Head["queue"][number]) => {
      const field = h("textarea", { class: "field", aria: { label: "Edit the queued message" } });
      field.value = q.text;
      field.rows = Math.min(6, q.text.split("\n").length + 1);
      const end = (save: boolean) => {
        editing = undefined;
        if (save && field.value.trim()) bus.post({ type: "queue", action: "edit", id: q.id, text: field.value });
        strip.again(bus.head());
      };
      field.addEventListener("keydown", (e) => {
        if (e.key === "Enter" && !e.shiftKey && !e.isComposing) end(true);
        else if (e.key === "Escape") end(false);
        else return;
        e.preventDefault();
        e.stopPropagation();
      });
      return h("li", { class: "editing" }, field, h("div", { class: "actions" }, button("Save", "primary", () => end(true)), button("Cancel", "secondary", () => end(false))));
    };
    return [h("div", { class: "strip-title" }, icon("list-ordered"), h("span", { class: "grow" }, `${plural(queue.length, "message")} ${queueHeld && !running ? "held" : "waiting"}`), queueHeld && !running && button("Go on", "secondary small", () => bus.post({ type: "queue", action: "resume", id: "" }), "play")), h("ol", {}, ...queue.map(row))];
  }, (h2) => [h2.queue, h2.queueHeld, h2.can.steer, h2.running]);
  return strip;
}

const states: Record<Head["connection"]["state"], string> = {
  starting: "Starting Pillion…", restarting: "Restarting Pillion…", failed: "Pillion is not running", noFolder: "No folder is open", untrusted: "This folder is not trusted", quiet: "Pillion is not responding", ready: "",
};

export function connectionStrip(bus: Bus): Strip {
  return new Strip(h("section", { class: "connection", role: "status" }), ({ connection: c }) => {
    if (c.state === "ready" || (c.state === "starting" && !c.message)) return undefined;
    const busy = c.state === "starting" || c.state === "restarting";
    return [icon(busy ? "loading" : c.state === "failed" ? "error" : c.state === "quiet" ? "warning" : "info", busy ? "spin" : c.state === "failed" ? "error" : ""),
      h("div", { class: "notice-body" }, h("div", { class: "notice-title" }, states[c.state]), c.message && h("div", { class: "notice-text" }, c.message),
        c.actions.length > 0 && h("div", { class: "actions" }, ...c.actions.map((a, i) => button(a.label, i === 0 ? "primary" : "secondary", () => bus.post({ type: "action", id: a.id })))))];
  }, (h2) => h2.connection);
}
