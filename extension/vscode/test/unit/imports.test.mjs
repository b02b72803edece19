// Who may import whom in src: no circles, types included, and common knows neither VS Code nor the DOM.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const src = fileURLToPath(new URL("../../src", import.meta.url));
const files = readdirSync(src, { recursive: true }).filter((f) => f.endsWith(".ts")).map((f) => join(src, f));
const imports = new Map(files.map((f) => {
  const named = [...readFileSync(f, "utf8").matchAll(/^(?:import|export)\b[^;]*?\bfrom "([^"]+)";/gms)].map((m) => m[1]);
  return [f, named.map((n) => (n.startsWith(".") ? `${resolve(dirname(f), n.replace(/\.js$/, ""))}.ts` : n))];
}));

test("no file imports itself by way of others", () => {
  const done = new Set();
  const circles = [];
  const visit = (f, path) => {
    if (path.includes(f)) return circles.push([...path.slice(path.indexOf(f)), f].map((x) => relative(src, x)).join(" → "));
    if (done.has(f)) return;
    for (const to of imports.get(f) ?? []) visit(to, [...path, f]);
    done.add(f);
  };
  for (const f of files) visit(f, []);
  assert.deepEqual(circles, []);
  assert.ok(files.length > 60 && [...imports.values()].flat().length > 200, "the files were read");
});

test("common imports nothing but common; host and webview import only themselves and common", () => {
  const room = (f) => relative(src, f).split("/")[0];
  const wrong = [...imports].flatMap(([f, all]) => all.filter((to) => {
    const from = room(f);
    if (!to.startsWith(src)) return from === "common";
    return !to.endsWith("extension.ts") && ["common", "host", "webview"].includes(from) && room(to) !== from && room(to) !== "common";
  }).map((to) => `${relative(src, f)} imports ${to.startsWith(src) ? relative(src, to) : to}`));
  assert.deepEqual(wrong, []);
});
