// What an import of "bun" leads to in Node. An import of a name that a module does not have ends the whole file, so that all names of Bun
// 1.4's module are here, whether or not there is something behind them.
import { Bun } from "./bun.mjs";

export default Bun;
export { Bun };
export const {
  $, Archive, ArrayBufferSink, CSRF, Cookie, CookieMap, CryptoHasher, FFI, FetchSession, FileSystemRouter, Glob, Image, JSON5, JSONC,
  JSONL, MD4, MD5, ModuleGraph, RedisClient, S3Client, SHA1, SHA224, SHA256, SHA384, SHA512, SHA512_256, SQL, TOML, Terminal, Transpiler,
  WebView, XML, YAML, allocUnsafe, argv, build, color, concatArrayBuffers, connect, cron, deepEquals, deepMatch, deflateSync, dns,
  embeddedFiles, enableANSIColors, env, escapeHTML, fetch, file, fileURLToPath, gc, generateHeapSnapshot, gunzipSync, gzipSync, hash,
  indexOfLine, inflateSync, inspect, isMainThread, isStandaloneExecutable, listen, main, markdown, mmap, nanoseconds, openInEditor,
  password, pathToFileURL, peek, plugin, postgres, randomUUIDv5, randomUUIDv7, readableStreamToArray, readableStreamToArrayBuffer,
  readableStreamToBlob, readableStreamToBytes, readableStreamToFormData, readableStreamToJSON, readableStreamToText, redis, resolve,
  resolveSync, revision, s3, secrets, semver, serve, sha, shrink, sleep, sleepSync, sliceAnsi, spawn, spawnSync, sql, stderr, stdin,
  stdout, stringWidth, stripANSI, udpSocket, unsafe, version, which, wrapAnsi, write, zstdCompress, zstdCompressSync, zstdDecompress,
  zstdDecompressSync,
} = Bun;
