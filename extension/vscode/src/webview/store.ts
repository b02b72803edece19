/** The webview's copy of the host's state. */
import { applyOps, type Op } from "../common/messages";
import { emptyHead, type Entry, type Head } from "../common/view";

export class Store {
  head: Head = emptyHead();
  readonly entries = new Map<string, Entry>();
  /** Ids of the entries of the transcript itself, in order. */
  order: string[] = [];
  private readonly kids = new Map<string, string[]>();

  reset(entries: readonly Entry[]): void {
    this.entries.clear();
    this.kids.clear();
    this.order = [];
    this.apply(entries.map((entry) => ({ op: "put", entry })));
  }

  /** Which entries are new, changed or removed. */
  apply(ops: readonly Op[]): void {
    for (const op of ops) {
      const known = op.op === "put" && this.entries.has(op.entry.id);
      applyOps(this.entries, [op]);
      if (op.op === "put" && !known) this.siblings(op.entry).push(op.entry.id);
      else if (op.op === "cut" || op.op === "remove") {
        this.order = this.order.filter((id) => this.entries.has(id));
        for (const [parent, ids] of this.kids) this.kids.set(parent, ids.filter((id) => this.entries.has(id)));
      }
    }
  }

  /** The text of an entry; "" if it has none. */
  text(id: string | undefined): string {
    const e = id === undefined ? undefined : this.entries.get(id);
    return e?.kind === "text" ? e.text : "";
  }

  children(id: string): Entry[] {
    return (this.kids.get(id) ?? []).flatMap((k) => this.entries.get(k) ?? []);
  }

  private siblings(e: Entry): string[] {
    if (e.parent === undefined || e.parent === e.id) return this.order;
    const list = this.kids.get(e.parent) ?? [];
    this.kids.set(e.parent, list);
    return list;
  }
}
