// Package config reads Pillion's settings: JSONC files of the project and the person, the editor's settings and the
// environment, merged in that order of increasing nearness to the person. Every value keeps the place it came from,
// and what is wrong is reported as file:line:column with what was probably meant.
//
//	c, problems := config.Load(config.Sources{Cwd: dir, Root: root, Env: os.Getenv, Home: home})
//	fmt.Println(c.Model, c.Origin("model"))
package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
	"github.com/pillion-dev/pillion/tools/permission"
)

// Config is the merged configuration. The doc tags are the descriptions of the generated JSON Schema and reference
// page.
type Config struct {
	Schema       string               `json:"$schema,omitempty" doc:"JSON Schema of this file, for editors"`
	Model        string               `json:"model,omitempty" doc:"default model as provider/model, e.g. anthropic/claude-sonnet-5-5"`
	DefaultAgent string               `json:"default_agent,omitempty" doc:"agent of a new session: build or plan or one of your own"`
	Provider     map[string]Provider  `json:"provider,omitempty" doc:"model providers by id"`
	Disabled     []string             `json:"disabled_providers,omitempty" doc:"model providers that are never used, also where there is a key for them; those of all settings files"`
	Enabled      []string             `json:"enabled_providers,omitempty" doc:"the only model providers that are used"`
	Permission   Permission           `json:"permission,omitzero" doc:"allow, ask or deny, by permission and pattern; the last match wins. auto: commands run in the sandbox without approval when their effects stay in the project and can be undone; commands that delete, override a check, reach other hosts or touch other folders need approval"`
	Agent        map[string]Agent     `json:"agent,omitempty" doc:"agents by name: change the built-in ones or add your own"`
	Command      map[string]Command   `json:"command,omitempty" doc:"slash commands by name"`
	SmallModel   string               `json:"small_model,omitempty" doc:"provider/model for small tasks such as titles; default: a small model of the same provider"`
	Compaction   Compaction           `json:"compaction,omitzero" doc:"how a conversation is shortened when it fills the model's context"`
	Depth        *int                 `json:"subagent_depth,omitempty" doc:"how deep sub-agents may start sub-agents; 1: only the session itself starts them, 0: none"`
	Skills       Skills               `json:"skills,omitzero" doc:"additional folders of skills"`
	Experimental Any                  `json:"experimental,omitempty" doc:"experimental switches: batch_tool offers the batch tool"`
	Tools        map[string]bool      `json:"tools,omitempty" doc:"turn tools on or off by name; * is a wildcard. apply_patch: true offers it instead of edit and write, false offers edit and write; by default this depends on the model"`
	LSP          Switch[Server]       `json:"lsp,omitzero" doc:"false turns language servers off; an object changes or adds some by id"`
	LSPIdle      *int                 `json:"lsp_idle_timeout,omitempty" doc:"how long a language server may be unused before it is stopped, which gives its memory back, in milliseconds; the next use starts it again. 0: it is not stopped while a session is open. Default: 600000"`
	MCP          map[string]MCPServer `json:"mcp,omitempty" doc:"MCP servers by name: the agent can use their tools, prompts and resources"`
	MCPBudget    int                  `json:"mcp_budget,omitempty" doc:"bytes of MCP tool definitions that the model gets at once; beyond that it finds tools with tool_search; default 32768"`
	Web          Web                  `json:"web,omitzero" doc:"addresses that webfetch may reach"`
	WebSearch    WebSearch            `json:"websearch,omitzero" doc:"the search engine of websearch and codesearch; without one they are not offered"`
	Plugin       []Plugin             `json:"plugin,omitempty" doc:"plugins: files (./x.ts) or npm packages (name@version), or [one of these, options]"`
	JSRuntime    string               `json:"js_runtime,omitempty" doc:"program that runs custom tools and plugins, or bun@VERSION, which npm installs once; default: node, bun or deno on PATH"`
	Formatter    Switch[FormatterDef] `json:"formatter,omitzero" doc:"true: format files after an edit with the formatter that their project uses. An object does this too, and changes or adds formatters by id. Default: false"`
	Instructions []string             `json:"instructions,omitempty" doc:"more instructions: globs relative to the project, ~/ and absolute paths, and https:// pages, which are fetched once an hour"`
	Shell        string               `json:"shell,omitempty" doc:"shell of the bash tool; default: $SHELL when it is bash, zsh or sh"`
	Ripgrep      string               `json:"ripgrep,omitempty" doc:"path of the rg program, or off for the built-in search engine; default: the rg on PATH"`
	SearchIndex  *bool                `json:"search_index,omitempty" doc:"false: keep no search index of large projects. Default: true where the system allows it (Linux, local disks); pillion doctor says so"`
	Review       string               `json:"review,omitempty" doc:"preview (show every change before it is written), follow (write immediately, keep or undo afterwards) or draft (work and run commands in a copy, propose all changes at the end of the turn)" enum:"preview,follow,draft"`
	Verify       []string             `json:"verify,omitempty" doc:"commands that check a draft before it is proposed, such as make test. They run in the draft, and failures are returned to the agent first. Default: the tests that the change can affect (go test, vitest, jest, pytest, cargo test); [] runs none"`
	RepairRounds *int                 `json:"repair_rounds,omitempty" doc:"how often a draft that introduces errors or fails its checks is returned to the agent before you are asked; default 3. With 0 you are asked at once. With another number, a change that introduces errors is also returned once with review preview"`
	Steps        int                  `json:"steps,omitempty" doc:"model steps one turn may take"`
	Attachable   bool                 `json:"attachable,omitempty" doc:"let your other editors join a sidecar's sessions (pillion attach), as pillion acp --share does"`
	Store        string               `json:"store,omitempty" doc:"where sessions are stored: a PostgreSQL address (postgres://user@host/database?sslmode=verify-full) instead of a file on this machine. Read only from your own settings, never from a project's"`
	Environment  map[string][]string  `json:"environment,omitempty" doc:"which keys a program gets in its environment: names of variables (AWS_* for several) by program (gopls) or kind (bash, lsp, formatter, tool, helper). Without an entry it gets none. MCP servers have their own environment. Read only from your own settings, never from a project's"`
	Env          map[string]string    `json:"env,omitempty" doc:"environment variables for commands that the agent runs, and for hooks; a variable that holds a key is passed only to programs that environment names"`
	Tracing      Tracing              `json:"tracing,omitzero" doc:"send OpenTelemetry traces to a collector. Read only from your own settings, never from a project's"`
	UpdateCheck  bool                 `json:"update_check,omitempty" doc:"when a conversation begins in a terminal, at most once a day, ask the page of Pillion's releases whether there is a newer one. Read only from your own settings, never from a project's. Default: false"`
	Refresh      bool                 `json:"refresh_models,omitempty" doc:"while Pillion runs in a terminal or for an editor, at most once a day, fetch the public catalogue of models.dev: limits and prices of hosted models. Read only from your own settings, never from a project's. Default: false"`
	LogLevel     string               `json:"log_level,omitempty" doc:"debug, info, warn or error" enum:"debug,info,warn,error"`

	Agents map[string]ExternalAgent `json:"agents,omitempty" doc:"agents of other makers by name, which become the models acp/NAME: Claude Code, Codex, Gemini, OpenCode, or any that speaks the Agent Client Protocol"`

	Sandbox          string         `json:"sandbox,omitempty" doc:"off, ask or on: run commands where they can write only to the project, temporary folders and caches. ask: approval is needed to run a command outside it; on: commands never run outside it" enum:"off,ask,on"`
	SandboxNetwork   bool           `json:"sandbox_network,omitempty" doc:"let commands in the sandbox use the network"`
	Programs         map[string]Any `json:"programs,omitempty" doc:"what programs do with their arguments, by program: adds or corrects Pillion's records; see the guide (Permissions)"`
	SandboxAutoAllow bool           `json:"sandbox_auto_allow,omitempty" doc:"commands that run in the sandbox and stay in the project need no approval, unless a rule names them"`
	SandboxWritable  []string       `json:"sandbox_writable,omitempty" doc:"more folders that commands in the sandbox may write to, such as caches; ~ is the home folder"`

	Hooks           map[string][]HookGroup `json:"hooks,omitempty" doc:"commands that run at events (PreToolUse, PostToolUse, UserPromptSubmit, Stop, SessionStart …), with the format and contract of Claude Code's hooks. The hooks of all settings files run; those of a project only in a trusted folder"`
	DisableAllHooks bool                   `json:"disableAllHooks,omitempty" doc:"run no hooks"`

	managedDir   string            // Sources.ManagedDir
	origins      map[string]string // by dotted path: file:line:column
	projectFiles map[string]string // by file of a project: its worktree
	// trustedNow asks about trust at the moment of use: a configuration may be older than a decision of the person.
	trustedNow  func(root string) bool
	held        []Held            // what an untrusted project may not set, in the order of reading
	unsupported []Unsupported     // settings of other programs that have no effect
	trusted     bool              // as it was when this was loaded
	included    map[string]string // files of {file:…}, with their state when they were read; see Current
}

