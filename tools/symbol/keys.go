package symbol

import (
	"strings"
)

// Keys of JSON and YAML are found without a grammar, by lines and brackets. What is too complicated for that is left out of the
// list, or is Fixed.

// jsonKeys lists the keys of objects. Comments and trailing commas are allowed, because tsconfig.json and settings.json have them.
// Elements of arrays count from 0. A syntax error ends the list without an error: the keys before it can still be edited.
func jsonKeys(text string) ([]Symbol, error) {
	j := jsonReader{text: text}
	if j.value(nil, 0) != nil {
		return j.out, nil // the keys before the syntax error
	}
	return j.out, nil
}

// jsonReader reads JSON with comments by recursive descent, at most maxDepthKeys deep.
type jsonReader struct {
	text string
	at   int // byte offset of the next character to read
	out  []Symbol
}

// jsonMistake ends the reading at a syntax error; callers do not see its text.
type jsonMistake struct{}

func (jsonMistake) Error() string { return "not JSON" }

// blank skips white space and comments. It returns the byte offset of the comments that are directly before the next token, or -1.
// If there is a blank line between a comment and a key, they do not belong together, and the comment stays when the key is deleted.
func (j *jsonReader) blank() (comments int) {
	comments = -1
	for j.at < len(j.text) {
		switch rest := j.text[j.at:]; {
		case strings.HasPrefix(rest, "\ufeff"):
			j.at += len("\ufeff")
		case rest[0] == '\n':
			if strings.HasPrefix(strings.TrimLeft(rest[1:], " \t\r"), "\n") {
				comments = -1 // a blank line between them
			}
			j.at++
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r':
			j.at++
		case strings.HasPrefix(rest, "//"), strings.HasPrefix(rest, "/*"):
			line := strings.LastIndexByte(j.text[:j.at], '\n') + 1
			if comments < 0 && strings.TrimSpace(j.text[line:j.at]) == "" {
				comments = j.at
			}
			end := "\n"
			if rest[1] == '*' {
				end = "*/"
			}
			i := strings.Index(rest[2:], end)
			if i < 0 {
				j.at = len(j.text)
				return comments
			}
			if j.at += 2 + i; end == "*/" {
				j.at += 2
			}
		default:
			return comments
		}
	}
	return comments
}

// value reads one value; path is its own. The content of a scalar is not checked, because only its end matters.
func (j *jsonReader) value(path []string, depth int) error {
	j.blank()
	if j.at >= len(j.text) || depth > maxDepthKeys {
		return jsonMistake{}
	}
	switch c := j.text[j.at]; c {
	case '{', '[':
		return j.list(path, depth, c == '{')
	case '"':
		_, err := j.string()
		return err
	}
	from := j.at
	for j.at < len(j.text) && !strings.ContainsRune(",]} \t\r\n/", rune(j.text[j.at])) {
		j.at++
	}
	if j.at == from {
		return jsonMistake{}
	}
	return nil
}

// maxDepthKeys limits how deep values may nest. The reader is recursive; a hostile file with a million brackets would overflow the
// stack, which ends a Go program.
const maxDepthKeys = 200

// list reads an object or an array. The symbol of a key is added before its value is read, so that symbols are in the order of the
// text, outer ones first.
func (j *jsonReader) list(path []string, depth int, object bool) error {
	closing := byte(']')
	if object {
		closing = '}'
	}
	j.at++
	for n := 0; ; n++ {
		comments := j.blank()
		if j.at >= len(j.text) {
			return jsonMistake{}
		}
		if j.text[j.at] == closing {
			j.at++
			return nil
		}
		from, place := j.at, len(j.out)
		own := append(append([]string(nil), path...), "")
		if object {
			key, err := j.string()
			if err != nil {
				return err
			}
			own[len(own)-1] = key
			j.out = append(j.out, Symbol{Path: own, Kind: "key", At: from + 1, Start: from, Deco: from, Bare: from, Sep: ","})
			if j.blank(); j.at >= len(j.text) || j.text[j.at] != ':' {
				return jsonMistake{}
			}
			j.at++
		} else {
			own[len(own)-1] = itoa(n)
		}
		if err := j.value(own, depth+1); err != nil {
			if object {
				j.out[place].End, j.out[place].Fixed = j.at, "there is a syntax error in it or next to it"
			}
			return err
		}
		if object {
			s := &j.out[place]
			s.End = j.at
			if comments >= 0 {
				s.Start = comments
			}
			s.aloneIn(j.text)
		}
		if j.blank(); j.at < len(j.text) && j.text[j.at] == ',' {
			j.at++
		} else if j.at < len(j.text) && j.text[j.at] != closing {
			return jsonMistake{}
		}
	}
}

// aloneIn makes the symbol Fixed if other keys or brackets share its lines, because edits work on whole lines. A trailing //
// comment is allowed: it belongs to the line.
func (s *Symbol) aloneIn(text string) {
	from := strings.LastIndexByte(text[:s.Start], '\n') + 1
	rest, _, _ := strings.Cut(text[s.End:], "\n")
	rest = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest), s.Sep))
	if strings.TrimSpace(text[from:s.Start]) != "" || rest != "" && !strings.HasPrefix(rest, "//") {
		s.Fixed = "it shares its lines with other code"
	}
}

// string reads a string as it is written, with its escapes: name paths use the spelling of the file. A string must end on its line,
// as JSON demands; otherwise after one missing quote the rest of the file would be read as a string.
func (j *jsonReader) string() (string, error) {
	if j.text[j.at] != '"' {
		return "", jsonMistake{}
	}
	from := j.at + 1
	for i := from; i < len(j.text); i++ {
		switch j.text[i] {
		case '\\':
			i++
		case '"':
			j.at = i + 1
			return j.text[from:i], nil
		case '\n':
			j.at = i
			return "", jsonMistake{}
		}
	}
	j.at = len(j.text)
	return "", jsonMistake{}
}

// itoa numbers the elements of a list in a name path.
func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}
