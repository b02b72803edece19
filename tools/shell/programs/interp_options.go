package programs

// valueOption reports an option of an interpreter whose value is the next word, behind which code may follow.
func valueOption(name, option string) bool { return hasField(recordOf(name).Values, option) }
