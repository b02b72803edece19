// Promises breaks each promise of docs/SECURITY.md on purpose and looks whether one of its tests notices: broken.txt says how. Nothing in the
// work tree is changed, since the compiler reads the broken files through an overlay (go help build, -overlay).
//
//	go run ./scripts/promises                  all of them, some seconds each and longer where sidecar is linked
//	go run ./scripts/promises hard link        those whose row holds these words
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Broken is a record of broken.txt.
type Broken struct {
	Row, File, Old, New, None string
	Tests                     []string // package.Test
}

// Parse reads broken.txt.
func Parse(text string) (all []Broken, err error) {
	for block := range strings.SplitSeq(text, "\n\n") {
		var b Broken
		for line := range strings.SplitSeq(block, "\n") {
			key, value, _ := strings.Cut(line, " ")
			switch key {
			case "row":
				b.Row = value
			case "in":
				b.File = value
			case "-":
				b.Old = value
			case "+":
				b.New = value
			case "test":
				b.Tests = strings.Fields(value)
			case "none":
				b.None = value
			case "", "#":
			default:
				return nil, fmt.Errorf("broken.txt: %q is no line of a record", line)
			}
		}
		if b.Row != "" {
			all = append(all, b)
		}
	}
	return all, nil
}

func main() {
	text, err := os.ReadFile("scripts/promises/broken.txt")
	if err != nil {
		fmt.Fprintln(os.Stderr, "promises:", err, "(run this at the top of the repository)")
		os.Exit(1)
	}
	all, err := Parse(string(text))
	if err != nil {
		fmt.Fprintln(os.Stderr, "promises:", err)
		os.Exit(1)
	}
	unnoticed := 0
	for _, b := range all {
		if !strings.Contains(b.Row, strings.Join(os.Args[1:], " ")) {
			continue
		}
		if b.None != "" {
			fmt.Printf("none      %s: %s\n", b.Row, b.None)
			continue
		}
		by, err := b.noticed()
		switch {
		case err != nil:
			fmt.Printf("ERROR     %s: %v\n", b.Row, err)
			unnoticed++
		case by == "":
			fmt.Printf("UNNOTICED %s: %s passed\n", b.Row, strings.Join(b.Tests, ", "))
			unnoticed++
		default:
			fmt.Printf("noticed   %s: %s\n", b.Row, by)
		}
	}
	if unnoticed > 0 {
		os.Exit(1)
	}
}

// noticed runs the tests against the broken file and returns the first that fails; "" if all pass.
func (b Broken) noticed() (by string, err error) {
	source, err := os.ReadFile(b.File)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), b.Old); n != 1 {
		return "", fmt.Errorf("%s has %d times %q", b.File, n, b.Old)
	}
	dir, err := os.MkdirTemp("", "pillion-promise-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	real, err := filepath.Abs(b.File)
	if err != nil {
		return "", err
	}
	broken, overlay := filepath.Join(dir, filepath.Base(b.File)), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{real: broken}})
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(broken, []byte(strings.Replace(string(source), b.Old, b.New, 1)), 0o644); err != nil {
		return "", err
	}
	if err := os.WriteFile(overlay, replace, 0o644); err != nil {
		return "", err
	}
	skipped := ""
	for _, test := range b.Tests {
		folder, name, _ := strings.Cut(test, ".")
		// A test that waits for what the promise would have prevented is ended: the promise is broken then as well.
		out, err := exec.Command("go", "test", "-v", "-vet=off", "-count=1", "-timeout=90s", "-overlay", overlay, "-run", "^"+name+"$", "./"+folder).CombinedOutput()
		switch said := string(out); {
		case err == nil && strings.Contains(said, "--- SKIP: "+name+" ") || strings.Contains(said, "no tests to run"):
			skipped = test
		case err == nil:
		case strings.Contains(said, "--- FAIL") || strings.Contains(said, "panic: ") || strings.Contains(said, "\nFAIL\t") && !strings.Contains(said, "[build failed]"):
			return test, nil
		default:
			return "", fmt.Errorf("it does not compile: %.600s", said)
		}
	}
	if skipped != "" {
		return "", fmt.Errorf("%s did not run here", skipped)
	}
	return "", nil
}
