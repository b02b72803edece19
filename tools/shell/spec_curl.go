package shell

import "strings"

// curlValues are the letters of curl's options that take a value.
const curlValues = "oTKcbDEHdFXuAexmrwUYzCyPQth"

// curl looks at the values in which curl finds file names behind @ and <, and at the options that name a file after
// what the server says.
func (w *walker) curl(c *call) {
	args := c.args[1:]
	for i := 0; i < len(args); i++ {
		s := args[i].text
		if v, ok := args[i].one(); ok {
			s = v
		}
		next := func() arg {
			if i+1 < len(args) {
				i++
				return args[i]
			}
			return plainArg("")
		}
		switch {
		case s == "--remote-name" || s == "--remote-name-all" || s == "--remote-header-name":
			w.record(literal("."), Write, c.st)
		case strings.HasPrefix(s, "--"):
			key, _, has := strings.Cut(s, "=")
			switch {
			case !curlReads[key]:
			case has:
				w.curlValue(key, args[i].cut("="), c.st)
			default:
				w.curlValue(key, next(), c.st)
			}
		case len(s) > 1 && s[0] == '-':
			for j := 1; j < len(s); j++ {
				if s[j] == 'O' {
					w.record(literal("."), Write, c.st)
				}
				if strings.IndexByte(curlValues, s[j]) < 0 {
					continue
				}
				if j+1 < len(s) {
					w.curlValue(s[j:j+1], args[i].from(j+1), c.st)
				} else {
					w.curlValue(s[j:j+1], next(), c.st)
				}
				break
			}
		}
	}
}

// curlReads are the long options with such values.
var curlReads = map[string]bool{"--data": true, "--data-ascii": true, "--data-binary": true, "--data-urlencode": true, "--json": true, "--form": true, "--header": true, "--proxy-header": true, "--write-out": true, "--variable": true, "--url": true, "--url-query": true, "--cookie": true}

func (w *walker) curlValue(option string, a arg, st *state) {
	for _, v := range a.vals {
		before, file, ok := strings.Cut(v.s, "@")
		switch option {
		case "b", "--cookie":
			if !strings.Contains(v.s, "=") {
				w.record(v, Read, st)
			}
			continue
		case "w", "--write-out":
			for _, part := range strings.Split(v.s, "%output{")[1:] {
				name, _, _ := strings.Cut(part, "}")
				w.record(literal(strings.TrimPrefix(name, ">>")), Write, st)
			}
			ok = ok && before == ""
		case "F", "--form":
			if i := strings.IndexByte(v.s, '='); i >= 0 && i+1 < len(v.s) {
				ok = v.s[i+1] == '@' || v.s[i+1] == '<'
				file, _, _ = strings.Cut(v.s[min(i+2, len(v.s)):], ";")
			}
		case "d", "H", "--data", "--data-ascii", "--data-binary", "--json", "--header", "--proxy-header", "--url":
			ok = ok && before == ""
		case "--data-urlencode", "--variable", "--url-query":
			ok = ok && !strings.Contains(before, "=")
		default:
			continue
		}
		for part := range strings.SplitSeq(file, ",") {
			if ok && part != "-" && part != "" && (option == "F" || option == "--form" || part == file) {
				w.record(literal(part), Read, st)
			}
		}
	}
}
