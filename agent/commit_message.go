package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// CommitMessage asks the session's model for a commit message. staged is the staged diff; earlier are the latest commit messages of the
// repository, which show its style. The request is not part of the conversation and does not wait for a running turn. It fails where there
// is only the built-in model, which writes no text.
func (x *errands) CommitMessage(ctx context.Context, staged, earlier string) (string, error) {
	if strings.TrimSpace(staged) == "" {
		return "", errors.New("nothing is staged; stage the changes that the commit is to have (git add)")
	}
	text := fmt.Sprintf("The latest commit messages:\n\n%s\n\nThe staged diff:\n\n%s\n", earlier, staged)
	// The user's keys are masked, as in everything that a model gets.
	answer, _, err := x.errand(ctx, errand{agent: commitAgent, model: x.head.Info().Model, text: x.masker.mask(text)})
	switch {
	case errors.Is(err, errNoModelForJob):
		return "", errors.New("the built-in model writes no commit messages; add a model provider")
	case err != nil:
		return "", err
	}
	return cleanMessage(answer), nil
}

// cleanMessage removes what models put around a message although the prompt forbids it: a code fence, quotes around the whole, white space
// at the ends of lines.
func cleanMessage(answer string) string {
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(answer, "\r\n", "\n")), "\n")
	if n := len(lines); n > 1 && strings.HasPrefix(lines[0], "```") && strings.HasPrefix(lines[n-1], "```") {
		lines = lines[1 : n-1]
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " \t")
	}
	text := strings.TrimSpace(strings.Join(lines, "\n"))
	for _, q := range []string{`"`, "`", "'"} {
		inner, ok := strings.CutPrefix(text, q)
		if inner, end := strings.CutSuffix(inner, q); ok && end && !strings.Contains(inner, q) {
			text = inner
		}
	}
	return text
}
