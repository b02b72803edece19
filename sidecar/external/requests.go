package external

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"go.lsp.dev/jsonrpc2"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/builtin"
	"github.com/pillion-dev/pillion/tools/paths"
	"github.com/pillion-dev/pillion/tools/permission"
	"github.com/pillion-dev/pillion/tools/shell/visible"
)

// handle answers the agent. Updates are handled in order; requests run beside each other, because an agent asks for several things at once
// and one of them may wait for the person.
func (l *link) handle(ctx context.Context, r *rpc.Request) (any, error) {
	if r.Method == "session/update" {
		l.update(r.Params)
		return nil, nil
	}
	do, ok := map[string]func(*turn, context.Context, json.RawMessage) (any, error){
		"fs/read_text_file":          (*turn).readTextFile,
		"fs/write_text_file":         (*turn).writeTextFile,
		"session/request_permission": (*turn).requestPermission,
		"terminal/create":            (*turn).createTerminal,
		"terminal/output":            (*turn).terminalOutput,
		"terminal/wait_for_exit":     (*turn).waitForTerminal,
		"terminal/kill":              (*turn).killTerminal,
		"terminal/release":           (*turn).releaseTerminal,
	}[r.Method]
	if !ok {
		return nil, rpc.MethodNotFound(r.Method)
	}
	// Outside of a prompt there is no turn whose gate could be asked, so nothing is carried out.
	t, err := l.current()
	if err != nil {
		if r.Method == "session/request_permission" {
			return cancelled, nil
		}
		return nil, err
	}
	defer t.calls.Done()
	t.heed()
	r.Async()
	// The end of the prompt ends the request as well as a cancel of the agent's does.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	return do(t, ctx, r.Params)
}

// run runs a tool of Pillion's in the agent's name. The error says what the agent's model should know.
func (t *turn) run(ctx context.Context, tool tools.Tool, input any, update func(tools.Update)) (agent.ToolData, error) {
	raw, err := json.Marshal(input)
	if err != nil {
		return agent.ToolData{}, err
	}
	d, err := t.host.Run(ctx, tool, raw, update)
	var no *permission.RejectedError
	if errors.As(err, &no) {
		// The model of the agent reads the words in the answer itself, so they need no prompt of their own.
		if no.Message == "" {
			t.rejected("", "")
		}
	}
	return d, err
}

// refused is an error as the agent gets it. The text of a tool's error is for a model.
func refused(d agent.ToolData, err error) error {
	text := d.Error
	if text == "" {
		text = err.Error()
	}
	return jsonrpc2.Errorf(jsonrpc2.InternalError, "%s", text)
}

// path checks a path of the agent's. ACP wants absolute ones; a relative one would be taken from our own folder.
func (t *turn) path(p string) (string, error) {
	if !filepath.IsAbs(p) {
		return "", rpc.InvalidParams("path: %q is not absolute", p)
	}
	return filepath.Clean(p), nil
}

func (t *turn) readTextFile(ctx context.Context, params json.RawMessage) (any, error) {
	var p protocol.ReadTextFileRequest
	if err := protocol.Decode(params, &p); err != nil {
		return nil, rpc.InvalidParams("%s", err)
	}
	path, err := t.path(p.Path)
	if err != nil {
		return nil, err
	}
	input := map[string]any{"filePath": path}
	if p.Line != nil {
		input["line"] = max(*p.Line, 0)
	}
	if p.Limit != nil {
		input["limit"] = max(*p.Limit, 0)
	}
	// The text is taken out of the result before that is stored: a session must not grow by every file that was read.
	var text string
	tool := t.agents.o.Tools(t.info).Read
	read := tool.Run
	tool.Run = func(ctx context.Context, input json.RawMessage, call *tools.Call) (tools.Result, error) {
		r, err := read(ctx, input, call)
		text, _ = r.Metadata[builtin.TextMember].(string)
		r.Metadata = maps.Clone(r.Metadata)
		delete(r.Metadata, builtin.TextMember)
		return r, err
	}
	if d, err := t.run(ctx, tool, input, nil); err != nil {
		if d.ErrorKind == "not_found" {
			return nil, protocol.NotFound("%s", d.Error)
		}
		return nil, refused(d, err)
	}
	return protocol.ReadTextFileResponse{Content: text}, nil
}

func (t *turn) writeTextFile(ctx context.Context, params json.RawMessage) (any, error) {
	var p protocol.WriteTextFileRequest
	if err := protocol.Decode(params, &p); err != nil {
		return nil, rpc.InvalidParams("%s", err)
	}
	path, err := t.path(p.Path)
	if err != nil {
		return nil, err
	}
	d, err := t.run(ctx, t.agents.o.Tools(t.info).Write, map[string]any{"filePath": path, "content": p.Content}, nil)
	if err != nil {
		return nil, refused(d, err)
	}
	// The answer has no place for words, and the agent would take its own text for the file's.
	if d.Metadata["partly"] == true {
		t.mu.Lock()
		t.told = append(t.told, "About "+t.rel(path)+": "+d.Output)
		t.mu.Unlock()
	}
	return protocol.WriteTextFileResponse{}, nil
}