// Provider is one model provider. Options is OpenCode's nesting of the same settings.
type Provider struct {
	Name    string            `json:"name,omitempty" doc:"name shown to people"`
	API     string            `json:"api,omitempty" doc:"wire format" enum:"openai-compatible,openai,responses,anthropic,gemini"`
	NPM     string            `json:"npm,omitempty" doc:"OpenCode's package name, from which the wire format is taken"`
	BaseURL string            `json:"baseURL,omitempty" doc:"base URL of the API, e.g. http://127.0.0.1:11434/v1"`
	Key     string            `json:"key,omitempty" doc:"API key; write it as {env:NAME}"`
	APIKey  string            `json:"apiKey,omitempty" doc:"the same as key"`
	Version string            `json:"apiVersion,omitempty" doc:"azure: api-version of deployments; without it the v1 API is used, which needs none"`
	Region  string            `json:"region,omitempty" doc:"bedrock: AWS region; default: AWS_REGION. google-vertex: location; default: GOOGLE_VERTEX_LOCATION, else global"`
	Project string            `json:"project,omitempty" doc:"google-vertex: project; default: GOOGLE_VERTEX_PROJECT"`
	Headers map[string]string `json:"headers,omitempty" doc:"HTTP headers sent with every request"`
	Models  Models            `json:"models,omitempty" doc:"models by id, or a list of ids"`
	Device  *DeviceSignIn     `json:"device,omitempty" doc:"sign-in by a code that you type into a browser (RFC 8628), with an application of yours: pillion auth login. Known of huggingface; other services need the addresses"`
	Quirks  Quirks            `json:"quirks,omitzero" doc:"how an OpenAI-compatible server at this address differs; Pillion learns most of this from its errors"`
	Options *ProviderOptions  `json:"options,omitempty" doc:"OpenCode's form: baseURL, apiKey, headers, time-outs, and options that are sent with every request (reasoningEffort, serviceTier, …)"`
}

