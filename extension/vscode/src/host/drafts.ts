// Prompts that the person has written and not sent. They are stored in a file of the extension when they are typed, so they
// survive a closed panel, a closed window and a crash. Attachments are stored beside it, each written once.
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDraft } from "../common/messages";
import type { Attachment, Draft } from "../common/view";

const file = "draft.json";
/** For this time the attachments of a sent prompt are kept: if the prompt fails, it is put back as a whole. */
const grace = 60_000; // ms

export class Drafts {
  private current: Draft | undefined;
  /** Attachments with their bytes; the panel sends the bytes once and later only the id. */
  private readonly attached = new Map<string, Attachment>();
  /** Attachments that are stored in a file. */
  private readonly written = new Set<string>();
  private storing: Promise<void> | undefined;
  private stale = false;

  constructor(
    private readonly folder: string,
    private readonly problem: (message: string) => void,
  ) {}

  /** The text as it was typed last, perhaps in an earlier window. */
  get now(): Draft {
    this.current ??= this.read();
    return this.current;
  }

  keep(d: Draft): void {
    const was = this.now.attachments;
    this.current = this.filled(d);
    for (const a of was) if (!this.current.attachments.some((b) => b.id === a.id)) setTimeout(() => this.drop(a.id), grace).unref();
    this.stale = true;
    this.storing ??= this.store().finally(() => (this.storing = undefined));
  }

  /** A prompt of the panel with the bytes of its attachments. */
  filled(d: Draft): Draft {
    for (const a of d.attachments) if (a.data !== "") this.attached.set(a.id, a);
    return { ...d, attachments: d.attachments.flatMap((a) => this.attached.get(a.id) ?? []) };
  }

  /** The window closes: write everything now. */
  dispose(): void {
    if (!this.storing || !this.current) return;
    try {
      mkdirSync(this.folder, { recursive: true });
      for (const a of this.current.attachments) if (!this.written.has(a.id)) writeFileSync(join(this.folder, nameOf(a.id)), a.data);
      writeFileSync(join(this.folder, `${file}.last`), text(this.current));
      renameSync(join(this.folder, `${file}.last`), join(this.folder, file));
    } catch {
      // the disk is full or read-only; the window closes nevertheless
    }
  }

  private async store(): Promise<void> {
    while (this.stale && this.current) {
      this.stale = false;
      const d = this.current;
      try {
        await mkdir(this.folder, { recursive: true });
        for (const a of d.attachments) {
          if (this.written.has(a.id)) continue;
          await writeFile(join(this.folder, nameOf(a.id)), a.data);
          this.written.add(a.id);
        }
        await writeFile(join(this.folder, `${file}.new`), text(d));
        await rename(join(this.folder, `${file}.new`), join(this.folder, file));
      } catch (error) {
        this.problem(`the draft was not stored: ${String(error)}`); // the next change tries again
      }
    }
  }

  private drop(id: string): void {
    if (this.current?.attachments.some((a) => a.id === id)) return;
    this.attached.delete(id);
    if (this.written.delete(id)) rmSync(join(this.folder, nameOf(id)), { force: true });
  }

  private read(): Draft {
    const empty: Draft = { text: "", mentions: [], attachments: [] };
    let kept: unknown;
    try {
      kept = JSON.parse(readFileSync(join(this.folder, file), "utf8"));
    } catch {
      return empty; // no prompt was stored
    }
    if (!isDraft(kept)) return empty;
    const attachments = kept.attachments.flatMap((a): Attachment[] => {
      try {
        const whole = { ...a, data: readFileSync(join(this.folder, nameOf(a.id)), "utf8") };
        this.attached.set(a.id, whole);
        this.written.add(a.id);
        return [whole];
      } catch {
        return []; // the window ended while the file was written
      }
    });
    this.tidy(attachments);
    return { text: kept.text, mentions: kept.mentions, attachments, at: kept.at };
  }

  /** Removes files of attachments that no prompt names. */
  private tidy(named: readonly Attachment[]): void {
    const wanted = new Set(named.map((a) => nameOf(a.id)));
    for (const name of readdirSync(this.folder)) if (name.endsWith(".base64") && !wanted.has(name)) rmSync(join(this.folder, name), { force: true });
  }
}

function text(d: Draft): string {
  return JSON.stringify({ ...d, attachments: d.attachments.map((a) => ({ ...a, data: "" })) });
}

/** Ids come from the panel, so they must not be used as paths. */
function nameOf(id: string): string {
  return `${createHash("sha256").update(id).digest("hex").slice(0, 32)}.base64`;
}
