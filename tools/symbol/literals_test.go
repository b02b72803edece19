package symbol

import (
	"slices"
	"testing"
)

// Strings, templates and here documents of several lines are found in every language that has them; code, comments, several short strings and
// lists of words are not. The places are named by words that are in the literals.
func TestLongLiterals(t *testing.T) {
	if !hasParser {
		t.Skip("built without cgo")
	}
	for path, c := range map[string]struct {
		text string
		want []string
	}{
		"a.go":   {"package a\n\n// a lone ` in prose\nvar a = `one\n two`\nvar b = f(\n\t\"x\",\n)\n", []string{"`one\n two`"}},
		"a.ts":   {"const a = `one ${f(`b`)} and ${`c\n`} two\n three`;\nf(\n  `d`,\n);\n", []string{"`one ${f(`b`)} and ${`c\n`} two\n three`"}},
		"a.jsx":  {"const a = `one ${b} two\n three`;\n// don't\nconst b = 'x';\n", []string{"`one ${b} two\n three`"}},
		"a.cpp":  {"auto a = R\"x(one\n \"two\" )\" )x\";\nauto b = \"y\"\n  \"z\";\n", []string{"R\"x(one\n \"two\" )\" )x\""}},
		"a.rs":   {"let a = r#\"one\n \"two\" \"#;\nlet b = \"three\n four\";\n", []string{"r#\"one\n \"two\" \"#", "\"three\n four\""}},
		"a.sh":   {"cat <<EOF\none  $x\nEOF\necho 'two\n three' # it's\nawk '{\n  four }'\n", []string{"one  $x\n", "'two\n three'", "'{\n  four }'"}},
		"a.rb":   {"a = <<~EOS\n  one  two\nEOS\nb = %w(x\n y)\nc = \"three\nfour\"\n", []string{"\n  one  two\nEOS", "\"three\nfour\""}},
		"a.php":  {"<?php\n$a = <<<EOT\n one {$b}\nEOT;\n$c = 'two\n three';\n", []string{"\n one {$b}", "'two\n three'"}},
		"a.py":   {"a = \"\"\"one\n two\"\"\"\nb = ('x'\n     'y')\n", []string{"\"\"\"one\n two\"\"\""}},
		"a.java": {"class A {\n  String a = \"\"\"\n      one\n      \"\"\";\n}\n", []string{"\"\"\"\n      one\n      \"\"\""}},
		"a.lua":  {"a = [==[one\n ]] two]==]\n", []string{"[==[one\n ]] two]==]"}},
		"a.md":   {"Use ` as a mark:\n\n```go\nvar a = 1\n```\n", nil},
		"a.json": {"{\n  \"a\": \"b\"\n}\n", nil},
	} {
		found, ok := LongLiterals(path, c.text)
		var got []string
		for _, l := range found {
			got = append(got, c.text[l[0]:l[1]])
		}
		if !ok || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v", path, got, ok)
		}
	}
	for path, text := range map[string]string{"a.kt": "val a = 1\n", "a.yaml": "a: |\n  b\n", "a.go": "package a\nvar x = `a\n", "b.go": "package a\n\x00", "c.go": "package a // \xff\n"} {
		if _, ok := LongLiterals(path, text); ok {
			t.Errorf("%s: all literals of %q are known", path, text)
		}
	}
}