// DeviceSignIn is how a person signs in to a provider by a code.
type DeviceSignIn struct {
	ClientID  string `json:"client_id,omitempty" doc:"client id of the application that you registered with the service; a public one, without a secret"`
	DeviceURL string `json:"device_url,omitempty" doc:"address that gives codes"`
	TokenURL  string `json:"token_url,omitempty" doc:"address that gives tokens"`
	Scope     string `json:"scope,omitempty" doc:"what the token may be used for, as the service names it"`

	Terms    string `json:"-"` // where the service says who may use this
	Register string `json:"-"` // where an application is registered
}

// Quirks describe servers that almost speak OpenAI's format. What is not set is known from the model's name, or
// learned from the server's errors.
type Quirks struct {
	NoStreamUsage   bool   `json:"no_stream_usage,omitempty" doc:"do not send stream_options; Pillion estimates the tokens if the server does not count them"`
	NoStream        bool   `json:"no_stream,omitempty" doc:"ask for answers in one piece"`
	NoParallelCalls bool   `json:"no_parallel_calls,omitempty" doc:"at most one tool call in an answer"`
	AlternateRoles  bool   `json:"alternate_roles,omitempty" doc:"user and assistant messages must alternate"`
	SystemRole      string `json:"system_role,omitempty" doc:"role of the system prompt; user: it is sent before the first request, for templates without a system role" enum:"system,developer,user"`
	MaxTokensField  string `json:"max_tokens_field,omitempty" doc:"name of the output limit" enum:"max_tokens,max_completion_tokens"`
	ReturnReasoning bool   `json:"return_reasoning,omitempty" doc:"send reasoning_content back with tool calls (known for DeepSeek and Kimi)"`
	ShortCallIDs    bool   `json:"short_call_ids,omitempty" doc:"call ids of nine letters and digits (known for Mistral)"`
	NoCache         bool   `json:"no_cache,omitempty" doc:"anthropic format: no cache_control"`
}

