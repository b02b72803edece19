// The platforms that a package can be for, and whether a binary is one's.
import { closeSync, existsSync, openSync, readSync } from "node:fs";

const windows = { x64: 0x8664, arm64: 0xaa64 };
const linux = { x64: 0x3e, arm64: 0xb7 };
const darwin = { x64: 0x01000007, arm64: 0x0100000c };

/** By the marketplace's names: how a program for it begins. */
const targets = {
  "linux-x64": (b) => elf(b) === linux.x64, "linux-arm64": (b) => elf(b) === linux.arm64,
  "darwin-x64": (b) => macho(b) === darwin.x64, "darwin-arm64": (b) => macho(b) === darwin.arm64,
  "win32-x64": (b) => pe(b) === windows.x64, "win32-arm64": (b) => pe(b) === windows.arm64,
};

/** Reads `TARGET=BINARY` or `none`, and says what is wrong before anything is built. */
export function wanted(arg) {
  const at = arg.indexOf("=");
  const [target, binary] = at < 0 ? [arg, ""] : [arg.slice(0, at), arg.slice(at + 1)];
  if (target === "none" && at < 0) return { target };
  const fits = Object.hasOwn(targets, target) ? targets[target] : undefined;
  if (!fits) throw new Error(`${target} is no platform that a package can be for: ${Object.keys(targets).join(", ")}; or none, without a binary`);
  if (binary === "") throw new Error(`${target}: which binary? Say ${target}=PATH (scripts/dist.sh builds them), or none for a package without one`);
  if (!existsSync(binary)) throw new Error(`${target}: ${binary} is missing; build it first (make build for this platform, make dist for others)`);
  if (!fits(head(binary))) throw new Error(`${target}: ${binary} is no program for it`);
  return { target, binary };
}

function head(path) {
  const bytes = Buffer.alloc(4096);
  const file = openSync(path, "r");
  try {
    readSync(file, bytes, 0, bytes.length, 0);
  } finally {
    closeSync(file);
  }
  return bytes;
}

const elf = (b) => (b.readUInt32BE(0) === 0x7f454c46 ? b.readUInt16LE(18) : undefined);
const macho = (b) => (b.readUInt32LE(0) === 0xfeedfacf ? b.readUInt32LE(4) : undefined);

function pe(b) {
  const at = b.readUInt32LE(0x3c);
  return b.toString("latin1", 0, 2) === "MZ" && at < b.length - 6 && b.toString("latin1", at, at + 4) === "PE\0\0" ? b.readUInt16LE(at + 4) : undefined;
}
