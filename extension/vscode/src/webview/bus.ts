/** What parts of the panel need of each other: a way to the host, and to say something. */
import type { ToHost } from "../common/messages";
import type { Head } from "../common/view";

export interface Bus {
  post(message: ToHost): void;
  /** Reads something out; politely, in its turn. */
  say(text: string): void;
  head(): Head;
}
