package programs

import "github.com/pillion-dev/pillion/tools/shell/scan"

// valueOption reports an option of an interpreter whose value is the next word, behind which code may follow.
func valueOption(c *scan.Visit, name, option string) bool {
	return hasField(recordOf(c, name).Values, option)
}
