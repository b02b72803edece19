//go:build !linux

package sandbox

// folderWatch does nothing here: folders are compared by their times.
type folderWatch struct{}

func openFolderWatch() *folderWatch { return nil }

func (*folderWatch) close()                                            {}
func (*folderWatch) catchUp() (changed, gone map[string]bool, ok bool) { return nil, nil, false }
func (*folderWatch) forget(map[string]bool)                            {}
func (*folderWatch) root(string) (ok, moved bool)                      { return false, false }
func (*folderWatch) add(string, string) bool                           { return false }
