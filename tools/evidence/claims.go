package evidence

import (
	"regexp"
	"strings"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Ran is a command that has ended; commands are in the order of time.
type Ran struct {
	Command string `json:"command"`
	About   string `json:"about"` // see About
	Exit    int    `json:"exit"`
	Version string `json:"version"` // of the texts when it ended
	// Loose means that the exit code may be another command's, because others follow on the line.
	Loose bool `json:"loose,omitempty"`
}

// The subjects of checks.
const (
	AboutTests = "tests"
	AboutBuild = "build"
	AboutTypes = "types"
	AboutLint  = "lint"
)

// checks are the programs that check something, by the first words of a command. A program that is not listed supports no claim;
// that is the safe mistake.
var checks = []struct {
	about string
	words *regexp.Regexp
}{
	{AboutTests, regexp.MustCompile(`^(go test|gotestsum|cargo (test|nextest)|(npm|pnpm|yarn|bun)( run)? (test|t)\b\S*|(npx |pnpm exec |yarn )?(vitest|jest|mocha|ava|playwright test)|python3? -m (pytest|unittest)|pytest|py\.test|tox|nox|(\./)?gradlew? .*\btest|mvn .*\b(test|verify)|dotnet test|make .*\b(test|check)\S*|just test|ctest|rspec|bundle exec r(spec|ake test)|phpunit|mix test|swift test|zig build test|deno test|node --test|bats|bazel test)\b`)},
	{AboutBuild, regexp.MustCompile(`^(go (build|install)|cargo build|(npm|pnpm|yarn|bun)( run)? build\S*|(\./)?gradlew? .*\b(build|assemble)|mvn .*\b(compile|package|install)|dotnet build|make( all| build| -j\d*)*$|cmake --build|swift build|zig build|bazel build)\b`)},
	{AboutTypes, regexp.MustCompile(`^((npx |pnpm exec |yarn )?(tsc|vue-tsc|svelte-check)|mypy|pyright|cargo check|go vet|(npm|pnpm|yarn|bun) run (typecheck|type-check|types|tsc))\b`)},
	{AboutLint, regexp.MustCompile(`^((npx |pnpm exec |yarn )?(eslint|biome|stylelint|prettier --check)|golangci-lint|staticcheck|go vet|ruff|flake8|pylint|cargo clippy|(npm|pnpm|yarn|bun)( run)? lint\S*|make lint|rubocop|shellcheck)\b`)},
}

// separators match what ends a command within a line. They also match inside quotes; that is rare and only makes the exit code
// Loose.
var separators = regexp.MustCompile(`&&|\|\||[;|\n&]`)

// About returns what a command line checks, by its last check, and whether its exit code may be another command's. about is "" if
// it checks nothing known.
func About(line string) (about string, loose bool) {
	parts := separators.Split(line, -1)
	last := -1
	for i, part := range parts {
		words := strings.Join(strings.Fields(part), " ")
		for {
			// Skip settings for one command, and programs that only run another.
			next := environment.ReplaceAllString(words, "")
			if next == words {
				break
			}
			words = next
		}
		for _, c := range checks {
			if c.words.MatchString(words) {
				about, last = c.about, i
				break
			}
		}
	}
	if about == "" {
		return "", false
	}
	// "cd x && go test ./..." ends with the exit code of go test; a command after it may hide that code.
	rest := strings.TrimSpace(strings.Join(parts[last+1:], ""))
	return about, rest != "" || strings.Contains(line, "||") || strings.HasSuffix(strings.TrimSpace(line), "&")
}

var environment = regexp.MustCompile(`^([A-Za-z_]\w*=\S*|time|env|nice|timeout \S+|uv run|poetry run) `)

// claims match sentences in which agents say that they have checked something.
var claims = []struct {
	about string
	words *regexp.Regexp
}{
	{AboutTests, regexp.MustCompile(`(?i)\b(tests?|test suite|specs?)\b[^.!?]{0,60}(\bpass(es|ed)?\b|\b(is|are|all|now) passing\b|\bsucceed(s|ed)?\b|\bgreen\b|\bok\b)|\b(passes|passed|passing|green)\b[^.!?]{0,20}\b(tests|test suite)\b`)},
	{AboutTypes, regexp.MustCompile(`(?i)\btype[- ]?check(s|er|ing|ed)?\b[^.!?]{0,40}\b(pass(es|ed)?|clean|succeed(s|ed)?|no errors|fine)\b|\bno type errors\b|\btype[- ]?checks\b`)},
	{AboutBuild, regexp.MustCompile(`(?i)\b(build|project|code|everything|it|package)\b[^.!?]{0,30}\b(builds|compiles|compiled|built|succeed(s|ed)?)\b|\bbuild (passes|passed|is green|works)\b`)},
	{AboutLint, regexp.MustCompile(`(?i)\b(lint(er|ing|s)?|vet|clippy|eslint|staticcheck)\b[^.!?]{0,40}\b(pass(es|ed)?|clean|no (issues|warnings|errors|findings)|fine)\b`)},
}

// hedged matches sentences that claim nothing: plans, conditions, and reports of failures.
var hedged = regexp.MustCompile(`(?i)\b(should|would|could|will|may|might|if|once|when|until|unless|please|try|not|cannot|can't|don't|doesn't|didn't|haven't|hasn't|never|fail(s|ed|ing)?|make sure|ensure|need to|to see|so that|verify that|check that)\b|\?`)

var sentence = regexp.MustCompile(`[^.!?\n]+[.!?]?`)

// Claims returns what a text claims to have been checked, each claim with the last run about the same subject, if there is one.
// version is that of the proposed texts. Only English sentences are understood; others are not claims.
func Claims(text string, runs []Ran, version string) (out []change.Claim) {
	seen := map[string]bool{}
	for _, s := range sentence.FindAllString(text, -1) {
		s = strings.Trim(strings.TrimSpace(s), "*-#>` ")
		for _, c := range claims {
			if seen[c.about] || !c.words.MatchString(s) || hedged.MatchString(s) {
				continue
			}
			seen[c.about] = true
			out = append(out, supported(change.Claim{Text: textutil.Shorten(s, 160), About: c.about, Support: change.ClaimNoRun}, runs, version))
		}
	}
	return out
}

// supported finds the run for a claim: the last one, whatever its result.
func supported(c change.Claim, runs []Ran, version string) change.Claim {
	for _, r := range runs {
		// A test that ran was also built and type-checked.
		covers := r.About == c.About || c.About == AboutBuild && (r.About == AboutTests || r.About == AboutTypes) || c.About == AboutTypes && r.About == AboutBuild
		if !covers || r.Loose {
			continue
		}
		c.Command, c.Exit, c.Version = r.Command, r.Exit, r.Version
		switch {
		case r.Exit != 0:
			c.Support = change.ClaimFailed
		case r.Version != version:
			c.Support = change.ClaimStale
		default:
			c.Support = change.ClaimSupported
		}
	}
	return c
}
