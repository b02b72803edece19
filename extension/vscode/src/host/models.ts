// Choosing a model, and adding one: a hosted service with a key, a server found on this machine, or another server that
// speaks OpenAI's Chat Completions. Such a server is tested with a call before it is stored.
import * as vscode from "vscode";
import type { AuthProvider } from "../common/protocol";
import { Endpoint, providerId } from "./endpoint";
import { type Keys, knownProviders } from "./keys";
import { tell } from "./sessionlist";
import type { Sessions } from "./sessions";
import type { Sidecar } from "./sidecar";
import { onCommand } from "./table";

interface Row extends vscode.QuickPickItem {
  run?: () => Promise<unknown>;
}

export class Models implements vscode.Disposable {
  private readonly registered: vscode.Disposable;

  constructor(
    private readonly sidecar: Sidecar,
    private readonly sessions: Sessions,
    private readonly keys: Keys,
  ) {
    this.registered = vscode.Disposable.from(
      onCommand("pillion.selectModel", () => this.select().catch(tell)),
      onCommand("pillion.setKey", (provider?: unknown) => this.add(typeof provider === "string" ? provider : undefined).catch(tell)),
    );
  }

  dispose(): void {
    this.registered.dispose();
  }

  /** Lists the models of the active session, only one provider's (`anthropic/`) if it has any; the last row adds
   * others. */
  private async select(only = ""): Promise<void> {
    const session = await this.sessions.ready();
    const option = session.configOptions.find((o) => o.category === "model" || o.id === "model");
    if (!option || option.type !== "select" || !option.options) throw new Error("The session offers no choice of models.");
    const groups = option.options.map((o) => ("options" in o ? o : { name: "", options: [o] }));
    const some = groups.some((g) => g.options.some((o) => o.value.startsWith(only)));
    const rows = groups.flatMap((g): Row[] => {
      const options = some ? g.options.filter((o) => o.value.startsWith(only)) : g.options;
      if (options.length === 0) return [];
      return [
        ...(g.name ? [separator(g.name)] : []),
        ...options.map((o): Row => ({
          label: o.name,
          description: [o.value, o.value === option.currentValue ? "current" : ""].filter(Boolean).join(" · "),
          detail: o.description ?? "",
          run: () => this.sessions.setOption(session.id, option.id, o.value),
        })),
      ];
    });
    const more: Row[] = [separator(""), { label: "$(add) Add a model provider…", run: () => this.add() }];
    await pick([...rows, ...more], "Model");
  }

  /** Asks for a provider, then for what it needs. */
  private async add(wanted?: string): Promise<void> {
    const providers = await this.providers();
    const found = providers.find((p) => p.id === wanted);
    if (found) return this.withKey(found);
    const row = (p: AuthProvider, description: string, run: () => Promise<unknown>): Row => ({ label: p.name, description, run });
    const local = providers.filter((p) => p.local);
    const hosted = providers.filter((p) => !p.local);
    const ready = hosted.filter((p) => p.source !== "none" && p.source !== "");
    const rest = hosted.filter((p) => !ready.includes(p));
    const some = (name: string, rows: Row[]) => (rows.length > 0 ? [separator(name), ...rows] : []);
    await pick(
      [
        ...some("On this machine", local.map((p) => row(p, `${p.baseUrl ?? ""} needs no API key`.trim(), () => this.select(`${p.id}/`)))),
        ...some("Ready to use", ready.map((p) => row(p, `API key from ${p.source}`, () => this.withKey(p)))),
        ...some("Hosted, with an API key", rest.map((p) => row(p, p.env?.[0] ? `or set ${p.env[0]}` : "", () => this.withKey(p)))),
        ...some("Other", [{ label: "$(plug) OpenAI-compatible server…", detail: "Any server that speaks Chat Completions, by its URL", run: () => this.custom() }]),
      ],
      "Add a model provider",
    );
  }

  private async providers(): Promise<AuthProvider[]> {
    await this.sidecar.start().catch(() => {}); // keys can be stored without a running sidecar
    if (!this.sidecar.announced("_pillion/auth/list")) return knownProviders.map((p) => ({ id: p.id, name: p.name, env: [p.env], source: "" }));
    return (await this.sidecar.request("_pillion/auth/list", {})).providers;
  }

