package search

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

// ripgrep searches with the rg program, version 12 or later. Its output is read with a NUL behind each path, since a name
// may hold a colon or a line break.
type ripgrep struct{ program string }

// maxKept is how much of one line is kept to show a part of it, in bytes; the rest streams by. The match may lie behind
// it, and then the line's beginning is shown.
const maxKept = 1 << 20

// files runs ripgrep over the whole folder. --no-config (see run) and the flags here make it behave like the Go engine,
// whatever the person has configured for their own use of it.
func (r ripgrep) files(ctx context.Context, j *grepJob, emit func(string)) error {
	args := []string{"--files-with-matches", "--null", "--hidden", "--no-require-git", "--glob=!.git"}
	for _, dir := range j.prune {
		if rel, err := filepath.Rel(j.root, dir); err == nil {
			args = append(args, "--glob=!/"+quoteGlob(filepath.ToSlash(rel)))
		}
	}
	// The search begins in an ignored folder: what is above it must not hide everything.
	if j.bare {
		args = append(args, "--no-ignore-parent", "--no-ignore-global", "--no-ignore-exclude")
	}
	// -g would bring back ignored files; a type does not. It only looks at base names, the rest is checked later.
	if g := baseGlob(j.include); g != "" {
		args = append(args, "--type-add=pillion:"+g, "--type=pillion")
	}
	args = append(args, "--regexp="+j.pattern, "--", "."+string(filepath.Separator))
	return r.run(ctx, j, args, nil, func(out *bufio.Reader) error {
		for {
			path, err := out.ReadString(0)
			if err != nil {
				return nil
			}
			emit(filepath.Join(j.root, strings.TrimSuffix(path, "\x00")))
		}
	})
}

