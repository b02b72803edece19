package replace

import (
	"strings"
	"testing"
)

// Classes of wrong writes that bench/replay found in real histories, each in its smallest form: "" is a refusal.
func TestWrongWritesThatWereFound(t *testing.T) {
	for _, c := range []struct{ name, text, old, new, want string }{
		{"a line moves to another depth and loses the blanks behind it",
			"read() ->\n    Value\u00a0= case Field of\n        key -> \n            ok\n    end.\n",
			"    Value = case Field of\n        key -> \n            ok\n    end.", "    Value =\n        case Field of\n            key ->\n                ok\n        end.",
			"read() ->\n    Value\u00a0=\n        case Field of\n            key ->\n                ok\n        end.\n"},
		{"a line moves to another depth and loses the blanks behind it, of which the file has others",
			"if x:\n  first(call)  \nend(request)\n", "if x: \n  first(call) \nend(request)", "if x: \n    first(call)\nend(request)", ""},
		{"quoted in another unit or moved, and the file has steps of both",
			".hero\n  flex: 1\n  padding: 2\n.body\n    flex: 1\n    width: 3\n.foot\n  top: 1\n", "    flex: 1\n    padding: 2", "    flex: 1\n    padding: 2\n    +tablet\n        padding: 3", ""},
		{"quoted in another unit, and only lines at one depth",
			".hero\n  flex: 1\n  padding: 2\n.body\n  flex: 1\n  width: 3\n", "    flex: 1\n    padding: 2", "    flex: 1\n    padding: 2\n    +tablet\n        padding: 3",
			".hero\n  flex: 1\n  padding: 2\n  +tablet\n    padding: 3\n.body\n  flex: 1\n  width: 3\n"},
		{"a first line without indentation, and a further one that would get another depth than it",
			"package a\n\n  public class T {\n    private T() { }\n    static byte A = 0;\n", "\npublic class T {\n   private T() { }\n   static byte A = 0;",
			"\n@Unused\npublic class T {\n   private T() { }\n   static byte A = 0;", ""},
		{"the change moves lines to the depth that the file has, in its own unit",
			"url =\n    a\n        [ class url ]\n        [ text url ]\nother =\n    a\n", "url =\n  a\n    [ class url ]\n    [ text url ]",
			"url =\n  if https url then\n    a\n      [ class url ]\n      [ text url ]\n  else\n    b", ""},
		{"three blanks in a comment below tabs are not a tab",
			"\t\t/*ID\n\n\t\t*/\n\t\tID uuid\n\t\ttime int\n", "\n*/\nID uuid\ntime int", "\n   ID of the silence\n*/\nID uuid\ntime int", ""},
		{"two places, one moved and one in another unit",
			"a: [\n b one,\n c two\n],\nx\n    a: [\n      b one,\n      c two\n    ],\n", "  a: [\n   b one,\n   c two\n  ],", "  a: [\n   b 1,\n   c two\n  ],", ""},
		{"a line moves over others, and keeps its line ending",
			"one()\r\ntwo()\nthree()\r\nfour()\nend()\r\n", "one()\ntwo()\nthree()\nfour()", "two()\nthree()\nfour()\none()", "two()\nthree()\r\nfour()\none()\r\nend()\r\n"},
		{"a line moves over others that were quoted loosely, and keeps its line ending",
			"\tone()\r\n\ttwo()\n\tthree()\r\n\tfour()\n\tend()\r\n", "one()\ntwo()\nthree()\nfour()", "two()\nthree()\none()\nfour()", "\ttwo()\n\tthree()\r\n\tone()\r\n\tfour()\n\tend()\r\n"},
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
		{"a bracket that the file does not have moves",
			"@use './mixins' as *\n\n.v-chip\n  align-items: center\n  cursor: default\n  position: relative\n  text-decoration: none\n",
			"@use './mixins' as *\n\n.v-chip\n  align-items: center\n  cursor: default\n  position: relative\n  }\n  text-decoration: none\n",
			"@use './mixins' as *\n\n  }\n@include tools.layer('components')\n  .v-chip\n    align-items: center\n    position: relative\n    text-decoration: none\n", ""},
		{"a line put before one that begins alike, in a file with other quotes",
			"  (&[“ml“], &[“*.ml“]),\n  (&[“motoko“], &[“*.mo“]),\n  (&[“nim“], 0),\n", "(&[\"ml\"], &[\"*.ml\"]),\n  (&[\"motoko\"], &[\"*.mo\"]),\n  (&[\"ni",
			"(&[\"ml\"], &[\"*.ml\"]),\n  (&[\"mojo\"], &[\"*.mojo\"]),\n  (&[\"motoko\"], &[\"*.mo\", \"x\"]),\n  (&[\"ni", ""},
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
		{"a quotation with doubled backslashes, and a new line with escaped quotes that no quoted line has",
			"function camelCase(str) {\n    return str.replace(/[\\s-_](\\w)/g, function (match) {\n", "function camelCase(str) {\n    return str.replace(/[\\\\s-_](\\\\w)/g, function (match) {",
			"function camelCase(str) {\n    str = \\\" \\\" + str;\n    return str.replace(/[\\\\s-_](\\\\w)/g, function (match) {", ""},
		{"doubled backslashes, and quotes of which the quotation has some without a backslash",
			"re = compile(\"[\\s](\\w)\")\n", "re = compile(\"[\\\\s](\\\\w)\")", "re = compile(\"[\\\\s](\\\\w)\")\nname = \"it\"", "re = compile(\"[\\s](\\w)\")\nname = \"it\"\n"},
		{"one depth quoted as one tab that is two levels of the file",
			"class A {\n  fun f() {\n    val appContext = native.registry.appContext\n\n    appContext\n      .event(view)\n  }\n}\n", "\tval appContext = native.registry.appContext\n\n\tappContext",
			"\tval appContext = native.registry.appContext\n\n\tif (!isValidated) {\n\t\tval holder = a\n\t}\n\n\tappContext", ""},
		{"one depth quoted as one tab that is one level of the file",
			"class A {\n  val appContext = native.registry.appContext\n\n  fun f() {\n    appContext\n  }\n}\n", "\tval appContext = native.registry.appContext",
			"\tval appContext = native.registry.appContext\n\n\tfun g() {\n\t\tappContext\n\t}", "class A {\n  val appContext = native.registry.appContext\n\n  fun g() {\n    appContext\n  }\n\n  fun f() {\n    appContext\n  }\n}\n"},
		{"the change moves all lines, one of which is not as quoted",
			".a\n  overflow-y: auto\n\n  > div\n    display: flex\n    flex-wrap: wrap\n\n.color-picker\n  display: flex\n  margin-bottom: $color\n", "\n  &gt; div\n    display: flex\n    flex-wrap: wrap\n\n.color-picker\n  display: flex\n  margin-bottom: $color\n",
			"\n    &gt; div\n      display: flex\n      flex-wrap: wrap\n\n  .color-picker\n    display: flex\n    margin-bottom: $color\n", ""},
		{"the change moves lines, and a blank one is between them and one that was not quoted",
			"start(request)\nwait(request) \n\nunquoted(request)\nfinish(request)\nend(request)\n", "start(request)\nwait(request)\n\nfinish(request)\nend(request)",
			"start(request)\nif enabled {\n\twait(request)\n\n\tfinish(request)\n}\nend(request)", ""},
		{"the change moves lines, of which the file has lost one",
			"func f() {\n\tcall(func() {\n\t\tif first(x) {\n\t\t\treturn one\n\t\tif second(x) {\n\t\t\treturn two\n\t\t}\n\t})\n}\n", "\tcall(func() {\n\t\tif first(x) {\n\t\t\treturn one\n\t\t}\n\t\tif second(x) {\n\t\t\treturn two\n\t\t}\n\t})",
			"\tif first(x) {\n\t\treturn one\n\t}\n\tif second(x) {\n\t\treturn two\n\t}", ""},
		{"a new line equal to a quoted one by chance, at the file's depth, where the new text begins as deep as the quotation",
			".input\n  .input__append\n      margin-inline-start: $input-affix\n\n  .input__details\n    align-items: flex-end\n    display: flex\n    font-size: $input-size\n", "    margin-inline-start: $input-affix\n\n.input__details\n  align-items: flex-end\n  display: flex\n  font-size: $input-size\n",
			"    display: flex\n    padding-top: var(--padding-top)\n\n    .input--center-affix &\n      align-items: center\n", ".input\n  .input__append\n      display: flex\n      padding-top: var(--padding-top)\n\n      .input--center-affix &\n        align-items: center\n"},
		{"two stale copies, and the quotation reaches from one into the other",
			"\nfunction NOOP() {\n}\n\n  return (callback) => {\n    callback &&\n      setTimeout(() => {\n  cos: (a) => new Value(Math.cos(getValue(a))),\n\nfunction the_NOOP.Get() {\n  // noop\n}\n\nfunction callbackFactory(...params) {\n  return (callback) => {\n    callback &&\n      setTimeout(() => {\n  createComponent,\n",
			"\nfunction NOOP() {\n  // noop\n}\n\nfunction callbackFactory(...params) {\n  return (callback) => {\n    callback &&\n      setTimeout(() => {",
			"\nfunction NOOP() {\n  // noop\n}\n\nfunction callbackFactory(...params) {\n  return (callback) => {\n    callback &&\n      setTimeout(async () => {", ""},
		{"a new head of a block, behind lines that stay at the file's depth",
			"func f() {\n\trun(func() {\n\t\treset()\n\t\tfor key, _ := range all {\n\t\t\tfind(key)\n\t\t}\n\t})\n}\n", "reset()\nfor key, _ := range all {\n\tfind(key)\n}",
			"\t\treset()\n\t\tfor key := range all {\n\t\t\tfind(key)\n\t\t}", "func f() {\n\trun(func() {\n\t\treset()\n\t\tfor key := range all {\n\t\t\tfind(key)\n\t\t}\n\t})\n}\n"},
		{"a new head of a block, and only what is in it is at the file's depth",
			"func f() {\n\tfind(key)\n\tfind(all)\n}\n", "find(key)\nfind(all)", "for range all {\n\tfind(key)\n\tfind(all)\n}", "func f() {\n\tfor range all {\n\t\tfind(key)\n\t\tfind(all)\n\t}\n}\n"},
		{"all lines with other blanks in one place, and but for one to the byte in another",
			"func TestSet(t *testing.T) {\n\t\tFlag: NewFlag(Flag{Name: \"test\"}),\n\t\tName: \"test\",\n\t})\n}\n\nfunc TestContextSet(t *testing.T) {\n\tc := runTest(t, applyInputSource{\n\t\tFlag:    NewFlag(Flag{Name: \"test\"}),\n\t\tName:    \"test\",\n\t\tContext: 1,\n\t})\n}\n\nfunc TestEnv(t *testing.T) {\n\tc := runTest(t, applyInputSource{\n",
			"\tc := runTest(t, applyInputSource{\n\t\tFlag: NewFlag(Flag{Name: \"test\"}),\n\t\tName: \"test\",", "\tc := runTest(t, applyInputSource{\n\t\tFlag: NewFlag(Flag{Name: \"test,t\"}),\n\t\tName: \"test\",", ""},
		{"new lines as deep as the block is in the file, and only their bracket as deep as one that was quoted",
			"f(function() {\n  var keys = all\n    .filter(function(key) {\n      return key > 0;\n    });\n\n  each(keys, merge);\n});\n", "var keys = all\n  .filter(function(key) {\n    return key > 0;\n  });\n\neach(keys, merge);",
			"  each(all.concat(more), function(prop) {\n    merge(prop);\n  });", ""},
		{"all lines at another depth in one place, and only the shorter one as deep as quoted in another",
			"func first() {\n\tfor range 2 {\n\t\t// Create wait group\n\t\twg.Add(5)\n\t\trun(wg)\n\t}\n}\n\nfunc second() {\n\t// Create wait group\n\twg := &sync.WaitGroup{}\n\twg.Add(5)\n\tstop(wg)\n}\n",
			"\t\twg := &sync.WaitGroup{}\n\t\twg.Add(5)\n", "\t\twg := &sync.WaitGroup{}\n", ""},
		{"two places at other depths than quoted, of which one has other blanks too",
			"if a {\n\t\t\treturn first(xn)\n\n\t\t\t// flag that\ta route\n\t\t\tfound = true\n}\n\treturn first(xn)\n\n\t// flag that a route\n\tfound = true\n", "\t\t\t\treturn first(xn)\n\n\t\t\t\t// flag that a route\n\t\t\t\tfound = true",
			"\t\t\t\treturn first(xn)\n\n\t\t\t\t// flag that a route\n\t\t\t\tfound = false", ""},
		{"a new first line at another depth, and a last line that is quoted in part",
			"if ok {\n\t\tprio = level(l)\n\t}\n\n\tmsg := \"\"\n\tfor key\u00a0:= range event { // see issue\n", "\t\tprio = level(l)\n\t}\n\n\tmsg := \"\"\n\tfor key := range event {", "\t}\n\n\tmsg := \"\"\n\tfor key := range event {", ""},
		{"new lines behind a last line that is quoted in part",
			"// to journald\n\npackage\u00a0journald\n\n// This prints // see issue 4711\nx()\n", "// to journald\n\npackage journald\n\n// This prints", "// to journald\n\npackage journald\n\n// This prints\nfunc f() {\n}", ""},
		{"new lines before a first line that is quoted in part",
			"x := 1; package\u00a0journald\n\n// This prints\n", "package journald\n\n// This prints", "func f() {\n}\npackage journald\n\n// This prints", ""},
		{"a word that the file has in another form, directly before words that the change replaces",
			"func f() {\n\terr = f.failf(\"flag needs %q\", c)\n\treturn\n}\n", "\terr = f.fail(\"flag needs %q\", c)\n\treturn", "\terr = f.fail(&Required{flag: c})\n\treturn", ""},
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

// An exact quotation whose new text has one more blank line is not taken for a change that was made already, where a blank line is there.
func TestOneMoreBlankLine(t *testing.T) {
	r, err := Apply("a\n\n# Head\n\nb\n", "\n# Head", "\n\n# Head", false)
	if err != nil || r.Text != "a\n\n\n# Head\n\nb\n" {
		t.Errorf("%q, %v", r.Text, err)
	}
	if r, err := Apply("a\nuse(a)\n# Head\n\nb\n", "# Head", "use(a)\n# Head", false); err == nil {
		t.Errorf("%q", r.Text)
	}
}

// A file that was indented anew already, and a quotation of the old one in a third unit: to take 3 → 6 for "twice as deep" would make 8 of 4.
func TestIndentedAnewAlready(t *testing.T) {
	old := "}\n\nfunction has(value) {\n   if (value instanceof Node) {\n      return true;\n   }\n   return one(value);\n}"
	wanted := "}\nfunction has(value) {\n      if (value instanceof Node) {\n            return true;\n      }\n      return one(value);\n}"
	for unit, want := range map[string]bool{"  ": false, "    ": false, "   ": true} {
		file := "x() {\n" + strings.ReplaceAll(old, "   ", unit) + "\n"
		if r, err := Apply(file, old, wanted, false); (err == nil) != want {
			t.Errorf("unit %d: %q, %v", len(unit), r.Text, err)
		}
	}
}

// A place that is only like the quotation, which was changed elsewhere already, is not the one that was meant.
func TestMadeElsewhereAlready(t *testing.T) {
	const like, done = "return &Options{\n\tDB:   o.DB,\n\tUser: o.User,\n}\n", "return &Many{\n\tDB:       o.DB,\n\tProtocol: o.Protocol,\n\tUser:     o.User,\n}\n"
	const old, changed = "    DB:       o.DB,\n    User:     o.User,", "    DB:       o.DB,\n    Protocol: o.Protocol,\n    User:     o.User,"
	for file, want := range map[string]bool{like + done: false, done + like: false, like: true} {
		r, err := Apply(file, old, changed, false)
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "already") {
			t.Errorf("%q: %q, %v", file, r.Text, err)
		}
	}
	// As quoted but for its indentation, it is meant, whatever is elsewhere.
	const exact = "return &Other{\n\tDB:       o.DB,\n\tUser:     o.User,\n}\n"
	if r, err := Apply(exact+done, old, changed, false); err != nil || strings.Count(r.Text, "Protocol") != 4 {
		t.Errorf("%q, %v", r.Text, err)
	}
}

// Of several places that a loose quotation matches, one within a word is not replaced along with whole words.
func TestAllOfAWordLoosely(t *testing.T) {
	text := "export {\n  createCommand,\nCommand,\n}\nuse(Command,\n"
	if r, err := Apply(text, "Command, ", "Command2, ", true); err == nil {
		t.Errorf("%q", r.Text)
	}
	text = strings.ReplaceAll(text, "create", "create.")
	if r, err := Apply(text, "Command, ", "Command2, ", true); err != nil || strings.Count(r.Text, "Command2,") != 3 {
		t.Errorf("%q, %v", r.Text, err)
	}
}

// A word that the quotation gets wrong and the new text has right is no conflict with a change beside it, whose words the file has as quoted.
func TestWordThatTheNewTextHasRight(t *testing.T) {
	for _, c := range []struct{ base, ours, theirs, want string }{
		{"set(one too)", "set(one two)", "set(three two)", "set(three two)"},
		{"set(too one)", "set(two one)", "set(two three)", "set(two three)"},
		{"set(too one too)", "set(two one six)", "set(two three six)", "set(two three six)"},
		{"set(one too)", "set(six two)", "set(three two)", ""},   // the file has another word in its place
		{"set(one too)", "set(one two)", "set(three four)", ""},  // it is not right in the new text
		{"set(one too)", "set(one two )", "set(three; two)", ""}, // nor is it there with the file's spacing
		{"set(one too)", "set(one -)", "set(three -)", ""},       // a sign proves nothing
		{"set(one)", "set(one two)", "set(three two)", ""},       // words that were not quoted
	} {
		got := ""
		if lines, ok := Merge([]string{"begin()", c.base}, []string{"begin()", c.ours}, []string{"begin()", c.theirs}); ok {
			got = lines[1].Text
		}
		if got != c.want {
			t.Errorf("%q, %q in the file, to %q: %q, want %q", c.base, c.ours, c.theirs, got, c.want)
		}
	}
}
