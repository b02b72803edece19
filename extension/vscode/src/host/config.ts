// The settings that the sidecar reads when it starts. They are passed as configuration text in its environment; they
// override the person's files, and a project's files override them.
import * as vscode from "vscode";

export interface StartSettings {
  binary: string;
  env: Record<string, string>;
  /** The text of PILLION_CONFIG_CONTENT, or "" if nothing is set. */
  config: string;
  /** The text of PILLION_CONFIG_FOLDERS: the settings of single folders in a window with several. "" if there are
   * none. */
  folders: string;
}

// VS Code settings and the settings of pillion.jsonc that they correspond to.
const twins: readonly [setting: string, key: string][] = [
  ["model", "model"],
  ["defaultAgent", "default_agent"],
  ["review.mode", "review"],
  ["permission", "permission"],
  ["instructions", "instructions"],
  ["sandbox", "sandbox"],
  ["sandboxNetwork", "sandbox_network"],
  ["lsp", "lsp"],
  ["formatter", "formatter"],
  ["shell", "shell"],
  ["steps", "steps"],
];

export function startSettings(): StartSettings {
  const settings = vscode.workspace.getConfiguration("pillion");
  const config: Record<string, unknown> = { ...settings.get<Record<string, unknown>>("config", {}) };
  for (const [setting, key] of twins) {
    const value = chosen(settings.inspect(setting));
    if (value !== undefined && value !== "" && value !== null) config[key] = value;
  }
  return {
    binary: settings.get<string>("binary.path", ""),
    env: settings.get<Record<string, string>>("env", {}),
    config: Object.keys(config).length > 0 ? JSON.stringify(config) : "",
    folders: folderSettings(),
  };
}

/** In a window with one folder its settings are the window's. Settings of a folder are those of a project: they are
 * used only if it is trusted. */
function folderSettings(): string {
  const folders = (vscode.workspace.workspaceFolders ?? []).filter((f) => f.uri.scheme === "file");
  if (folders.length < 2 || !vscode.workspace.isTrusted) return "";
  const out: Record<string, Record<string, unknown>> = {};
  for (const f of folders) {
    const settings = vscode.workspace.getConfiguration("pillion", f.uri);
    const own = twins.flatMap(([setting, key]) => {
      const value = settings.inspect(setting)?.workspaceFolderValue;
      return value !== undefined && value !== "" && value !== null ? [[key, value] as const] : [];
    });
    if (own.length > 0) out[f.uri.fsPath] = Object.fromEntries(own);
  }
  return Object.keys(out).length > 0 ? JSON.stringify(out) : "";
}

/** Only values that a person has set are passed: a default here must not override their configuration files. */
function chosen(found: { globalValue?: unknown; workspaceValue?: unknown } | undefined): unknown {
  return (vscode.workspace.isTrusted ? found?.workspaceValue : undefined) ?? found?.globalValue;
}

/** Settings that the running sidecar does not read again. */
export const restartSettings = ["binary.path", "env", "config", ...twins.map(([setting]) => setting)].map((name) => `pillion.${name}`);