  /** Asks for a provider's key. If the provider's address is known, the key is tested before it is stored. */
  private async withKey(p: AuthProvider): Promise<void> {
    let problem: string | undefined;
    for (;;) {
      const key = await askKey(`API key for ${p.name}`, problem);
      if (key === undefined) return;
      const why = p.baseUrl && (await trying(p.name, () => new Endpoint(p.baseUrl!, key).refusesKey()));
      if (why) {
        problem = why;
        continue;
      }
      if (!(await this.keys.keep({ id: p.id, name: p.name, env: p.env?.[0] ?? "" }, key))) return;
      break;
    }
    await this.select(`${p.id}/`);
  }

  /** Adds a server by its address: asks for its key and a model, tests it with a call, and then writes the settings. */
  private async custom(): Promise<void> {
    let url = "";
    let problem: string | undefined;
    for (;;) {
      const answer = await vscode.window.showInputBox({
        title: "URL of the OpenAI-compatible server",
        prompt: problem ?? "The base URL of the API, for example https://llm.example.com/v1",
        value: url,
        ignoreFocusOut: true,
        validateInput: (v) => Endpoint.problemOf(v),
      });
      if (answer === undefined) return;
      url = answer.trim().replace(/\/+$/, "");
      const key = await askKey("API key of the server", undefined, true);
      if (key === undefined) return;
      const endpoint = new Endpoint(url, key);
      const models = await trying(url, () => endpoint.models());
      if (typeof models === "string") {
        problem = `${models}. Correct the URL, or the key after it.`;
        continue;
      }
      const model = models.length > 0 ? await vscode.window.showQuickPick(models, { title: "Model of the server" }) : await vscode.window.showInputBox({ title: "Model of the server", prompt: "The server does not list its models. Enter the ID of one.", ignoreFocusOut: true });
      if (!model) return;
      const failed = await trying(model, () => endpoint.test(model));
      if (failed) {
        problem = `${failed}. Correct the URL, or the key after it.`;
        continue;
      }
      return this.keepCustom(url, key, model);
    }
  }

  private async keepCustom(url: string, key: string, model: string): Promise<void> {
    const settings = vscode.workspace.getConfiguration("pillion");
    const config = settings.get<Record<string, unknown>>("config", {});
    const providers = (config["provider"] ?? {}) as Record<string, { baseURL?: string; models?: Record<string, unknown> }>;
    const taken = new Set([...Object.keys(providers).filter((id) => providers[id]?.baseURL !== url), ...(await this.providers()).map((p) => p.id)]);
    const id = Object.keys(providers).find((x) => providers[x]?.baseURL === url) ?? providerId(url, taken);
    if (key !== "" && !(await this.keys.keep({ id, name: id, env: "" }, key))) return;
    const provider = { ...providers[id], baseURL: url, models: { ...providers[id]?.models, [model]: {} } };
    if (JSON.stringify(provider) !== JSON.stringify(providers[id])) {
      const started = new Promise<void>((resolve) => {
        const once = this.sidecar.onDidStart(() => {
          once.dispose();
          resolve();
        });
      });
      await settings.update("config", { ...config, provider: { ...providers, [id]: provider } }, vscode.ConfigurationTarget.Global);
      // The process reads the settings when it starts; their change restarts it, after the running turn.
      await vscode.window.withProgress({ location: vscode.ProgressLocation.Window, title: "Pillion: restarting with the new provider" }, async () => {
        if (this.sidecar.state.kind === "stopped") await this.sidecar.start();
        await started;
      });
    }
    const session = await this.sessions.ready();
    const option = session.configOptions.find((o) => o.category === "model" || o.id === "model");
    if (option) await this.sessions.setOption(session.id, option.id, `${id}/${model}`);
    void vscode.window.showInformationMessage(`The session uses ${model} of ${url}. The server is in the setting pillion.config.`);
  }
}

function separator(label: string): Row {
  return { label, kind: vscode.QuickPickItemKind.Separator };
}

async function pick(rows: readonly Row[], title: string): Promise<void> {
  const row = await vscode.window.showQuickPick(rows, { title, matchOnDescription: true, matchOnDetail: true });
  await row?.run?.();
}

function askKey(title: string, problem: string | undefined, optional = false): Thenable<string | undefined> {
  return vscode.window
    .showInputBox({
      title,
      prompt: `${problem ? `${problem}. ` : ""}VS Code's secret storage keeps the key. Only Pillion receives it.${optional ? " Leave it empty if the server needs none." : ""}`,
      password: true,
      ignoreFocusOut: true,
      validateInput: (v) => (!optional && v.trim() === "" ? "Paste the key" : undefined),
    })
    .then((key) => key?.trim());
}

function trying<T>(what: string, run: () => Promise<T>): Thenable<T> {
  return vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: `Pillion: trying ${what}` }, run);
}
