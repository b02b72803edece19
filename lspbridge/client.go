package lspbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"go.lsp.dev/jsonrpc2"
	"go.lsp.dev/protocol"
	"go.opentelemetry.io/otel/attribute"
)

// maxMessage is what one message of a server may weigh, in bytes: symbols of a big project run to tens of megabytes.
const maxMessage = 64 << 20

// client is one run of one server: its connection, what it can do, and what it said. A restart makes a new one.
type client struct {
	spec Server
	root string
	host host
	log  *slog.Logger
	peer *rpc.Peer
	proc *process      // nil for a server over pipes
	gone chan struct{} // closed when the connection has ended

	health health

	caps capabilities // written by initialize, before anything else reads it
	enc  Encoding

	objects    bool        // a section without settings is {} for this run
	noSettings atomic.Bool // the server has asked for one

	commands chan struct{} // full while a command of ours runs

	txn chan struct{} // holds one token: who takes it may change documents for a transaction

	mu         sync.Mutex // guards what follows
	changed    chan struct{}
	docs       map[string]*document
	versions   map[string]int32 // last version used per path; survives didClose
	files      map[string]*fileDiags
	overlay    *overlay          // the transaction that publishes belong to now
	tokens     map[string]string // open progress: token → title
	details    map[string]string // … and how far it is
	sent       map[string]int    // notifications by the cause EndMarker servers report
	ended      map[string]int    // diagnoses that ended, by cause
	regs       map[string]registration
	command    *command          // of ours that runs: edits the server asks for now are its
	seq        uint64            // counts everything that may change diagnostics
	refresh    uint64            // counts workspace/diagnostic/refresh, without echoes
	echo       echo              // what the next refresh of a server with echoes is about
	idleFile   map[string]uint64 // clangd: seq at which a file was reported idle
	latency    time.Duration     // learned time from a change to an unversioned publish
	ready      bool
	useTick    uint64
	waited     map[string]time.Duration // for files the server has never published anything of
	everSpoke  bool                     // it has published of some file
	acquainted bool                     // it has answered for the problems of a file once
	stumbles   map[string]string        // why the server failed over a file it is being asked about
	elsewhere  map[string]bool          // files whose last pull was about a proposal: some servers keep their fixes from that
	disk       []fileEvent              // changes on disk to tell of
	telling    bool                     // a goroutine is at it
	fresh      map[string]bool          // files whose problems changed and nobody was told; nil when none
	touched    map[string]bool          // files to look at again by ourselves; nil when no look is planned
	giveWay    func()                   // ends the look that is under way
}

// host is what a client needs of its manager.
type host struct {
	text    func(path string) (string, bool)     // what the person sees: buffer, else disk
	buffer  func(path string) (string, bool)     // the buffer alone
	unsaved func(s Server, root string) []string // files of this server that are not on disk as the person sees them
	apply   func(ctx context.Context, label string, edit lsp.WorkspaceEdit, c *client) error
	// tsserver asks the TypeScript server of a project something for another server; nil: there is none to ask
	tsserver func(ctx context.Context, root, command string, args json.RawMessage) json.RawMessage
	notice   func(server, text string) // something a person should know, once
	changed  func(paths []string)      // problems changed outside a proposal; nil when nobody listens
}

// capabilities are what initialize answered, as far as we ask.
type capabilities struct {
	Encoding       string                       `json:"positionEncoding"`
	Sync           json.RawMessage              `json:"textDocumentSync"`
	Diagnostic     json.RawMessage              `json:"diagnosticProvider"`
	CodeAction     json.RawMessage              `json:"codeActionProvider"`
	Execute        *struct{ Commands []string } `json:"executeCommandProvider"`
	Definition     json.RawMessage              `json:"definitionProvider"`
	TypeDefinition json.RawMessage              `json:"typeDefinitionProvider"`
	Implementation json.RawMessage              `json:"implementationProvider"`
	References     json.RawMessage              `json:"referencesProvider"`
	Hover          json.RawMessage              `json:"hoverProvider"`
	DocSymbol      json.RawMessage              `json:"documentSymbolProvider"`
	WorkSymbol     json.RawMessage              `json:"workspaceSymbolProvider"`
	CallHierarchy  json.RawMessage              `json:"callHierarchyProvider"`
	TypeHierarchy  json.RawMessage              `json:"typeHierarchyProvider"`
	Rename         json.RawMessage              `json:"renameProvider"`
	Format         json.RawMessage              `json:"documentFormattingProvider"`
	Workspace      workspaceCaps                `json:"workspace"`

	texts syncOptions
	info  string
}

// has reports a provider: true or an object.
func has(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "false" && string(raw) != "null"
}

