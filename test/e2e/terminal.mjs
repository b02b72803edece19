// A program in a real terminal (tmux), for tests that look at the rendered screen.
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// Waits until no process is left that has this folder as its home: the program in the terminal, and everything that it
// started. A test that removes the folder earlier fails in whatever still writes there.
export async function gone(home, limit = 60000) {
  for (const end = Date.now() + limit; ; await pause(50)) {
    const left = readdirSync("/proc").filter((name) => /^\d+$/.test(name)).flatMap((pid) => {
      try { // a process that ended has an empty environment, or none
        return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(`HOME=${home}`) ? [`${pid} ${readFileSync(`/proc/${pid}/cmdline`, "latin1").replaceAll("\0", " ")}`] : [];
      } catch { return []; }
    });
    if (left.length === 0) return;
    if (Date.now() > end) throw new Error(`still running after its terminal was closed:\n${left.join("\n")}`);
  }
}

// Starts argv in a terminal of its own, with exactly the environment env. socket names the tmux server: one for each
// test file, so that none meets another's sessions.
export function openTerminal(argv, { env, cwd, socket, columns = 120, rows = 34 }) {
  const tmux = (...args) => execFileSync("tmux", ["-L", socket, "-f", "/dev/null", ...args], { encoding: "utf8" });
  const name = `t${process.pid}_${Math.floor(performance.now() * 1000)}`;
  const words = Object.entries(env).map(([k, v]) => `${k}=${v}`);
  tmux("new-session", "-d", "-s", name, "-x", String(columns), "-y", String(rows), "-c", cwd, "env", "-i", ...words, ...argv, ";", "set-option", "remain-on-exit", "on"); // so that the last screen can be read
  const t = {
    columns,
    keys: (...k) => tmux("send-keys", "-t", name, ...k), // by name: Enter, Escape, C-s
    type: (text) => tmux("send-keys", "-t", name, "-l", text),
    screen: () => tmux("capture-pane", "-p", "-t", name).replace(/[ \t]+$/gm, "").trimEnd(),
    // The screen and what has scrolled off it, as a person who scrolls back sees it. Full-screen programs keep none.
    scrollback: () => tmux("capture-pane", "-p", "-S", "-", "-t", name).replace(/[ \t]+$/gm, "").trimEnd(),
    colors: () => tmux("capture-pane", "-e", "-p", "-t", name),
    // Closes the terminal as a window manager does.
    kill: () => {
      try { tmux("kill-session", "-t", name); } catch { /* the program has ended, and its session with it */ }
    },
    // Waits until the screen shows a text and holds still.
    async until(pattern, limit = 30000) {
      const end = Date.now() + limit;
      let last = "", same = 0;
      for (;;) {
        let now;
        try { now = t.screen(); } catch { throw new Error(`the program in the terminal ended; the last screen was:\n${last}`); }
        same = now === last ? same + 1 : 0;
        last = now;
        if (pattern.test(now) && same >= 3) return now;
        if (Date.now() > end) throw new Error(`waited in vain for ${pattern} on this screen:\n${now}`);
        await pause(80);
      }
    },
  };
  return t;
}
