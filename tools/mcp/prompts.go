package mcp

import (
	"context"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pillion-dev/pillion/tools"
)

// Prompt is a server's prompt template; people run it as the command server:prompt.
type Prompt struct {
	Name        string // server:prompt
	Description string
	Arguments   []Argument
}

// Argument is a value that a prompt takes.
type Argument struct {
	Name, Description string
	Required          bool
}

// Prompts returns the prompts of every connected server. It starts no server and does not wait. Unlike its tools, a lost server's prompts
// are left out until it is connected again: a menu of commands has no prompt cache that a change would invalidate.
func (s *Set) Prompts() []Prompt {
	var out []Prompt
	for _, v := range s.servers {
		v.mu.Lock()
		prompts := v.prompts
		if v.session == nil {
			prompts = nil
		}
		v.mu.Unlock()
		for _, p := range prompts {
			made := Prompt{Name: v.Name + ":" + p.Name, Description: ownWords(p.Description, 300)}
			for _, a := range p.Arguments {
				made.Arguments = append(made.Arguments, Argument{a.Name, ownWords(a.Description, 300), a.Required})
			}
			out = append(out, made)
		}
	}
	return out
}

// Expand requests the text of a prompt named server:prompt. values are in the order of the prompt's arguments; the last argument gets the
// remaining values, joined by spaces. If a required argument has no value, Expand fails without asking the server. Errors are for the
// person who typed the command. The result has the prompt's messages one after the other, without their roles.
func (s *Set) Expand(ctx context.Context, name string, values []string) (tools.Result, error) {
	server, prompt, _ := strings.Cut(name, ":")
	v := s.find(server)
	if v == nil {
		return tools.Result{}, fmt.Errorf("no MCP server %q", server)
	}
	session, err := v.connected(ctx)
	if err != nil {
		return tools.Result{}, err
	}
	args := map[string]string{}
	// A prompt that the server does not list is requested without arguments; the server's own error explains it best.
	for _, p := range s.Prompts() {
		if p.Name != name {
			continue
		}
		for i, a := range p.Arguments {
			switch {
			case i >= len(values):
				if a.Required {
					return tools.Result{}, fmt.Errorf("/%s needs %s", name, a.Name)
				}
			case i == len(p.Arguments)-1:
				args[a.Name] = strings.Join(values[i:], " ")
			default:
				args[a.Name] = values[i]
			}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, v.Timeout)
	defer cancel()
	r, err := session.GetPrompt(ctx, &sdk.GetPromptParams{Name: prompt, Arguments: args})
	if err != nil {
		return tools.Result{}, fmt.Errorf("%s: %w", name, err)
	}
	var content []sdk.Content
	for _, m := range r.Messages {
		content = append(content, m.Content)
	}
	return convert(content, nil, nil), nil
}
