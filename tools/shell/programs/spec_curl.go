package programs

import (
	"strings"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// curlValues are the letters of curl's options that take a value (curl(1)). If a letter were missing, its glued value would be read as
// further letters.
const curlValues = "oTKcbDEHdFXuAexmrwUYzCyPQth"

// curl notes the files of a call of curl that the record cannot describe: those that a value names after @ or <, and those whose
// names curl takes from the address or the server (-O). With -d @file or -F x=@file, curl uploads a file, which may hold a key.
func curl(c *scan.Visit) {
	args := c.Args[1:]
	for i := 0; i < len(args); i++ {
		s := args[i].Text
		if v, ok := args[i].One(); ok {
			s = v
		}
		next := func() scan.Word {
			if i+1 < len(args) {
				i++
				return args[i]
			}
			return scan.Plain("")
		}
		switch {
		// The server or the address decides the name of the file, so the folder counts as written.
		case s == "--remote-name" || s == "--remote-name-all" || s == "--remote-header-name":
			c.TouchValue(scan.Literal("."), scan.Write)
		case strings.HasPrefix(s, "--"):
			key, _, has := strings.Cut(s, "=")
			switch {
			case !curlReads[key]:
			case has:
				curlValue(key, args[i].Cut("="), c)
			default:
				curlValue(key, next(), c)
			}
		case len(s) > 1 && s[0] == '-':
			// In a cluster, the first letter that takes a value takes the rest of the word, or the next word.
			for j := 1; j < len(s); j++ {
				if s[j] == 'O' {
					c.TouchValue(scan.Literal("."), scan.Write)
				}
				if strings.IndexByte(curlValues, s[j]) < 0 {
					continue
				}
				if j+1 < len(s) {
					curlValue(s[j:j+1], args[i].From(j+1), c)
				} else {
					curlValue(s[j:j+1], next(), c)
				}
				break
			}
		}
	}
}

// curlReads are the long options in whose values a file name may follow @, < or %output; see curlValue.
var curlReads = map[string]bool{"--data": true, "--data-ascii": true, "--data-binary": true, "--data-urlencode": true, "--json": true,
	"--form": true, "--header": true, "--proxy-header": true, "--write-out": true, "--variable": true, "--url": true, "--url-query": true, "--cookie": true}

// curlValue notes the files that the value a of an option names. How a value names a file depends on the option (curl(1)): -d @file,
// -F name=@file or name=<file, --data-urlencode name@file, -w %output{file}.
func curlValue(option string, a scan.Word, c *scan.Visit) {
	for _, v := range a.Values {
		before, file, ok := strings.Cut(v.Text, "@")
		switch option {
		// A value with "=" holds cookies; one without names a file.
		case "b", "--cookie":
			if !strings.Contains(v.Text, "=") {
				c.TouchValue(v, scan.Read)
			}
			continue
		case "w", "--write-out":
			for _, part := range strings.Split(v.Text, "%output{")[1:] {
				name, _, _ := strings.Cut(part, "}")
				c.TouchValue(scan.Literal(strings.TrimPrefix(name, ">>")), scan.Write)
			}
			ok = ok && before == ""
		case "F", "--form":
			if i := strings.IndexByte(v.Text, '='); i >= 0 && i+1 < len(v.Text) {
				ok = v.Text[i+1] == '@' || v.Text[i+1] == '<'
				file, _, _ = strings.Cut(v.Text[min(i+2, len(v.Text)):], ";")
			}
		case "d", "H", "--data", "--data-ascii", "--data-binary", "--json", "--header", "--proxy-header", "--url":
			ok = ok && before == ""
		case "--data-urlencode", "--variable", "--url-query":
			ok = ok && !strings.Contains(before, "=")
		default:
			continue
		}
		// -F takes several files, separated by commas.
		for part := range strings.SplitSeq(file, ",") {
			if ok && part != "-" && part != "" && (option == "F" || option == "--form" || part == file) {
				c.TouchValue(scan.Literal(part), scan.Read)
			}
		}
	}
}
