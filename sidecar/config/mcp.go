package config

import "encoding/json"

// MCPServer is one MCP server: a program, or an address. The keys are OpenCode's, so that a section can be copied.
type MCPServer struct {
	Type        string            `json:"type,omitempty" doc:"local (a program) or remote (an address); default: local with command, remote with url" enum:"local,remote"`
	Command     []string          `json:"command,omitempty" doc:"program and arguments; it speaks MCP on standard input and output"`
	Environment map[string]string `json:"environment,omitempty" doc:"environment variables of the program, in addition to PATH, HOME and similar ones, which it inherits; {env:NAME} passes one of yours"`
	Cwd         string            `json:"cwd,omitempty" doc:"folder it runs in; default: the project"`
	URL         string            `json:"url,omitempty" doc:"address of a remote server"`
	SSE         bool              `json:"sse,omitempty" doc:"the remote server speaks the older SSE transport; by default it is detected"`
	Headers     map[string]string `json:"headers,omitempty" doc:"HTTP headers sent to a remote server"`
	OAuth       OrFalse[OAuth]    `json:"oauth,omitzero" doc:"data for signing in to a remote server; false: never sign in; by default it is detected"`
	Enabled     *bool             `json:"enabled,omitempty" doc:"false: do not start it"`
	Tools       []string          `json:"tools,omitzero" doc:"the only tools of the server that are offered, by the server's own names; default: all"`
	Timeout     int               `json:"timeout,omitempty" doc:"longest time without a message during a request, in milliseconds; default 60000"`
}

// OAuth is a client that was registered by hand, for servers that do not let clients register themselves (RFC
// 7591).
type OAuth struct {
	ClientID     string `json:"clientId,omitempty" doc:"the client's id; without it one is registered"`
	ClientSecret string `json:"clientSecret,omitempty" doc:"the client's secret; write it as {env:NAME}"`
	Scope        string `json:"scope,omitempty" doc:"scopes to request, separated by blanks"`
}

// OrFalse is a value, or false. A pointer would not do: absent, false and a value without details are three
// states.
type OrFalse[T any] struct {
	Set   bool // given at all
	False bool
	Value T
}

// UnmarshalJSON reads either form; true is a value without details.
func (o *OrFalse[T]) UnmarshalJSON(b []byte) error {
	o.Set = true
	var on bool
	if json.Unmarshal(b, &on) == nil {
		o.False = !on
		return nil
	}
	return json.Unmarshal(b, &o.Value)
}

// MarshalJSON writes the form that was read.
func (o OrFalse[T]) MarshalJSON() ([]byte, error) {
	if o.False {
		return []byte("false"), nil
	}
	return json.Marshal(o.Value)
}

// IsZero reports whether the key was absent.
func (o OrFalse[T]) IsZero() bool { return !o.Set }
