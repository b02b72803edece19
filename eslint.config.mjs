import tseslint from "typescript-eslint";

export default tseslint.config(
  { ignores: ["**/dist/**", "**/node_modules/**", ".cache/**", "extension/vscode/src/common/protocol.ts"] },
  {
    files: ["extension/vscode/**/*.ts"],
    extends: [...tseslint.configs.recommended],
    languageOptions: { parserOptions: { project: ["tsconfig.json", "extension/vscode/tsconfig.webview.json"], tsconfigRootDir: import.meta.dirname } },
    rules: {
      "@typescript-eslint/no-explicit-any": "error",
      // node:test's own functions return promises that its runner awaits.
      "@typescript-eslint/no-floating-promises": ["error", { allowForKnownSafeCalls: ["test", "describe", "it"].map((name) => ({ from: "package", name, package: "node:test" })) }],
      "@typescript-eslint/no-misused-promises": ["error", { checksVoidReturn: false }],
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
      "no-restricted-syntax": ["error",
        { selector: "Program > VariableDeclaration[kind='let']", message: "no state at module level" },
        // one spelling of the same thing; `#name` cannot be a constructor's parameter
        { selector: "PrivateIdentifier", message: "write private" },
      ],
      eqeqeq: ["error", "always", { null: "ignore" }],
    },
  },
);
