package symbol

import (
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	for _, c := range []struct{ path, text, want string }{
		{"a.go", "// Sum adds.\nfunc Sum(a []int) int { return total(a, 1.5, \"x\", nil) }", "comment:// Sum adds. keyword:func function:Sum type:int type:int keyword:return function:total number:1.5 string:\"x\" number:nil"},
		{"a.py", "def f(x):\n    # no\n    return x.run('a')", "keyword:def function:f comment:# no keyword:return function:run string:'a'"},
		{"a.ts", "const a: number = `x` // y", "keyword:const type:number string:`x` comment:// y"},
		{"a.sh", "if true; then echo \"$x\"; fi", "keyword:if keyword:then string:\"$x\" keyword:fi"},
		{"a.json", `{"a": [1, true]}`, `string:"a" number:1 number:true`},
		{"cut off.go", "func half(", "keyword:func function:half"},
		{"letters of other alphabets.go", "var größe = \"ß\" // ü", "keyword:var string:\"ß\" comment:// ü"},
		{"a.txt", "func Sum", ""},
	} {
		t.Run(c.path, func(t *testing.T) {
			var got []string
			at := 0
			for _, k := range Tokens(c.path, c.text) {
				if k.Start < at || k.End <= k.Start || k.End > len(c.text) {
					t.Fatalf("%+v after %d", k, at)
				}
				at = k.End
				got = append(got, string(k.Kind)+":"+c.text[k.Start:k.End])
			}
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("got  %s\nwant %s", s, c.want)
			}
		})
	}
}
