package evidence

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/tools/change"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Claims returns what a text claims to have been checked, each claim with the last run that can support it, if there is one. version is that
// of the proposed texts. Only English sentences are understood; others are no claims.
func Claims(text string, runs []Ran, version string) (out []change.Claim) {
	seen := map[string]bool{}
	for _, s := range sentences(text) {
		for _, of := range claimed(s) {
			if seen[of.name] {
				continue
			}
			seen[of.name] = true
			c := change.Claim{Text: textutil.Shorten(s, 160), About: of.about[0], Subject: of.name, Support: change.ClaimNoRun}
			out = append(out, supported(c, of, runs, version))
		}
	}
	return out
}

// supported finds the run for a claim about a subject: the last one, whatever its result.
func supported(c change.Claim, of subject, runs []Ran, version string) change.Claim {
	for _, r := range runs {
		if !slices.ContainsFunc(r.Checks, of.shownBy) {
			continue
		}
		// A run of more than the one test that the claim names: another may be the one that failed.
		if r.Exit != 0 && of.test != "" && !strings.Contains(r.Command, of.test) {
			continue
		}
		c.Command, c.Exit, c.Version = r.of(of.shownBy), r.Exit, r.Version
		switch {
		case r.Exit != 0 && !all(r.Checks, of.shownBy):
			c.Command, c.Support = r.Command, change.ClaimNoRun // another check of the same line may be the one that failed
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

// all reports whether f holds of every check.
func all(checks []Check, f func(Check) bool) bool {
	return !slices.ContainsFunc(checks, func(c Check) bool { return !f(c) })
}

// subject is what a sentence says something of.
type subject struct {
	name       string   // "tests", "go vet"
	about      []string // kinds of checks; a run of any of them can support a claim about this
	program    bool     // only a run of the program name can
	test       string   // the one test that it names: "TestParse"
	start, end int      // in the sentence, in bytes
}

// shownBy reports whether a check that has ended with 0 supports a claim about the subject.
func (s subject) shownBy(c Check) bool {
	if s.program {
		return c.Program == s.name
	}
	return slices.ContainsFunc(s.about, func(kind string) bool { return slices.Contains(c.About, kind) })
}

var (
	fences = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?s)```.*?(```|$)") })
	quoted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("`[^`\n]+`") })
	// oneTest is the name of a test function of Go or Python.
	oneTest = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:Test[A-Z]|test_)\w*$`) })
	// stop ends a sentence. The dots of ./... end none, nor do those in a name.
	stop = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[.!?]+["')\]]*(?:\s|$)`) })
)

// sentences splits a text, without its blocks of code: these are output and commands, not words of the agent.
func sentences(text string) (out []string) {
	for line := range strings.Lines(fences().ReplaceAllString(text, "\n")) {
		hidden := quoted().ReplaceAllStringFunc(line, func(code string) string { return strings.Repeat("x", len(code)) })
		from := 0
		add := func(to int) {
			if s := strings.Trim(strings.TrimSpace(line[from:to]), "*_-#>|• "); s != "" {
				out = append(out, s)
			}
			from = to
		}
		for _, at := range stop().FindAllStringIndex(hidden, -1) {
			if strings.HasSuffix(line[:at[0]], "/") {
				continue
			}
			add(at[1])
		}
		add(len(line))
	}
	return out
}

// namedSubject is a kind of checks and the words for it.
type namedSubject struct {
	name  string
	about []string
	words *regexp.Regexp
}

// subjects are what people call checks without naming a program. A noun after them means something else: a test file, a build script.
var subjects = sync.OnceValue(func() []namedSubject {
	return []namedSubject{
		{"tests", []string{AboutTests}, regexp.MustCompile(`(?i)\b(?:(?:unit |integration |e2e |end-to-end |regression )?test(?:s|ing| suites?| cases?| run)?|specs?|(?:full|whole|entire) suite|(?-i:[Tt]he) suite)\b|(?-i:\b(?:Test[A-Z]\w*|test_\w+)\b)`)},
		{"types", []string{AboutTypes}, regexp.MustCompile(`(?i)\btype[- ]?check(?:s|er|ing)?\b|\btypings?\b|\btypes\b`)},
		{"build", []string{AboutBuild}, regexp.MustCompile(`(?i)\b(?:re)?builds?\b|\bcompilation\b`)},
		{"lint", []string{AboutLint}, regexp.MustCompile(`(?i)\blint(?:er|ers|ing|s)?\b|\bstatic analysis\b`)},
	}
})

