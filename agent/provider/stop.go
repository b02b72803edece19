package provider

// StopUndone is a model's own word that nothing of what was asked could be done; only the built-in one gives it.
const StopUndone StopReason = "undone"
