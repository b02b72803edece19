// Package editors knows the connected editors: what each announced, what it shows of files, how a change is written
// through it, and which editors have which session open. Several may have the same one: a question goes to all of
// them, and the first answer counts.
//
// It does not know the Agent Client Protocol's sessions and updates (package acp), and it never writes a file itself:
// what no editor has open goes to the Applier that it was given.
package editors

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.lsp.dev/jsonrpc2"

	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools"
	"github.com/pillion-dev/pillion/tools/files"
	"github.com/pillion-dev/pillion/tools/permission"
)

// DataTimeout limits every request to an editor that a program answers, not a person.
const DataTimeout = 10 * time.Second

// Caller sends a request to an editor and decodes the result; *rpc.Peer is one.
type Caller interface {
	Call(ctx context.Context, method string, params, result any) error
}

// Person is whoever sits in front of an editor: their decisions, and what they must know of them.
type Person interface {
	// AskPermission and AskQuestions return when the person has answered; the end of ctx withdraws the question. session is as the editor
	// knows it, while the request names the session that asks.
	AskPermission(ctx context.Context, session string, r permission.Request) (permission.Reply, error)
	AskQuestions(ctx context.Context, session string, call *tools.Call, qs []tools.Question) ([][]string, error)
	// AnsweredElsewhere: another editor of the session answered first.
	AnsweredElsewhere(session, decision string)
	// ReadersChanged: another editor opened or left the session.
	ReadersChanged(session string)
}

// Editor is one connected editor: what it announced, what it shows, and how it is asked. The connection's own state
// (sessions, updates, requests) is not here. It is safe for concurrent use.
type Editor struct {
	Person  Person
	Buffers *Buffers // the documents it reports as open; empty for an editor that must be asked

	ctx     context.Context // ends with the connection
	docs    *documents
	mu      sync.Mutex
	limit   time.Duration // of requests that a program answers; guarded by mu
	peer    Caller        // guarded by mu; nil until Connect
	client  *Client       // guarded by mu
	offered []tools.Tool  // its own tools; guarded by mu; replaced, never changed in place
}

// NewEditor makes an editor whose connection ends with ctx. Nothing is sent before Connect.
func NewEditor(ctx context.Context, person Person, buffers *Buffers) *Editor {
	ed := &Editor{Person: person, Buffers: buffers, ctx: ctx, limit: DataTimeout, client: &Client{}}
	ed.docs = &documents{ed: ed}
	return ed
}

// Connect says where requests go.
func (ed *Editor) Connect(peer Caller) {
	ed.mu.Lock()
	defer ed.mu.Unlock()
	ed.peer = peer
}

// Introduce takes what the editor said of itself.
func (ed *Editor) Introduce(c *Client) {
	ed.mu.Lock()
	defer ed.mu.Unlock()
	ed.client = c
}

// SetLimit says how long a program of the editor's may take to answer, instead of DataTimeout.
func (ed *Editor) SetLimit(d time.Duration) {
	ed.mu.Lock()
	defer ed.mu.Unlock()
	ed.limit = d
}

// Client is what the editor said of itself; a generic ACP editor before initialize.
func (ed *Editor) Client() *Client {
	ed.mu.Lock()
	defer ed.mu.Unlock()
	return ed.client
}

// OfferTools replaces the tools that the editor lends to its sessions.
func (ed *Editor) OfferTools(list []tools.Tool) {
	ed.mu.Lock()
	defer ed.mu.Unlock()
	ed.offered = list
}

// tools are those of OfferTools. The list is replaced, never written to, so it needs no copy.
func (ed *Editor) tools() []tools.Tool {
	ed.mu.Lock()
	defer ed.mu.Unlock()
	return ed.offered
}

// Gone reports that the connection has ended.
func (ed *Editor) Gone() bool { return ed.ctx.Err() != nil }

// File is a document as this editor shows it; ok is false where it shows what the disk holds.
func (ed *Editor) File(session, path string) (files.Buffer, bool) { return ed.docs.file(session, path) }

// errNoAnswer: the editor did not answer in time.
var errNoAnswer = errors.New("the editor did not answer in time")

// Ask calls the editor for data, within DataTimeout or what SetLimit says. An editor that is too slow is errNoAnswer; the end of ctx is not.
func (ed *Editor) Ask(ctx context.Context, method string, params, result any) error {
	ed.mu.Lock()
	limit := ed.limit
	ed.mu.Unlock()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := ed.Call(limited, method, params, result)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s: %w (%s)", method, errNoAnswer, limit)
	}
	return err
}

// Call asks the editor without a limit of its own: for what a person answers. The answer is checked against its type.
func (ed *Editor) Call(ctx context.Context, method string, params, result any) error {
	ed.mu.Lock()
	peer := ed.peer
	ed.mu.Unlock()
	var raw json.RawMessage
	if err := peer.Call(ctx, method, params, &raw); err != nil {
		var answer *jsonrpc2.Error
		if ctx.Err() == nil && !errors.As(err, &answer) {
			// Not an answer: the connection is ending. Who asked must find that out, not a failed question.
			select {
			case <-ed.ctx.Done():
			case <-ctx.Done():
			case <-time.After(DataTimeout):
			}
		}
		return err
	}
	if result == nil {
		return nil
	}
	if err := protocol.Decode(raw, result); err != nil {
		return fmt.Errorf("the editor's answer to %s is malformed: %w", method, err)
	}
	return nil
}