// programs are names that a sentence uses without the marks of code. Those of scripts and targets need the marks.
var programs = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:go (?:test|build|vet)|cargo (?:test|build|check|clippy)|clippy|golangci-lint|staticcheck|gotestsum|vitest|jest|mocha|playwright|pytest|unittest|tox|mypy|pyright|ruff|flake8|pylint|eslint|biome|stylelint|prettier|vue-tsc|tsc|svelte-check|shellcheck|rubocop|rspec|phpunit|vet|(?:npm|pnpm|yarn|bun) (?:run )?(?:test|build|lint|typecheck)|make (?:test|lint|check))\b`)
})

// modifies matches what makes a noun of something else out of a subject's word.
var modifies = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^[- ](?:files?|folders?|director(?:y|ies)|dirs?|data|helpers?|names?|scripts?|flags?|configs?|configuration|fixtures?|functions?|code|steps?|tags?|targets?|systems?|rules?|coverage|plan|output|caches?|constraints?|utils|harness|double)\b`)
})

// subjectsOf returns the subjects in a clause, in their order.
func subjectsOf(clause string) (out []subject) {
	hidden := []byte(clause)
	// What was found is hidden from the searches that follow: the "test" of "go test" is no subject of its own.
	hide := func(at []int) {
		for i := at[0]; i < at[1]; i++ {
			hidden[i] = '`'
		}
	}
	for _, at := range quoted().FindAllStringIndex(clause, -1) {
		// Each command of a line has a place of its own, so that no two subjects overlap.
		list := ChecksIn(clause[at[0]+1 : at[1]-1])
		for i, c := range list {
			out = append(out, subject{name: c.Program, about: c.About, program: true, start: at[0] + i, end: at[0] + i + 1})
		}
		if len(list) > 0 {
			out[len(out)-1].end = at[1]
		}
		hide(at)
	}
	for _, at := range programs().FindAllIndex(hidden, -1) {
		words := strings.ToLower(clause[at[0]:at[1]])
		switch words {
		case "vet":
			words = "go vet"
		case "clippy":
			words = "cargo clippy"
		case "playwright":
			words += " test"
		case "ruff", "biome":
			words += " check"
		case "golangci-lint":
			words += " run"
		case "prettier":
			words += " --check"
		}
		if c, ok := checkOf(words); ok {
			out = append(out, subject{name: c.Program, about: c.About, program: true, start: at[0], end: at[1]})
			hide(at)
		}
	}
	for _, s := range subjects() {
		for _, at := range s.words.FindAllIndex(hidden, -1) {
			if !modifies().Match(hidden[at[1]:]) {
				found := subject{name: s.name, about: s.about, start: at[0], end: at[1]}
				if test := oneTest().FindString(clause[at[0]:at[1]]); test != "" {
					found.name, found.test = test, test
				}
				out = append(out, found)
				hide(at)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b subject) int { return a.start - b.start })
	return out
}

const faults = `(?:errors?|issues?|warnings?|problems?|findings?|failures?|complaints?|diagnostics|regressions?|offenses?|violations?)`

var (
	// clauses are what a condition or a negation in one of them does not touch the others.
	clauses = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\s+(?:but|however|although|though|whereas)\s+|[;]\s+`)
	})
	// free says that a check has nothing to report. The group is a word that names the check itself: "no type errors".
	free = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:no|zero|0|without(?: any| a single)?|free of|not a single|didn't (?:find|report|show|see)(?: any)?|did not (?:find|report|show|see)(?: any)?|(?:doesn't|does not) (?:find|report|show|flag|emit)(?: any)?)\s+(?:(?:new|remaining|further|other|reported|more) )?(type|typing|type-?check(?:ing|er)?|typescript|tsc|lint(?:ing|er)?|vet|build|compile|compiler|compilation|test)?\s?(?:` + faults + `|failing tests)\b` +
			`|\b(?:0|zero|none|nothing|no tests?) (?:of (?:them|the tests|these|those) )?(?:are |were |was |is |has |have )?(?:failed|failing|fails?|broken|broke)\b` +
			`|\bno longer (?:fails?|failing|errors?|complains?|broken)\b` +
			`|\b(?:does not|doesn't|did not|didn't) (?:complain|report anything|find anything)\b` +
			`|\b(?:reports?|reported|finds?|found|shows?|prints?|printed|says?|flags?|complains? about) nothing\b` +
			`|\bexit(?:s|ed)?(?: with)?(?: (?:code|status))*[: ]+0\b|\b(?:error|warning|issue)-free\b`)
	})
	// good says that a check succeeded.
	good = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\bpass(?:es|ed)?\b|\b(?:is|are|was|were|all|now|still|both|again|\d+|tests:)\s+(?:all |now |still )?passing\b|\bsucceed(?:s|ed)?\b|\bsuccess(?:ful|fully)?\b` +
			`|(?:\b(?:is|are|was|were|stays?|remains?|all|now|still|comes?|came|runs?|ran|looks?|both)|[:—–-])\s+(?:(?:all|fully|completely|now|both|still|also|back|out|again) )*(?:green|clean|cleanly|ok|okay|fine|happy|silent|satisfied)\b` +
			`|\bworks\b(?:\s*$|\s*[.,)!—–]|\s+(?:and|again|now|too|as well)\b)` +
			`|\b(?:green|clean|cleanly|ok)\b(?:\s*$|\s*[.,)!—–]|\s+and\b)|[✅✔✓☑]`)
	})
	// itself says that of which it is itself the subject: "it compiles".
	itself = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:(builds|built|compiles|compiled)|(type-?checks))\b(?:\s*$|\s*[.,)!—–:]|\s+(?:and|again|now|successfully|clean|cleanly|fine|without|with no|correctly|ok|too|as well)\b)`)
	})
	// hedges before a word of success turn it into a plan, a wish or a report of a failure.
	hedges = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:should|would|could|will|may|might|must|if|once|when|until|unless|please|try|tried|not|cannot|can't|don't|doesn't|didn't|haven't|hasn't|isn't|aren't|wasn't|weren't|won't|never|no|none|fail(?:s|ed|ing|ures?)?|make sure|ensures?|needs?|to see|so that|verify that|check that|check whether|whether|in order|to (?:make|get|let|keep|have)|think|believe|hope|hopefully|likely|probably|ideally|expect(?:ed)?|you can|where|assum(?:e|ing)|used to|only)\b`)
	})
	// repaired is no failure of today: "the failing test now passes".
	repaired = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:failing|broken|failed) (?:tests?|builds?|checks?)\b`)
	})
	// doubts after it do the same.
	doubts = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:if|once|when|until|unless|provided|assuming|before|except|fail(?:s|ed|ing|ures?)?|broken)\b|\?`)
	})
	// joined matches what may stand between two subjects of one statement: "the tests, go vet and the build".
	joined = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("(?i)^(?:[\\s,&+/`*]|\\b(?:and|plus|as well as|the|all|our|its|both|unit|full|whole)\\b)*$")
	})
	// together says that a statement is about all subjects so far: "I ran A and then B; both pass".
	together = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:both|each|(?:all|both) (?:of them|of which))\s+(?:\w+ )?$`)
	})
	// after matches what may stand between a word of success and its subject: "passes all tests".
	after = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("(?i)^[\\s:`*]*(?:(?:the|all|our|every|existing|full|whole|its|of|\\d+)\\s+)*[`*]*$")
	})
	// object is what the agent passes on: "the test passes the path to the helper" says nothing of a check, but "the code passes the
	// tests" does.
	object = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("(?i)^\\s+(?:`|(?:the|a|an|it|them|this|that|its|their|your|along|through|down|around|by|as|into|up)\\b)")
	})
)

