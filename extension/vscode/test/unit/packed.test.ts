import assert from "node:assert/strict";
import test from "node:test";
import { PackedMap } from "../../src/host/packed";

interface Thing {
  id: string;
  n: number;
  busy?: boolean;
}
const packed = (most: number) => new PackedMap<Thing>(most, () => 1, (v) => v.busy === true);

test("whatever is done to it, it is what a Map would be", () => {
  for (let seed = 1; seed <= 20; seed++) {
    let x = seed;
    const random = (n: number) => (x = (x * 48271) % 2147483647) % n;
    const mine = packed(100);
    const plain = new Map<string, Thing>();
    for (let i = 0; i < 3000; i++) {
      const id = `k${String(random(600))}`;
      if (random(5) === 0) assert.equal(mine.delete(id), plain.delete(id));
      else {
        const v = { id, n: i, busy: random(40) === 0 };
        mine.set(id, v);
        plain.set(id, v);
      }
      const probe = `k${String(random(600))}`;
      assert.deepEqual(mine.get(probe), plain.get(probe));
      assert.equal(mine.has(probe), plain.has(probe));
    }
    assert.deepEqual([...mine], [...plain], `seed ${String(seed)}`);
    assert.deepEqual([...mine.values()], [...plain.values()]);
    assert.equal(mine.size, plain.size);
  }
});

test("what is busy changes in place and stays the same thing; what is old takes next to no room on the heap", () => {
  const mine = packed(200);
  const busy: Thing = { id: "busy", n: 0, busy: true };
  mine.set("busy", busy);
  for (let i = 0; i < 2000; i++) mine.set(`k${String(i)}`, { id: `k${String(i)}`, n: i });
  busy.n = 7;
  assert.equal(mine.get("busy"), busy);
  assert.notEqual(mine.get("k0"), undefined);
  assert.equal(mine.get("k1999")?.n, 1999);
});
