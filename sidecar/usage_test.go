package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestAWrongCommandLineIsSaidAndIsNoSuccess(t *testing.T) {
	for line, want := range map[string]string{
		"bogus":           `pillion has no command "bogus"`,
		"modles":          "did you mean models?",
		"tool bogus":      `pillion tool has no command "bogus"`,
		"sessions lst":    "did you mean list?",
		"sessions show":   "see pillion sessions show --help",
		"models a b":      "see pillion models --help",
		"version x":       "see pillion version --help",
		"run --bogus":     "see pillion run --help",
		"config show --x": "see pillion config show --help",
		"run":             "say what to do",
		"tool call":       "name the tool",
	} {
		_, err := execLine(t, "", strings.Fields(line)...)
		var usage usageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if out, err := execLine(t, "", "tool"); err != nil || !strings.Contains(out, "Available Commands") {
		t.Errorf("tool: %v %s", err, out)
	}
}

func TestAnEmptyConfigurationShowsNothingAsSwitchedOff(t *testing.T) {
	if out, err := execLine(t, "", "config", "show", "-C", t.TempDir()); err != nil || out != "{}\n" {
		t.Errorf("%v %s", err, out)
	}
}

// A script that starts `pillion run` learns by the exit code whether anything of what it asked for could be done.
func TestRunEndsWithFailureWhereNothingCouldBeDone(t *testing.T) {
	t.Setenv("PILLION_MODEL", "builtin/quickfix")
	dir := t.TempDir()
	put(t, filepath.Join(dir, "pillion.jsonc"), `{"lsp": false}`)
	put(t, filepath.Join(dir, "a.go"), "package a\n\nfunc f() { nobody }\n")
	for prompt, want := range map[string]exitCode{
		"fix all errors":   exitError, // nobody can say what they are
		"rename a to b":    exitError,
		"format":           exitError,
		"write me a poem":  exitError,
		"fix errors in no": exitError,
		"help":             0,
	} {
		for _, flags := range [][]string{nil, {"--json"}} {
			out, err := execLine(t, "", append([]string{"run", "-C", dir, prompt}, flags...)...)
			var code exitCode
			if err != nil && !errors.As(err, &code) || code != want {
				t.Errorf("%s %v: %v, want exit code %d\n%s", prompt, flags, err, want, out)
			}
			if flags != nil && strings.Contains(out, `"undone":true`) != (want != 0) {
				t.Errorf("%s: the result says\n%s", prompt, out)
			}
		}
	}
}