// reach is how many bytes may be between a subject and what is said of it.
const reach = 70

// claimed returns what a sentence claims to have been checked with success.
func claimed(sentence string) (out []subject) {
	sentence = strings.NewReplacer("**", "  ", "__", "  ").Replace(sentence)
	from := 0
	for _, at := range append(clauses().FindAllStringIndex(sentence, -1), []int{len(sentence), len(sentence)}) {
		// Subjects of earlier clauses can be meant by a later one: "I ran A and B; both pass".
		out = append(out, claimedIn(sentence, from, at[0])...)
		from = at[1]
	}
	return out
}

// claimedIn returns what the clause from:to of a sentence claims.
func claimedIn(sentence string, from, to int) (out []subject) {
	clause := sentence[:to]
	all := subjectsOf(clause)
	said := statementsIn(clause, from)
	done := from // the end of the last statement
	for i, st := range said {
		rest := to
		if i+1 < len(said) {
			rest = said[i+1].start
		}
		// A doubt that comes with a subject of its own is about that: "tests pass, lint fails".
		for _, s := range all {
			if s.start >= st.end && s.start < rest && !s.near(clause, st) {
				rest = s.start
				break
			}
		}
		if !hedges().MatchString(repaired().ReplaceAllString(clause[done:st.start], "")) && !doubts().MatchString(clause[st.end:rest]) && !strings.HasSuffix(strings.TrimSpace(sentence), "?") {
			out = append(out, st.subjects(clause, all, done)...)
		}
		done = st.end
	}
	return out
}

