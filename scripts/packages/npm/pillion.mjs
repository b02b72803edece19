#!/usr/bin/env node
// Starts the program that was installed for this platform in an optional package of its own.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { constants } from "node:os";

const here = `${process.platform}-${process.arch}`;

function fail(text) {
  console.error(`pillion: ${text}`);
  process.exit(1);
}

/** The C library decides whether the program can start: on Alpine there is another than the one it needs. */
function otherLibrary() {
  return process.platform === "linux" && !process.report.getReport().header.glibcVersionRuntime;
}

let program;
try {
  program = createRequire(import.meta.url).resolve(`@pillion-dev/${here}/bin/pillion${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  fail(
    `there is no program for ${here} in this installation. It is a package of its own, @pillion-dev/${here}: ` +
      "install again without --omit=optional and without --no-optional. If it does not exist, this platform is not built yet; " +
      "https://github.com/pillion-dev/pillion says how to build it.",
  );
}
if (otherLibrary()) fail("this system has no glibc, which the program needs (Alpine Linux has musl). Build it from source on this system.");

const args = process.argv.slice(2);
// From Node 22.15 on this process becomes the program: no second process, and signals and the terminal are its own.
if (typeof process.execve === "function") {
  try {
    process.execve(program, ["pillion", ...args], process.env);
  } catch {
    // then as a child
  }
}
const child = spawn(program, args, { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]) process.on(signal, () => child.kill(signal));
child.on("error", (error) => fail(`${program}: ${error.message}`));
// What a shell makes of a signal: 128 and its number.
child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
