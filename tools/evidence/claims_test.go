package evidence

import (
	"slices"
	"strings"
	"testing"

	"github.com/pillion-dev/pillion/tools/change"
)

// names are the programs of checks.
func names(list []Check) (out []string) {
	for _, c := range list {
		out = append(out, c.Program)
	}
	return out
}

// What a line of bash checks, if its exit code is 0: nothing whose exit code another command hides.
func TestWhatACommandChecks(t *testing.T) {
	for line, want := range map[string]string{
		"go test ./...": "go test",
		"cd sub && CGO_ENABLED=0 go test -race .":         "go test",
		"go vet ./... && go build ./... && go test ./...": "go vet,go build,go test",
		"go test ./... | tail -5":                         "",
		"set -o pipefail; go test ./... | tail -5":        "go test",
		"set -eo pipefail\ngo vet ./...\ngo test . | cat": "go vet,go test",
		"go vet ./...; go test ./...":                     "go test",
		"go vet ./...\ngo test ./...":                     "go test",
		"set -e\ngo vet ./...\ngo test ./...":             "go vet,go test",
		"go test ./... || true":                           "",
		"go test ./...; echo done":                        "",
		"go test ./... && echo ok":                        "go test",
		"go test ./... &":                                 "",
		"! go test ./...":                                 "",
		"if go test ./...; then echo ok; fi":              "",
		"(cd web && npx vitest run) && go test ./...":     "vitest,go test",
		"bash -lc 'go vet ./... && go test ./...'":        "go vet,go test",
		"bash -c 'go test ./...; echo done'":              "",
		"bash test.sh":                                    "",
		"npm run test:unit":                               "test:unit script",
		"npm --prefix web run lint":                       "lint script",
		"pnpm -r test":                                    "test script",
		"npm t":                                           "test script",
		"npx vitest run":                                  "vitest",
		"./node_modules/.bin/jest --ci":                   "jest",
		"timeout 60 python -m pytest -q":                  "pytest",
		"timeout -k 5 60s go test ./...":                  "go test",
		"time -p go test ./...":                           "go test",
		"uv run ruff check .":                             "ruff",
		"go -C sub test ./...":                            "go test",
		"make -j4 check":                                  "make check",
		"make lint":                                       "make lint",
		"make":                                            "make",
		"make -n test":                                    "",
		"go vet ./...":                                    "go vet",
		"go test -list . ./...":                           "",
		"go test -c ./x":                                  "",
		"npx tsc --noEmit":                                "tsc",
		"tsc --version":                                   "",
		"pytest --collect-only":                           "",
		"mvn -DskipTests package":                         "",
		"echo go test":                                    "",
		"echo 'all good && go test ./...'":                "",
		"git commit -m 'x; go test ./...'":                "",
		"cat <<'E'\ngo test ./...\nE":                     "",
		"x=$(go test ./...)":                              "",
		"$RUNNER go test":                                 "",
		"grep -r 'go test' .":                             "",
		"cat pytest.ini":                                  "",
		"gofmt -l .":                                      "",
		"goxtest ./...":                                   "",
		"environment go test":                             "",
		"go test ./... 'unfinished":                       "",
		"bash -c \"bash -c 'bash -c \\\"bash -c x\\\"'\" && go vet": "go vet",
	} {
		if got := strings.Join(names(ChecksIn(line)), ","); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

// Sentences that say something was checked, and those that only look like it.
func TestClaimsInText(t *testing.T) {
	for text, want := range map[string]string{
		"All tests pass.":                     "tests",
		"All tests pass and go vet is clean.": "tests,go vet",
		"I renamed the field. The test suite is green and the build succeeds.": "tests,build",
		"- **Tests:** 14 passed":                                             "tests",
		"- **Tests:** 14 passed, 0 failed":                                   "tests",
		"Tests: 42 passing":                                                  "tests",
		"✅ All 42 unit tests passing":                                        "tests",
		"- `go vet ./...` ✅\n- `go test ./...` ✅":                            "go vet,go test",
		"It compiles and all tests passed":                                   "tests,build",
		"Everything compiles, and the tests are green.":                      "tests,build",
		"The code compiles cleanly with no warnings":                         "build",
		"The project builds successfully.":                                   "build",
		"The linter reports no issues.":                                      "lint",
		"There are no type errors.":                                          "types",
		"There are no lint errors and no failing tests.":                     "lint,tests",
		"Type checking passes.":                                              "types",
		"`go test ./...` passes.":                                            "go test",
		"go test ./... passes and go vet ./... reports nothing.":             "go test,go vet",
		"I ran `go vet ./...` and `staticcheck ./...`; both are clean.":      "go vet,staticcheck",
		"I ran go vet and then the whole test suite, and both pass.":         "go vet,tests",
		"Ran `go vet ./... && go test ./...`: all green.":                    "go vet,go test",
		"`npx tsc --noEmit` exits with code 0 and ESLint has no complaints.": "tsc,eslint",
		"`npm run lint` and `npm test` both succeed":                         "lint script,test script",
		"mypy: Success, no issues found":                                     "mypy",
		"Verified with `pytest -q`: 12 passed.":                              "pytest",
		"The change passes all existing tests and the linter.":               "tests,lint",
		"cargo clippy is happy, cargo test passes":                           "clippy,cargo test",
		"go vet doesn't complain.":                                           "go vet",
		"The tests no longer fail.":                                          "tests",
		"No test fails any more and no lint errors.":                         "tests,lint",
		"TestLoad passes now.":                                               "TestLoad",
		"TestLoad passes, and so do the other tests: all pass.":              "TestLoad,tests",
		"None of the tests failed; nothing failed in the test suite.":        "tests",
		"All tests pass, but I have not run the linter.":                     "tests",
		"All tests pass; lint should be clean as well.":                      "tests",
		"All tests pass, lint fails.":                                        "tests",
		"I've verified that all tests pass.":                                 "tests",
		"Lint and tests pass (`go test ./...`, 12 s).":                       "lint,tests",
		"After the rename, the build, the tests and go vet are all clean.":   "build,tests,go vet",
		"All tests pass. Again: all tests pass.":                             "tests",
		"The tests pass and go build works.":                                 "tests,go build",
		"The build works again, and the helper works with a test double.":    "build",
		"| go vet | clean |\n| tests | 14 passed |":                          "go vet,tests",
		"TypeScript compiles without errors; no TypeScript errors remain.":   "build,types",
		"tsc is clean, vitest: 120 passed (3 skipped).":                      "tsc,vitest",
		"The whole suite finished with 0 failures.":                          "tests",
		"The previously failing test passes, as do all the others.":          "tests",
		"1. Build: ✅ 2. Vet: ✅ 3. Tests: ✅ (42/42)":                          "build,go vet,tests",
		"You can run `go test ./...` to confirm that everything passes.":     "",
		"The new test covers the case where parsing succeeds.":               "",
		"I fixed the test so it passes the right argument.":                  "",
		"The test now passes `nil` instead of a context.":                    "",
		"The tests fail on main but pass on this branch, I think.":           "",
		"The tests should pass now.":                                         "",
		"Run the tests to see whether they pass.\nDo the tests pass?":        "",
		"If the tests pass, merge it.":                                       "",
		"The tests pass if you set HOME.":                                    "",
		"I could not get the tests to pass.":                                 "",
		"I changed Load to make the tests pass.":                             "",
		"I added tests for the passing of arguments.":                        "",
		"I pass the test data to the helper.":                                "",
		"2 tests failed, 12 passed.":                                         "",
		"12 tests passed, 2 failed.":                                         "",
		"The tests passed before my change.":                                 "",
		"The build script is clean now.":                                     "",
		"The function builds a list and compiles the pattern.":               "",
		"I did not run the tests.":                                           "",
		"No tests were run.":                                                 "",
		"The exported types are documented.":                                 "",
		"```\nok  example.com/x 0.1s\nPASS all tests pass\n```":              "",
		"Use `make test` to run the tests.":                                  "",
		"Done.":                                                              "",
	} {
		var got []string
		for _, c := range Claims(text, nil, "v") {
			got = append(got, c.Subject)
			if c.Support != change.ClaimNoRun || c.Command != "" {
				t.Errorf("%q: supported by nothing, and %+v", text, c)
			}
		}
		slices.Sort(got)
		list := strings.FieldsFunc(want, func(r rune) bool { return r == ',' })
		slices.Sort(list)
		if !slices.Equal(got, list) {
			t.Errorf("%q: %q, want %q", text, got, list)
		}
	}
}

// The last run that can show a claim counts, and only one that ended with 0 on the proposed texts supports anything.
func TestClaimsRestOnRuns(t *testing.T) {
	run := func(line, version string, exit int) Ran {
		return Ran{Command: line, Checks: ChecksIn(line), Exit: exit, Version: version}
	}
	pass, fail := run("go test ./...", "v", 0), run("go test ./...", "v", 1)
	for name, c := range map[string]struct {
		text string
		runs []Ran
		want string
	}{
		"none":                                      {"All tests pass.", nil, change.ClaimNoRun},
		"passed":                                    {"All tests pass.", []Ran{fail, pass}, change.ClaimSupported},
		"failed":                                    {"All tests pass.", []Ran{pass, fail}, change.ClaimFailed},
		"older text":                                {"All tests pass.", []Ran{pass, run("go test ./...", "u", 0)}, change.ClaimStale},
		"a line whose code is another's":            {"All tests pass.", []Ran{run("go test ./... | tail", "v", 0)}, change.ClaimNoRun},
		"about something else":                      {"All tests pass.", []Ran{run("eslint .", "v", 0)}, change.ClaimNoRun},
		"vet is a linter":                           {"The linter is clean.", []Ran{run("go vet ./...", "v", 0)}, change.ClaimSupported},
		"vet by name":                               {"All is well, go vet is clean.", []Ran{run("go vet ./...", "v", 0)}, change.ClaimSupported},
		"vet loads types":                           {"There are no type errors.", []Ran{run("go vet ./...", "v", 0)}, change.ClaimSupported},
		"vet builds nothing":                        {"The build succeeds.", []Ran{run("go vet ./...", "v", 0)}, change.ClaimNoRun},
		"but what it loads compiles":                {"Everything compiles.", []Ran{run("go vet ./...", "v", 0)}, change.ClaimSupported},
		"another linter is not go vet":              {"go vet is clean.", []Ran{run("staticcheck ./...", "v", 0)}, change.ClaimNoRun},
		"tests of Go build":                         {"The build succeeds.", []Ran{pass}, change.ClaimSupported},
		"tests of JavaScript do not":                {"The build succeeds.", []Ran{run("npx vitest run", "v", 0)}, change.ClaimNoRun},
		"one of several failed":                     {"All tests pass.", []Ran{run("go vet ./... && go test ./...", "v", 1)}, change.ClaimNoRun},
		"one of several failed, so all may":         {"The build succeeds.", []Ran{run("go build ./... && go test ./...", "v", 1)}, change.ClaimFailed},
		"a run of an earlier version has no checks": {"All tests pass.", []Ran{{Command: "go test | tail", Version: "v"}}, change.ClaimNoRun},
		"a wider run failed":                        {"TestLoad passes.", []Ran{fail}, change.ClaimNoRun},
		"a wider run passed":                        {"TestLoad passes.", []Ran{pass}, change.ClaimSupported},
		"its own run passed, a wider one failed":    {"TestLoad passes.", []Ran{run("go test -run TestLoad .", "v", 0), fail}, change.ClaimSupported},
		"its own run failed":                        {"TestLoad passes.", []Ran{run("go test -run TestLoad .", "v", 1)}, change.ClaimFailed},
		"the script by its name":                    {"`npm run lint` passes.", []Ran{run("yarn lint", "v", 0)}, change.ClaimSupported},
	} {
		if got := Claims(c.text, c.runs, "v"); len(got) != 1 || got[0].Support != c.want {
			t.Errorf("%s: %+v, want %s", name, got, c.want)
		}
	}
}

// A claim quotes the check of a long command and not its beginning; a short one as it is.
func TestAClaimNamesTheCheckOfALongCommand(t *testing.T) {
	long := "sed -i 's/" + strings.Repeat("a", 70) + "/b/' x.go && go vet ./... && go test -run 'TestA|TestB' ./..."
	for text, want := range map[string]string{"All tests pass.": "go test -run TestA|TestB ./...", "go vet is clean.": "go vet ./..."} {
		if got := Claims(text, []Ran{{Command: long, Checks: ChecksIn(long), Version: "v"}}, "v"); len(got) != 1 || got[0].Command != want {
			t.Errorf("%q: %+v, want %s", text, got, want)
		}
	}
	// Which of its parts failed is not known, so all of it is quoted.
	if got := Claims("All tests pass.", []Ran{{Command: long, Checks: ChecksIn(long), Exit: 1, Version: "v"}}, "v"); len(got) != 1 || got[0].Command != long {
		t.Errorf("%+v", got)
	}
	if got := Claims("go vet is clean.", []Ran{{Command: "cd x && go vet .", Checks: ChecksIn("cd x && go vet ."), Version: "v"}}, "v"); len(got) != 1 || got[0].Command != "cd x && go vet ." {
		t.Errorf("%+v", got)
	}
}

// Whatever is said and run: no panic, no claim without words, and nothing is supported by a failed run.
func FuzzClaims(f *testing.F) {
	f.Add("All tests pass and go vet is clean; `npm test` ✅", "set -e; go vet ./... && bash -c 'go test'")
	f.Add("both pass", "timeout -k 5")
	f.Fuzz(func(t *testing.T, text, line string) {
		for _, c := range Claims(text, []Ran{{Command: line, Checks: ChecksIn(line), Exit: 1, Version: "v"}}, "v") {
			if c.Text == "" || c.Subject == "" || c.About == "" || c.Support == change.ClaimSupported {
				t.Errorf("%q: %+v", text, c)
			}
		}
	})
}
