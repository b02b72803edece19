package lspbridge

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.lsp.dev/protocol"
)

// abilities holds what a server supports and which notifications it wants: its answer to initialize, and the capabilities that it
// registered later.
type abilities struct {
	root string // the folder against which relative globs of watched files are resolved

	// Set by initialize before anything reads them and never changed afterwards, so they need no lock.
	caps capabilities
	enc  Encoding

	mu   sync.Mutex              // guards what follows
	regs map[string]registration // by registration id
}

// capabilities is the part of ServerCapabilities that this package uses. Raw members may be a boolean or an object; see has.
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

	// Sync as readSync decoded it.
	texts syncOptions
	info  string // name and version, for the log
}

// has reports whether a provider member announces support: true, or an options object.
func has(raw json.RawMessage) bool {
	return len(raw) > 0 && string(raw) != "false" && string(raw) != "null"
}

// registration is a capability that the server registered after initialize.
type registration struct {
	Method string
	globs  []watchGlob // of didChangeWatchedFiles
	files  fileFilters // of file operations

	Identifier  string // of pull diagnostics
	IncludeText bool   // of didSave
	SyncKind    int    // of didChange
}

// newAbilities starts with UTF-16, the encoding of servers that announce none (LSP, positionEncoding).
func newAbilities(root string) *abilities {
	return &abilities{root: root, enc: UTF16, regs: map[string]registration{}}
}

// register handles client/registerCapability and client/unregisterCapability. The specification misspells the member "unregisterations".
func (a *abilities) register(params json.RawMessage) {
	var p struct {
		Registrations []struct {
			ID, Method      string
			RegisterOptions json.RawMessage
		}
		Unregisterations []struct{ ID string }
	}
	_ = json.Unmarshal(params, &p)
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range p.Registrations {
		// Options of methods that this package does not use are not decoded: they may have any shape.
		reg := registration{Method: r.Method}
		if r.Method == protocol.MethodWorkspaceDidChangeWatchedFiles {
			reg.globs = watchGlobs(a.root, r.RegisterOptions)
		}
		// workspace/willRenameFiles and the five other file operations. didChangeWatchedFiles also ends in "Files"; it has no filters, so
		// decoding it finds none.
		if strings.HasSuffix(r.Method, "Files") {
			_ = json.Unmarshal(r.RegisterOptions, &reg.files)
		}
		switch r.Method {
		case protocol.MethodTextDocumentDiagnostic, protocol.MethodTextDocumentDidSave, protocol.MethodTextDocumentDidChange:
			_ = json.Unmarshal(r.RegisterOptions, &reg)
		}
		a.regs[r.ID] = reg
	}
	for _, r := range p.Unregisterations {
		delete(a.regs, r.ID)
	}
}

// registered reports whether the server has registered a method after initialize.
func (a *abilities) registered(method string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.regs {
		if r.Method == method {
			return true
		}
	}
	return false
}

// runs reports whether the server announced a command for workspace/executeCommand.
func (a *abilities) runs(command string) bool {
	return a.caps.Execute != nil && slices.Contains(a.caps.Execute.Commands, command)
}

// pulls reports whether the server answers textDocument/diagnostic. Some servers register it long after initialize, so callers must not
// cache the answer.
func (a *abilities) pulls() bool {
	return has(a.caps.Diagnostic) || a.registered(protocol.MethodTextDocumentDiagnostic)
}

// identifiers returns the identifiers of the server's pull diagnostics (DiagnosticOptions.identifier); each must be requested separately.
// "" is the source without an identifier.
func (a *abilities) identifiers() []string {
	var static registration
	_ = json.Unmarshal(a.caps.Diagnostic, &static)
	a.mu.Lock()
	defer a.mu.Unlock()
	names := map[string]bool{}
	if has(a.caps.Diagnostic) {
		names[static.Identifier] = true
	}
	for _, r := range a.regs {
		if r.Method == protocol.MethodTextDocumentDiagnostic {
			names[r.Identifier] = true
		}
	}
	if len(names) == 0 { // it has unregistered since the caller called pulls
		return []string{""}
	}
	return slices.Sorted(maps.Keys(names))
}

// wishes returns the document notifications that the server wants at present: those announced and those registered. It ignores the document
// selector of a registration: a superfluous notification is harmless, a missing one makes answers wrong.
func (a *abilities) wishes() syncOptions {
	w := a.caps.texts
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.regs {
		switch r.Method {
		case protocol.MethodTextDocumentDidOpen:
			w.open = true
		case protocol.MethodTextDocumentDidChange:
			w.open = true
			if w.change == 0 {
				w.change = r.SyncKind
			}
		case protocol.MethodTextDocumentDidSave:
			w.save, w.text = true, w.text || r.IncludeText
		}
	}
	return w
}

// wanted returns those changes on disk that the server has registered to watch.
func (a *abilities) wanted(events []fileEvent) []fileEvent {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []fileEvent
	for _, e := range events {
		for _, r := range a.regs {
			if r.Method == protocol.MethodWorkspaceDidChangeWatchedFiles && r.wants(e) {
				out = append(out, e)
				break
			}
		}
	}
	return out
}

// wants reports whether one of the registration's globs matches.
func (r registration) wants(e fileEvent) bool {
	for _, g := range r.globs {
		if g.match(e) {
			return true
		}
	}
	return false
}

// operations returns the file operations that the server announced or registered.
func (a *abilities) operations() fileOperations {
	ops := a.caps.Workspace.FileOperations
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.regs {
		switch r.Method {
		case protocol.MethodWorkspaceWillCreateFiles:
			ops.WillCreate = r.files
		case protocol.MethodWorkspaceDidCreateFiles:
			ops.DidCreate = r.files
		case protocol.MethodWorkspaceWillRenameFiles:
			ops.WillRename = r.files
		case protocol.MethodWorkspaceDidRenameFiles:
			ops.DidRename = r.files
		case protocol.MethodWorkspaceWillDeleteFiles:
			ops.WillDelete = r.files
		case protocol.MethodWorkspaceDidDeleteFiles:
			ops.DidDelete = r.files
		}
	}
	return ops
}

// syncOptions are the document notifications that a server wants (TextDocumentSyncOptions).
type syncOptions struct {
	open   bool // didOpen and didClose
	change int  // 0 none, 1 full, 2 incremental
	save   bool // didSave
	text   bool // … with the text
}

// readSync decodes textDocumentSync, a number or an object. Some small servers do not announce it and still need the texts: they get
// didOpen and full didChange. A server that says "none" gets nothing.
func readSync(raw json.RawMessage) syncOptions {
	if !has(raw) {
		return syncOptions{open: true, change: 1}
	}
	var n int
	// A number is a TextDocumentSyncKind, and by the specification also implies open, close and save.
	if json.Unmarshal(raw, &n) == nil {
		return syncOptions{open: n > 0, change: n, save: n > 0}
	}
	var o struct {
		OpenClose *bool           `json:"openClose"`
		Change    int             `json:"change"`
		Save      json.RawMessage `json:"save"`
	}
	_ = json.Unmarshal(raw, &o)
	out := syncOptions{open: o.Change > 0, change: o.Change, save: has(o.Save)}
	if o.OpenClose != nil {
		out.open = out.open || *o.OpenClose // a server ignores changes of a document that was never opened
	}
	var save struct{ IncludeText bool }
	_ = json.Unmarshal(o.Save, &save)
	out.text = save.IncludeText
	return out
}