// registration is a capability the server registered later.
type registration struct {
	Method string
	globs  []watchGlob // of didChangeWatchedFiles
	files  fileFilters // of file operations

	Identifier  string // of pull diagnostics
	IncludeText bool   // of didSave
	SyncKind    int    // of didChange
}

func newClient(spec Server, root string, h host, log *slog.Logger) *client {
	c := &client{spec: spec, root: root, host: h, log: log, gone: make(chan struct{}), txn: make(chan struct{}, 1), commands: make(chan struct{}, 1), enc: UTF16,
		changed: make(chan struct{}), docs: map[string]*document{}, versions: map[string]int32{}, files: map[string]*fileDiags{},
		tokens: map[string]string{}, details: map[string]string{}, sent: map[string]int{}, ended: map[string]int{}, regs: map[string]registration{}, waited: map[string]time.Duration{}, elsewhere: map[string]bool{}, stumbles: map[string]string{}, idleFile: map[string]uint64{}}
	c.txn <- struct{}{}
	return c
}

// connect starts talking over a server's output and input. It takes both over.
func (c *client) connect(r io.ReadCloser, w io.WriteCloser) {
	out := rpc.NewOutbox(w, rpc.OutboxOptions{}) // never blocks its writers, so a server that stopped reading stops nobody
	stream := rpc.NewHeaderStream(r, out, rpc.StreamOptions{MaxMessage: maxMessage, OnBad: c.noise, Trace: c.traced})
	c.peer = rpc.NewPeer(stream, rpc.PeerOptions{Handler: c.handle, Codec: rpc.LSP, Cancel: rpc.CancelLSP,
		Log: func(err error) { c.log.Warn("server message", "server", c.spec.ID, "err", err) }})
	go func() {
		<-c.peer.Done()
		close(c.gone)
		c.mu.Lock()
		c.ready = false
		c.bump()
		c.mu.Unlock()
	}()
}

// traced sees every frame.
func (c *client) traced(direction byte, _ []byte) {
	if direction == '<' {
		c.health.hear()
	}
}

// bump wakes everybody who waits for a change of state. c.mu is held.
func (c *client) bump() {
	close(c.changed)
	c.changed = make(chan struct{})
}

var errGone = errors.New("the language server stopped")

// await waits until cond, asked with c.mu held, is true.
func (c *client) await(ctx context.Context, cond func() bool) error {
	for {
		select {
		case <-c.gone: // what it said last is no answer any more
			return errGone
		default:
		}
		c.mu.Lock()
		ok, ch := cond(), c.changed
		c.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-ch:
		case <-c.gone:
			return errGone
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// initialize does the handshake.
func (c *client) initialize(ctx context.Context) error {
	folder := []map[string]any{{"uri": pathURI(c.root), "name": filepath.Base(c.root)}}
	params := map[string]any{
		"processId": os.Getpid(), "clientInfo": map[string]string{"name": "pillion"}, "locale": "en",
		"rootUri": pathURI(c.root), "rootPath": c.root, "workspaceFolders": folder,
		"capabilities": json.RawMessage(clientCapabilities), "trace": "off",
	}
	if c.spec.Init != "" {
		params["initializationOptions"] = json.RawMessage(c.spec.Init)
	}
	var answer struct {
		Capabilities capabilities                   `json:"capabilities"`
		ServerInfo   struct{ Name, Version string } `json:"serverInfo"`
	}
	var odd *json.UnmarshalTypeError // one member of the wrong type says nothing of the others, which have been read
	if err := c.call(ctx, protocol.MethodInitialize, params, &answer); errors.As(err, &odd) && strings.HasPrefix(odd.Field, "capabilities.") {
		c.log.Warn("odd capabilities", "server", c.spec.ID, "err", err)
	} else if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	c.caps = answer.Capabilities
	c.caps.texts = readSync(c.caps.Sync)
	c.caps.info = answer.ServerInfo.Name + " " + answer.ServerInfo.Version
	switch e := Encoding(c.caps.Encoding); e {
	case UTF8, UTF16, UTF32:
		c.enc = e
	}
	if c.spec.Quirks.Encoding != "" {
		c.enc = c.spec.Quirks.Encoding
	}
	if err := c.notify(protocol.MethodInitialized, map[string]any{}); err != nil {
		return err
	}
	if c.spec.Settings != "" && !c.spec.Quirks.EndMarker { // gopls has them from initialize, and would diagnose everything again
		_ = c.notify(protocol.MethodWorkspaceDidChangeConfiguration, map[string]any{"settings": json.RawMessage(c.spec.Settings)})
	}
	c.mu.Lock()
	c.ready = true
	c.bump()
	c.mu.Unlock()
	return nil
}

// call asks the server. result is decoded with encoding/json, which forgives more than the protocol library.
func (c *client) call(ctx context.Context, method string, params, result any) error {
	p, err := json.Marshal(params)
	if err != nil {
		return err
	}
	if params == nil {
		p = nil
	}
	var raw json.RawMessage
	var send any
	if p != nil {
		send = json.RawMessage(p)
	}
	traced, end := span(ctx, "language server "+method, attribute.String("rpc.system.name", "jsonrpc"), attribute.String("rpc.method", method), attribute.String("pillion.server", c.spec.ID))
	wait, done := c.patience(traced)
	err = c.peer.Call(wait, method, send, &raw)
	end(err)
	done(err)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.ErrClosedPipe) || errors.Is(err, jsonrpc2.ErrClientClosing) {
			select { // the connection is ending; whoever asks next must see that it has
			case <-c.gone:
			case <-ctx.Done():
			}
		}
		if c.dead() {
			return errGone
		}
		return err
	}
	if result == nil {
		return nil
	}
	if r, ok := result.(*json.RawMessage); ok {
		*r = raw
		return nil
	}
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, result); err != nil {
		return fmt.Errorf("%s: the answer has the wrong shape: %w", method, err)
	}
	return nil
}

