package sandbox

// lockFolder is not needed on Windows, which has no sandbox.
func lockFolder(string) (unlock func()) { return nil }
