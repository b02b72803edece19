package external

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

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

// handle answers a request of the agent. It handles updates in order; requests run concurrently, because an agent sends several at once and
// one of them may wait for the person.
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
	// Outside a prompt there is no turn, and so no gate to ask for approval: refuse.
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
	// The request ends with the prompt, and also when the agent cancels it.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.ctx, cancel)()
	return do(t, ctx, r.Params)
}

// run runs one of Pillion's tools in the agent's name, as a part of its own call within; "": as a call by itself. The text of the error is written for the agent's model.
func (t *turn) run(ctx context.Context, within string, tool tools.Tool, input any, update func(tools.Update)) (agent.ToolData, error) {
	raw, err := json.Marshal(input)
	if err != nil {
		return agent.ToolData{}, err
	}
	d, err := t.host.Run(ctx, within, tool, raw, update)
	var no *permission.RejectedError
	if errors.As(err, &no) {
		// The answer to these requests carries the person's message, unlike the answer to a permission request, so it needs no prompt of
		// its own.
		if no.Message == "" {
			t.rejected("", "")
		}
	}
	return d, err
}

// refused returns a tool's error as a JSON-RPC error; its text is written for a model.
func refused(d agent.ToolData, err error) error {
	text := d.Error
	if text == "" {
		text = err.Error()
	}
	return jsonrpc2.Errorf(jsonrpc2.InternalError, "%s", text)
}

// path cleans a path from the agent. ACP requires absolute paths; a relative one would be resolved against the sidecar's own working
// directory.
func (t *turn) path(p string) (string, error) {
	if !filepath.IsAbs(p) {
		return "", rpc.InvalidParams("path: %q is not absolute", p)
	}
	return filepath.Clean(p), nil
}

// readTextFile answers fs/read_text_file with the text that the person sees, unsaved changes included (ACP). Line and limit are passed on
// to the read tool; a negative one counts as 0.
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
	// Take the text out of the result before the result is stored: else the session grows by every file that the agent reads.
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
	if d, err := t.run(ctx, t.host.Naming(path), tool, input, nil); err != nil {
		if d.ErrorKind == builtin.KindFileMissing {
			return nil, protocol.NotFound("Resource not found: %s", path) // in these words: agents know by them that the file does not exist, and create it
		}
		return nil, refused(d, err)
	}
	return protocol.ReadTextFileResponse{Content: text}, nil
}

// writeTextFile answers fs/write_text_file after the proposal was decided and written. A rejection is an error whose text the agent's model
// reads.
func (t *turn) writeTextFile(ctx context.Context, params json.RawMessage) (any, error) {
	var p protocol.WriteTextFileRequest
	if err := protocol.Decode(params, &p); err != nil {
		return nil, rpc.InvalidParams("%s", err)
	}
	path, err := t.path(p.Path)
	if err != nil {
		return nil, err
	}
	within := ""
	if t.place.Held { // the proposal at the end of the turn shows the change; elsewhere it is this call's
		within = t.host.Naming(path)
	}
	d, err := t.run(ctx, within, t.agents.o.Tools(t.info).Write, map[string]any{"filePath": path, "content": p.Content}, nil)
	if err != nil {
		return nil, refused(d, err)
	}
	// The person kept only some of the hunks, so the file differs from what the agent sent. The answer has no member for this; the next
	// prompt says it.
	if d.Metadata["partly"] == true {
		t.mu.Lock()
		t.told = append(t.told, "About "+t.rel(path)+": "+d.Output)
		t.mu.Unlock()
	}
	return protocol.WriteTextFileResponse{}, nil
}

// cancelled answers a permission request for which there was no decision.
var cancelled = protocol.RequestPermissionResponse{Outcome: protocol.RequestPermissionOutcome{Outcome: "cancelled"}}

// selected answers a permission request with the option that has this id.
func selected(id string) protocol.RequestPermissionResponse {
	return protocol.RequestPermissionResponse{Outcome: protocol.RequestPermissionOutcome{Outcome: "selected", Value: &protocol.SelectedPermissionOutcome{OptionID: id}}}
}

// option returns the id of the first option of one of the kinds; an earlier kind is preferred.
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

