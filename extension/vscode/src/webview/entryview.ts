/** What the transcript knows of an entry that is drawn, whatever its kind. */
import type { Detail, Entry } from "../common/view";
import type { Bus } from "./bus";
import type { Store } from "./store";

export interface View {
  readonly el: HTMLElement;
  update(e: Entry): void;
  append?(text: string): void;
  /** A detail for it, or for an entry inside it. */
  detail?(id: string, detail: Detail): void;
  toggle?(): void;
  dispose?(): void;
}

/** Draws an entry. A card that has entries inside gets this, for it draws them without knowing their kinds. */
export type CreateView = (e: Entry, store: Store, bus: Bus) => View;
