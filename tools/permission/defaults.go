package permission

// Default is Pillion's own ruleset, the first layer of every session: reading is allowed; changing files and running
// commands asks, so that the person sees the diff or the command first. Secrets in .env files and everything outside the
// project ask too. Any configured rule comes later and so wins over these.
func Default() Ruleset {
	return Ruleset{
		{Permission: "*", Pattern: "*", Action: Allow, Origin: "default"},
		// doom_loop is asked for when a model repeats the same call with the same input.
		{Permission: "doom_loop", Pattern: "*", Action: Ask, Origin: "default"},
		{Permission: "external_directory", Pattern: "*", Action: Ask, Origin: "default"},
		{Permission: "read", Pattern: "*", Action: Allow, Origin: "default"},
		{Permission: "read", Pattern: "*.env", Action: Ask, Origin: "default"},
		{Permission: "read", Pattern: "*.env.*", Action: Ask, Origin: "default"},
		{Permission: "read", Pattern: "*.envrc", Action: Ask, Origin: "default"},
		{Permission: "read", Pattern: "*.env.example", Action: Allow, Origin: "default"},
		{Permission: ReadOnlyCommands, Pattern: "*", Action: Allow, Origin: "default"},
		{Permission: "edit", Pattern: "*", Action: Ask, Origin: "default"},
		{Permission: "bash", Pattern: "*", Action: Ask, Origin: "default"},
		{Permission: "webfetch", Pattern: "*", Action: Ask, Origin: "default"}, // an address can carry what was read to a server
	}
}
