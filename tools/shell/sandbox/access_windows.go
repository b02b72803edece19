package sandbox

import "io/fs"

// mayWrite and mayRead are never called on Windows, which has no sandbox.
func mayWrite(string) bool { return false }

// mayRead is false, like mayWrite.
func mayRead(string) bool { return false }

// hasOtherNames is false: commands are not contained on Windows.
func hasOtherNames(fs.FileInfo) bool { return false }
