package slash

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/provider"
	"github.com/pillion-dev/pillion/sidecar/config"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Template makes a command of a template that a person wrote in configuration or Markdown. The format is OpenCode's:
// $ARGUMENTS, $1 to $9, !`command` and @file.
func Template(name string, d config.Command) Command {
	if d.Description == "" {
		d.Description = textutil.FirstLine(d.Template)
	}
	if d.Hint == "" && takesArguments().MatchString(d.Template) {
		d.Hint = "arguments"
	}
	return Command{Name: name, Description: d.Description, Hint: d.Hint, Run: func(ctx context.Context, h Host, args string) (string, *agent.Prompt, error) {
		return runTemplate(ctx, h, name, d, args)
	}}
}

// What a template may contain.
var (
	takesArguments = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\$(?:ARGUMENTS|[1-9])`) })
	// A command is between !` and ` on one line.
	shellInserts = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("!`([^`\n]+)`") })
	// An @ counts only at the start of a word, so that mail addresses are not taken for files.
	fileMentions = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[\s(])@([^\s,;()"'` + "`" + `]+)`) })
)

// MaxMentions is how many files and resources one prompt attaches: each is a tool call and takes space in the
// context.
const MaxMentions = 20 // of one prompt

// runTemplate makes the prompt of a template. What it runs and reads goes through the session's tools, so the same
// rules and approval requests apply as for a model: a template may come with a repository.
func runTemplate(ctx context.Context, h Host, name string, d config.Command, args string) (string, *agent.Prompt, error) {
	text, err := fill(ctx, h.Session, name, d.Template, args)
	if err != nil {
		return "", nil, err
	}
	parts := []provider.Part{{Type: provider.PartText, Text: text}}
	parts = append(parts, mentioned(ctx, h.Session, text)...)
	if parts, err = h.Session.CommandParts(ctx, name, args, parts); err != nil {
		return "", nil, fmt.Errorf("/%s: %w", name, err)
	}
	p := &agent.Prompt{Parts: parts, Model: d.Model}
	sub := d.Subtask
	if d.Agent != "" {
		i := slices.IndexFunc(h.Runtime.Agents(h.Session.Info().Cwd), func(a agent.Agent) bool { return a.Name == d.Agent })
		if i < 0 {
			return "", nil, fmt.Errorf("/%s needs the agent %q, which does not exist", name, d.Agent)
		}
		sub = sub || h.Runtime.Agents(h.Session.Info().Cwd)[i].Mode == agent.ModeSubagent
		p.Agent = d.Agent
	}
	if !sub {
		return "", p, nil
	}
	return runSubtask(ctx, h, name, d, args, parts)
}

// runSubtask has a sub-agent carry out the command; the session's agent gets the result as its prompt.
func runSubtask(ctx context.Context, h Host, name string, d config.Command, args string, parts []provider.Part) (string, *agent.Prompt, error) {
	var whole []string
	for _, p := range parts {
		if p.Type == provider.PartText {
			whole = append(whole, p.Text)
		}
	}
	// The configured agent may be a primary one, which the task tool cannot start.
	who := d.Agent
	if who == "" || !slices.ContainsFunc(h.Runtime.SubAgents(h.Session.Info().Cwd), func(a tools.SubAgent) bool { return a.Name == who }) {
		who = "general"
	}
	what := d.Description
	if what == "" {
		what = "/" + name
	}
	input, _ := json.Marshal(map[string]string{"description": what, "prompt": strings.Join(whole, "\n\n"), "subagent_type": who, "command": name})
	got, err := h.Session.Tool(ctx, "task", input)
	if err != nil {
		return "", nil, err
	}
	if got.Status != agent.ToolCompleted {
		return "", nil, fmt.Errorf("/%s: %s", name, got.Error)
	}
	typed := strings.TrimSpace("/" + name + " " + args)
	return "", &agent.Prompt{Model: d.Model, Parts: []provider.Part{{Type: provider.PartText, Text: typed}, {Type: provider.PartText, Synthetic: true,
		Text: fmt.Sprintf("The sub-agent %s ran the command with this prompt:\n%s\n\nIts result:\n%s\n\nTell the user what is important in it.", who, strings.Join(whole, "\n\n"), got.Output)}}}, nil
}

// fill replaces arguments and inserts the output of commands. Commands are found in the template only, never in the
// arguments: otherwise a file name could run one.
func fill(ctx context.Context, s *agent.Session, name, template, args string) (string, error) {
	words := fields(args)
	substitute := func(text string) string { return arguments(text, args, words) }
	var b strings.Builder
	// Each piece of the template is substituted apart, after it was cut at the commands. Arguments inside a command
	// are substituted too; the bash tool then judges the whole command under the session's rules.
	rest := template
	for {
		at := shellInserts().FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		b.WriteString(substitute(rest[:at[0]]))
		out, err := shellOutput(ctx, s, name, substitute(rest[at[2]:at[3]]))
		if err != nil {
			return "", err
		}
		b.WriteString(out)
		rest = rest[at[1]:]
	}
	b.WriteString(substitute(rest))
	// A template without a place for arguments gets them at its end; otherwise what the person typed would be lost.
	text := strings.TrimSpace(b.String())
	if args != "" && !takesArguments().MatchString(template) {
		text += "\n\n" + args
	}
	return text, nil
}

// arguments replaces $ARGUMENTS and $1 to $9. The highest number in the text takes all remaining words; a missing
// word is "".
func arguments(text, args string, words []string) string {
	last := 0
	for _, m := range takesArguments().FindAllString(text, -1) {
		if n, err := strconv.Atoi(m[1:]); err == nil {
			last = max(last, n)
		}
	}
	return takesArguments().ReplaceAllStringFunc(text, func(m string) string {
		n, err := strconv.Atoi(m[1:])
		switch {
		case err != nil:
			return args
		case n > len(words):
			return ""
		case n == last:
			return strings.Join(words[n-1:], " ")
		}
		return words[n-1]
	})
}

// fields splits at white space; quotes keep words together and are removed. There are no escapes. A quotation that is
// not closed reaches to the end; "" is a word of its own.
func fields(s string) (out []string) {
	var b strings.Builder
	var quote rune
	open := false
	for _, r := range s {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, open = r, true
		case quote == 0 && (r == ' ' || r == '\t' || r == '\n'):
			if open {
				out = append(out, b.String())
			}
			b.Reset()
			open = false
		default:
			b.WriteRune(r)
			open = true
		}
	}
	if open {
		out = append(out, b.String())
	}
	return out
}

// shellOutput runs a command of a template with the bash tool. A command that is not allowed to run is an error,
// which ends the slash command; one that fails is described in the text.
func shellOutput(ctx context.Context, s *agent.Session, name, command string) (string, error) {
	input, _ := json.Marshal(map[string]string{"command": command, "description": "for /" + name})
	got, err := s.Tool(ctx, "bash", input)
	if err != nil {
		return "", err
	}
	if got.Status == agent.ToolCompleted {
		// The tool's note about a success is for a model that has called it; a failure stays in the text.
		out := strings.TrimSuffix(got.Output, "<bash_metadata>\nexit code: 0\n</bash_metadata>")
		return strings.TrimRight(out, "\n"), nil
	}
	switch got.ErrorKind {
	// Going on would send a prompt whose facts are missing, after the person or a rule has said no.
	case "rejected", "denied", "cancelled":
		return "", fmt.Errorf("/%s was stopped: its command %q may not run (%s)", name, command, got.Error)
	}
	return "(" + command + " failed: " + got.Error + ")", nil
}

// mentioned are the files that a template names with @, as the read tool shows them.
func mentioned(ctx context.Context, s *agent.Session, text string) []provider.Part {
	return Mentioned(text, s.Info().Cwd, func(input json.RawMessage) (agent.ToolData, error) { return s.Tool(ctx, "read", input) })
}

// lineRange is the end of a mention that names lines, counted from 1: #L10 or #L10-L20.
var lineRange = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`#L(\d+)(?:-L?(\d+))?$`) })

// Mentioned are the files that a text names with @, as a call of the read tool shows them. Words that name no file are passed over.
// A path relative to cwd, an absolute one and ~ are understood; #L10-L20 behind it reads these lines only.
func Mentioned(text, cwd string, read func(input json.RawMessage) (agent.ToolData, error)) (out []provider.Part) {
	seen := map[string]bool{}
	for _, m := range fileMentions().FindAllStringSubmatch(text, -1) {
		// The end of a sentence is not part of a name.
		word := strings.TrimRight(m[1], ".:!?")
		path, args := word, map[string]any{}
		if at := lineRange().FindStringSubmatch(word); at != nil {
			path = strings.TrimSuffix(word, at[0])
			from, _ := strconv.Atoi(at[1]) // digits; one that is too long is 0, which reads all
			to, _ := strconv.Atoi(at[2])
			args["offset"], args["limit"] = from, max(to-from, 0)+1
		}
		full := path
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			home, _ := os.UserHomeDir()
			full = filepath.Join(home, rest)
		} else if !filepath.IsAbs(path) {
			full = filepath.Join(cwd, path)
		}
		// Decorators, mentions of people and packages look like files: what does not exist is not a mention. The limit counts the files that exist.
		if _, err := os.Stat(full); err != nil || seen[word] || len(seen) == MaxMentions {
			continue
		}
		seen[word] = true
		args["filePath"] = full
		input, _ := json.Marshal(args)
		got, err := read(input)
		switch {
		case err != nil:
			return out
		case got.Status != agent.ToolCompleted:
			out = append(out, provider.Part{Type: provider.PartText, Synthetic: true, Text: "@" + word + " could not be read: " + got.Error})
			continue
		}
		out = append(out, provider.Part{Type: provider.PartText, Synthetic: true, Text: "Content of @" + word + ":\n" + got.Output})
		for _, a := range got.Attachments {
			out = append(out, provider.Part{Type: provider.PartFile, Files: []provider.File{{Mime: a.Mime, Name: a.Name, Data: a.Data}}})
		}
	}
	return out
}
