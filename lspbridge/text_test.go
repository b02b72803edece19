package lspbridge

import "testing"

func TestDecodeText(t *testing.T) {
	for name, c := range map[string][2]string{
		"plain":          {"aé", "aé"},
		"UTF-8 with BOM": {"\xef\xbb\xbfaé", "aé"},
		"UTF-16LE":       {"\xff\xfea\x00\xe9\x00", "aé"},
		"UTF-16BE":       {"\xfe\xff\x00a\xd8\x34\xdd\x1e", "a𝄞"},
		"Latin-1":        {"a\xe9\x80", "aé\u0080"},
		"empty":          {"", ""},
		"half a mark":    {"\xff", "ÿ"},
	} {
		if got := decodeText([]byte(c[0])); got != c[1] {
			t.Errorf("%s: %q, want %q", name, got, c[1])
		}
	}
}
