package patch

import "testing"

// A hunk whose lines are in the file to the byte, and only once, is applied, though what it adds is like what is beside it.
func TestExactHunksAreApplied(t *testing.T) {
	for _, c := range []struct{ name, text, hunk, want string }{
		{"the same lines at another depth, before those that are quoted",
			"class A {\n    int f() {\n        return one();\n    }\n    int g() {\n        return 2;\n    }\n}\n",
			"         return 2;\n     }\n+  int g() {\n+    return 2;\n+  }\n }\n",
			"class A {\n    int f() {\n        return one();\n    }\n    int g() {\n        return 2;\n    }\n  int g() {\n    return 2;\n  }\n}\n"},
		{"a line at another depth, which ends what is quoted",
			"f(\n    a);\n    return b;\n}\n", "     return b;\n+  return b;\n }\n", "f(\n    a);\n    return b;\n  return b;\n}\n"},
		{"a blank line beside one", "a\n\nb\n", "+\n b\n", "a\n\n\nb\n"},
		{"keys of which one could be the number of a line",
			"  var producers = {\n    '12': new TAP12Producer(),\n    '13': new TAP13Producer()\n  };\n",
			"-    '12': new TAP12Producer(),\n-    '13': new TAP13Producer()\n+    12: new TAP12Producer(),\n+    13: new TAP13Producer()\n",
			"  var producers = {\n    12: new TAP12Producer(),\n    13: new TAP13Producer()\n  };\n"},
	} {
		p, err := Parse("*** Begin Patch\n*** Update File: f\n@@\n" + c.hunk + "*** End Patch")
		if err != nil {
			t.Fatal(err)
		}
		changes, err := p.Apply(func(string) (string, bool, error) { return c.text, true, nil })
		if err != nil || changes[0].New != c.want {
			t.Errorf("%s: %v %+v", c.name, err, changes)
		}
	}
	for _, c := range []struct{ name, text, hunk string }{
		{"the very lines are there already", "f() {\n\tfirst(a)\n\tsecond(b)\n\tthird(c)\n}\n", " \tfirst(a)\n+\tsecond(b)\n"},
		{"numbers of lines, before their indentation", "f() {\n    first(a, one)\n    second(b, two)\n}\n", "-    first(a, one)\n-    second(b, two)\n+2:     first(a, 1)\n+3:     second(b, two)\n"},
	} {
		p, err := Parse("*** Begin Patch\n*** Update File: f\n@@\n" + c.hunk + "*** End Patch")
		if err != nil {
			t.Fatal(err)
		}
		if changes, err := p.Apply(func(string) (string, bool, error) { return c.text, true, nil }); err == nil {
			t.Errorf("%s: %+v", c.name, changes)
		}
	}
}
