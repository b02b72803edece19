package evidence

import (
	"slices"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
)

// What a command checks, and whether its exit code is the check's own.
func TestWhatACommandChecks(t *testing.T) {
	for line, want := range map[string]struct {
		about string
		loose bool
	}{
		"go test ./...": {AboutTests, false},
		"cd sub && CGO_ENABLED=0 go test -race .": {AboutTests, false},
		"go build ./... && go test ./...":         {AboutTests, false},
		"go test ./... | tail -5":                 {AboutTests, true},
		"go test ./... || true":                   {AboutTests, true},
		"go test ./...; echo done":                {AboutTests, true},
		"go test ./... &":                         {AboutTests, true},
		"npm run test:unit":                       {AboutTests, false},
		"npx vitest run":                          {AboutTests, false},
		"timeout 60 python -m pytest -q":          {AboutTests, false},
		"make check":                              {AboutTests, false},
		"make":                                    {AboutBuild, false},
		"go vet ./...":                            {AboutTypes, false},
		"npx tsc --noEmit":                        {AboutTypes, false},
		"echo go test":                            {"", false},
		"grep -r 'go test' .":                     {"", false},
		"cat pytest.ini":                          {"", false},
		"gofmt -l .":                              {"", false},
	} {
		if about, loose := About(line); about != want.about || loose != want.loose {
			t.Errorf("%s: %q, %v, want %q, %v", line, about, loose, want.about, want.loose)
		}
	}
}

// Sentences that say something was checked, and those that only look like it.
func TestClaimsInText(t *testing.T) {
	for text, want := range map[string][]string{
		"All tests pass.": {AboutTests},
		"I renamed the field. The test suite is green and the build succeeds.": {AboutTests, AboutBuild},
		"- **Tests:** 14 passed":                                      {AboutTests},
		"It compiles and all tests passed":                            {AboutTests, AboutBuild},
		"The linter reports no issues.":                               {AboutLint},
		"There are no type errors.":                                   {AboutTypes},
		"The tests should pass now.":                                  nil,
		"Run the tests to see whether they pass.\nDo the tests pass?": nil,
		"If the tests pass, merge it.":                                nil,
		"I could not get the tests to pass.":                          nil,
		"I added tests for the passing of arguments.":                 nil,
		"2 tests failed, 12 passed.":                                  nil,
		"Done.":                                                       nil,
	} {
		var got []string
		for _, c := range Claims(text, nil, "v") {
			got = append(got, c.About)
			if c.Support != change.ClaimNoRun {
				t.Errorf("%q: supported by nothing, and %s", text, c.Support)
			}
		}
		slices.Sort(got)
		want = slices.Clone(want)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// The last run counts, and only one that ended with 0 on the proposed texts supports anything.
func TestClaimsRestOnRuns(t *testing.T) {
	pass, fail := Ran{Command: "go test ./...", About: AboutTests, Version: "v"}, Ran{Command: "go test ./...", About: AboutTests, Exit: 1, Version: "v"}
	old, loose := pass, pass
	old.Version, loose.Loose = "u", true
	for name, c := range map[string]struct {
		runs []Ran
		want string
	}{
		"none": {nil, change.ClaimNoRun}, "passed": {[]Ran{fail, pass}, change.ClaimSupported}, "failed": {[]Ran{pass, fail}, change.ClaimFailed}, "older text": {[]Ran{pass, old}, change.ClaimStale},
		"a line whose code is another's": {[]Ran{loose}, change.ClaimNoRun}, "about something else": {[]Ran{{Command: "eslint .", About: AboutLint, Version: "v"}}, change.ClaimNoRun},
	} {
		if got := Claims("All tests pass.", c.runs, "v"); len(got) != 1 || got[0].Support != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}