// requestPermission asks by Pillion's own rules. It always answers with the agent's "once" option where there is one: an "always" in the
// agent would hide later requests from Pillion, while an "always" in Pillion answers them without asking the person again.
func (t *turn) requestPermission(ctx context.Context, params json.RawMessage) (any, error) {
	var p protocol.RequestPermissionRequest
	if err := protocol.Decode(params, &p); err != nil {
		return nil, rpc.InvalidParams("%s", err)
	}
	// The request may be the first message about this call, and its title is the best one.
	call := p.ToolCall
	if call.Status == "" {
		call.Status = protocol.ToolCallStatusPending
	}
	id := t.show(call)
	call = t.collect(p.ToolCall) // with what the agent said of it before
	p.ToolCall = call
	if choices(call, p.Options) {
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
	// Some agents say nothing more of a call that was not allowed.
	t.host.Show(call.ToolCallID, func(d *agent.ToolData) {
		d.Status, d.ErrorKind, d.Error = agent.ToolError, "rejected", visible.Text(err.Error())
	})
	id, ok := option(p.Options, protocol.PermissionOptionKindRejectOnce, protocol.PermissionOptionKindRejectAlways)
	// Where no user was connected there is no message to pass on, and the agent already has its answer.
	if no == nil || !no.Unanswered {
		t.rejected(t.title(call.Title), message)
	}
	if !ok {
		return cancelled, nil
	}
	return selected(id), nil
}

// choices reports whether a request asks the person to choose, such as the mode in which a plan is carried out, and not whether the agent may
// do something, which the rules decide. Several options that say "always" differ only in how far that reaches, and several that say no in how
// the agent goes on: Gemini CLI, Qwen Code and Codex offer them for a command.
func choices(call protocol.ToolCallUpdate, list []protocol.PermissionOption) bool {
	switch call.Kind {
	case protocol.ToolKindExecute, protocol.ToolKindEdit, protocol.ToolKindDelete, protocol.ToolKindMove, protocol.ToolKindRead, protocol.ToolKindSearch, protocol.ToolKindFetch:
		return false
	}
	if command, _ := commandOf(call); command != "" {
		return false
	}
	once, always := 0, 0
	for _, o := range list {
		switch o.Kind {
		case protocol.PermissionOptionKindAllowOnce:
			once++
		case protocol.PermissionOptionKindAllowAlways:
			always++
		}
	}
	if call.Kind == protocol.ToolKindSwitchMode { // each is a mode
		return once+always > 1
	}
	return once > 1 || once == 0 && always > 1
}

// choose asks the person to choose one of the agent's own options.
func (t *turn) choose(ctx context.Context, call string, p protocol.RequestPermissionRequest) (any, error) {
	custom := false
	q := tools.Question{Question: t.agent.Name + " asks: " + t.title(p.ToolCall.Title), Header: tools.Cut(t.agent.Name, 30), Custom: &custom}
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

// ask asks the gate about a call that the agent is about to run itself. nil means that it may.
func (t *turn) ask(ctx context.Context, id string, call protocol.ToolCallUpdate) error {
	command, dir := commandOf(call)
	switch {
	case command != "":
		// Use the analysis and the rules of the tool bash, but show the question on the agent's own tool call.
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
	r := permission.Request{CallID: id, Tool: t.agent.ID, Permission: "external_agent", Title: t.agent.Name + ": " + t.title(call.Title),
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
		// The pattern is the agent's own name for the tool: an "always" then covers this tool of this agent only.
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

// askEdit decides about a change of files that the agent makes itself. In a draft the change is reviewed at the end of the turn, and an
// agent with Asks sends the write itself in its next request, which is reviewed then. So inside the project nobody is asked here, but a
// rule that denies the edit still refuses it; outside the project the person is asked.
func (t *turn) askEdit(ctx context.Context, id string, call protocol.ToolCallUpdate) error {
	r := permission.Request{CallID: id, Tool: t.agent.ID, Permission: "edit", Title: t.agent.Name + ": " + t.title(call.Title), Why: "the agent writes it by itself"}
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

// places returns the absolute paths of the files that a call names, each once.
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

// member returns the first of the named members of a JSON object that is a non-empty string; "" when there is none.
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

// commandOf returns the command that a call is about to run, and its working directory; "" where it runs none. ACP has no common form for
// this: most agents put the command into the arguments, as a string or as a list of words; the others put it into the title.
func commandOf(call protocol.ToolCallUpdate) (command, dir string) {
	dir = member(call.RawInput, "workdir", "cwd", "directory", "dir_path")
	var m map[string]any
	if json.Unmarshal(call.RawInput, &m) == nil {
		for _, name := range []string{"command", "cmd", "script"} {
			if command = commandText(m[name]); command != "" {
				break
			}
		}
		if list, ok := m["commands"].([]any); ok && command == "" { // Cline: each is a line of its own, or an object with one
			var lines []string
			for _, v := range list {
				if of, ok := v.(map[string]any); ok {
					v = of["command"]
				}
				if line := commandText(v); line != "" {
					lines = append(lines, line)
				}
			}
			command = strings.Join(lines, "\n")
		}
	}
	if call.Kind != protocol.ToolKindExecute {
		// A call of another kind with a member "command" is an edit or a fetch that runs nothing, unless the agent gave no kind at all.
		if call.Kind != "" && call.Kind != protocol.ToolKindOther {
			return "", ""
		}
		return command, dir
	}
	if command == "" {
		command = strings.Trim(toolName().ReplaceAllString(call.Title, ""), "` ")
	}
	return command, dir
}

// toolName matches the name of a tool before the command in a title, "Shell: ls". The analysis would take it for the program.
var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][\w ]*:\s+`) })

// commandText returns a command line that is a string or a list of words; "" for any other value.
func commandText(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []any:
		var words []string
		for _, w := range v {
			if s, ok := w.(string); ok {
				words = append(words, s)
			}
		}
		return commandLine(words)
	}
	return ""
}

// shells are programs whose -c takes a command line. commandLine unpacks it, because the line itself is what a person reads and what the
// analysis of commands understands.
var shells = []string{"sh", "bash", "dash", "zsh"}

// commandLine joins words to a line of bash.
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

// quote returns w such that bash reads it back as one word.
func quote(w string) string {
	plain := w != "" && strings.IndexFunc(w, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:=@%+,", r))
	}) < 0
	if plain {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}
