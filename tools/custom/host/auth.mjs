// The sign-ins of plugins: the steps in which a person signs in, and requests that a plugin makes itself.

const WINDOW = 8; // pieces of an answer that may be under way; Go has room for 64 messages of a request
const PIECE = 48 << 10; // bytes of a piece, before base64

/** @type {Map<string, {hook: any, pending?: any, fetch?: Function}>} by provider */
const accounts = new Map();

/** @returns what the person may choose, of all hooks */
export function signIns(hooks) {
  for (const { auth } of hooks) if (typeof auth?.provider === "string" && auth.provider) accounts.set(auth.provider, { hook: auth });
  return [...accounts].map(([provider, { hook }]) => ({
    provider,
    loader: typeof hook.loader === "function",
    methods: (Array.isArray(hook.methods) ? hook.methods : []).map((m) => ({
      type: String(m.type),
      label: String(m.label ?? m.type),
      authorize: typeof m.authorize === "function",
      prompts: (m.prompts ?? []).map((p) => ({
        type: String(p.type),
        key: String(p.key),
        message: String(p.message ?? p.key),
        placeholder: p.placeholder === undefined ? "" : String(p.placeholder),
        options: (p.options ?? []).map((o) => ({ label: String(o.label), value: String(o.value), hint: String(o.hint ?? "") })),
      })),
    })),
  }));
}

/** A condition as data, which newer plugins have beside the function. */
function holds(when, inputs) {
  if (!when) return true;
  return when.op === "neq" ? inputs[when.key] !== when.value : inputs[when.key] === when.value;
}

/** One step of a sign-in. @param read gives what is kept for a provider @returns its answer, plain data */
export async function step({ step, provider, method, prompt, inputs = {}, value, code, info }, read) {
  const account = accounts.get(provider);
  if (!account) throw new Error(`there is no sign-in to ${provider}`);
  const chosen = account.hook.methods?.[method];
  const asked = chosen?.prompts?.[prompt];
  switch (step) {
    case "wanted":
      return asked.condition ? !!asked.condition(inputs) : holds(asked.when, inputs);
    case "validate":
      return String((await asked.validate?.(value)) ?? "");
    case "authorize": {
      account.pending = await chosen.authorize(inputs);
      const { url, instructions, method } = account.pending ?? {};
      return { url: String(url ?? ""), instructions: String(instructions ?? ""), method: String(method ?? "") };
    }
    case "finish": {
      const pending = account.pending;
      account.pending = undefined;
      let done;
      if (chosen.type === "api") done = chosen.authorize ? await chosen.authorize(inputs) : { type: "success", key: code };
      else done = pending?.method === "code" ? await pending.callback(code) : await pending?.callback();
      if (done?.type !== "success") return { type: "failed" };
      const { type, provider, key, ...tokens } = done;
      return { type, provider, account: key === undefined ? { type: "oauth", ...tokens } : { type: "api", key, ...(chosen.type === "api" && Object.keys(inputs).length ? { metadata: inputs } : {}) } };
    }
    case "load": {
      const { fetch: own, apiKey, baseURL, headers } = (await account.hook.loader?.(() => read(provider), info)) ?? {};
      account.fetch = typeof own === "function" ? own : undefined;
      const text = (v) => (typeof v === "string" ? v : undefined);
      return { apiKey: text(typeof apiKey === "function" ? await apiKey() : apiKey), baseURL: text(baseURL), headers: headers && Object.fromEntries(new Headers(headers)), fetch: !!account.fetch };
    }
  }
  throw new Error(`there is no step ${step}`);
}

/** @type {Map<number, {controller: AbortController, credit: number, wake?: Function}>} requests under way, by id */
const flows = new Map();

/** Makes a request with the plugin's fetch and posts its answer in pieces, no more than WINDOW ahead of what was read. */
export async function request({ id, provider, url, method, headers, body }, post, fault) {
  const flow = { controller: new AbortController(), credit: WINDOW };
  flows.set(id, flow);
  try {
    const own = accounts.get(provider)?.fetch;
    if (!own) throw new Error(`the plugin's loader gave no fetch for ${provider}`);
    const answer = await own(url, { method, headers, body: method === "GET" ? undefined : body, signal: flow.controller.signal });
    // The body comes decoded, whatever its headers say.
    post({ id, head: { status: answer.status, headers: [...answer.headers].filter(([name]) => !["content-encoding", "content-length", "transfer-encoding"].includes(name)) } });
    const reader = answer.body?.getReader();
    for (let part; reader && !(part = await reader.read()).done; ) {
      for (let at = 0; at < part.value.length; at += PIECE) {
        while (flow.credit <= 0 && !flow.controller.signal.aborted) await new Promise((wake) => (flow.wake = wake));
        if (flow.controller.signal.aborted) return void reader.cancel().catch(() => {});
        flow.credit--;
        post({ id, chunk: Buffer.from(part.value.buffer, part.value.byteOffset + at, Math.min(PIECE, part.value.length - at)).toString("base64") });
      }
    }
    post({ id, result: null });
  } catch (e) {
    post({ id, error: fault(e) });
  } finally {
    flows.delete(id);
  }
}

/** The reader has taken a piece. */
export function more(id) {
  const flow = flows.get(id);
  if (!flow) return;
  flow.credit++;
  flow.wake?.();
}

/** Ends a request. @returns whether there was one */
export function cancel(id) {
  const flow = flows.get(id);
  flow?.controller.abort();
  flow?.wake?.();
  return !!flow;
}
