// What tool cards unfold: the newest as they are, older ones packed outside of the heap.
import { deflateRawSync, inflateRawSync } from "node:zlib";
import type { Details } from "../common/session";
import type { Detail } from "../common/view";

/** Characters that are kept unpacked. */
const loose = 4 << 20;

export class PackedDetails implements Details {
  readonly #loose = new Map<string, { detail: Detail; size: number }>();
  readonly #packed = new Map<string, Buffer>();
  #size = 0;

  get(id: string): Detail | undefined {
    const have = this.#loose.get(id);
    if (have) return have.detail;
    const packed = this.#packed.get(id);
    return packed && (JSON.parse(inflateRawSync(packed).toString("utf8")) as Detail); // we wrote it
  }

  set(id: string, detail: Detail): void {
    this.delete(id);
    const size = weigh(detail);
    this.#loose.set(id, { detail, size });
    this.#size += size;
    for (const [old, { detail: d, size: s }] of this.#loose) {
      if (this.#size <= loose || old === id) break;
      this.#packed.set(old, deflateRawSync(JSON.stringify(d), { level: 3 }));
      this.#loose.delete(old);
      this.#size -= s;
    }
  }

  delete(id: string): void {
    this.#size -= this.#loose.get(id)?.size ?? 0;
    this.#loose.delete(id);
    this.#packed.delete(id);
  }
}

function weigh(d: Detail): number {
  let n = 200 + (d.output?.length ?? 0) + (d.input?.length ?? 0) + (d.command?.length ?? 0) + (d.error?.length ?? 0);
  for (const f of d.files) for (const l of f.lines) n += l.text.length + 40;
  for (const i of d.images) n += i.data.length;
  return n;
}
