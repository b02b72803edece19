// bun:ffi is not in Node. A file that imports it loads, and what needs no library of the system works; the rest says what to do.
import { missing } from "./bun.mjs";

export const dlopen = missing("bun:ffi.dlopen");
export const linkSymbols = missing("bun:ffi.linkSymbols");
export const cc = missing("bun:ffi.cc");
export const CString = missing("bun:ffi.CString");
export const CFunction = missing("bun:ffi.CFunction");
export const JSCallback = missing("bun:ffi.JSCallback");
export const ptr = missing("bun:ffi.ptr");
export const read = missing("bun:ffi.read");
export const toArrayBuffer = missing("bun:ffi.toArrayBuffer");
export const toBuffer = missing("bun:ffi.toBuffer");
/** The names of types, which a file lists before it opens a library. */
export const FFIType = new Proxy({}, { get: (_, name) => name });
export const suffix = process.platform === "win32" ? "dll" : process.platform === "darwin" ? "dylib" : "so";
