// What plugins get as their client: the part of OpenCode's that Pillion has. Calls travel to the sidecar and back.

/** @type {Map<number, (answer: object) => void>} calls under way */
const waiting = new Map();
let last = 0;

/** An object of objects of functions: client.session.get({ path: { id } }). Any name may be called; one that there is
 * not is an error that says what there is. What the language itself asks of an object is no call: then of what is awaited, toJSON of what
 * JSON.stringify writes, as a log line that holds the client does. */
export function client(post, path = []) {
  return new Proxy(() => {}, {
    // A method is still a function: plugins take it out of its object.
    get: (_, key) => key === "bind" ? () => client(post, path) : key === "call" ? (_, args) => call(post, path.join("."), args ?? {}) : (key === "then" || key === "toJSON" || typeof key === "symbol" ? undefined : client(post, [...path, key])),
    apply: (_, __, [args]) => call(post, path.join("."), args ?? {}),
  });
}

/** What is kept for a provider that the plugin signs in to; undefined: nothing. */
export async function account(post, id) {
  return (await call(post, "pillion.account", { id, throwOnError: true, responseStyle: "data" })) ?? undefined;
}

async function call(post, method, { throwOnError, responseStyle, signal, ...args }) {
  void signal;
  const { result, error } = await new Promise((resolve) => {
    waiting.set(++last, resolve);
    post({ client: { n: last, method, args: JSON.parse(JSON.stringify(args)) } });
  });
  if (error && (error.kind === "unknown" || throwOnError)) throw Object.assign(new Error(error.message), { name: error.name ?? "Error" });
  if (responseStyle === "data") return result;
  return { data: error ? undefined : result, error: error && { name: error.name ?? "UnknownError", data: { message: error.message } }, request: {}, response: { ok: !error, status: !error ? 200 : error.kind === "not_found" ? 404 : 400 } };
}

export function answered({ n, result, error }) {
  waiting.get(n)?.({ result, error });
  waiting.delete(n);
}
