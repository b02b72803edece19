// The real binary in a world of its own: home, state and project are scratch folders, the model is scripted.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { startModel } from "./model.mjs";

export const binary = process.env.PILLION_BIN ?? fileURLToPath(new URL("../../bin/pillion", import.meta.url));

export async function world(t, steps, files = {}) {
  if (!existsSync(binary)) throw new Error(`${binary} is missing; run "make build" first`);
  const root = realpathSync(mkdtempSync(join(tmpdir(), "pillion-e2e-")));
  const project = join(root, "project");
  mkdirSync(project);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(project, name), text);
  const model = await startModel(steps);
  const env = {
    PATH: process.env.PATH,
    HOME: root,
    XDG_STATE_HOME: join(root, "state"),
    XDG_CONFIG_HOME: join(root, "config"),
    XDG_CACHE_HOME: join(root, "cache"),
    OPENAI_BASE_URL: model.url,
    OPENAI_API_KEY: "test",
    OPENAI_MODEL: "scripted",
    PILLION_MODEL: "openai/scripted",
  };
  t.after(() => {
    model.close();
    rmSync(root, { recursive: true, force: true });
  });
  return { root, project, model, env, start: () => start(t, env, project) };
}

function start(t, env, cwd) {
  const child = spawn(binary, ["acp"], { env, cwd, stdio: ["pipe", "pipe", "pipe"] });
  let stderr = "";
  child.stderr.on("data", (b) => (stderr += b));
  const ended = new Promise((resolve) => child.on("exit", (code, signal) => resolve({ code, signal, stderr: () => stderr })));
  t.after(() => child.kill("SIGKILL"));
  return { child, ended };
}
