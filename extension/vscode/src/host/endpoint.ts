// Tests a server that speaks OpenAI's Chat Completions: which models it has, whether it accepts the key, and whether it
// answers. The agent uses it later from the sidecar, not with this code.

/** Milliseconds that a server may take; it may have to load a model first. */
const limits = { list: 15_000, answer: 60_000 };

export class Endpoint {
  constructor(
    private readonly url: string,
    private readonly key: string,
  ) {}

  /** Why an address that a person typed is not valid; undefined if it is. */
  static problemOf(url: string): string | undefined {
    const u = parse(url.trim());
    if (!u || (u.protocol !== "http:" && u.protocol !== "https:") || u.hostname === "") return "Enter a URL that begins with https:// or http://";
    if (u.username || u.password) return "Leave user and password out of the URL; the key is asked next";
    if (u.search || u.hash) return "Enter the base URL, without ? and #";
    if (/\/chat\/completions\/?$/.test(u.pathname)) return "Enter the base URL, without /chat/completions";
    return undefined;
  }

  /** The ids of the server's models, [] if it does not list them; a string says why it cannot be used. */
  async models(): Promise<string[] | string> {
    const r = await this.call("/models", limits.list);
    if (typeof r === "string") return r;
    if (r.status === 404 || r.status === 405) return [];
    if (!r.ok) return refused(this.url, r);
    const { data } = (json(r.text) ?? {}) as { data?: unknown };
    if (!Array.isArray(data)) return [];
    return data.flatMap((m: unknown) => (typeof (m as { id?: unknown } | null)?.id === "string" ? [(m as { id: string }).id] : [])).sort();
  }

  /** Why the server does not accept the key; undefined if it does, or if that is unknown. */
  async refusesKey(): Promise<string | undefined> {
    const r = await this.call("/models", limits.list);
    return typeof r !== "string" && (r.status === 401 || r.status === 403) ? refused(this.url, r) : undefined;
  }

  /** Asks the model for one word. Returns why it cannot be used; undefined if it answers. */
  async test(model: string): Promise<string | undefined> {
    const r = await this.call("/chat/completions", limits.answer, { model, messages: [{ role: "user", content: "Reply with OK." }], max_tokens: 16, stream: false });
    if (typeof r === "string") return r;
    if (!r.ok) return refused(this.url, r);
    // a server that streams nevertheless has answered too
    return /"choices"/.test(r.text) ? undefined : `${this.url} answered, but not as a Chat Completions API does`;
  }

  private async call(path: string, limit: number, body?: unknown): Promise<{ ok: boolean; status: number; text: string } | string> {
    try {
      const r = await fetch(`${this.url}${path}`, {
        method: body ? "POST" : "GET",
        headers: { ...(this.key ? { authorization: `Bearer ${this.key}` } : {}), ...(body ? { "content-type": "application/json" } : {}) },
        ...(body ? { body: JSON.stringify(body) } : {}),
        redirect: "error", // the key must not be sent to another server
        signal: AbortSignal.timeout(limit),
      });
      return { ok: r.ok, status: r.status, text: (await r.text()).slice(0, 1 << 20) };
    } catch (error) {
      const cause = error instanceof Error && error.cause instanceof Error ? error.cause.message : error instanceof Error ? error.message : String(error);
      return `${this.url} cannot be reached: ${cause}`;
    }
  }
}

/** An id for the provider at an address, such as "example" for https://api.example.com/v1. */
export function providerId(url: string, taken: ReadonlySet<string>): string {
  const host = parse(url)?.hostname ?? "";
  const parts = host.split(".").filter((p) => !/^(api|www|llm|\d+)$/.test(p));
  const name = /^(localhost|[\d.]+|\[.*\])$/.test(host) ? "local-server" : (parts.at(-2) ?? parts[0] ?? "server");
  const base = name.toLowerCase().replace(/[^a-z0-9-]/g, "") || "server";
  for (let n = 1; ; n++) {
    const id = n === 1 ? base : `${base}-${String(n)}`;
    if (!taken.has(id)) return id;
  }
}

function refused(url: string, r: { status: number; text: string }): string {
  const e = json(r.text) as { error?: { message?: unknown } | string; message?: unknown } | undefined;
  const said = typeof e?.error === "string" ? e.error : typeof e?.error?.message === "string" ? e.error.message : typeof e?.message === "string" ? e.message : "";
  const what = r.status === 401 || r.status === 403 ? "does not accept the API key" : `answered with status ${String(r.status)}`;
  return `${url} ${what}${said ? `: ${said.slice(0, 300)}` : ""}`;
}

function json(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function parse(url: string): URL | undefined {
  try {
    return new URL(url);
  } catch {
    return undefined;
  }
}
