package sandbox

import "io/fs"

// mayWrite and mayRead are asked by the sandbox only, and Windows has none.
func mayWrite(string) bool { return false }

// mayRead is false, like mayWrite.
func mayRead(string) bool { return false }

// hasOtherNames is false: no command is contained here.
func hasOtherNames(fs.FileInfo) bool { return false }