// notify queues a notification; it never waits for the server.
func (c *client) notify(method string, params any) error {
	p, err := json.Marshal(params)
	if err != nil {
		return err
	}
	return c.peer.Notify(context.Background(), method, json.RawMessage(p))
}

// Times a server gets to go by itself.
const (
	shutdownWait = time.Second
	exitWait     = 500 * time.Millisecond
)

// stop ends the server: shutdown, exit, closed pipe, then the whole group is killed.
func (c *client) stop(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, shutdownWait)
	defer cancel()
	select {
	case <-c.gone:
	default:
		if err := c.call(ctx, protocol.MethodShutdown, nil, nil); err == nil {
			_ = c.peer.Notify(ctx, protocol.MethodExit, nil)
			if c.proc != nil {
				select {
				case <-c.proc.exited:
				case <-ctx.Done():
				case <-time.After(exitWait):
				}
			}
		}
	}
	if c.proc != nil {
		select {
		case <-c.proc.exited:
		default:
			c.proc.kill()
			<-c.proc.exited
		}
	}
	_ = c.peer.Close()
}

// clientCapabilities is what we can do. Nothing is announced that handlers.go or edit.go does not honour.
const clientCapabilities = `{
"general":{"positionEncodings":["utf-16","utf-8","utf-32"],"staleRequestSupport":{"cancel":true,"retryOnContentModified":["textDocument/diagnostic"]},"markdown":{"parser":"marked"}},
"window":{"workDoneProgress":true,"showMessage":{"messageActionItem":{"additionalPropertiesSupport":false}},"showDocument":{"support":false}},
"workspace":{"applyEdit":true,"workspaceFolders":true,"configuration":true,
 "workspaceEdit":{"documentChanges":true,"resourceOperations":["create","rename","delete"],"failureHandling":"transactional","normalizesLineEndings":false,"changeAnnotationSupport":{"groupsOnLabel":false}},
 "didChangeConfiguration":{"dynamicRegistration":true},"didChangeWatchedFiles":{"dynamicRegistration":true,"relativePatternSupport":true},
 "symbol":{"dynamicRegistration":false,"resolveSupport":{"properties":["location.range"]}},
 "executeCommand":{"dynamicRegistration":false},"diagnostics":{"refreshSupport":true},"fileOperations":{"dynamicRegistration":true,"willCreate":true,"didCreate":true,"willRename":true,"didRename":true,"willDelete":true,"didDelete":true}},
"textDocument":{
 "synchronization":{"dynamicRegistration":true,"didSave":true},
 "publishDiagnostics":{"relatedInformation":true,"tagSupport":{"valueSet":[1,2]},"versionSupport":true,"codeDescriptionSupport":true,"dataSupport":true},
 "diagnostic":{"dynamicRegistration":true,"relatedDocumentSupport":true},
 "definition":{"linkSupport":true},"typeDefinition":{"linkSupport":true},"implementation":{"linkSupport":true},"references":{},
 "hover":{"contentFormat":["markdown","plaintext"]},
 "documentSymbol":{"hierarchicalDocumentSymbolSupport":true},
 "callHierarchy":{},"typeHierarchy":{},
 "codeAction":{"codeActionLiteralSupport":{"codeActionKind":{"valueSet":["quickfix","refactor","refactor.extract","refactor.inline","refactor.rewrite","source","source.organizeImports","source.fixAll"]}},"isPreferredSupport":true,"disabledSupport":true,"dataSupport":true,"resolveSupport":{"properties":["edit","command"]},"honorsChangeAnnotations":true},
 "rename":{"prepareSupport":true,"honorsChangeAnnotations":true},"formatting":{}},
"experimental":{"serverStatusNotification":true}}`
