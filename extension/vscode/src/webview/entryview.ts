/** The interface of a drawn entry of any kind, as the transcript uses it. */
import type { Detail, Entry } from "../common/view";
import type { Bus } from "./bus";
import type { Store } from "./store";

export interface View {
  readonly el: HTMLElement;
  update(e: Entry): void;
  append?(text: string): void;
  /** A detail arrived for it, or for an entry inside it. */
  detail?(id: string, detail: Detail): void;
  toggle?(): void;
  dispose?(): void;
}

/** Draws an entry. A card with entries inside gets this function, so that it need not know their kinds. */
export type CreateView = (e: Entry, store: Store, bus: Bus) => View;
