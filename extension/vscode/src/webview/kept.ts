/**
 * What stands in the composer, in the page's own storage from the very key stroke on: a message to the host needs a moment, and
 * a window that is loaded anew in that moment takes it along. The page's origin is the extension's and outlives windows; `place`
 * keeps folders apart. What the host has counts where it is newer.
 */
import { isDraft } from "../common/messages";
import type { Draft } from "../common/view";

interface Stored {
  /** As of this moment; of the host's draft the same counts. */
  at: number;
  draft: Draft;
  /** What was sent; until the host has something as new it may not have heard of it. */
  sent?: { at: number; text: string };
  /** Typed before the host had said what was kept. */
  early?: string;
}

const prefix = "pillion.draft ";
const most = 50; // folders
const room = 256 << 10; // characters of one draft; longer ones are the host's alone

export class Kept {
  private readonly key: string;
  private readonly before: Stored | undefined;
  private last: Stored | undefined;
  /** What is written here is newer than this, whatever clock another machine gave the host's draft. */
  private after = 0;

  constructor(place: string) {
    this.key = prefix + place;
    this.before = this.last = this.read();
  }

  /** The newer of what the host has and what is kept here; attachments are the host's to keep. */
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

  /** Keeps it, and says as of when it is. */
  write(draft: Draft, sent?: string): number {
    const at = Math.max(Date.now(), this.after + 1, (this.last?.at ?? 0) + 1);
    const before = this.last?.sent;
    this.store({ at, draft, sent: sent === undefined ? before : { at, text: sent } });
    return at;
  }

  /** Keeps what is typed while nobody knows yet what it belongs to. */
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
      this.tidy(); // no storage, or it is full: the host keeps it all the same
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

  /** Folders that nobody has used for long. */
  private tidy(): void {
    try {
      const all = Object.keys(localStorage).filter((k) => k.startsWith(prefix) && k !== this.key);
      if (all.length < most) return;
      const age = (k: string) => Number(/"at":(\d+)/.exec(localStorage.getItem(k) ?? "")?.[1] ?? 0);
      for (const k of all.sort((a, b) => age(a) - age(b)).slice(0, all.length - most / 2)) localStorage.removeItem(k);
    } catch {
      // there is no storage here
    }
  }
}

function lines(first: string, then: string): string {
  return first !== "" && then !== "" && !/\s$/.test(first) ? `${first}\n${then}` : first + then;
}
