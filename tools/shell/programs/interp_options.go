package programs

import "github.com/pillion-dev/pillion/tools/shell/scan"

// valueOption reports an option of an interpreter whose value is the next word, behind which code may follow.
// Without it the value (python -W error x.py) would be taken for the script.
func valueOption(c *scan.Visit, name, option string) bool {
	return hasField(recordOf(c, name).Values, option)
}