// statement is a place that says that something succeeded.
type statement struct {
	start, end int
	own        string // what it is about by itself: a name of subjects; "" for what stands beside it
	object     bool   // it can only be about what follows
}

// statementsIn finds the statements of a clause from an offset on, in their order, without overlaps.
func statementsIn(clause string, from int) (out []statement) {
	hidden := []byte(clause)
	hide := func(a, b int) {
		for i := a; i < b; i++ {
			hidden[i] = 'x'
		}
	}
	for _, at := range quoted().FindAllStringIndex(clause, -1) {
		hide(at[0], at[1])
	}
	for i := range hidden[:from] {
		hidden[i] = ' ' // a word may begin at from
	}
	add := func(at []int, own string) {
		out = append(out, statement{start: at[0], end: at[1], own: own})
		hide(at[0], at[1])
	}
	for _, at := range itself().FindAllSubmatchIndex(hidden, -1) {
		of := AboutBuild
		end := at[3]
		if at[4] >= 0 {
			of, end = AboutTypes, at[5]
		}
		add([]int{at[0], end}, of)
	}
	for _, at := range free().FindAllSubmatchIndex(hidden, -1) {
		of := ""
		if at[2] >= 0 {
			word := strings.ToLower(clause[at[2]:at[3]])
			switch {
			case strings.HasPrefix(word, "typ"):
				of = AboutTypes
			case strings.HasPrefix(word, "lint"):
				of = AboutLint
			case word == "vet":
				of = "go vet"
			case word == "test":
				of = AboutTests
			default:
				of = AboutBuild
			}
		} else if strings.Contains(strings.ToLower(clause[at[0]:at[1]]), " test") {
			of = AboutTests
		}
		add(at[:2], of)
	}
	for _, at := range good().FindAllIndex(hidden, -1) {
		add(at, "")
		out[len(out)-1].object = strings.HasPrefix(strings.ToLower(clause[at[0]:at[1]]), "pass") && object().MatchString(clause[at[1]:])
	}
	slices.SortFunc(out, func(a, b statement) int { return a.start - b.start })
	return out
}

// near reports whether a subject stands right behind a statement, as its object.
func (s subject) near(clause string, st statement) bool {
	return s.start >= st.end && after().MatchString(clause[st.end:s.start])
}

// subjects returns what a statement is about. done is the end of the statement before it.
func (st statement) subjects(clause string, all []subject, done int) (out []subject) {
	if st.own != "" {
		for _, s := range subjects() {
			if s.name == st.own {
				about := s.about
				if st.own == AboutBuild { // whatever compiles has been built or type-checked
					about = []string{AboutBuild, AboutTypes}
				}
				out = append(out, subject{name: s.name, about: about})
			}
		}
		if c, ok := checkOf(st.own + " ."); ok {
			out = append(out, subject{name: c.Program, about: c.About, program: true})
		}
		return out
	}
	both := together().MatchString(clause[:st.start])
	if both {
		done = 0
	}
	for i := len(all) - 1; i >= 0 && !st.object; i-- {
		s := all[i]
		if s.end > st.start || s.start < done {
			continue
		}
		next := st.start
		if len(out) > 0 {
			next = out[len(out)-1].start
		}
		switch gap := clause[s.end:next]; {
		case len(out) == 0 && len(gap) > reach:
			return nil
		case len(out) > 0 && !both && !joined().MatchString(gap):
			slices.Reverse(out)
			return out
		}
		out = append(out, s)
	}
	slices.Reverse(out)
	if len(out) > 0 {
		return out
	}
	for _, s := range all {
		if s.near(clause, st) || len(out) > 0 && s.start >= st.end && joined().MatchString(clause[out[len(out)-1].end:s.start]) {
			out = append(out, s)
		}
	}
	return out
}
