// The settings that the sidecar reads when it starts. It takes them as configuration text in its environment, above the
// person's files and below a project's own.
import * as vscode from "vscode";

export interface StartSettings {
  binary: string;
  env: Record<string, string>;
  /** Text of PILLION_CONFIG_CONTENT, or "" where nothing was set. */
  config: string;
  /** Text of PILLION_CONFIG_FOLDERS: what folders of a window with several set for themselves. "" where none did. */
  folders: string;
}

// Settings with a twin in Pillion's own configuration.
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

/** In a window with one folder its settings are the window's. Those of a folder are a project's: they count when it is trusted. */
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

/** Only what a person set counts: a default here must not win over their own configuration files. */
function chosen(found: { globalValue?: unknown; workspaceValue?: unknown } | undefined): unknown {
  return (vscode.workspace.isTrusted ? found?.workspaceValue : undefined) ?? found?.globalValue;
}

/** Settings whose change the running sidecar does not see. */
export const restartSettings = ["binary.path", "env", "config", ...twins.map(([setting]) => setting)].map((name) => `pillion.${name}`);
