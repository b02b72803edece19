/** What the parts of the panel share: messages to the host, and announcements. */
import type { ToHost } from "../common/messages";
import type { Head } from "../common/view";

export interface Bus {
  post(message: ToHost): void;
  /** Announces a text to screen readers, after those before it. */
  say(text: string): void;
  head(): Head;
}
