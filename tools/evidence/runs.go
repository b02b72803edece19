package evidence

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pillion-dev/pillion/tools/textutil"
)

// Ran is a command that has ended; commands are in the order of time.
type Ran struct {
	Command string `json:"command"`
	// Checks are the checks of the command, see ChecksIn. Without one it supports no claim.
	Checks  []Check `json:"checks,omitempty"`
	Exit    int     `json:"exit"`
	Version string  `json:"version"` // of the texts when it ended
}

// maxCommand is how many bytes of a command a claim quotes as a whole. In a longer one, which does other things too, nobody would find
// the check.
const maxCommand = 60

// of returns the part of the command that a claim quotes: the last check that supports it, or all of a short command.
func (r Ran) of(supports func(Check) bool) string {
	if len(r.Command) > maxCommand {
		for _, c := range slices.Backward(r.Checks) {
			if c.Line != "" && supports(c) {
				return c.Line
			}
		}
	}
	return r.Command
}

// Check is a program that checks something, as a part of a command.
type Check struct {
	Program string   `json:"program,omitempty"` // as people name it: "go vet"; "" for one that is not known by name
	About   []string `json:"about"`             // what is known once it has ended with 0, the first is what it is run for
	Line    string   `json:"line,omitempty"`    // its words, at most maxCommand bytes; "" in drafts of earlier versions
}

// The subjects of checks.
const (
	AboutTests = "tests"
	AboutBuild = "build"
	AboutTypes = "types"
	AboutLint  = "lint"
)

// checkProgram is a program that checks something.
type checkProgram struct {
	name  string
	words *regexp.Regexp
	about []string
}

// packageScript begins a command that runs a script of package.json; its name follows.
const packageScript = `^(?:npm|pnpm|yarn|bun) (?:(?:--prefix|--filter|-F|--cwd|-C|-w|--workspace)[= ]\S+ |-\S+ )*(?:run |run-script )?(?:-\S+ )*`

