package lspbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pillion-dev/pillion/lspbridge/lsp"
	"go.lsp.dev/protocol"
)

// client is one run of one server; a restart makes another client. Each part guards its state with its own lock, and no part calls another
// while holding it. The exception is documents: it counts and queues its notifications under its lock, so that document versions and
// messages are in the same order.
type client struct {
	connection
	diagnostics // its spec, documents and ledger are the client's
	root        string
	host        host
	made        time.Time // before the server was started; what was there then it loads with the project

	dependents *dependents      // finds the files that a change of another file affects
	background *backgroundPulls // files to ask about again in the background
	disk       *diskQueue       // changes on disk that the server has not been told yet
	commands   *commandRun      // the workspace/executeCommand that is running
	exclusive  *exclusive       // who may change documents
	edits      *editResolver    // what the server's edits change

	objects    bool        // answer {} instead of null for a settings section without a value, because the previous run crashed after a null
	noSettings atomic.Bool // the server has requested a settings section without a value
}

// host is the part of the manager that a client calls; tests use clients without a manager.
type host struct {
	project string                               // the fleet's root
	text    func(path string) (string, bool)     // the text that the person sees: the editor's buffer, else the disk
	buffer  func(path string) (string, bool)     // only the editor's buffer
	unsaved func(s Server, root string) []string // files of this server whose buffer differs from the disk
	// apply handles a workspace/applyEdit that no command of Pillion's caused.
	apply func(ctx context.Context, label string, edit lsp.WorkspaceEdit, c *client) error
	// tsserver forwards a request of another server (Vue) to the TypeScript server of the same project; nil
	// when there is none.
	tsserver func(ctx context.Context, root, command string, args json.RawMessage) json.RawMessage
	notice   func(server, text string) // shows the person a text, once
	baseline time.Duration             // Options.Baseline
	changed  func(paths []string)      // called when problems have changed outside a proposal; nil without Options.Diagnostics
}

// newClient makes a client that is not connected yet. h must be complete before connect, because messages arrive at once.
func newClient(spec Server, root string, h host, log *slog.Logger) *client {
	c := &client{connection: connection{id: spec.ID, log: log, notice: h.notice, gone: make(chan struct{})},
		root: root, host: h, made: time.Now()}
	c.liveness = c
	c.diagnostics = diagnostics{connection: &c.connection, spec: spec, able: newAbilities(root), ledger: newLedger(&c.changed), progress: newProgress(), text: h.text}
	for _, method := range spec.Quirks.Alone {
		if c.alone == nil {
			c.alone = map[string]chan struct{}{}
		}
		c.alone[method] = make(chan struct{}, 1)
	}
	c.docs = newDocuments(c, c.able, spec.Quirks)
	if h.changed != nil {
		c.feed = &liveFeed{report: c.reportFeed}
	}
	c.edits = &editResolver{able: c.able, docs: c.docs, text: h.text}
	c.commands = newCommandRun(&c.connection, c.able, c.edits.resolve)
	c.dependents = &dependents{diagnostics: &c.diagnostics, root: root, project: h.project}
	c.background = &backgroundPulls{pull: c.refreshOpen, followed: h.changed != nil}
	c.disk = &diskQueue{deliver: c.diskChanged, idle: c.changed.wake}
	c.exclusive = newExclusive(&c.connection, c.background.interrupt)
	return c
}

// initialize performs the LSP handshake: initialize, initialized, and the settings. Nothing else may be sent before it returns. It sets the
// capabilities and the encoding, which never change afterwards and so need no lock.
func (c *client) initialize(ctx context.Context) error {
	folder := []map[string]any{{"uri": pathURI(c.root), "name": filepath.Base(c.root)}}
	params := map[string]any{
		// With processId a server can exit when this process is gone. rootUri and rootPath are deprecated, but older servers read nothing
		// else (LSP, InitializeParams).
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
	var odd *json.UnmarshalTypeError // one member of the wrong type does not invalidate the others, which are decoded
	if err := c.call(ctx, protocol.MethodInitialize, params, &answer); errors.As(err, &odd) && strings.HasPrefix(odd.Field, "capabilities.") {
		c.log.Warn("odd capabilities", "server", c.id, "err", err)
	} else if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	caps := answer.Capabilities
	caps.texts = readSync(caps.Sync)
	caps.info = answer.ServerInfo.Name + " " + answer.ServerInfo.Version
	c.able.caps = caps
	// The encoding stays UTF-16 when the server announces none, or one that was not offered.
	switch e := Encoding(caps.Encoding); e {
	case UTF8, UTF16, UTF32:
		c.able.enc = e
	}
	if c.spec.Quirks.Encoding != "" {
		c.able.enc = c.spec.Quirks.Encoding
	}
	if err := c.notify(protocol.MethodInitialized, map[string]any{}); err != nil {
		return err
	}
	if c.spec.Settings != "" && !c.spec.Quirks.EndMarker { // gopls has them from initialize, and would diagnose everything a second time
		_ = c.notify(protocol.MethodWorkspaceDidChangeConfiguration, map[string]any{"settings": json.RawMessage(c.spec.Settings)})
	}
	c.changed.wake()
	return nil
}

// busy implements liveness.
func (d *diagnostics) busy() bool { return d.progress.loading() != "" }

// probe implements liveness: a request about the document used last, which a working server answers quickly.
func (c *client) probe() (method string, params any) {
	open := c.docs.paths()
	if len(open) == 0 {
		return "", nil
	}
	at := map[string]any{"textDocument": map[string]any{"uri": pathURI(open[0])}}
	switch {
	case has(c.able.caps.DocSymbol):
		return protocol.MethodTextDocumentDocumentSymbol, at
	case has(c.able.caps.Hover):
		at["position"] = map[string]int{"line": 0, "character": 0}
		return protocol.MethodTextDocumentHover, at
	}
	return "", nil
}

// sync opens files or updates them to what the person sees, and closes files that no longer exist. It reports whether it sent anything. The
// caller must have acquired c.exclusive.
func (c *client) sync(paths []string) (told bool) {
	for _, p := range paths {
		text, buffered := c.host.buffer(p)
		there := buffered
		if !buffered {
			text, there = c.host.text(p)
		}
		if !there {
			told = c.docs.close(p) || told
			continue
		}
		_, sent := c.docs.put(p, text)
		told = told || sent
		c.docs.setBuffered(p, buffered)
	}
	c.docs.trim(paths)
	return told
}

// withBuffers returns paths and the other files whose text the server must know before its answers are right: those with unsaved buffers,
// and those whose buffer was discarded since.
func (c *client) withBuffers(paths []string) []string {
	out := slices.Clone(paths)
	add := func(p string) {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	for _, p := range c.host.unsaved(c.spec, c.root) {
		add(p)
	}
	for _, p := range c.docs.paths() {
		doc, _ := c.docs.get(p)
		if _, is := c.host.buffer(p); is || doc.buffered {
			add(p)
		}
	}
	return out
}

// readsDisk reports whether the server accepts no texts: it sees written files, but no proposal.
func (c *client) readsDisk() bool { return !c.able.wishes().open }

// clientCapabilities are the ClientCapabilities of initialize. Announce only what handlers.go and edit.go implement: servers use what is
// announced, and a request would go unanswered or an edit be applied wrongly.
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
