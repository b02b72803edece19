package replace

import "testing"

// Classes of wrong writes that bench/replay found in real histories, each in its smallest form: "" is a refusal.
func TestWrongWritesThatWereFound(t *testing.T) {
	for _, c := range []struct{ name, text, old, new, want string }{
		{"a new line may be escaped once too often",
			"package dns  \n\nimport \"testing\"\n", "package dns\n\nimport \"testing\"", "package dns\n\nimport (\n\\t\"testing\"\n)", ""},
		{"an escaped quote beside a plain one is meant",
			"a := \"x\"  \nb := 1\n", "a := \"x\"\nb := 1", "a := \"say \\\"x\\\"\"\nb := 1", "a := \"say \\\"x\\\"\"\nb := 1\n"},
		{"an entity, and nothing that shows whether it is meant",
			"if ok {  \n\treturn first\n}\n", "if ok {\n\treturn first\n}", "if ok {\n\tif a &lt; b {\n\t}\n\treturn first\n}", ""},
		{"an entity beside others, none of them shown to be meant",
			"for x {  \n\tm := first(call)\n}\n", "for x {\n\tm := first(call)\n}", "for x {\n\tm := Map&lt;a&gt;(call)\n\tif a &amp;&amp; b {\n\t}\n}", ""},
		{"blanks that code has at no line's end are not put there",
			"func f() {\n\tone(x)\n\ttwo(x)\n\tthree(x)\n\tfour(x)\n}\n", "\tone(x)  \n\ttwo(x)\n\tthree(x)", "\tone(x)  \n\ttwo(x)\n\tnew(x)  \n\tthree(x)",
			"func f() {\n\tone(x)\n\ttwo(x)\n\tnew(x)\n\tthree(x)\n\tfour(x)\n}\n"},
		{"two equal lines of which one has a tab inside",
			"\tif one {\n\t\tfirst(call)\n\t\treturn\terr\n\t}\n\tif two {\n\t\tsecond(call)\n\t\treturn err\n\t}\n",
			"\tif one {\n\t\tfirst(call)\n\t\treturn err\n\t}\n\tif two {\n\t\tsecond(call)\n\t\treturn err\n\t}",
			"\tif one {\n\t\tfirst(call)\n\t\tsecond(call)\n\t\treturn err\n\t}", ""},
		{"a bracket that was left out moves the block by one",
			"\tfor {\n\t\tif wanted(x) {\n\t\t\tcall(x)\n\t\t}\n\t}\n}\n", "\t\tif wanted(x) {\n\t\t\tcall(x)\n\t\t}\n}", "\t\tif wanted(x) {\n\t\t\tcall(x)\n\t\t}\n\treturn x\n}", ""},
		{"white space that only the file changed stays when the word behind it changes",
			"func Send(msg *Message) error {\t\n\tfor _, v := range msg.Body {\n\t}\n\treturn Encode(msg)\n}\n",
			"func Send(msg *Message) error {\n\tfor _, v := range msg.Body {\n\t} return Encode(msg)\n}",
			"func Send(msg *Message) error {\n\tfds := msg.Count()\n\t} return Encode(msg)\n}",
			"func Send(msg *Message) error {\t\n\tfds := msg.Count()\n\t}\n\treturn Encode(msg)\n}\n"},
		{"a deletion in wrapped text, with a blank line on either side of what is deleted",
			"}\n\ntype gone struct {\n}\n\n// Read reads the named file.\n// It returns the contents of it.\nfunc Read()\n",
			"\ntype gone struct {\n}\n\n// Read reads the named file. // It returns the contents of it.\nfunc Read()",
			"\n// Read reads the named file. // It returns the contents of it.\nfunc Read()", ""},
		{"new lines that begin with a line which was not quoted, as it is elsewhere",
			"  on<T>(\n    event: T,\n    callback: (payload: Payload<T>) => void,\n  ): void\n  send<T>(event: T): void\n",
			"  on<T>(\n    event2: T,\n  send<T>(event: T): void\n",
			"  on<T>(\n    event2: T,\n  off<T>(\n    event: T,\n    callback: (payload: Payload<T>) => void,\n  ): void\n  send<T>(event: T): void\n", ""},
		{"one depth quoted for two: a new line's depth proves nothing",
			"\t// Chmod changes the mode of the file.\n\t// It follows links.\n\tChmod(name string) error\n",
			"\t// Chmod changes the mode of the file.\n\t\t// It follows links.\n\t\tChmod(name string) error",
			"\t// Chmod changes the mode of the file.\n\t\t// It follows links.\n\t\tChmod(name string) error\n\t}\n\ttype Change interface {\n\t\tChmod()", ""},
		{"lines that move to another depth, and an unquoted one between them",
			"start(request)  \nwait(request)\nunquoted(request)\nfinish(request)\nend(request)\n",
			"start(request)\nwait(request)\nfinish(request)\nend(request)",
			"start(request)\nif enabled {\n\twait(request)\n\tfinish(request)\n}\nend(request)", ""},
		{"the change moves lines by as much as somebody else has meanwhile",
			"jobs:\n      # Initializes the tools\n      - name: Initialize\n        uses: init@v2\n",
			"    # Initializes the tools\n    - name: Initialize\n      uses: init@v2",
			"      # Initializes the tools\n      - name: Initialize\n        uses: init@v3", ""},
		{"a similar function that was edited less than the one that was meant",
			"func insertTop(lines []string) {\n\tr.mtx.Lock()\n\tdefer r.mtx.Unlock()\n\n\tb := new(bytes.Buffer)\n\n\tchangeScrollingRegion(b, topBoundary, bottomBoundary)\n\tmoveCursor(b, topBoundary, 0)\n}\n\n" +
				"func insertBottom(lines []string) {\n\tr.mutex.Lock()\n\tdefer r.mutex.Unlock()\n\n\tb := new(bytes.Buffer)\n\n\tchangeScrollingRegion(b, top, bottomBoundary)\n\tmoveCursor(b, bottomBoundary, 1)\n}\n",
			"\tr.mtx.Lock()\n\tdefer r.mtx.Unlock()\n\n\tb := new(bytes.Buffer)\n\n\tchangeScrollingRegion(b, topBoundary, bottomBoundary)\n\tmoveCursor(b, bottomBoundary, 0)",
			"\tr.mtx.Lock()\n\tdefer r.mtx.Unlock()\n\tcheck(r)\n\n\tb := new(bytes.Buffer)\n\n\tchangeScrollingRegion(b, topBoundary, bottomBoundary)\n\tmoveCursor(b, bottomBoundary, 0)", ""},
		{"lines quoted in another order, at the edge of the block",
			"package zstd\n\nimport (\n\t\"strconv\"\n\t\"testing\"\n)\n\nfunc TestEncoderLevelFromString(t *testing.T) {\n\ttype args struct {\n",
			"\t\"testing\"\n\t\"strconv\"\n)\n\nfunc TestEncoderLevelFromString(t *testing.T) {\n\ttype args struct {",
			"\t\"bytes\"\n\t\"testing\"\n\t\"strconv\"\n)\n\nfunc TestEncoderLevelFromString(t *testing.T) {\n\ttype args struct {", ""},
		{"blanks that only one of two lines has less of, where all have some more than the file",
			"Use Reset to change it.\nThis is likely to change \nin the future.\n", "Use Reset to change it. \nThis is likely to change  \nin the future. ",
			"Use Reset to change the output. \nThis is likely to change \nin the future. ", ""},
		{"blanks behind a line go, and the file has it at another depth",
			"    Streams are concurrent, by two. \n    This is likely to change \n    in the future.\n", "Streams are concurrent, by two. \nThis is likely to change \nin the future.",
			"Streams are concurrent, by three.\nThis is likely to change\nin the future.",
			"    Streams are concurrent, by three.\n    This is likely to change\n    in the future.\n"},
		{"a blank line's own blanks go",
			" a(one, two)  \n \n b(one, two)\n", " a(one, two)\n \n b(one, two)", " a(one, two)\n\n b(one, two)", " a(one, two)  \n\n b(one, two)\n"},
		{"a bracket of another block at the end, and the quoted one is gone",
			"{\n  \"black\": {\n    \"version\": {\n      \"type\": \"string\"\n  }\n}\n", "{\n  \"black\": {\n    \"version\": {\n      \"type\": \"string\"\n    }\n  }",
			"{\n  \"black\": {\n    \"version\": {\"type\": \"string\"}\n    }", ""},
		{"a line that moves and that the file has in other typography",
			"\tons: latest\n\n\t– name: Set up\n\t  with: go\n\n\t– name: Check out\n\t  uses: check\n\n\tend of it\n",
			"ons: latest\n\n\t- name: Set up\n\t  with: go\n\n\t- name: Check out\n\t  uses: check\n\n\tend of",
			"ons: latest\n\n\t- name: Check out\n\t  uses: check\n\n\t- name: Set up\n\t  with: go\n\n\tend of", ""},
		{"a new line between a quoted one and one that the file does not have there",
			"func f() {\n\t// fetch the request stream.\n\tstream := req.GetStream()\n\tif stream != nil {\n\t\tv, err := sum(stream)\n\t}\n}\n",
			"// fetch the request stream.\n\t\tv, e", "// fetch the request stream.\n\t\tif !req.IsSeekable() {\n\t\t\treturn nil\n\t\t}\n\n\t\tv, e", ""},
		{"a new line that begins in spaces and goes on in tabs, in a file of tabs",
			"const (\n\tFirst = 1\n\tSecond = 2\n\n\t// WebSockets\n\tThird = 3\n)\n", "\n\t// WebSockets  \n", "\n\t// WebSockets  \n    \t// Sockets  \n", ""},
		{"a new block's inner depth, in another unit than the file's",
			"on:\n  push:\n  pull_request:\n\npermissions:\n  contents: read\n  issues: write\njobs:\n", "    push:\n    pull_request:\n\npermissions:\n    contents: read",
			"    push:\n    pull_request:\n    types: [\n        opened,\n    ]\n\npermissions:\n    contents: read", ""},
		{"a quotation that ends in a line break, without the file's line behind it",
			"func f() {\n\t*cancelPtr = cancel\n\n\tgo func() {\n\t\tticker := time.NewTicker(interval)\n\t\tdefer ticker.Stop()\n\n\t\tfor {\n",
			"\t*cancelPtr = cancel\n\n\t\tticker := time.NewTicker(interval)\n\t\tticker := time.NewTicker(interval)\n",
			"\t*cancelPtr = cancel\n\n\t\tticker := time.NewTicker(interval)\n\t\tticker := time.NewTicker(interval)\n\n\t\tfailures := 0", ""},
		{"brackets at the file's depth beside words of another",
			"\t\tplain(x)\n\t\tif err != nil {\n\t\t\tfail(err)\n\t\t}\n\n", "\tplain(x)\n\tif err != nil {\n\t\tfail(err)\n\t}\n", "\t\tif signed {\n\t\t\tcheck(x)\n\t\t}\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Apply(c.text, c.old, c.new, false)
			if (err != nil) != (c.want == "") || r.Text != c.want {
				t.Errorf("%s\n%q\nwant\n%q, %v", r.Stage, r.Text, c.want, err)
			}
		})
	}
}

// A block that begins in one place and ends in another is none, however few lines are between.
func TestSimilarBlockIsOneBlock(t *testing.T) {
	text := "type S1 struct {\n\tA int2\n}\n\ntype S2 struct {\n\tA int\n}\n"
	if first, n, ok := SimilarBlock(text, []string{"type S1 struct {", "\tA int", "}"}); ok {
		t.Errorf("lines %d to %d", first+1, first+n)
	}
}
