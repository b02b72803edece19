package symbol

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Text that was made to hurt ends in an answer or a refusal, never in a crash.
func TestHostileText(t *testing.T) {
	if !hasParser {
		t.Skip("built without cgo: no grammars")
	}
	for _, ext := range []string{"go", "ts", "tsx", "js", "py", "rs", "c", "java", "sh", "php", "rb"} {
		for name, text := range map[string]string{
			"brackets": strings.Repeat("(", 20_000), "blocks": strings.Repeat("{", 20_000), "quotes": strings.Repeat("\"`'$(", 4_000), "angles": strings.Repeat("a<", 4_000),
			"angles within bounds": strings.Repeat("a<", maxAngles) + ";\n", "comments": strings.Repeat("/*", 4_000), "lines": strings.Repeat("\n", 20_000), "words": "x" + strings.Repeat(" x", 4_000), "classes": strings.Repeat("class A {\n", 4_000),
			"decorators": strings.Repeat("@a\n", 5_000) + "class A {}", "not UTF-8": "func \xff() {}",
			"heredocs": strings.Repeat("<?php $a = <<<A\nx <<~B <<'C'\n", 3_000), "long heredoc": "a = <<~" + strings.Repeat("X", 5_000) + "\n<?php $a = <<<" + strings.Repeat("X", 5_000) + "\n", "many heredocs": "f(" + strings.Repeat("<<A, ", 1_000) + "1)\n",
		} {
			t.Run(fmt.Sprint(ext, " ", name), func(t *testing.T) {
				list, err := Outline("a."+ext, text)
				if err != nil && !errors.Is(err, ErrSlow) && !errors.Is(err, ErrNotText) {
					t.Error(err)
				}
				for _, s := range list {
					if s.Fixed == "" {
						if _, err := Delete(text, s); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
}
