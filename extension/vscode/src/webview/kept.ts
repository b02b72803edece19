/**
 * Stores the text of the composer in the page's storage at each key. A message to the host takes a moment, and a window
 * that is reloaded in that moment would lose it. The page's origin belongs to the extension and stays the same for
 * later windows; `place` separates folders. If the host's text is newer, it is used.
 */
import { isDraft } from "../common/messages";
import type { Draft } from "../common/view";

interface Stored {
  /** The time of the text, which is compared with the time of the host's draft. */
  at: number;
  draft: Draft;
  /** The text that was sent; until the host has a draft that is as new, it may not have received the prompt. */
  sent?: { at: number; text: string };
  /** Typed before the host had sent the stored draft. */
  early?: string;
}

const prefix = "pillion.draft ";
const most = 50; // folders
const room = 256 << 10; // characters of one draft; longer ones are stored only by the host

export class Kept {
  private readonly key: string;
  private readonly before: Stored | undefined;
  private last: Stored | undefined;
  /** A text stored here is newer than this time, even if the host's draft has the clock of another machine. */
  private after = 0;

  constructor(place: string) {
    this.key = prefix + place;
    this.before = this.last = this.read();
  }

  /** The newer one of the host's draft and the one stored here; only the host stores attachments. */
  newest(host: Draft): Draft {
    this.after = host.at ?? 0;
    const own = this.before;
    if (!own) return host;
    let best = host;
    if (own.at > (host.at ?? 0)) {
      best = { ...own.draft, attachments: host.attachments.filter((a) => own.draft.attachments.some((b) => b.id === a.id)) };
      if (own.sent && own.sent.at > (host.at ?? 0)) best = { ...best, text: lines(own.sent.text, best.text), attachments: host.attachments };
    }
    return own.early ? { ...best, text: lines(best.text, own.early) } : best;
  }

  /** Stores a text and returns its time. */
  write(draft: Draft, sent?: string): number {
    const at = Math.max(Date.now(), this.after + 1, (this.last?.at ?? 0) + 1);
    const before = this.last?.sent;
    this.store({ at, draft, sent: sent === undefined ? before : { at, text: sent } });
    return at;
  }

  /** Stores what is typed before it is known which draft it belongs to. */
  writeEarly(text: string): void {
    const own = this.before ?? { at: 0, draft: { text: "", mentions: [], attachments: [] } };
    this.store({ ...own, early: lines(own.early ?? "", text) });
  }

  private store(s: Stored): void {
    this.last = s;
    try {
      if (s.draft.text.length + (s.sent?.text.length ?? 0) > room) localStorage.removeItem(this.key);
      else localStorage.setItem(this.key, JSON.stringify({ ...s, draft: { ...s.draft, attachments: s.draft.attachments.map((a) => ({ ...a, data: "" })) } }));
    } catch {
      this.tidy(); // no storage, or it is full: the host stores it nevertheless
    }
  }

  private read(): Stored | undefined {
    try {
      const s = JSON.parse(localStorage.getItem(this.key) ?? "null") as Partial<Stored> | null;
      if (typeof s?.at !== "number" || !isDraft(s.draft)) return undefined;
      const sent = typeof s.sent?.at === "number" && typeof s.sent.text === "string" ? s.sent : undefined;
      return { at: s.at, draft: s.draft, sent, early: typeof s.early === "string" ? s.early : undefined };
    } catch {
      return undefined;
    } finally {
      this.tidy();
    }
  }

  /** Removes the drafts of folders that were not used for a long time. */
  private tidy(): void {
    try {
      const all = Object.keys(localStorage).filter((k) => k.startsWith(prefix) && k !== this.key);
      if (all.length < most) return;
      const age = (k: string) => Number(/"at":(\d+)/.exec(localStorage.getItem(k) ?? "")?.[1] ?? 0);
      for (const k of all.sort((a, b) => age(a) - age(b)).slice(0, all.length - most / 2)) localStorage.removeItem(k);
    } catch {
      // there is no storage
    }
  }
}

function lines(first: string, then: string): string {
  return first !== "" && then !== "" && !/\s$/.test(first) ? `${first}\n${then}` : first + then;
}
