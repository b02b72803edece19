// API keys: stored in VS Code's secret storage and given only to the sidecar. An older sidecar without `_pillion/auth/set`
// gets them in its environment when it starts.
import * as vscode from "vscode";
import { tell } from "./sessionlist";
import type { Sidecar } from "./sidecar";
import { onCommand } from "./table";

/** The providers that are offered before a sidecar has sent its list. */
export const knownProviders: readonly { id: string; name: string; env: string }[] = [
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

const index = "pillion.keys"; // which providers have a key; the keys of a secret store cannot be listed

export class Keys implements vscode.Disposable {
  private readonly disposables: vscode.Disposable[];

  constructor(
    private readonly sidecar: Sidecar,
    private readonly context: Pick<vscode.ExtensionContext, "secrets" | "globalState">,
    private readonly log: vscode.LogOutputChannel,
  ) {
    this.disposables = [
      sidecar.onDidStart(() => void this.giveAll().catch((e: unknown) => log.warn(`keys were not passed on: ${String(e)}`))),
      onCommand("pillion.removeKey", () => this.remove().catch(tell)),
    ];
  }

  /** The environment for a sidecar that accepts keys in no other way. */
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

  /** If the secret store fails, only models that need a key are affected. */
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

  /** Stores a provider's key and gives it to the sidecar. Returns whether it can be used at once: an older sidecar
   * reads it only when it starts. */
  async keep(provider: { id: string; name: string; env: string }, key: string): Promise<boolean> {
    await this.context.secrets.store(secret(provider.id), key).then(undefined, (error: unknown) => {
      throw new Error(`VS Code's secret storage cannot store the key (${error instanceof Error ? error.message : String(error)}). Set it in the environment as ${provider.env || "its provider says"} instead, or keep it with: pillion auth login ${provider.id}`);
    });
    await this.context.globalState.update(index, { ...this.index(), [provider.id]: { name: provider.name, env: provider.env } satisfies Stored });
    if (this.sidecar.announced("_pillion/auth/set")) {
      await this.sidecar.request("_pillion/auth/set", { provider: provider.id, key });
      return true;
    }
    const choice = await vscode.window.showInformationMessage(`The key for ${provider.name} takes effect when Pillion restarts.`, "Restart Pillion");
    if (choice) await vscode.commands.executeCommand("pillion.restart");
    return false;
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