// cancelled is the answer to a permission request that nobody decided.
var cancelled = protocol.RequestPermissionResponse{Outcome: protocol.RequestPermissionOutcome{Outcome: "cancelled"}}

// selected is the answer that chooses an option.
func selected(id string) protocol.RequestPermissionResponse {
	return protocol.RequestPermissionResponse{Outcome: protocol.RequestPermissionOutcome{Outcome: "selected", Value: &protocol.SelectedPermissionOutcome{OptionID: id}}}
}

// option returns the first option of one of the kinds, in the order of kinds.
func option(list []protocol.PermissionOption, kinds ...protocol.PermissionOptionKind) (string, bool) {
	for _, k := range kinds {
		for _, o := range list {
			if o.Kind == k {
				return o.OptionID, true
			}
		}
	}
	return "", false
}

// requestPermission asks by Pillion's own rules. The agent is always told "once": an "always" of its own would take later questions out of
// Pillion's sight, while one of Pillion's answers them without asking the person again.
func (t *turn) requestPermission(ctx context.Context, params json.RawMessage) (any, error) {
	var p protocol.RequestPermissionRequest
	if err := protocol.Decode(params, &p); err != nil {
		return nil, rpc.InvalidParams("%s", err)
	}
	// The request may be the first that is heard of the call, and it has the best title.
	call := p.ToolCall
	if call.Status == "" {
		call.Status = protocol.ToolCallStatusPending
	}
	id := t.show(call)
	if choices(p.Options) {
		return t.choose(ctx, id, p)
	}
	err := t.ask(ctx, id, call)
	switch {
	case err == nil:
		if id, ok := option(p.Options, protocol.PermissionOptionKindAllowOnce, protocol.PermissionOptionKindAllowAlways); ok {
			return selected(id), nil
		}
		return cancelled, nil
	case ctx.Err() != nil:
		return cancelled, nil
	}
	message := ""
	var no *permission.RejectedError
	if errors.As(err, &no) {
		message = no.Message
	} else {
		message = err.Error() // a rule denies it; the agent must know that asking again is no use
	}
	id, ok := option(p.Options, protocol.PermissionOptionKindRejectOnce, protocol.PermissionOptionKindRejectAlways)
	// Where nobody could answer there are no words of a person to pass on, and the agent has its answer.
	if no == nil || !no.Unanswered {
		t.rejected(visible.Text(call.Title), message)
	}
	if !ok {
		return cancelled, nil
	}
	return selected(id), nil
}

// choices reports that the options are more than yes and no, such as the modes in which a plan can be carried out: the person must see them.
func choices(list []protocol.PermissionOption) bool {
	seen := map[protocol.PermissionOptionKind]bool{}
	for _, o := range list {
		if seen[o.Kind] {
			return true
		}
		seen[o.Kind] = true
	}
	return false
}

// choose lets the person choose one of the agent's own options.
func (t *turn) choose(ctx context.Context, call string, p protocol.RequestPermissionRequest) (any, error) {
	custom := false
	q := tools.Question{Question: visible.Text(t.agent.Name + " asks: " + p.ToolCall.Title), Header: tools.Cut(t.agent.Name, 30), Custom: &custom}
	if more := t.contentText(p.ToolCall.Content); more != "" {
		q.Question += "\n\n" + more
	}
	for _, o := range p.Options {
		q.Options = append(q.Options, tools.Option{Label: visible.Text(o.Name), Description: strings.ReplaceAll(string(o.Kind), "_", " ")})
	}
	answer, err := t.host.Question(ctx, call, q)
	if err != nil {
		return cancelled, nil
	}
	for i, o := range q.Options {
		if o.Label == answer {
			return selected(p.Options[i].OptionID), nil
		}
	}
	return cancelled, nil
}

