// Starts a real VS Code (code-server) with the extension as it is now, on a folder, and prints where it is: try.mjs [DIR]
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { root, stage } from "./stage.mjs";
import { installation, startServer } from "./test/e2e/workbench.mjs";

const scratch = mkdtempSync(join(tmpdir(), "pillion-vscode-"));
const folder = process.argv[2] ? resolve(process.argv[2]) : join(scratch, "go-broken");
if (!process.argv[2]) cpSync(join(root, "examples/go-broken"), folder, { recursive: true });
const at = installation(process.env.WORKBENCH_CACHE ?? join(root, ".cache", "vscode"));
const server = await startServer({
  ...at,
  extension: stage(join(scratch, "staged"), { binary: process.env.PILLION_BIN ?? join(root, "bin", "pillion") }),
  settings: { "editor.codeLens": true, "workbench.colorTheme": "Dark Modern" },
});
const url = new URL(server.url);
url.searchParams.set("folder", folder);
console.log(`VS Code with Pillion: ${url.href}\nOpen it in a browser, click the Pillion icon on the left, ask "fix all errors". Ctrl-C ends it.`);
for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, async () => {
    await server.stop();
    rmSync(scratch, { recursive: true, force: true });
    process.exit(0);
  });
}
