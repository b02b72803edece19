package permission

// Default is Pillion's own ruleset, the first layer of every session: reading is allowed; changing files and running
// commands asks, so that the person sees the diff or the command first. Secrets in .env files and everything outside the
// project ask too. Any configured rule comes later and so wins over these.
func Default() Ruleset {
	return Ruleset{
		{"*", "*", Allow, "default"},
		// doom_loop is asked for when a model repeats the same call with the same input.
		{"doom_loop", "*", Ask, "default"},
		{"external_directory", "*", Ask, "default"},
		{"read", "*", Allow, "default"},
		{"read", "*.env", Ask, "default"},
		{"read", "*.env.*", Ask, "default"},
		{"read", "*.envrc", Ask, "default"},
		{"read", "*.env.example", Allow, "default"},
		{ReadOnlyCommands, "*", Allow, "default"},
		{"edit", "*", Ask, "default"},
		{"bash", "*", Ask, "default"},
		{"webfetch", "*", Ask, "default"}, // an address can carry what was read to a server
	}
}