// checks are the programs that check something: their names, the first words of a command that runs them, and all that such a run checks:
// `go vet` loads every package with its types, while `vitest` runs files that nobody has type-checked. A program that is not listed
// supports no claim; that is the safe mistake. %s in a name is the first group of the expression: the script of a package.
var checks = sync.OnceValue(func() []checkProgram {
	return []checkProgram{
		{"go test", regexp.MustCompile(`^go (?:-C \S+ )?test\b`), []string{AboutTests, AboutBuild, AboutTypes}},
		{"go build", regexp.MustCompile(`^go (?:-C \S+ )?(?:build|install)\b`), []string{AboutBuild, AboutTypes}},
		{"go vet", regexp.MustCompile(`^go (?:-C \S+ )?vet\b`), []string{AboutLint, AboutTypes}},
		{"gotestsum", regexp.MustCompile(`^gotestsum\b`), []string{AboutTests, AboutBuild, AboutTypes}},
		{"staticcheck", regexp.MustCompile(`^staticcheck\b`), []string{AboutLint}},
		{"golangci-lint", regexp.MustCompile(`^golangci-lint run\b`), []string{AboutLint}},
		{"cargo test", regexp.MustCompile(`^cargo (?:test|nextest)\b`), []string{AboutTests, AboutBuild, AboutTypes}},
		{"cargo build", regexp.MustCompile(`^cargo build\b`), []string{AboutBuild, AboutTypes}},
		{"cargo check", regexp.MustCompile(`^cargo check\b`), []string{AboutTypes}},
		{"clippy", regexp.MustCompile(`^cargo clippy\b`), []string{AboutLint, AboutTypes}},
		{"vitest", regexp.MustCompile(`^(?:yarn |pnpm )?vitest\b`), []string{AboutTests}},
		{"jest", regexp.MustCompile(`^(?:yarn |pnpm )?jest\b`), []string{AboutTests}},
		{"mocha", regexp.MustCompile(`^(?:yarn |pnpm )?mocha\b`), []string{AboutTests}},
		{"ava", regexp.MustCompile(`^(?:yarn |pnpm )?ava\b`), []string{AboutTests}},
		{"playwright", regexp.MustCompile(`^playwright test\b`), []string{AboutTests}},
		{"node --test", regexp.MustCompile(`^node (?:.* )?--test\b`), []string{AboutTests}},
		{"deno test", regexp.MustCompile(`^deno test\b`), []string{AboutTests, AboutTypes}},
		{"bun test", regexp.MustCompile(`^bun test\b`), []string{AboutTests}},
		{"tsc", regexp.MustCompile(`^(?:yarn |pnpm )?tsc\b`), []string{AboutTypes}},
		{"vue-tsc", regexp.MustCompile(`^(?:yarn |pnpm )?vue-tsc\b`), []string{AboutTypes}},
		{"svelte-check", regexp.MustCompile(`^(?:yarn |pnpm )?svelte-check\b`), []string{AboutTypes}},
		{"eslint", regexp.MustCompile(`^(?:yarn |pnpm )?eslint\b`), []string{AboutLint}},
		{"biome", regexp.MustCompile(`^biome (?:check|lint|ci)\b`), []string{AboutLint}},
		{"stylelint", regexp.MustCompile(`^(?:yarn |pnpm )?stylelint\b`), []string{AboutLint}},
		{"prettier", regexp.MustCompile(`^prettier (?:.* )?(?:--check|-c)\b`), []string{AboutLint}},
		{"pytest", regexp.MustCompile(`^(?:pytest|py\.test)\b`), []string{AboutTests}},
		{"unittest", regexp.MustCompile(`^unittest\b`), []string{AboutTests}},
		{"tox", regexp.MustCompile(`^tox\b`), []string{AboutTests}},
		{"nox", regexp.MustCompile(`^nox\b`), []string{AboutTests}},
		{"mypy", regexp.MustCompile(`^(?:mypy|dmypy)\b`), []string{AboutTypes}},
		{"pyright", regexp.MustCompile(`^(?:based)?pyright\b`), []string{AboutTypes}},
		{"ruff", regexp.MustCompile(`^ruff check\b`), []string{AboutLint}},
		{"flake8", regexp.MustCompile(`^flake8\b`), []string{AboutLint}},
		{"pylint", regexp.MustCompile(`^pylint\b`), []string{AboutLint}},
		{"shellcheck", regexp.MustCompile(`^shellcheck\b`), []string{AboutLint}},
		{"rubocop", regexp.MustCompile(`^rubocop\b`), []string{AboutLint}},
		{"rspec", regexp.MustCompile(`^rspec\b`), []string{AboutTests}},
		{"rake test", regexp.MustCompile(`^rake (?:test|spec)\b`), []string{AboutTests}},
		{"phpunit", regexp.MustCompile(`^(?:vendor/bin/)?phpunit\b`), []string{AboutTests}},
		{"mix test", regexp.MustCompile(`^mix test\b`), []string{AboutTests, AboutBuild}},
		{"swift test", regexp.MustCompile(`^swift test\b`), []string{AboutTests, AboutBuild, AboutTypes}},
		{"swift build", regexp.MustCompile(`^swift build\b`), []string{AboutBuild, AboutTypes}},
		{"zig build test", regexp.MustCompile(`^zig build test\b`), []string{AboutTests, AboutBuild, AboutTypes}},
		{"zig build", regexp.MustCompile(`^zig build\b`), []string{AboutBuild, AboutTypes}},
		{"gradle", regexp.MustCompile(`^(?:\./)?gradlew? (?:.*[ :])?(?:test|check|build)\b`), []string{AboutTests, AboutBuild, AboutTypes}},
		{"gradle", regexp.MustCompile(`^(?:\./)?gradlew? (?:.*[ :])?(?:assemble|classes|compile\w*)\b`), []string{AboutBuild, AboutTypes}},
		{"mvn", regexp.MustCompile(`^(?:\./)?mvnw? (?:.* )?(?:test|package|verify|install)\b`), []string{AboutTests, AboutBuild, AboutTypes}},
		{"mvn", regexp.MustCompile(`^(?:\./)?mvnw? (?:.* )?compile\b`), []string{AboutBuild, AboutTypes}},
		{"dotnet test", regexp.MustCompile(`^dotnet test\b`), []string{AboutTests, AboutBuild, AboutTypes}},
		{"dotnet build", regexp.MustCompile(`^dotnet build\b`), []string{AboutBuild, AboutTypes}},
		{"ctest", regexp.MustCompile(`^ctest\b`), []string{AboutTests}},
		{"bats", regexp.MustCompile(`^bats\b`), []string{AboutTests}},
		{"bazel test", regexp.MustCompile(`^bazel test\b`), []string{AboutTests, AboutBuild}},
		{"bazel build", regexp.MustCompile(`^bazel build\b`), []string{AboutBuild}},
		{"cmake --build", regexp.MustCompile(`^cmake --build\b`), []string{AboutBuild}},
		// What a script or a target runs is the project's choice; its name says what for.
		{"%s script", regexp.MustCompile(packageScript + `(test\S*|t)(?: |$)`), []string{AboutTests}},
		{"%s script", regexp.MustCompile(packageScript + `(build\S*)(?: |$)`), []string{AboutBuild}},
		{"%s script", regexp.MustCompile(packageScript + `(type-?check\S*|check-types|check:types|types|tsc)(?: |$)`), []string{AboutTypes}},
		{"%s script", regexp.MustCompile(packageScript + `(lint\S*)(?: |$)`), []string{AboutLint}},
		{"make %s", regexp.MustCompile(`^g?make (?:.* )?(\S*lint\S*|vet)(?: |$)`), []string{AboutLint}},
		{"make %s", regexp.MustCompile(`^g?make (?:.* )?(\S*(?:test|check)\S*)(?: |$)`), []string{AboutTests}},
		{"make", regexp.MustCompile(`^g?make(?: (?:all|build|-j ?\d*))*$`), []string{AboutBuild}},
		{"just %s", regexp.MustCompile(`^just (\S*test\S*)(?: |$)`), []string{AboutTests}},
		{"just %s", regexp.MustCompile(`^just (\S*lint\S*)(?: |$)`), []string{AboutLint}},
	}
})

