package main

import (
	"errors"
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
		"tool call":       "say which tool",
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
