package permission

// Default is Pillion's own ruleset, the first layer of every session: what only looks goes on, what changes files
// or runs commands is asked, so that the person sees the diff or the command first. Secrets in .env files and
// everything outside the project are asked too.
func Default() Ruleset {
	return Ruleset{
		{"*", "*", Allow, "default"},
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
		{"webfetch", "*", Ask, "default"}, // an address can carry out what was read
	}
}
