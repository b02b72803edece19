package sandbox

// lockFolder is not needed where there is no sandbox.
func lockFolder(string) (unlock func()) { return nil }
