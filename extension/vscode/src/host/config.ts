// The settings that the sidecar reads when it starts. It takes them as configuration text in its environment, above the
// person's files and below a project's own.
import * as vscode from "vscode";

export interface StartSettings {
  binary: string;
  env: Record<string, string>;
  /** Text of PILLION_CONFIG_CONTENT, or "" where nothing was set. */
  config: string;
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
  };
}

/** Only what a person set counts: a default here must not win over their own configuration files. */
function chosen(found: { globalValue?: unknown; workspaceValue?: unknown; workspaceFolderValue?: unknown } | undefined): unknown {
  const inProject = found?.workspaceFolderValue ?? found?.workspaceValue;
  return (vscode.workspace.isTrusted ? inProject : undefined) ?? found?.globalValue;
}

/** Settings whose change the running sidecar does not see. */
export const restartSettings = ["binary.path", "env", "config", ...twins.map(([setting]) => setting)].map((name) => `pillion.${name}`);
