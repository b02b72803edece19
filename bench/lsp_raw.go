package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
)

// rawServer is the simplest client of a language server: what the protocol itself takes.
type rawServer struct {
	cmd     *exec.Cmd
	peer    *rpc.Peer
	uri     string
	path    string
	version int
	last    int // the line that changes, from 0
	length  int // its present length
	init    map[string]any

	mu     sync.Mutex // guards what follows
	tokens map[string]string
	ends   int // diagnoses that ended
	waited int
	pushed string // the last publishDiagnostics of the file
	pushes int32  // its version
	wake   chan struct{}
}

func (b *bench) rawServer(l language, dir, text string) *rawServer {
	s := &rawServer{path: filepath.Join(dir, l.file), tokens: map[string]string{}, wake: make(chan struct{})}
	s.uri = "file://" + s.path
	s.last = strings.Count(text, "\n")
	s.cmd = exec.CommandContext(b.ctx, l.program(), l.command[1:]...)
	s.cmd.Dir = dir
	in, err := s.cmd.StdinPipe()
	check(err)
	out, err := s.cmd.StdoutPipe()
	check(err)
	check(s.cmd.Start())
	s.peer = rpc.NewPeer(rpc.NewHeaderStream(out, in, rpc.StreamOptions{}), rpc.PeerOptions{Handler: s.handle, Cancel: rpc.CancelLSP})
	options := map[string]any{"disableAutomaticTypingAcquisition": true}
	if l.id == "gopls" {
		s.init = map[string]any{"verboseWorkDoneProgress": true, "diagnosticsDelay": "0s"}
		options = s.init
	}
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	check(s.peer.Call(ctx, "initialize", map[string]any{
		"processId": os.Getpid(), "rootUri": "file://" + dir, "initializationOptions": options,
		"workspaceFolders": []any{map[string]any{"uri": "file://" + dir, "name": "p"}},
		"capabilities": map[string]any{
			"window":    map[string]any{"workDoneProgress": true},
			"workspace": map[string]any{"configuration": true, "workspaceFolders": true, "diagnostics": map[string]any{"refreshSupport": true}},
			"textDocument": map[string]any{
				"publishDiagnostics": map[string]any{"versionSupport": true},
				"diagnostic":         map[string]any{"dynamicRegistration": true},
				"synchronization":    map[string]any{},
			},
		},
	}, nil))
	check(s.peer.Notify(ctx, "initialized", map[string]any{}))
	s.version = 1
	language := map[string]string{".go": "go", ".ts": "typescript", ".py": "python", ".cpp": "cpp"}[filepath.Ext(l.file)]
	check(s.peer.Notify(ctx, "textDocument/didOpen", map[string]any{"textDocument": map[string]any{"uri": s.uri, "languageId": language, "version": 1, "text": text}}))
	return s
}

func (s *rawServer) handle(_ context.Context, r *rpc.Request) (any, error) {
	switch r.Method {
	case "workspace/configuration":
		var p struct{ Items []any }
		_ = json.Unmarshal(r.Params, &p)
		out := make([]any, len(p.Items))
		for i := range out {
			out[i] = s.init
		}
		return out, nil
	case "$/progress":
		var p struct {
			Token any
			Value struct{ Kind, Title string }
		}
		_ = json.Unmarshal(r.Params, &p)
		s.mu.Lock()
		defer s.mu.Unlock()
		token := fmt.Sprint(p.Token)
		switch p.Value.Kind {
		case "begin":
			s.tokens[token] = p.Value.Title
		case "end":
			if strings.HasPrefix(s.tokens[token], "diagnosing changed") {
				s.ends++
				s.bump()
			}
			delete(s.tokens, token)
		}
	case "textDocument/publishDiagnostics":
		var p struct {
			URI         string
			Version     int32
			Diagnostics json.RawMessage
		}
		_ = json.Unmarshal(r.Params, &p)
		s.mu.Lock()
		defer s.mu.Unlock()
		if p.URI == s.uri {
			s.pushed, s.pushes = string(p.Diagnostics), p.Version
			s.bump()
		}
	}
	return nil, nil
}

// bump wakes those who wait. s.mu is held.
func (s *rawServer) bump() {
	close(s.wake)
	s.wake = make(chan struct{})
}

