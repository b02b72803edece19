package programs

import (
	"regexp"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/shell/scan"
)

// codeLanguages are the interpreters whose code in an argument, or in a here-document, can be left to a sandbox. Shells are not among them,
// since their scripts are analysed, and editors and databases are not, since their commands name files in ways of their own.
var codeLanguages = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(py|python[0-9.]*|pypy[0-9.]*|ipython|node|nodejs|bun|ruby|perl|php|lua[0-9.]*|Rscript|julia|awk|gawk|mawk|nawk)$`)
})

// reachesFurther matches code that does, or can hide that it does, more than change files of the project: it deletes, starts programs, uses
// the network, names places outside or the environment, or makes code while it runs. It is a courtesy and no wall: what it misses meets the
// sandbox, which has no network and hides keys, but a person wants to be asked before files are deleted. So it would rather match too much.
var reachesFurther = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)` + strings.Join([]string{
		`rmtree|rmdir|unlink|\brm\b|rmSync|removedirs|\bos\s*\.\s*re|\.remove\(|send2trash|FileUtils|\.delete\b|delete\(|truncate|\bremove`,
		`system|popen|subprocess|spawn|exec|fork|\bpty\b|child_process|Bun\s*\.|Deno\s*\.\s*(Command|run)|\bqx\b|Open3|IO\s*\.|kill|ctypes|\bffi\b|getline|shell`,
		`eval|compile\(|__|importlib|getattr|globals|locals|vars\(|new\s+Function|Function\s*\(\s*['"]|base64|b64|fromhex|chr\(|CharCode|atob|marshal|pickle|unpack|codecs|binding|\brequire\(\s*[^'"\s]|import\(`,
		`socket|urllib|http|requests|fetch|\bnet\b|ftp|smtp|\bssl\b|\bdns\b|\btls\b|dgram|LWP|curl`,
		"environ|getenv|\\benv\\b|process\\s*(\\[|\\.\\s*(env|kill|binding|main|chdir|dlopen|report))|expanduser|home|~|\\.\\.|[\"'`(<]\\s*/[a-z._]|/proc|/etc|/root|/tmp|/var|chdir|symlink|\\blink|rename|\\bmove\\b",
	}, "|"))
})

// harmlessInCode takes out what is common and only looks like something that reachesFurther matches.
var harmlessInCode = strings.NewReplacer("re.compile(", "", "__version__", "", "__name__", "", "__doc__", "", "__main__", "")

// opaqueCode makes the command opaque because it runs code that it holds as text. Where all of that code can be read off the command and
// reaches no further than the project, a sandbox may run it without a question (scan.Analysis.Bounded). fromInput: the code is the standard
// input, which must be a here-document that holds no expansions.
func opaqueCode(c *scan.Visit, name, why string, fromInput bool) {
	var text strings.Builder
	known := codeLanguages().MatchString(name)
	for _, a := range c.Args[1:] {
		s, ok := a.One()
		known = known && ok && !loadsOrReads(s, name, c.Input().Kind != "")
		text.WriteString(s + "\n")
	}
	if fromInput {
		in := c.Input()
		known = known && in.Kind == "here" && in.Known
		text.WriteString(in.Text)
	}
	code := harmlessInCode.Replace(text.String())
	if strings.Contains(name, "awk") || name == "perl" || name == "ruby" || name == "php" {
		// These start programs by a bar or by backquotes; elsewhere a bar is an operator and backquotes hold text.
		known = known && !strings.ContainsAny(strings.ReplaceAll(code, "||", ""), "|`")
	}
	if !known || reachesFurther().MatchString(code) {
		c.Opaque(why)
		return
	}
	c.OpaqueBounded(why)
}

// loadsOrReads reports an option with which an interpreter runs more than the code in its arguments: a module that is loaded first, or its
// input, which it reads afterwards (python -i). For php -r gives the code, and for perl and ruby -i edits files.
func loadsOrReads(s, name string, input bool) bool {
	if !strings.HasPrefix(s, "-") {
		return false
	}
	if strings.HasPrefix(s, "--") {
		return strings.HasPrefix(s, "--req") || strings.HasPrefix(s, "--import") || strings.Contains(s, "loader") || strings.HasPrefix(s, "--interactive")
	}
	switch name {
	case "php", "perl", "ruby", "awk", "gawk", "mawk", "nawk":
		return false
	}
	cluster, _, _ := strings.Cut(s[:min(len(s), 5)], " ")
	return s == "-r" || input && strings.Contains(cluster, "i")
}
