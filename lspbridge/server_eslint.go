package lspbridge

import (
	"encoding/json"
	"slices"
)

// eslint is the server of VS Code's ESLint extension. It requests a settings section without a name, and permission to run.
func eslint() Server {
	return Server{ID: "eslint", Extensions: append(slices.Clone(jsExt), ".vue", ".svelte"), Extra: true, Required: true,
		Markers:  []string{"eslint.config.js", "eslint.config.mjs", "eslint.config.cjs", "eslint.config.ts", ".eslintrc", ".eslintrc.js", ".eslintrc.cjs", ".eslintrc.json", ".eslintrc.yml", ".eslintrc.yaml"},
		Commands: [][]string{{"vscode-eslint-language-server", "--stdio"}},
		Settings: `{"":{"validate":"on","run":"onType","problems":{"shortenToSingleLine":false},"nodePath":"","rulesCustomizations":[],"experimental":{},"codeActionOnSave":{"enable":false,"mode":"all"},"codeAction":{"disableRuleComment":{"enable":true,"location":"separateLine"},"showDocumentation":{"enable":true}},"onIgnoredFiles":"off","quiet":false,"format":false,"workingDirectory":{"mode":"location"}}}`,
		Install:  npm("vscode-langservers-extracted"),
		hooks:    hooks{handle: eslintAsks}}
	// No Restraint: it loads the project's own eslint and configuration, which are programs.
}

// eslintAsks answers the requests that only this server sends.
func eslintAsks(_ *client, method string, _ json.RawMessage) (any, bool) {
	switch method {
	case "eslint/confirmESLintExecution":
		return 4, true // 4 means approved: this server is started in trusted folders only
	case "eslint/noLibrary", "eslint/probeFailed", "eslint/openDoc":
		return nil, true
	}
	return nil, false
}
