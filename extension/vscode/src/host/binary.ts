// Finds the sidecar's program: in the setting, in the package, where npm has put it for the package without one, on the PATH.
import { accessSync, constants, statSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, isAbsolute, join } from "node:path";

export interface Binary {
  path: string;
  from: "setting" | "bundled" | "npm" | "PATH";
}

/** Why there is no program, as a message that says what to do. `installable`: npm may have one. */
export class NoBinaryError extends Error {
  constructor(
    message: string,
    readonly installable = false,
  ) {
    super(message);
  }
}

export interface BinarySearch {
  setting: string;
  extensionPath: string;
  platform: NodeJS.Platform;
  arch: string;
  path: string;
  /** The folder into which installProgram installs. */
  installed: string;
  /** Whether a file can be executed; the default asks the disk. */
  runnable?: (path: string) => boolean;
}

export function findBinary(o: BinarySearch): Binary {
  const runnable = o.runnable ?? canRun;
  const name = o.platform === "win32" ? "pillion.exe" : "pillion";
  const setting = o.setting.trim();
  if (setting !== "") {
    const path = setting.replace(/^~(?=[\\/])/, homedir());
    if (!isAbsolute(path)) throw new NoBinaryError(`The setting pillion.binary.path is "${setting}": give an absolute path, or clear it to use the bundled program.`);
    if (!runnable(path)) throw new NoBinaryError(`The setting pillion.binary.path names ${path}, which is no program that can be run. Correct it, or clear it to use the bundled one.`);
    return { path, from: "setting" };
  }
  const bundled = join(o.extensionPath, "bin", name);
  if (runnable(bundled)) return { path: bundled, from: "bundled" };
  const own = join(o.installed, "node_modules", "@pillion-dev", `${o.platform}-${o.arch}`, "bin", name);
  if (runnable(own)) return { path: own, from: "npm" };
  for (const folder of o.path.split(delimiter)) {
    if (folder !== "" && isAbsolute(folder) && runnable(join(folder, name))) return { path: join(folder, name), from: "PATH" };
  }
  throw new NoBinaryError(`The program "${name}" was not found: this package carries none for ${o.platform}, and none is on the PATH. Install it with npm (button), or in another way, or set pillion.binary.path.`, true);
}

function canRun(path: string): boolean {
  try {
    if (!statSync(path).isFile()) return false;
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
