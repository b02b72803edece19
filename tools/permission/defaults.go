package permission

// Default is Pillion's own ruleset, the first layer of every session: what only looks goes on, what changes files
// or runs commands is asked, so that the person sees the diff or the command first. Secrets in .env files and
// everything outside the project are asked too.
func Default() Ruleset {
	return append(base(),
		Rule{"edit", "*", Ask, "default"},
		Rule{"bash", "*", Ask, "default"},
		Rule{"webfetch", "*", Ask, "default"}, // an address can carry out what was read
	)
}

// Permissive is OpenCode's default: only secrets, outside folders and loops ask.
func Permissive() Ruleset { return base() }

func base() Ruleset {
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
	}
}
