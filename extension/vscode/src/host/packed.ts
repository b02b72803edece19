// A map whose older values lie outside of the heap: in blocks, packed. What a session said is read seldom, by a panel that is
// made anew or a card that is unfolded, and lasts as long as the window.
import { deflateRawSync, inflateRawSync } from "node:zlib";

const perBlock = 64;

export class PackedMap<V> {
  /** In the order of their first setting: a value, or the number of the block that holds it. */
  private readonly all = new Map<string, V | Packed>();
  private readonly blocks = new Map<number, Buffer>();
  /** Of what is unpacked, the ids and weights; the oldest first. */
  private readonly loose = new Map<string, number>();
  private weight = 0;
  private next = 0;
  /** The block that was opened last: neighbours are asked for one after the other. */
  private open: { block: number; values: Map<string, V> } | undefined;
  private closing: NodeJS.Timeout | undefined;

  /** `most`: what may lie about unpacked, by weight. What is `busy` still changes in place and is left where it is. */
  constructor(
    private readonly most: number,
    private readonly weigh: (v: V) => number,
    private readonly busy: (v: V) => boolean = () => false,
  ) {}

  get size(): number {
    return this.all.size;
  }

  has(id: string): boolean {
    return this.all.has(id);
  }

  get(id: string): V | undefined {
    const v = this.all.get(id);
    return v instanceof Packed ? this.unpack(v.block).get(id) : v;
  }

  set(id: string, value: V): this {
    this.lighten(id);
    this.all.set(id, value);
    const weight = this.weigh(value);
    this.loose.set(id, weight);
    this.weight += weight;
    if (this.weight > this.most && this.loose.size > perBlock) this.pack();
    return this;
  }

  delete(id: string): boolean {
    this.lighten(id);
    return this.all.delete(id);
  }

  keys(): IterableIterator<string> {
    return this.all.keys();
  }

  *values(): Generator<V> {
    for (const [, v] of this) yield v;
  }

  *[Symbol.iterator](): Generator<[string, V]> {
    for (const [id, v] of this.all) yield [id, v instanceof Packed ? this.unpack(v.block).get(id)! : v];
  }

  /** What lay there goes. */
  private lighten(id: string): void {
    const was = this.all.get(id);
    if (was instanceof Packed && --was.left === 0) this.blocks.delete(was.block);
    this.weight -= this.loose.get(id) ?? 0;
    this.loose.delete(id);
  }

  /** Packs the oldest, until half of what may lie about is left. */
  private pack(): void {
    while (this.weight > this.most / 2) {
      const ids: string[] = [];
      for (const id of this.loose.keys()) {
        if (ids.length === perBlock) break;
        if (!this.busy(this.all.get(id) as V)) ids.push(id);
      }
      if (ids.length < perBlock) return; // the rest is too new
      const packed = new Packed(this.next++, ids.length);
      this.blocks.set(packed.block, deflateRawSync(JSON.stringify(ids.map((id) => [id, this.all.get(id)])), { level: 3 }));
      for (const id of ids) {
        this.lighten(id);
        this.all.set(id, packed);
      }
    }
  }

  private unpack(block: number): Map<string, V> {
    if (this.open?.block !== block) {
      const bytes = this.blocks.get(block) ?? deflateRawSync("[]");
      this.open = { block, values: new Map(JSON.parse(inflateRawSync(bytes).toString("utf8")) as [string, V][]) }; // we wrote it
      this.closing ??= setTimeout(() => (this.open = this.closing = undefined), 1000).unref();
    }
    return this.open.values;
  }
}

/** Where a value lies; one for all of a block. */
class Packed {
  constructor(
    readonly block: number,
    public left: number,
  ) {}
}