// ProviderOptions is where OpenCode keeps a provider's settings. Names that are not known here are not mistakes: they are options of the
// provider's API and are sent with every request (Rest).
type ProviderOptions struct {
	BaseURL string            `json:"baseURL,omitempty" doc:"base URL of the API"`
	APIKey  string            `json:"apiKey,omitempty" doc:"API key"`
	Headers map[string]string `json:"headers,omitempty" doc:"HTTP headers sent with every request"`

	Token        string            `json:"authToken,omitempty" doc:"bearer token instead of a key"`
	Organization string            `json:"organization,omitempty" doc:"OpenAI's organisation"`
	Project      string            `json:"project,omitempty" doc:"OpenAI's project; google-vertex: project"`
	Location     string            `json:"location,omitempty" doc:"google-vertex: location"`
	Query        map[string]string `json:"queryParams,omitempty" doc:"added to the address of every request (OpenAI's formats)"`
	Usage        *bool             `json:"includeUsage,omitempty" doc:"false: do not ask the server to count tokens in streams"`
	Timeout      Any               `json:"timeout,omitempty" doc:"longest pause in an answer, in milliseconds; false: no limit; default 300000. The wait for the beginning may take twice as long by default"`
	First        Any               `json:"headerTimeout,omitempty" doc:"how long an answer may take to begin, in milliseconds; false: no limit"`
	Chunk        Any               `json:"chunkTimeout,omitempty" doc:"longest pause between two pieces of an answer, in milliseconds; false: no limit"`

	Rest map[string]Any `json:"*"` // what is sent with every request
}

// restName is the JSON name of a field that keeps the members without a field of their own. encoding/json knows no such thing, so a type with
// it reads and writes itself; check and the schema accept any key there.
const restName = "*"

// UnmarshalJSON keeps what has no field of its own in Rest.
func (o *ProviderOptions) UnmarshalJSON(b []byte) error {
	type plain ProviderOptions
	if err := json.Unmarshal(b, (*plain)(o)); err != nil {
		return err
	}
	if err := json.Unmarshal(b, &o.Rest); err != nil {
		return err
	}
	for name := range fieldsOf(reflect.TypeFor[ProviderOptions]()) {
		delete(o.Rest, name)
	}
	return nil
}

