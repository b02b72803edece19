/**
 * Makes invisible characters visible. Characters that show nothing, or that change the direction of the text after
 * them, can make a command or a name look like another one. Where the person decides by what they read, they are shown
 * by their numbers.
 */
import { h } from "./dom";

// Control characters except tab and line feed; soft hyphen; fillers; direction marks, embeddings, overrides and isolates;
// spaces and joiners without a width; tags. A joiner between two emoji combines them and is kept.
const hidden = /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e007f}]|(?<![\p{Extended_Pictographic}\ufe0f\u{1f3fb}-\u{1f3ff}])\u200d/gu;

/** The text, with invisible characters shown by their numbers. */
export function visible(text: string): (string | HTMLElement)[] {
  const out: (string | HTMLElement)[] = [];
  let from = 0;
  for (const m of text.matchAll(hidden)) {
    if (m.index > from) out.push(text.slice(from, m.index));
    out.push(h("span", { class: "hidden-char", title: "A character that shows nothing, or that changes how what follows is shown" }, code(m[0])));
    from = m.index + m[0].length;
  }
  if (from < text.length) out.push(from === 0 ? text : text.slice(from));
  return out;
}

/** The same as a string, for titles and labels. */
export function plain(text: string): string {
  return text.replace(hidden, (c) => code(c));
}

function code(c: string): string {
  return `U+${(c.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}`;
}
