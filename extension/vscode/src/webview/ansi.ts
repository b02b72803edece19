/** A terminal's output as styled pieces: colours, carriage returns and erased lines; other control sequences are
 * removed. */

export interface Piece {
  text: string;
  style: string;
}

interface Look {
  fg?: string;
  bg?: string;
  bold?: boolean;
  dim?: boolean;
  italic?: boolean;
  underline?: boolean;
  inverse?: boolean;
}

const names = ["Black", "Red", "Green", "Yellow", "Blue", "Magenta", "Cyan", "White"];

// CSI, OSC (links, titles), other escapes; then control characters that move the cursor
const token = /\x1b\[([0-9;:?<=>]*)[ -/]*([@-~])|\x1b[\]P^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-~]|\r\n|[\r\n\b]|[\x00-\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f]/g;

export function ansiLines(text: string): Piece[][] {
  const lines: Piece[][] = [];
  let line: Piece[] = [];
  let look: Look = {};
  let style = "";
  let rewind = false;
  const write = (s: string) => {
    if (s === "") return;
    if (rewind) line = [];
    rewind = false;
    const last = line[line.length - 1];
    if (last?.style === style) last.text += s;
    else line.push({ text: s, style });
  };
  let at = 0;
  token.lastIndex = 0;
  for (let m = token.exec(text); m; m = token.exec(text)) {
    write(text.slice(at, m.index));
    at = token.lastIndex;
    const what = m[0];
    if (what === "\n" || what === "\r\n") {
      lines.push(line);
      line = [];
      rewind = false;
    } else if (what === "\r") rewind = true;
    else if (what === "\b") backspace(line);
    else if (m[2] === "m") {
      look = sgr(look, m[1] ?? "");
      style = css(look);
    } else if (m[2] === "K" && (m[1] === "2" || rewind)) line = [];
  }
  write(text.slice(at));
  if (line.length > 0) lines.push(line);
  return lines;
}

function backspace(line: Piece[]): void {
  const last = line[line.length - 1];
  if (!last) return;
  last.text = last.text.slice(0, -1);
  if (last.text === "") line.pop();
}

function sgr(was: Look, params: string): Look {
  const look = { ...was };
  const codes = params.split(/[;:]/).map(Number);
  for (let i = 0; i < codes.length; i++) {
    const c = codes[i] ?? 0;
    if (c === 0) for (const k of Object.keys(look) as (keyof Look)[]) delete look[k];
    else if (c === 1) look.bold = true;
    else if (c === 2) look.dim = true;
    else if (c === 3) look.italic = true;
    else if (c === 4) look.underline = true;
    else if (c === 7) look.inverse = true;
    else if (c === 22) look.bold = look.dim = false;
    else if (c === 23) look.italic = false;
    else if (c === 24) look.underline = false;
    else if (c === 27) look.inverse = false;
    else if (c === 39) look.fg = undefined;
    else if (c === 49) look.bg = undefined;
    else if (c === 38 || c === 48) {
      const [colour, used] = extended(codes, i + 1);
      if (c === 38) look.fg = colour;
      else look.bg = colour;
      i += used;
    } else if ((c >= 30 && c <= 37) || (c >= 90 && c <= 97)) look.fg = named(c % 10, c >= 90);
    else if ((c >= 40 && c <= 47) || (c >= 100 && c <= 107)) look.bg = named(c % 10, c >= 100);
  }
  return look;
}

function named(n: number, bright: boolean): string {
  return `var(--vscode-terminal-ansi${bright ? "Bright" : ""}${names[n] ?? "White"})`;
}

/** Terminals lighten a colour that is too similar to the background (terminal.integrated.minimumContrastRatio); this
 * does the same. */
function lifted(colour: string): string {
  return `color-mix(in srgb, ${colour} 62%, var(--vscode-foreground))`;
}

function extended(codes: number[], at: number): [string | undefined, number] {
  const byte = (n: number | undefined) => Math.max(0, Math.min(255, Math.trunc(n ?? 0) || 0));
  if (codes[at] === 2) return [`rgb(${String(byte(codes[at + 1]))},${String(byte(codes[at + 2]))},${String(byte(codes[at + 3]))})`, 4];
  if (codes[at] !== 5) return [undefined, 0];
  const n = byte(codes[at + 1]);
  if (n < 16) return [named(n % 8, n > 7), 2];
  if (n > 231) return [`rgb(${Array(3).fill(8 + (n - 232) * 10).join(",")})`, 2];
  const step = (v: number) => (v === 0 ? 0 : 55 + v * 40);
  return [`rgb(${String(step(Math.floor((n - 16) / 36)))},${String(step(Math.floor((n - 16) / 6) % 6))},${String(step((n - 16) % 6))})`, 2];
}

/** Only values made above are used here: names of theme colours and numbers. */
function css(l: Look): string {
  const fg = l.inverse ? (l.bg ?? "var(--vscode-editor-background)") : l.fg;
  const bg = l.inverse ? (l.fg ?? "var(--vscode-foreground)") : l.bg;
  return [fg && `color:${bg ? fg : lifted(fg)}`, bg && `background-color:${bg}`, l.bold && "font-weight:600", l.dim && "opacity:.7", l.italic && "font-style:italic", l.underline && "text-decoration:underline"].filter(Boolean).join(";");
}

/** The output without control sequences. */
export function ansiText(text: string): string {
  return ansiLines(text).map((l) => l.map((p) => p.text).join("")).join("\n");
}