// runners only start another program: their words before its name are removed.
var runners = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:(?:command|exec|nohup|nice|env|time|xvfb-run|npx|bunx|pnpx|pnpm exec|pnpm dlx|yarn dlx|yarn exec|npm exec|bun x|(?:uv|poetry|pdm|hatch|pipenv) run|bundle exec|python[\d.]* -m|stdbuf)(?: -\S+(?: \d+)?)* |timeout(?: -\S+)*(?: [\d.]+[smhd]?)+ |[A-Za-z_]\w*=\S* |-- |\S*/\.?bin/)`)
})

// idle are options with which a check checks nothing, so that its exit code says nothing.
var idle = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(` (?:--help|--version|--dry-run|--collect-only|--co|--list|--listTests|--list-tests|--no-run|--init|--print-config|-list(?:[ =]|$)|-DskipTests\S*|-Dmaven\.test\.skip\S*)`)
})

// idleOf are such options that mean something else to other programs.
var idleOf = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"go test":  regexp.MustCompile(` (?:-c|-n|-h|--?exec[ =]\S*true)(?: |$)`),
		"go build": regexp.MustCompile(` (?:-n|-h)(?: |$)`),
		"go vet":   regexp.MustCompile(` (?:-n|-h|-V\S*|-flags)(?: |$)`),
		"make":     regexp.MustCompile(` (?:-n|-q|--question|--just-print|--touch|-t)(?: |$)`),
		"tsc":      regexp.MustCompile(` (?:-v|-h|-w|--watch|--showConfig|--listFilesOnly|--noCheck)(?: |$)`),
	}
})

// ChecksIn returns the checks of a command line whose success its exit code 0 proves. Of `go vet && go test` these are both; of
// `go test | tail`, `go test; date` and `go test || true` there are none, because the exit code is another command's.
func ChecksIn(line string) (out []Check) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		return nil
	}
	s := statements{}
	s.list(file.Stmts, &out)
	return out
}

// statements walks commands of one line. errexit and pipefail are bash's options at this point of the line.
type statements struct {
	errexit, pipefail bool
	depth             int // of `bash -c`, each of which is parsed anew
}

// list walks commands of which only the last one's exit code counts, unless bash ends at the first failure.
func (s *statements) list(list []*syntax.Stmt, out *[]Check) {
	for i, stmt := range list {
		before := s.errexit
		var found []Check
		s.stmt(stmt, &found)
		if i == len(list)-1 || before {
			*out = append(*out, found...)
		}
	}
}

func (s *statements) stmt(stmt *syntax.Stmt, out *[]Check) {
	if stmt.Background || stmt.Coprocess || stmt.Negated {
		return
	}
	switch c := stmt.Cmd.(type) {
	case *syntax.CallExpr:
		s.call(c, out)
	case *syntax.TimeClause:
		if c.Stmt != nil {
			s.stmt(c.Stmt, out)
		}
	case *syntax.Block:
		s.list(c.Stmts, out)
	case *syntax.Subshell:
		inner := *s
		inner.list(c.Stmts, out)
	case *syntax.BinaryCmd:
		switch c.Op {
		case syntax.AndStmt:
			s.stmt(c.X, out)
			s.stmt(c.Y, out)
		case syntax.Pipe, syntax.PipeAll:
			if s.pipefail {
				s.stmt(c.X, out)
			}
			s.stmt(c.Y, out)
		}
	}
}

func (s *statements) call(c *syntax.CallExpr, out *[]Check) {
	words := make([]string, len(c.Args))
	for i, w := range c.Args {
		words[i] = literal(w)
	}
	if len(words) == 0 {
		return
	}
	switch words[0] {
	case "set":
		for i, w := range words[1:] {
			name := strings.HasPrefix(w, "-") && strings.HasSuffix(w, "o") && i+2 < len(words)
			s.errexit = s.errexit || strings.HasPrefix(w, "-") && strings.Contains(w, "e") || name && words[i+2] == "errexit"
			s.pipefail = s.pipefail || name && words[i+2] == "pipefail"
		}
		return
	case "bash", "sh", "/bin/bash", "/bin/sh", "zsh":
		// The script is the word after the options: bash -lc 'go test ./...'.
		i := 1
		for i < len(words) && strings.HasPrefix(words[i], "-") && !strings.HasSuffix(words[i], "c") {
			i++
		}
		if i+1 < len(words) && strings.HasPrefix(words[i], "-") && s.depth < 3 {
			file, err := syntax.NewParser().Parse(strings.NewReader(words[i+1]), "")
			if err == nil {
				inner := statements{errexit: strings.Contains(words[i], "e"), depth: s.depth + 1}
				inner.list(file.Stmts, out)
			}
		}
		return
	}
	if c, ok := checkOf(strings.Join(words, " ")); ok {
		c.Line = textutil.Shorten(strings.Join(words, " "), maxCommand)
		*out = append(*out, c)
	}
}

// literal is a word without its quotes; what bash would put in is "…", which is no option and no name of a program.
func literal(w *syntax.Word) string {
	var b strings.Builder
	var walk func(parts []syntax.WordPart)
	walk = func(parts []syntax.WordPart) {
		for _, p := range parts {
			switch p := p.(type) {
			case *syntax.Lit:
				b.WriteString(p.Value)
			case *syntax.SglQuoted:
				b.WriteString(p.Value)
			case *syntax.DblQuoted:
				walk(p.Parts)
			default:
				b.WriteString("…")
			}
		}
	}
	walk(w.Parts)
	return b.String()
}

// checkOf returns the check that the words of one command run.
func checkOf(words string) (Check, bool) {
	for {
		next := runners().ReplaceAllString(words, "")
		if next == words {
			break
		}
		words = next
	}
	for _, c := range checks() {
		m := c.words.FindStringSubmatch(words)
		if m == nil {
			continue
		}
		program, _, _ := strings.Cut(c.name, " %")
		if of := idleOf()[program]; idle().MatchString(words) || of != nil && of.MatchString(words) {
			return Check{}, false
		}
		name := c.name
		if len(m) > 1 {
			name = strings.ReplaceAll(name, "%s", m[1])
			if m[1] == "t" { // npm's short form
				name = "test script"
			}
		}
		return Check{Program: name, About: slices.Clone(c.about)}, true
	}
	return Check{}, false
}