// lines searches the files one after another, in order, until each returns false. It is for patterns that only ripgrep
// can read (see grepJob.reader). Files are opened here and given to ripgrep as its input: by their names it would follow
// a link that took a folder's place.
func (r ripgrep) lines(ctx context.Context, j *grepJob, paths []string, each func(string, hit) bool) error {
	for _, path := range paths {
		f, err := open(path)
		if err != nil {
			j.unread(describe(path, err))
			continue
		}
		more := true
		err = r.input(ctx, j, f, func(h hit) bool { more = each(path, h); return more })
		f.Close()
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// text searches a text by standard input: an editor's unsaved buffer.
func (r ripgrep) text(ctx context.Context, j *grepJob, text string, each func(hit) bool) error {
	return r.input(ctx, j, strings.NewReader(text), each)
}

// input searches ripgrep's standard input. --text: which files are text was decided before, and ripgrep must not print
// "binary file matches" in place of lines.
func (r ripgrep) input(ctx context.Context, j *grepJob, text io.Reader, each func(hit) bool) error {
	args := []string{"--line-number", "--no-heading", "--text", "--max-count=" + strconv.Itoa(j.limit+1), "--regexp=" + j.pattern, "--", "-"}
	return r.run(ctx, j, args, text, func(out *bufio.Reader) error {
		for {
			if _, err := out.Peek(1); err != nil {
				return nil
			}
			h, err := readHit(out)
			if err != nil {
				return err
			}
			if !each(h) {
				return errStop
			}
		}
	})
}

// errStop ends the reading of ripgrep's output when there is enough; run kills the program and returns nil. It never
// leaves this file.
var errStop = errors.New("enough")

// readHit reads "12:text\n" and keeps the beginning of a very long text. The number was asked for, so anything else is
// another program's output or another version's: an errEngine for run.
func readHit(out *bufio.Reader) (hit, error) {
	number, err := out.ReadString(':')
	if err != nil {
		return hit{}, fmt.Errorf("ripgrep's output ended early: %w", err)
	}
	h := hit{at: -1}
	if h.line, err = strconv.Atoi(strings.TrimSuffix(number, ":")); err != nil {
		return hit{}, fmt.Errorf("ripgrep's output is not as expected: %w", err)
	}
	for {
		part, err := out.ReadSlice('\n')
		if room := maxKept - len(h.text); room > 0 {
			h.text = append(h.text, part[:min(room, len(part))]...)
		}
		if err != bufio.ErrBufferFull {
			h.text = bytes.TrimSuffix(h.text, []byte("\n"))
			return h, nil
		}
	}
}

// run starts rg and hands its output to read. Messages about single files go to j.unread; a bad pattern is a *PatternError,
// and any other failure an errEngine, so that the Go engine takes over. Exit codes are those of rg(1): 0 matches, 1 none,
// 2 an error, which may be about single files only.
func (r ripgrep) run(ctx context.Context, j *grepJob, args []string, in io.Reader, read func(*bufio.Reader) error) error {
	ctx2, cancel := context.WithCancel(ctx)
	defer cancel()
	common := []string{"--no-config", "--color=never"}
	if endsCRLF(j.pattern) {
		common = append(common, "--crlf")
	}
	cmd := guard.CommandContext(ctx2, guard.Helper, slices.Concat([]string{r.program}, common, args)...)
	cmd.Dir = j.root
	cmd.Stdin = in
	cmd.WaitDelay = time.Second
	var messages limitedBuffer
	cmd.Stderr = &messages
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return errEngine{err}
	}
	if err := cmd.Start(); err != nil {
		return errEngine{err}
	}
	limitMemory(cmd.Process.Pid)
	readErr := read(bufio.NewReaderSize(stdout, 64<<10))
	if readErr != nil {
		cancel() // ripgrep would block on a pipe that is not read any more
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if readErr == errStop {
		return nil
	}
	if readErr != nil {
		return errEngine{readErr}
	}
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return errEngine{err}
	case exit.ExitCode() == 1: // no match
		return nil
	case exit.ExitCode() != 2:
		return errEngine{err}
	}
	return judgeMessages(messages.String(), j)
}

// judgeMessages tells a bad pattern from unreadable files from a program that does not know its flags. Messages of the
// operating system end in "(os error N)", which is Rust's way to print them; a line without it is about the program's
// arguments.
func judgeMessages(text string, j *grepJob) error {
	text = strings.TrimPrefix(strings.TrimSpace(text), "rg: ")
	if strings.Contains(text, `the literal '"\n"' is not allowed`) || strings.Contains(text, `the literal "\n" is not allowed`) || strings.Contains(text, `the literal '"\r"' is not allowed`) {
		return &PatternError{errMultiline.Error()}
	}
	if strings.HasPrefix(text, "regex parse error") || strings.Contains(text, "is not allowed in a regex") || strings.Contains(text, "exceeds size limit") {
		text, _, _ = strings.Cut(text, "\n\nConsider enabling PCRE2") // the model cannot change ripgrep's flags
		return &PatternError{strings.TrimSpace(text)}
	}
	var files []string
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimPrefix(strings.TrimSpace(line), "rg: "); line == "" {
			continue
		}
		if !strings.Contains(line, "(os error ") {
			return errEngine{errors.New(line)}
		}
		line, _, _ = strings.Cut(line, " (os error ")
		if rest, ok := strings.CutPrefix(line, "."+string(filepath.Separator)); ok {
			line = withSeparator(j.root) + rest
		}
		files = append(files, line)
	}
	for _, f := range files {
		j.unread(f)
	}
	return nil
}

// baseGlob is a glob for base names that lets through at least what the pattern wants. "" means that no such glob is
// known, and all files are searched. Paths are judged by Pattern afterwards, so letting too much through is slow, but not
// wrong.
func baseGlob(p *Pattern) string {
	if p == nil || p.Negate {
		return ""
	}
	s := strings.TrimPrefix(p.Text, "./")
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		if strings.ContainsAny(s[:i], `{}[]\`) { // a slash inside braces
			return ""
		}
		s = s[i+1:]
	}
	if s == "" || s == "**" || strings.ContainsAny(s, `\[`) || strings.HasPrefix(s, "include:") || strings.Count(s, "{") > 1 {
		return ""
	}
	return s
}

// quoteGlob makes of a path a glob that matches only it. A class of one character stands for exactly that character.
func quoteGlob(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(`*?[]{}\!`, r) {
			b.WriteString("[" + string(r) + "]")
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// limitedBuffer keeps the first 64 KiB and takes the rest without an error: a folder full of unreadable files must neither
// fill the memory nor stop ripgrep. An error of Write would make cmd.Wait fail.
type limitedBuffer struct{ bytes.Buffer }

// Write keeps the first 64 KiB of the messages; a search in a broken tree prints one for
// each file.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if room := 64<<10 - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
