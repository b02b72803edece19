// A map that stores its older values compressed, outside the JavaScript heap. Old entries of a session are rarely read (by a
// new panel, or when a card is unfolded) but are kept as long as the window is open.
import { deflateRawSync, inflateRawSync } from "node:zlib";

const perBlock = 64;

export class PackedMap<V> {
  /** In the order in which they were first set: a value, or the number of the block with it. */
  private readonly all = new Map<string, V | Packed>();
  private readonly blocks = new Map<number, Buffer>();
  /** The ids and weights of the values that are not packed, the oldest first. */
  private readonly loose = new Map<string, number>();
  private weight = 0;
  private next = 0;
  /** The block that was unpacked last: neighbouring values are usually read next. */
  private open: { block: number; values: Map<string, V> } | undefined;
  private closing: NodeJS.Timeout | undefined;

  /** `most`: the weight of values that may stay unpacked. Values that are `busy` still change and are not packed. */
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

  /** Deletes the value from its block. */
  private lighten(id: string): void {
    const was = this.all.get(id);
    if (was instanceof Packed && --was.left === 0) this.blocks.delete(was.block);
    this.weight -= this.loose.get(id) ?? 0;
    this.loose.delete(id);
  }

  /** Packs the oldest values, until half of the allowed weight is left. */
  private pack(): void {
    while (this.weight > this.most / 2) {
      const ids: string[] = [];
      for (const id of this.loose.keys()) {
        if (ids.length === perBlock) break;
        if (!this.busy(this.all.get(id) as V)) ids.push(id);
      }
      if (ids.length < perBlock) return; // the others are too new
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
      this.open = { block, values: new Map(JSON.parse(inflateRawSync(bytes).toString("utf8")) as [string, V][]) }; // these values are known, so they need not be unpacked
      this.closing ??= setTimeout(() => (this.open = this.closing = undefined), 1000).unref();
    }
    return this.open.values;
  }
}

/** The place of a value; all values of a block share it. */
class Packed {
  constructor(
    readonly block: number,
    public left: number,
  ) {}
}