// MarshalJSON writes the form that was read: the members of Rest beside the known ones, and no member "*".
func (o ProviderOptions) MarshalJSON() ([]byte, error) {
	type plain ProviderOptions
	known := plain(o)
	known.Rest = nil
	b, err := json.Marshal(known)
	if err != nil {
		return nil, err
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	delete(all, restName)
	for k, v := range o.Rest {
		all[k] = json.RawMessage(v)
	}
	return json.Marshal(all)
}

// Millis is a time-out in milliseconds; false means none, which is a day: callers need no special case for it. It is 0 when nothing valid
// is given. 1e9 ms are eleven days; more is taken for a mistake, and much more would not fit into a Duration.
func (a Any) Millis() time.Duration {
	if string(a) == "false" {
		return 24 * time.Hour
	}
	var ms float64
	if json.Unmarshal(a, &ms) != nil || ms <= 0 || ms > 1e9 {
		return 0
	}
	return time.Duration(ms * float64(time.Millisecond))
}

// Model overrides what is known of a model.
type Model struct {
	ID        string                    `json:"id,omitempty" doc:"the id in the provider's API; default: the key"`
	Name      string                    `json:"name,omitempty" doc:"name shown to people"`
	Context   int                       `json:"context,omitempty" doc:"context window in tokens"`
	Output    int                       `json:"output,omitempty" doc:"longest answer in tokens"`
	Limit     *Limit                    `json:"limit,omitempty" doc:"OpenCode's form of context and output"`
	Images    *bool                     `json:"images,omitempty" doc:"whether it reads images"`
	PDF       *bool                     `json:"pdf,omitempty" doc:"whether it reads PDF"`
	Thinking  *bool                     `json:"thinking,omitempty" doc:"whether it returns its reasoning"`
	CostIn    float64                   `json:"cost_input,omitempty" doc:"USD per million input tokens"`
	CostOut   float64                   `json:"cost_output,omitempty" doc:"USD per million output tokens"`
	CostRead  float64                   `json:"cost_cache_read,omitempty" doc:"USD per million input tokens that were in the provider's cache"`
	CostWrite float64                   `json:"cost_cache_write,omitempty" doc:"USD per million input tokens that were written to the provider's cache"`
	Options   map[string]Any            `json:"options,omitempty" doc:"sent with every request, with the names of the wire format or of OpenCode: reasoningEffort, textVerbosity, thinking, temperature …"`
	Variants  map[string]map[string]Any `json:"variants,omitempty" doc:"options by the name of an effort or of your own variant; they override the others while it is selected"`
	Headers   map[string]string         `json:"headers,omitempty" doc:"HTTP headers sent with its requests, besides the provider's"`
}

// Limit is OpenCode's nesting of a model's limits, in tokens; 0: not known. Context and Output beside it mean the same.
type Limit struct {
	Context int `json:"context,omitempty" doc:"context window in tokens"`
	Input   int `json:"input,omitempty" doc:"longest request in tokens, if it is less than the context window"`
	Output  int `json:"output,omitempty" doc:"longest answer in tokens"`
}

// Agent configures one agent.
type Agent struct {
	Description string          `json:"description,omitempty" doc:"when to use it; shown to people and to other agents"`
	Mode        string          `json:"mode,omitempty" doc:"where it may be used" enum:"primary,subagent,all"`
	Model       string          `json:"model,omitempty" doc:"provider/model; default: the session's"`
	Prompt      string          `json:"prompt,omitempty" doc:"its instructions"`
	Temperature *float64        `json:"temperature,omitempty" doc:"sampling temperature"`
	TopP        *float64        `json:"top_p,omitempty" doc:"nucleus sampling"`
	Options     map[string]Any  `json:"options,omitempty" doc:"sent with its requests, over the model's own options"`
	Variant     string          `json:"variant,omitempty" doc:"effort, or variant of its model, if the session has chosen none"`
	Steps       int             `json:"steps,omitempty" doc:"model steps one turn may take"`
	Permission  Permission      `json:"permission,omitzero" doc:"rules that come after the general ones"`
	Tools       map[string]bool `json:"tools,omitempty" doc:"switch tools on or off by name"`
	Disable     bool            `json:"disable,omitempty" doc:"remove it"`
	Hidden      bool            `json:"hidden,omitempty" doc:"do not offer it in menus"`
	Color       string          `json:"color,omitempty" doc:"colour in menus"`
}

// Command is a slash command.
type Command struct {
	Template    string `json:"template,omitempty" doc:"the prompt; $ARGUMENTS and $1 $2 … are the arguments, an exclamation mark with a command in backquotes is replaced by its output, @file attaches a file"`
	Description string `json:"description,omitempty" doc:"what it does, for the menu"`
	Hint        string `json:"hint,omitempty" doc:"the arguments, for the menu"`
	Agent       string `json:"agent,omitempty" doc:"agent that runs it; a sub-agent runs it as a task"`
	Model       string `json:"model,omitempty" doc:"provider/model that runs it"`
	Subtask     bool   `json:"subtask,omitempty" doc:"run it as a task of a sub-agent"`
}

// Compaction says how a full context is dealt with.
type Compaction struct {
	Auto     *bool `json:"auto,omitempty" doc:"summarise older turns before the context is full; default: true"`
	Prune    *bool `json:"prune,omitempty" doc:"remove old tool outputs first; default: true"`
	Reserved int   `json:"reserved,omitempty" doc:"tokens kept free for the answer"`
	Tail     int   `json:"tail_turns,omitempty" doc:"number of last turns that are not summarised, if they fit"`
	Recent   int   `json:"preserve_recent_tokens,omitempty" doc:"tokens of the newest messages that are never summarised"`
}

// Skills are more places of skills.
type Skills struct {
	Paths []string `json:"paths,omitempty" doc:"folders of skills; ~ is the home folder, others are relative to the project"`
	URLs  []string `json:"urls,omitempty" doc:"not used"`
}

// Server changes or adds a language server.
type Server struct {
	Command        []string          `json:"command,omitempty" doc:"program and arguments"`
	Extensions     []string          `json:"extensions,omitempty" doc:"file extensions with their dot"`
	Env            map[string]string `json:"env,omitempty" doc:"environment variables"`
	Initialization Any               `json:"initialization,omitempty" doc:"initializationOptions for the server; also the answers to workspace/configuration that settings does not contain"`
	Settings       Any               `json:"settings,omitempty" doc:"answers to workspace/configuration by section"`
	Roots          []string          `json:"roots,omitempty" doc:"files that mark a project's root for it"`
	Share          bool              `json:"share,omitempty" doc:"use a server that your other programs share, if it supports that (gopls -remote=auto)"`
	Disabled       bool              `json:"disabled,omitempty" doc:"never start it"`
}

// FormatterDef changes or adds a formatter.
type FormatterDef struct {
	Command     []string          `json:"command,omitempty" doc:"program and arguments. $FILE is a temporary file that it changes; without $FILE it reads the text from stdin and writes it to stdout. $NAME is the path in the project"`
	Extensions  []string          `json:"extensions,omitempty" doc:"file extensions with their dot"`
	Environment map[string]string `json:"environment,omitempty" doc:"environment variables"`
	Disabled    bool              `json:"disabled,omitempty" doc:"never run it"`
}

// Tracing sends spans of turns, steps, model calls, tools and language servers over OTLP/HTTP.
type Tracing struct {
	Enabled  bool              `json:"enabled,omitempty" doc:"send traces; off by default"`
	Endpoint string            `json:"endpoint,omitempty" doc:"address of the collector; default: OTEL_EXPORTER_OTLP_TRACES_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT, else http://localhost:4318"`
	Headers  map[string]string `json:"headers,omitempty" doc:"HTTP headers for the collector, in addition to OTEL_EXPORTER_OTLP_HEADERS; write a key as {env:NAME}"`
	Content  bool              `json:"content,omitempty" doc:"add prompts, answers, arguments and results to spans (keys masked); otherwise they have only names and numbers"`
}

// Web says what may be fetched.
type Web struct {
	Allow []string `json:"allow,omitempty" doc:"addresses on this machine or a private network that webfetch may read without approval: localhost:3000, 10.0.0.0/8, wiki.corp"`
}

// WebSearch is a search engine.
type WebSearch struct {
	Provider string `json:"provider,omitempty" doc:"the search engine" enum:"exa,brave,tavily,searxng"`
	URL      string `json:"url,omitempty" doc:"address of the engine; searxng needs one"`
	Key      string `json:"key,omitempty" doc:"API key; write it as {env:NAME}"`
}

// Any is a value that is passed on unchanged, as JSON text; empty: the key was absent.
type Any json.RawMessage

// MarshalJSON writes the value as it was read.
func (a Any) MarshalJSON() ([]byte, error) {
	if len(a) == 0 {
		return []byte("null"), nil
	}
	return a, nil
}

// UnmarshalJSON keeps the value as it is.
func (a *Any) UnmarshalJSON(b []byte) error { *a = append((*a)[:0], b...); return nil }

// Switch is either a bool or an object of definitions by id. An object turns the feature on, also where it only changes one entry.
type Switch[T any] struct {
	Set bool // given at all
	On  bool // true, or an object
	By  map[string]T
}

// UnmarshalJSON reads either form.
func (s *Switch[T]) UnmarshalJSON(b []byte) error {
	s.Set = true
	if err := json.Unmarshal(b, &s.On); err == nil {
		return nil
	}
	s.On = true
	return json.Unmarshal(b, &s.By)
}

// MarshalJSON writes the form that was read.
func (s Switch[T]) MarshalJSON() ([]byte, error) {
	if s.By != nil {
		return json.Marshal(s.By)
	}
	return json.Marshal(s.On)
}

// IsZero reports whether the key was absent.
func (s Switch[T]) IsZero() bool { return !s.Set }

// Models are a provider's models: an object by id, or a plain list of ids, each of which becomes a Model without settings. It is always
// written as an object.
type Models map[string]Model

// UnmarshalJSON reads either form.
func (m *Models) UnmarshalJSON(b []byte) error {
	var ids []string
	if json.Unmarshal(b, &ids) == nil {
		*m = Models{}
		for _, id := range ids {
			(*m)[id] = Model{}
		}
		return nil
	}
	return json.Unmarshal(b, (*map[string]Model)(m))
}

// Permission is the permission section: its rules in the order they were written, layer after layer.
type Permission struct {
	Rules permission.Ruleset
	// Auto is "permission": "auto": commands whose effects stay in the sandbox, and can be undone, need no approval.
	Auto bool
	// NoAuto: the managed settings want a person to be asked about something, so Auto is false and no session may choose it.
	NoAuto bool
	raw    json.RawMessage // the section as JSON; only IsZero looks at it, as Rules come from the tree
}

// MarshalJSON writes the section as rules, for people.
func (p Permission) MarshalJSON() ([]byte, error) { return json.Marshal(p.Rules) }

// UnmarshalJSON keeps the text; Load reads it with positions.
func (p *Permission) UnmarshalJSON(b []byte) error {
	p.raw = append(p.raw[:0], b...)
	return nil
}

// IsZero reports whether there are no rules.
func (p Permission) IsZero() bool { return len(p.Rules) == 0 && len(p.raw) == 0 }

// Origin says where a value came from, as file:line:column or a variable's name; path is dotted ("provider.local.baseURL").
func (c *Config) Origin(path string) string { return c.origins[path] }

// Reason describes settings to the gate before processes and connections: where the first of them was set ("mcp.docs"
// covers what is below it), and the project whose own file sets any of them. A project's program or address is used
// only while the project is trusted, which the gate asks again each time.
func (c *Config) Reason(settings ...string) guard.Reason {
	r := guard.Reason{Setting: settings[0]}
	var set []string
	for path := range c.origins {
		for _, s := range settings {
			if rest, ok := strings.CutPrefix(path, s); ok && (rest == "" || rest[0] == '.') {
				set = append(set, path)
				break
			}
		}
	}
	slices.Sort(set)
	for _, path := range set {
		at, _, _ := strings.Cut(c.origins[path], " (") // " (" begins a note about a variable that is not set
		if file, _, _ := place(at); c.projectFiles[file] != "" {
			r.Setting, r.Place, r.Folder, r.Trusted = path, at, c.projectFiles[file], c.trustedNow
			return r
		}
		if r.Place == "" {
			r.Place = at
		}
	}
	return r
}

// FileReason describes a file of a project that is itself a program, such as a custom tool: it runs while the project is trusted.
func (c *Config) FileReason(path, root string) guard.Reason {
	return guard.Reason{Setting: path, Folder: root, Trusted: c.trustedNow}
}

// Origins returns every leaf's origin by dotted path. The map is the configuration's own: callers must not change it.
func (c *Config) Origins() map[string]string { return c.origins }

// Problem is something wrong in a configuration file. Line and Column count from 1, Column in bytes.
type Problem struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Message string `json:"message"`
	Fatal   bool   `json:"fatal,omitempty"` // the file could not be read at all
}

// String is the form that editors and terminals link: file:line:column: message.
func (p Problem) String() string {
	return fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
}
