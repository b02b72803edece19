// Which packages are refused before anything is built: a package for a platform carries that platform's program, or is said to carry none.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { wanted } from "../../target.mjs";

test("a platform, and a binary that is its own", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "pillion-target-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const program = (name, write) => {
    const bytes = Buffer.alloc(512);
    write(bytes);
    writeFileSync(join(folder, name), bytes);
    return join(folder, name);
  };
  const elf = (machine) => (b) => (b.writeUInt32BE(0x7f454c46, 0), b.writeUInt16LE(machine, 18));
  const macho = (cpu) => (b) => (b.writeUInt32LE(0xfeedfacf, 0), b.writeUInt32LE(cpu, 4));
  const pe = (machine) => (b) => (b.write("MZ", 0), b.writeUInt32LE(0x80, 0x3c), b.write("PE\0\0", 0x80), b.writeUInt16LE(machine, 0x84));
  const all = {
    "linux-x64": program("a", elf(0x3e)), "linux-arm64": program("b", elf(0xb7)), "darwin-x64": program("c", macho(0x01000007)),
    "darwin-arm64": program("d", macho(0x0100000c)), "win32-x64": program("e.exe", pe(0x8664)), "win32-arm64": program("f=g.exe", pe(0xaa64)),
  };
  for (const target of Object.keys(all)) {
    for (const [of, binary] of Object.entries(all)) {
      if (of === target) assert.deepEqual(wanted(`${target}=${binary}`), { target, binary });
      else assert.throws(() => wanted(`${target}=${binary}`), /is no program for it/, `${target} with ${of}`);
    }
  }
  assert.deepEqual(wanted("none"), { target: "none" });
  writeFileSync(join(folder, "script"), "#!/bin/sh\n");
  for (const [arg, why] of [["linux-arm64", /which binary\?.*linux-arm64=PATH/], ["linux-arm64=", /which binary/], [`linux-x64=${folder}/gone`, /is missing; build it first/], ["amiga-m68k=x", /no platform.*linux-x64/], ["none=x", /no platform/], ["toString=x", /no platform/], [`linux-x64=${folder}/script`, /no program for it/]]) {
    assert.throws(() => wanted(arg), why, arg);
  }
});
