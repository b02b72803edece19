package provider

// StopUndone says that nothing of what was asked could be done; only the built-in model gives it.
// `pillion run` exits with 1 for it.
const StopUndone StopReason = "undone"
