// API keys: kept in VS Code's secret storage, given to the sidecar alone, never written anywhere else. An older sidecar
// without `_pillion/auth/set` gets them in its environment when it starts.
import * as vscode from "vscode";
import { tell } from "./sessionlist";
import type { Sidecar } from "./sidecar";
import { onCommand } from "./table";

/** Providers that can be chosen before any sidecar has told its own list. */
const known: readonly { id: string; name: string; env: string }[] = [
  { id: "anthropic", name: "Anthropic", env: "ANTHROPIC_API_KEY" },
  { id: "openai", name: "OpenAI", env: "OPENAI_API_KEY" },
  { id: "google", name: "Google Gemini", env: "GEMINI_API_KEY" },
  { id: "openrouter", name: "OpenRouter", env: "OPENROUTER_API_KEY" },
  { id: "mistral", name: "Mistral", env: "MISTRAL_API_KEY" },
  { id: "groq", name: "Groq", env: "GROQ_API_KEY" },
  { id: "deepseek", name: "DeepSeek", env: "DEEPSEEK_API_KEY" },
];

interface Stored {
  name: string;
  env: string;
}

const index = "pillion.keys"; // which providers have a key; a secret store cannot be listed

export class Keys implements vscode.Disposable {
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    private readonly context: Pick<vscode.ExtensionContext, "secrets" | "globalState">,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.disposables = [
      sidecar.onDidStart(() => void this.giveAll().catch((e: unknown) => log.warn(`keys were not passed on: ${String(e)}`))),
      onCommand("pillion.setKey", (provider?: unknown) => this.set(typeof provider === "string" ? provider : undefined).catch(tell)),
      onCommand("pillion.removeKey", () => this.remove().catch(tell)),
    ];
  }

  /** Environment for a sidecar that takes keys in no other way. */
  async environment(): Promise<Record<string, string>> {
    const env: Record<string, string> = {};
    for (const [id, stored] of Object.entries(this.index())) {
      const key = await this.read(id);
      if (key && stored.env && !process.env[stored.env]) env[stored.env] = key;
    }
    return env;
  }

  dispose(): void {
    for (const d of this.disposables) d.dispose();
  }

  /** A store that fails costs its keys, and nothing else: models that need none go on. */
  private async read(id: string): Promise<string | undefined> {
    try {
      return await this.context.secrets.get(secret(id));
    } catch (error) {
      this.log.error(`VS Code's secret storage cannot read the key for ${id}: ${String(error)}`);
      return undefined;
    }
  }

  private index(): Record<string, Stored> {
    return this.context.globalState.get<Record<string, Stored>>(index, {});
  }

  private async providers(): Promise<{ id: string; name: string; env: string; source: string; local: boolean }[]> {
    await this.sidecar.start().catch(() => {}); // keys can be set without it
    if (!this.sidecar.announced("_pillion/auth/list")) return known.map((p) => ({ ...p, source: "", local: false }));
    const { providers } = await this.sidecar.request("_pillion/auth/list", {});
    return providers.map((p) => ({ id: p.id, name: p.name, env: p.env?.[0] ?? "", source: p.source, local: p.local ?? false }));
  }

  private async set(wanted: string | undefined): Promise<void> {
    const providers = await this.providers();
    const rows = providers.map((p) => ({
      label: p.name,
      description: p.local ? "found on this machine, needs no key" : p.source && p.source !== "none" ? `has a key (${p.source})` : "",
      detail: p.env ? `also read from ${p.env}` : "",
      provider: p,
    }));
    const row = rows.find((r) => r.provider.id === wanted) ?? (await vscode.window.showQuickPick(rows, { title: "API key for", placeHolder: "Model provider" }));
    if (!row) return;
    const key = await vscode.window.showInputBox({
      title: `API key for ${row.provider.name}`,
      prompt: "VS Code's secret storage keeps the key. Only Pillion receives it.",
      password: true,
      ignoreFocusOut: true,
      validateInput: (v) => (v.trim() === "" ? "Paste the key" : undefined),
    });
    if (key === undefined) return;
    await this.context.secrets.store(secret(row.provider.id), key.trim()).then(undefined, (error: unknown) => {
      throw new Error(`VS Code's secret storage cannot store the key (${error instanceof Error ? error.message : String(error)}). Put it into the environment as ${row.provider.env || "its provider says"} instead, or keep it with: pillion auth`);
    });
    await this.context.globalState.update(index, { ...this.index(), [row.provider.id]: { name: row.provider.name, env: row.provider.env } satisfies Stored });
    if (this.sidecar.announced("_pillion/auth/set")) {
      await this.sidecar.request("_pillion/auth/set", { provider: row.provider.id, key: key.trim() });
      const choice = await vscode.window.showInformationMessage(`${row.provider.name} is ready.`, "Select Model");
      if (choice) await vscode.commands.executeCommand("pillion.selectModel");
    } else {
      const choice = await vscode.window.showInformationMessage(`The key for ${row.provider.name} takes effect when Pillion restarts.`, "Restart Pillion");
      if (choice) await vscode.commands.executeCommand("pillion.restart");
    }
  }

  private async remove(): Promise<void> {
    const rows = Object.entries(this.index()).map(([id, s]) => ({ label: s.name, id }));
    if (rows.length === 0) return void vscode.window.showInformationMessage("No key is stored in VS Code.");
    const row = await vscode.window.showQuickPick(rows, { title: "Remove the API key of" });
    if (!row) return;
    await this.context.secrets.delete(secret(row.id));
    const rest = Object.fromEntries(Object.entries(this.index()).filter(([id]) => id !== row.id));
    await this.context.globalState.update(index, rest);
    if (this.sidecar.announced("_pillion/auth/set")) await this.sidecar.request("_pillion/auth/set", { provider: row.id });
  }

  private async giveAll(): Promise<void> {
    if (!this.sidecar.announced("_pillion/auth/set")) return;
    for (const id of Object.keys(this.index())) {
      const key = await this.read(id);
      if (key) await this.sidecar.request("_pillion/auth/set", { provider: id, key }).catch((e: unknown) => this.log.warn(`the key for ${id} was not taken: ${String(e)}`));
    }
  }
}

function secret(provider: string): string {
  return `pillion.key.${provider}`;
}