// until waits until ok, asked with s.mu held.
func (s *rawServer) until(ok func() bool, what string) error {
	limit := time.After(10 * time.Minute) // gopls takes minutes to load a large module on a busy machine
	for {
		s.mu.Lock()
		done, wake := ok(), s.wake
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-wake:
		case <-limit:
			return fmt.Errorf("the raw client waited in vain for %s", what)
		case <-s.peer.Done():
			return fmt.Errorf("the server ended: %v", s.peer.Err())
		}
	}
}

// change replaces the last line.
func (s *rawServer) change(line string) error {
	s.version++
	end := map[string]any{"line": s.last, "character": s.length}
	if s.length > 0 { // the line and its newline
		end = map[string]any{"line": s.last + 1, "character": 0}
	}
	s.length = len(line)
	s.mu.Lock()
	s.waited = s.ends
	s.mu.Unlock()
	return s.peer.Notify(context.Background(), "textDocument/didChange", map[string]any{
		"textDocument":    map[string]any{"uri": s.uri, "version": s.version},
		"wantDiagnostics": true,
		"contentChanges":  []any{map[string]any{"range": map[string]any{"start": map[string]any{"line": s.last, "character": 0}, "end": end}, "text": line}},
	})
}

// warm waits for the first diagnostics of the file; a server that is pulled does not push any.
func (s *rawServer) warm(pulls bool) error {
	if pulls {
		return s.peer.Call(context.Background(), "textDocument/diagnostic", map[string]any{"textDocument": map[string]any{"uri": s.uri}}, nil)
	}
	return s.until(func() bool { return s.pushed != "" || len(s.tokens) == 0 && s.pushes > 0 }, "the first diagnostics")
}

// ended waits for the end of gopls' diagnosis of the change.
func (s *rawServer) ended(i int) error {
	if err := s.until(func() bool { return s.ends > s.waited }, "the end of the diagnosis"); err != nil {
		return err
	}
	return s.has(s.lastPush(), i)
}

func (s *rawServer) lastPush() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pushed
}

func (s *rawServer) has(text string, i int) error {
	if !strings.Contains(text, name(i)) {
		return fmt.Errorf("the raw client's answer to change %d lacks %s: %s", i, name(i), text)
	}
	return nil
}

// push waits for a publish that names the mistake.
func (s *rawServer) push(i int) error {
	return s.until(func() bool { return strings.Contains(s.pushed, name(i)) }, "a push")
}

// pull asks for the file's diagnostics.
func (s *rawServer) pull(i int) error {
	var out json.RawMessage
	if err := s.peer.Call(context.Background(), "textDocument/diagnostic", map[string]any{"textDocument": map[string]any{"uri": s.uri}}, &out); err != nil {
		return err
	}
	return s.has(string(out), i)
}

// tsserver asks the three questions behind TypeScript's diagnostics.
func (s *rawServer) tsserver(i int) error {
	var wg sync.WaitGroup
	var outs [3]json.RawMessage
	var errs [3]error
	for k, kind := range []string{"syntacticDiagnosticsSync", "semanticDiagnosticsSync", "suggestionDiagnosticsSync"} {
		wg.Go(func() {
			errs[k] = s.peer.Call(context.Background(), "workspace/executeCommand", map[string]any{"command": "typescript.tsserverRequest", "arguments": []any{kind, map[string]any{"file": s.path}}}, &outs[k])
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return s.has(string(outs[1]), i)
}

func (s *rawServer) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	_ = s.peer.Call(ctx, "shutdown", nil, nil)
	_ = s.peer.Notify(ctx, "exit", nil)
	done := make(chan struct{})
	go func() { _ = s.cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-ctx.Done():
		_ = s.cmd.Process.Kill()
		<-done
	}
	_ = s.peer.Close()
}

// bins is where the tests' language servers are installed.
func (l language) bins() []string {
	abs, err := filepath.Abs(filepath.Join(".cache/servers", l.bin, "node_modules/.bin"))
	if err != nil {
		return nil
	}
	return []string{abs}
}

// program is the server's; "" when it is not installed.
func (l language) program() string {
	for _, bin := range l.bins() {
		if p, err := exec.LookPath(filepath.Join(bin, l.command[0])); err == nil {
			return p
		}
	}
	p, _ := exec.LookPath(l.command[0])
	return p
}
