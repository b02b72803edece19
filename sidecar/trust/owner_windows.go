package trust

import "io/fs"

// onlyOurs trusts the profile folder's access list, which is the person's.
func onlyOurs(fs.FileInfo) bool { return true }
