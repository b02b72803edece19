/** Colours for code, with a few rules that fit most languages. The text is never changed. */

const keywords = new Set(
  ("abstract and as async await base begin bool boolean break by byte case catch chan char class const constexpr continue def default defer del delete do done double elif else elsif end enum esac except export extends extern fallthrough false fi final finally float fn for foreach from func function go goto if impl implements import in include instanceof int interface internal is lambda let local long loop map match mod module move mut namespace new nil none None not null nullptr of operator or override package pass private protected pub public raise range readonly ref require return select self Self sealed short signed sizeof static string struct super switch template then this throw throws trait True true try type typedef typeof union unless unsafe unsigned until use using val var virtual void volatile when where while with yield").split(" "),
);
const hashLanguages = /^(py|python|sh|bash|zsh|shell|console|ruby|rb|perl|pl|yaml|yml|toml|ini|r|make|makefile|dockerfile|cmake|elixir|nix|conf)$/;
const dashLanguages = /^(sql|lua|haskell|hs|elm|ada|vhdl)$/;
const plain = /^(text|txt|plain|plaintext|output|log|diff|markdown|md|)$/;

export interface Span {
  text: string;
  kind: "" | "comment" | "string" | "number" | "keyword" | "call" | "added" | "removed";
}

/** Each line is coloured alone; only block comments continue on the next line. */
export class Highlighter {
  private block = false;
  private readonly rule: RegExp | undefined;

  constructor(private readonly language: string) {
    const l = language.toLowerCase();
    if (plain.test(l)) return;
    const line = hashLanguages.test(l) ? "#.*" : dashLanguages.test(l) ? "--.*" : "\\/\\/.*|\\/\\*.*?(?:\\*\\/|$)|(?<=^\\s*)#.*";
    const strings = `"(?:[^"\\\\]|\\\\.)*"?|'(?:[^'\\\\]|\\\\.)*'?|\`[^\`]*\`?`;
    this.rule = new RegExp(`(?<comment>${line})|(?<string>${strings})|(?<number>\\b\\d[\\w.]*\\b)|(?<word>[A-Za-z_$][\\w$]*)(?<call>\\s*\\()?`, "g");
  }

  line(text: string): Span[] {
    if (this.language === "diff") return [{ text, kind: text.startsWith("+") ? "added" : text.startsWith("-") ? "removed" : "" }];
    if (!this.rule || text.length > 2000) return [{ text, kind: "" }];
    const out: Span[] = [];
    let at = 0;
    if (this.block) {
      const end = text.indexOf("*/");
      if (end < 0) return [{ text, kind: "comment" }];
      out.push({ text: text.slice(0, end + 2), kind: "comment" });
      at = end + 2;
      this.block = false;
    }
    this.rule.lastIndex = at;
    for (let m = this.rule.exec(text); m; m = this.rule.exec(text)) {
      const g = m.groups ?? {};
      const word = g["word"];
      let kind: Span["kind"] = g["comment"] !== undefined ? "comment" : g["string"] !== undefined ? "string" : g["number"] !== undefined ? "number" : "";
      let end = this.rule.lastIndex;
      if (word !== undefined) {
        kind = keywords.has(word) ? "keyword" : g["call"] !== undefined ? "call" : "";
        end = m.index + word.length;
        this.rule.lastIndex = end;
      }
      if (g["comment"]?.startsWith("/*") && !g["comment"].endsWith("*/")) this.block = true;
      if (kind !== "") {
        if (m.index > at) out.push({ text: text.slice(at, m.index), kind: "" });
        out.push({ text: text.slice(m.index, end), kind });
        at = end;
      }
    }
    if (at < text.length) out.push({ text: text.slice(at), kind: "" });
    return out;
  }
}
