/** A prompt, with the button that restores the state before it. */
import type { Entry, UserEntry } from "../common/view";
import type { Bus } from "./bus";
import { h, icon, iconButton, plural } from "./dom";
import { Menu } from "./menu";
import type { View } from "./entryview";

export class UserView implements View {
  readonly el = h("div", { class: "user" });

  constructor(e: UserEntry, private readonly bus: Bus) {
    this.update(e);
  }

  update(e: Entry): void {
    if (e.kind !== "user") return;
    const more = this.bus.head().can.restore && e.checkpoint !== undefined;
    this.el.replaceChildren(
      h("div", { class: "bubble" },
        e.steered && h("div", { class: "steered" }, icon("insert"), "Steered"),
        h("div", { class: "said" }, e.text),
        e.attachments.length > 0 && h("div", { class: "attachments" }, ...e.attachments.map(picture))),
      h("div", { class: "user-actions" },
        iconButton("copy", "Copy", () => this.bus.post({ type: "copy", text: e.text }), { tab: -1 }),
        more && iconButton("edit", "Edit and send again", (ev) => this.back(ev, e, true), { tab: -1 }),
        more && iconButton("discard", "Restore to before this", (ev) => this.back(ev, e, false), { tab: -1 })),
    );
    this.el.classList.toggle("long", e.text.length > 2000);
  }

  private back(ev: MouseEvent, e: UserEntry, edit: boolean): void {
    const c = e.checkpoint;
    const files = c && c.files > 0 ? `${plural(c.files, "file")} changed since, +${String(c.added)} −${String(c.removed)}` : "no file changed since";
    Menu.open(ev.currentTarget as HTMLElement, {
      label: edit ? "Edit and send again" : "Restore to before this message",
      note: "You can undo this.",
      items: [
        { id: "both", label: "Files and conversation", detail: files, icon: "history" },
        { id: "conversation", label: "Only the conversation", detail: "Files stay as they are", icon: "comment-discussion" },
        ...(edit ? [] : [{ id: "files", label: "Only the files", detail: files, icon: "file" as const }]),
      ],
      pick: (id) => this.bus.post({ type: "restore", entry: e.id, scope: id as "both" | "conversation" | "files", edit }),
    });
  }
}

function picture(a: UserEntry["attachments"][number]): HTMLElement {
  if (a.src !== undefined) {
    const img = h("img", { class: "thumb" });
    img.src = a.src; // a data: address, checked by the host; the page's policy allows no other
    img.alt = a.name;
    return img;
  }
  return h("span", { class: "chip" }, icon(a.mime === "application/pdf" ? "file-pdf" : a.mime.startsWith("image/") ? "file-media" : "file"), a.name);
}
