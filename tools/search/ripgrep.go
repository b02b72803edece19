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
type ripgrep struct {
	program string
	reason  guard.Reason // which setting names the program
}

// maxKept is how many bytes of one line are kept to show a part of it; the rest is read and discarded. If the match is not in the
// kept part, the line's beginning is shown.
const maxKept = 1 << 20

// files runs ripgrep over the whole folder. --no-config (see run) and the flags here make it behave like the Go engine, whatever
// the person has configured for ripgrep.
func (r ripgrep) files(ctx context.Context, j *grepJob, emit func(string)) error {
	args := []string{"--files-with-matches", "--null", "--hidden", "--no-require-git", "--glob=!.git"}
	for _, dir := range j.prune {
		if rel, err := filepath.Rel(j.root, dir); err == nil {
			args = append(args, "--glob=!/"+quoteGlob(filepath.ToSlash(rel)))
		}
	}
	// The search begins in an ignored folder: the ignore files above it would hide everything.
	if j.bare {
		args = append(args, "--no-ignore-parent", "--no-ignore-global", "--no-ignore-exclude")
	}
	// -g would show ignored files again; a file type does not. Types match only base names; the rest of the glob is checked later.
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

// lines searches the files one after another, in order, until each returns false. It is used for patterns that only ripgrep can
// read (see grepJob.reader). Pillion opens the files and gives them to ripgrep as standard input: by name, ripgrep would follow a
// link that replaced a folder.
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

// text gives ripgrep a text on standard input: an editor's unsaved buffer.
func (r ripgrep) text(ctx context.Context, j *grepJob, text string, each func(hit) bool) error {
	return r.input(ctx, j, strings.NewReader(text), each)
}

// input searches what ripgrep reads from standard input. --text is given because it was decided before which files are text;
// without it ripgrep could print "binary file matches" instead of lines.
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

// errStop ends the reading of ripgrep's output when there are enough hits; run then kills the program and returns nil. No caller
// outside this file sees it.
var errStop = errors.New("enough")

// readHit reads "12:text\n" and keeps the beginning of a very long text. ripgrep was asked for line numbers, so output without one
// comes from another program or version; it is an errEngine for run.
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

// run starts rg and passes its output to read. Messages about single files are passed to j.unread. A bad pattern is a
// *PatternError; any other failure is an errEngine, so that the Go engine searches instead. Exit codes are those of rg(1): 0
// matches, 1 no matches, 2 an error, which may be about single files only.
func (r ripgrep) run(ctx context.Context, j *grepJob, args []string, in io.Reader, read func(*bufio.Reader) error) error {
	ctx2, cancel := context.WithCancel(ctx)
	defer cancel()
	common := []string{"--no-config", "--color=never"}
	if endsCRLF(j.pattern) {
		common = append(common, "--crlf")
	}
	r.reason.Who = guard.Helper
	cmd := guard.CommandFor(ctx2, r.reason, slices.Concat([]string{r.program}, common, args)...)
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
		cancel() // ripgrep would block on a pipe that is no longer read
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

// judgeMessages distinguishes a bad pattern, unreadable files, and a program that does not know the flags. Rust prints messages of
// the operating system with "(os error N)" at the end; a line without that is about the program's arguments.
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

// baseGlob is a glob for base names that matches at least what the pattern matches. "" means that there is no such glob, and all
// files are searched. Pattern is applied to the results, so a glob that matches too much is slow, but not wrong.
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

// quoteGlob returns a glob that matches only this path. In a glob a class of one character matches exactly that character.
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

// limitedBuffer keeps the first 64 KiB and discards the rest without an error: a folder full of unreadable files must not fill the
// memory, and an error of Write would make cmd.Wait fail.
type limitedBuffer struct{ bytes.Buffer }

// Write keeps the first 64 KiB. With many unreadable files ripgrep prints a message for each.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if room := 64<<10 - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
