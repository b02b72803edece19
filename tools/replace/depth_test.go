package replace

import "testing"

// A quotation without the block's indentation, and a new text with it: the stars of a comment are a blank deeper than its beginning and say
// nothing against that.
func TestNewTextAtTheFilesDepth(t *testing.T) {
	for _, c := range []struct{ name, text, old, new, want string }{
		{"the stars of a comment",
			"class A {\n  /**\n   * Runs once.\n   */\n  run(all) {\n    go(all);\n    stop();\n  }\n}\n", "/**\n * Runs once.\n */\nrun(all) {\n  go(all);\n  stop();\n}",
			"  /**\n   * Runs twice.\n   */\n  run(all) {\n    go(all, 2);\n    stop();\n  }", "class A {\n  /**\n   * Runs twice.\n   */\n  run(all) {\n    go(all, 2);\n    stop();\n  }\n}\n"},
		{"another unit than the file's",
			"class A {\n  /**\n   * Runs once.\n   */\n  run(all) {\n    go(all);\n    stop();\n  }\n}\n", "/**\n * Runs once.\n */\nrun(all) {\n  go(all);\n  stop();\n}",
			"  /**\n   * Runs twice.\n   */\n  run(all) {\n     go(all, 2);\n    stop();\n  }", ""},
	} {
		r, err := Apply(c.text, c.old, c.new, false)
		if (err != nil) != (c.want == "") || r.Text != c.want {
			t.Errorf("%s: %s\n%q\nwant\n%q, %v", c.name, r.Stage, r.Text, c.want, err)
		}
	}
}