// ask asks the gate about a call that the agent is about to make by itself.
func (t *turn) ask(ctx context.Context, id string, call protocol.ToolCallUpdate) error {
	command, dir := commandOf(call)
	switch {
	case command != "":
		// The analysis and the rules of the tool bash, on the agent's own card.
		tool := t.agents.o.Tools(t.info).AskCommand
		input, err := json.Marshal(map[string]any{"command": command, "workdir": dir})
		if err != nil {
			return err
		}
		_, err = tool.Run(ctx, input, &tools.Call{SessionID: t.host.Session().ID(), CallID: id, Tool: "bash", Agent: t.info.Agent, Host: tools.Host{Gate: t.host}})
		return err
	case call.Kind == protocol.ToolKindEdit, call.Kind == protocol.ToolKindDelete, call.Kind == protocol.ToolKindMove:
		return t.askEdit(ctx, id, call)
	}
	r := permission.Request{CallID: id, Tool: t.agent.ID, Permission: "external_agent", Title: visible.Text(t.agent.Name + ": " + call.Title),
		Why: "the agent does this by itself", Metadata: map[string]any{"input": call.RawInput, "kind": string(call.Kind)}}
	switch call.Kind {
	case protocol.ToolKindRead, protocol.ToolKindSearch:
		r.Permission = "read"
		for _, p := range t.places(call) {
			r.Patterns, r.Also = append(r.Patterns, t.rel(p)), append(r.Also, p)
		}
	case protocol.ToolKindFetch:
		r.Permission = "webfetch"
		if u := member(call.RawInput, "url", "uri"); u != "" {
			r.Patterns = []string{u}
		}
	}
	if len(r.Patterns) == 0 {
		// Named by what the agent calls it: an "always" then covers this tool of this agent and no other.
		name := call.Name
		if name == "" {
			name = string(call.Kind)
		}
		r.Patterns = []string{t.agent.ID + ":" + name}
		r.Always = slices.Clone(r.Patterns)
	}
	_, err := t.host.Ask(ctx, r)
	return err
}

// askEdit decides about a change of files that the agent makes by itself. In a draft it is reviewed at the end, so it needs no question,
// unless a rule denies it or it lies outside of the project. An agent that only asks its client writes in its next request, which is
// reviewed; here, too, only a rule can say no.
func (t *turn) askEdit(ctx context.Context, id string, call protocol.ToolCallUpdate) error {
	r := permission.Request{CallID: id, Tool: t.agent.ID, Permission: "edit", Title: visible.Text(t.agent.Name + ": " + call.Title), Why: "the agent writes it by itself"}
	inside := t.place.Held || t.agent.Asks
	for _, p := range t.places(call) {
		if !paths.Within(paths.Worktree(t.place.Cwd), p) {
			inside = false
			r.Why = "it lies outside of the project, and the agent writes it by itself"
		}
		r.Patterns, r.Also = append(r.Patterns, t.rel(p)), append(r.Also, p)
	}
	if len(r.Patterns) == 0 {
		r.Patterns = []string{"*"}
	}
	if inside && t.host.Would(ctx, r) != permission.Deny {
		return nil
	}
	_, err := t.host.Ask(ctx, r)
	return err
}

// places are the files that a call names, absolute.
func (t *turn) places(call protocol.ToolCallUpdate) (out []string) {
	add := func(p string) {
		if p == "" {
			return
		}
		if !filepath.IsAbs(p) {
			p = filepath.Join(t.place.Cwd, p)
		}
		if p = filepath.Clean(p); !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for _, c := range call.Content {
		if d, ok := c.Value.(*protocol.Diff); ok {
			add(d.Path)
		}
	}
	for _, at := range call.Locations {
		add(at.Path)
	}
	add(member(call.RawInput, "file_path", "filePath", "path"))
	return out
}

// member is the first of the named members of an object that is a text; "" for none.
func member(raw json.RawMessage, names ...string) string {
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil {
		return ""
	}
	for _, name := range names {
		if s, ok := m[name].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// commandOf is the command that a call is about to run, and its folder; "" where it runs none. Agents have no common form for it: most put
// it into the arguments as a line or a list of words, and all others into the title.
func commandOf(call protocol.ToolCallUpdate) (command, dir string) {
	dir = member(call.RawInput, "workdir", "cwd", "directory", "dir_path")
	var m map[string]any
	if json.Unmarshal(call.RawInput, &m) == nil {
		for _, name := range []string{"command", "cmd", "script"} {
			switch v := m[name].(type) {
			case string:
				command = v
			case []any:
				var words []string
				for _, w := range v {
					if s, ok := w.(string); ok {
						words = append(words, s)
					}
				}
				command = commandLine(words)
			}
			if command != "" {
				break
			}
		}
	}
	if call.Kind != protocol.ToolKindExecute {
		// Another kind with a member "command" is an edit or a fetch that runs nothing, unless the agent gave no kind at all.
		if call.Kind != "" && call.Kind != protocol.ToolKindOther {
			return "", ""
		}
		return command, dir
	}
	if command == "" {
		command = strings.Trim(call.Title, "` ")
	}
	return command, dir
}

// shells are programs whose -c takes a command line, which is what a person reads and what the analysis understands.
var shells = []string{"sh", "bash", "dash", "zsh"}

// commandLine is a list of words as a line of bash.
func commandLine(words []string) string {
	if len(words) == 3 && slices.Contains(shells, filepath.Base(words[0])) && (words[1] == "-c" || words[1] == "-lc") {
		return words[2]
	}
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return strings.Join(quoted, " ")
}

// quote is a word as bash reads it back.
func quote(w string) string {
	plain := w != "" && strings.IndexFunc(w, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r))
	}) < 0
	if plain {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
