package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pillion-dev/pillion/tools/change"
)

// verdictCase is one edit with its verdict and the compiler's word, as it is kept. All figures are computed from these.
type verdictCase struct {
	Language   string           `json:"language"`
	Project    string           `json:"project"`
	Edit       string           `json:"edit"` // mutant.id
	File       string           `json:"file"`
	Kind       string           `json:"kind"`
	Truth      []finding        `json:"truth"`      // the errors that the edit introduces
	Introduced []finding        `json:"introduced"` // of the verdict, errors only
	Certainty  change.Certainty `json:"certainty"`
	Reason     string           `json:"reason,omitempty"`
	Written    bool             `json:"written,omitempty"` // the verdict after the write, not on the proposal
	First      bool             `json:"first,omitempty"`   // its servers had just been started
	MS         float64          `json:"ms"`                // to the final verdict
	CompilerMS float64          `json:"compilerMs"`        // of the compiler as a command; 0 where a standing one was asked
	Load       float64          `json:"load"`              // the kernel's 1-minute load when the verdict had come
	Commit     string           `json:"commit"`

	refused bool // the compiler said nothing; such a case is not kept
}

// breaks reports whether the compiler rejects the edit.
func (c *verdictCase) breaks() bool { return len(c.Truth) > 0 }

// caught reports whether the verdict of a breaking edit has an error.
func (c *verdictCase) caught() bool { return c.breaks() && len(c.Introduced) > 0 }

// alarm reports whether the verdict has an error where the compiler has none.
func (c *verdictCase) alarm() bool { return !c.breaks() && len(c.Introduced) > 0 }

// named is how many of the compiler's errors the verdict has at their line.
func (c *verdictCase) named() (n int) {
	for _, t := range c.Truth {
		for _, f := range c.Introduced {
			if f.File == t.File && f.Line == t.Line {
				n++
				break
			}
		}
	}
	return n
}

// differs reports whether the verdict says anything else than the compiler.
func (c *verdictCase) differs() bool {
	return c.alarm() || c.breaks() && c.named() < len(c.Truth)
}

// caseLog keeps each case as soon as it is measured, one line of JSON each: a measurement that is stopped goes on where it was.
type caseLog struct {
	path  string
	cases map[string]verdictCase // by caseKey
	order []string
}

func caseKey(language, project, edit string) string {
	return language + "\x00" + project + "\x00" + edit
}

// openCases reads what was measured before. A line that a crash cut off is dropped; of two lines about an edit, the later counts.
func openCases(path string) (*caseLog, error) {
	l := &caseLog{path: path, cases: map[string]verdictCase{}}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var c verdictCase
		if json.Unmarshal(in.Bytes(), &c) == nil && c.Edit != "" {
			l.keep(c)
		}
	}
	return l, in.Err()
}

func (l *caseLog) keep(c verdictCase) {
	k := caseKey(c.Language, c.Project, c.Edit)
	if _, known := l.cases[k]; !known {
		l.order = append(l.order, k)
	}
	l.cases[k] = c
}

// add keeps a case and writes it to the disk.
func (l *caseLog) add(c verdictCase) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(l.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	// The newline first as well: the last line may have been cut off.
	_, err = f.Write(append(append([]byte("\n"), line...), '\n'))
	l.keep(c)
	return errors.Join(err, f.Close())
}
