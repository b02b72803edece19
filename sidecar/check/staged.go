package check

import (
	"context"
	"fmt"
	"strings"
)

// Limits on what a commit message is made from, in bytes. Models write no better message from more.
const (
	maxStaged  = 60_000
	maxEarlier = 6_000
)

// Staged gives what a commit would hold, as a unified diff headed by its statistics, and the repository's latest commit
// messages, newest first. Both are cut to what a model needs. earlier is empty before the first commit.
func Staged(ctx context.Context, root string) (diff, earlier string, err error) {
	g := git{root}
	// External diff and text conversion programs are configured by the repository: they are not run.
	staged := []string{"diff", "--cached", "--no-color", "--no-ext-diff", "--no-textconv", "-M"}
	text, err := g.run(ctx, nil, staged...)
	if err != nil || len(text) == 0 {
		return "", "", err
	}
	stat, err := g.run(ctx, nil, append(staged, "--stat=100")...)
	if err != nil {
		return "", "", err
	}
	diff = string(stat) + "\n" + cut(string(text), maxStaged, "the rest of the diff is left out; the statistics above name all files")
	log, err := g.run(ctx, nil, "log", "-n", "15", "--no-merges", "--no-show-signature", "--no-color", "--format=%B%x00")
	if err == nil { // there may be no commit yet
		var messages []string
		for m := range strings.SplitSeq(string(log), "\x00") {
			if m = strings.TrimSpace(m); m != "" {
				messages = append(messages, m)
			}
		}
		earlier = cut(strings.Join(messages, "\n\n---\n\n"), maxEarlier, "older messages are left out")
	}
	return diff, earlier, nil
}

// cut shortens a text at a line's end, and says so.
func cut(s string, most int, why string) string {
	if len(s) <= most {
		return s
	}
	s = s[:most]
	if i := strings.LastIndexByte(s, '\n'); i > 0 {
		s = s[:i]
	}
	return fmt.Sprintf("%s\n(%s)", strings.ToValidUTF8(s, ""), why)
}
