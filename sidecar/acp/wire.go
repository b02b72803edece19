package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"unicode/utf8"

	"go.lsp.dev/jsonrpc2"

	"github.com/pillion-dev/pillion/lspbridge/rpc"
	"github.com/pillion-dev/pillion/sidecar/protocol"
	"github.com/pillion-dev/pillion/tools/textutil"
)

// Limits of what is queued for an editor. A slow editor must not take unlimited memory, nor get a message that its
// JSON parser refuses.
const (
	// maxQueued holds for all sessions of the connection together.
	maxQueued = 8 << 20 // bytes of updates that may wait for a slow editor before its sessions wait too
	maxMerged = 1 << 20 // bytes of text one chunk may grow to while it waits
	// A control character is six bytes in JSON (\u001b), so such a chunk stays below 32 MiB.
	maxText     = 4 << 20  // bytes of text one chunk carries; quoted it may grow sixfold
	maxUpdate   = 12 << 20 // bytes of one update, unquoted; the npm SDK drops a connection at 32 MiB
	updateEntry = 1000     // bytes an update weighs besides its texts: its objects, as they are in memory
)

// wire is the connection to an editor. Everything that is sent goes through its one queue, in order. Queued updates
// are merged where no reader could tell: text of one message, newer states of one tool call. The queue is what makes
// "after the answer" and "in the order of events" true for an editor.
type wire struct {
	out  *rpc.Outbox
	peer *rpc.Peer
	// ended is closed when the editor has stopped sending. The connection itself ends later, when what runs is answered.
	ended <-chan struct{}

	mu     sync.Mutex
	queued int           // bytes of updates in the queue; guarded by mu
	room   chan struct{} // closed and replaced when waiting shrinks; guarded by mu

	after map[string]func() // what to do once a request is answered, by the start of its answer; guarded by mu
}

// newWire begins to read at once; handler may be called before it returns. log gets what is wrong with a message that
// could not be read; the connection continues.
func newWire(conn io.ReadWriteCloser, handler rpc.Handler, log func(error)) *wire {
	w := &wire{out: rpc.NewOutbox(conn, rpc.OutboxOptions{MaxBytes: maxQueued}), room: make(chan struct{}), after: map[string]func(){}}
	in := &endNotice{r: conn, ended: make(chan struct{})}
	w.ended = in.ended
	stream := rpc.NewLineStream(in, answerHook{w}, rpc.StreamOptions{OnBad: log})
	w.peer = rpc.NewPeer(stream, rpc.PeerOptions{Handler: handler, Log: log})
	return w
}

// endNotice closes ended when the editor has stopped sending.
type endNotice struct {
	r     io.ReadCloser
	ended chan struct{}
	once  sync.Once
}

// Read implements io.Reader.
func (r *endNotice) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != nil {
		r.once.Do(func() { close(r.ended) })
	}
	return n, err
}

func (r *endNotice) Close() error { return r.r.Close() }

// answerHook is the queue as the connection sees it: it notices when the answer to a request is queued.
type answerHook struct{ w *wire }

// Write queues a copy of a frame, then calls what was to follow it.
func (a answerHook) Write(frame []byte) (int, error) {
	return len(frame), a.Put(bytes.Clone(frame))
}

// Put is Write without the copy: it takes ownership of frame.
func (a answerHook) Put(frame []byte) error {
	follow := a.w.take(frame) // before the queue owns the frame
	err := a.w.out.Put(frame)
	for _, f := range follow {
		f()
	}
	return err
}

func (a answerHook) Close() error { return a.w.out.Close() }

// afterAnswer calls f when the answer to r has been queued, so that what f sends follows it: an editor ignores
// updates of a session that it does not know yet. f must not block. The answers of a batch leave in one frame, after
// which all that was to follow them is called.
func (w *wire) afterAnswer(r *rpc.Request, f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after[answerStart(r.ID)] = f
}

// take finds and removes what is to follow a frame, in the order of the answers in it.
func (w *wire) take(frame []byte) (out []func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.after) == 0 {
		return nil
	}
	answers := [][]byte{frame}
	if bytes.HasPrefix(frame, []byte("[")) {
		var batch []json.RawMessage
		if json.Unmarshal(frame, &batch) != nil {
			return nil
		}
		answers = answers[:0]
		for _, one := range batch {
			answers = append(answers, one)
		}
	}
	for _, answer := range answers {
		// The map holds the few requests that are being answered, so looking at all of them is cheap.
		for start, f := range w.after {
			if bytes.HasPrefix(answer, []byte(start)) {
				delete(w.after, start)
				out = append(out, f)
				break
			}
		}
	}
	return out
}

// answerStart is how the frame of an answer begins; package rpc writes it in this order. Another order there would
// leave what follows an answer unsent.
func answerStart(id jsonrpc2.ID) string {
	text := ""
	if n, ok := id.Number(); ok {
		text = strconv.FormatInt(n, 10)
	} else {
		s, _ := id.StringValue()
		text = string(textutil.AppendJSON(nil, s))
	}
	return `{"jsonrpc":"2.0","id":` + text + `,`
}

// update queues a session/update; meta is its _meta.pillion, nil for none. It waits while the editor is too far
// behind, until ctx or the connection ends.
func (w *wire) update(ctx context.Context, session string, u protocol.SessionUpdate, meta *protocol.UpdateMeta) error {
	x := &pendingUpdate{w: w, session: session, update: u, meta: meta}
	if c, ok := u.Value.(*protocol.ContentChunk); ok && c.Meta == nil {
		if t, ok := c.Content.Value.(*protocol.TextContent); ok && t.Meta == nil && t.Annotations == nil {
			if len(t.Text) > maxText {
				return w.sendLongText(ctx, session, u.SessionUpdate, c.MessageID, t.Text, meta)
			}
			// The text is copied, because merging appends to it.
			x.text, x.message = append(x.text, t.Text...), c.MessageID
			x.isText = true
		}
	}
	x.size = updateEntry + x.textSize()
	if err := w.admit(ctx, x.size); err != nil {
		return err
	}
	// The key is the session: updates of one session may merge past those of another, and never past an answer or a
	// call.
	err := w.out.Post(ctx, &rpc.Note{Method: protocol.MethodSessionUpdate, Params: x, Key: session, Merge: mergeUpdates})
	if err != nil {
		w.release(x.size)
	}
	return err
}

// sendLongText sends a long text as several chunks, cut between characters.
func (w *wire) sendLongText(ctx context.Context, session, kind, message, text string, meta *protocol.UpdateMeta) error {
	for len(text) > 0 {
		n := min(len(text), maxText)
		// UTF-8 characters have at most four bytes. Text that is not UTF-8 has no start to look for and is cut
		// anywhere.
		for n < len(text) && n > maxText-utf8.UTFMax && !utf8.RuneStart(text[n]) {
			n--
		}
		err := w.update(ctx, session, protocol.SessionUpdate{SessionUpdate: kind, Value: &protocol.ContentChunk{Content: protocol.TextBlock(text[:n]), MessageID: message}}, meta)
		if err != nil {
			return err
		}
		text = text[n:]
	}
	return nil
}

// admit waits until the queue has room, and counts size more bytes. It waits only while the limit is exceeded
// already, so an update that is larger than the limit is admitted too.
func (w *wire) admit(ctx context.Context, size int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.queued > maxQueued {
		// The channel is read under the lock: release closes this one and makes another.
		room := w.room
		w.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			w.mu.Lock()
			return ctx.Err()
		case <-w.out.Done():
			w.mu.Lock()
			return io.ErrClosedPipe
		}
		w.mu.Lock()
	}
	w.queued += size
	return nil
}

// hasRoom reports whether update would take size bytes without waiting. Half of the queue stays free, because one event
// may become several updates.
func (w *wire) hasRoom(size int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.queued+size < maxQueued/2
}

// release counts size bytes less, and wakes those who wait in admit.
func (w *wire) release(size int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queued -= size
	if w.queued <= maxQueued {
		close(w.room)
		w.room = make(chan struct{})
	}
}

// pendingUpdate is a session/update in the queue. It belongs to the queue, whose lock guards it, until it is encoded:
// encoding late allows merging.
type pendingUpdate struct {
	w       *wire
	session string
	update  protocol.SessionUpdate
	meta    *protocol.UpdateMeta // never changed: a replayed one is shared by several pieces
	size    int                  // bytes, as counted by admit

	isText  bool // the fast path: a plain text chunk
	text    []byte
	message string
}

// textSize is how much text an update carries, in bytes; the rest is updateEntry.
func (x *pendingUpdate) textSize() int {
	if x.isText {
		return len(x.text)
	}
	n := 0
	content := func(list []protocol.ToolCallContent) {
		for _, c := range list {
			switch v := c.Value.(type) {
			case *protocol.Diff:
				n += len(v.NewText) + 100
				if v.OldText != nil {
					n += len(*v.OldText)
				}
			case *protocol.Content:
				n += blockSize(v.Content)
			}
		}
	}
	switch v := x.update.Value.(type) {
	case *protocol.ContentChunk:
		n = blockSize(v.Content)
	case *protocol.ToolCall:
		content(v.Content)
		n += len(v.RawInput) + len(v.RawOutput)
	case *protocol.ToolCallUpdate:
		content(v.Content)
		n += len(v.RawInput) + len(v.RawOutput)
	}
	return n
}

// blockSize is the size of a content block, in bytes.
func blockSize(b protocol.ContentBlock) int {
	switch v := b.Value.(type) {
	case *protocol.TextContent:
		return len(v.Text)
	case *protocol.ImageContent:
		return len(v.Data)
	}
	return 100
}

// mergeUpdates merges b into a if no reader could tell the difference. It reports whether it did. It runs with the
// queue locked, so it must not wait. Both notes have the key of one session.
func mergeUpdates(a, b *rpc.Note) bool {
	x, ok := a.Params.(*pendingUpdate)
	y, ok2 := b.Params.(*pendingUpdate)
	if !ok || !ok2 || x.update.SessionUpdate != y.update.SessionUpdate {
		return false
	}
	if x.isText && y.isText && x.message == y.message && mergeable(x.meta, y.meta) && len(x.text)+len(y.text) <= maxMerged {
		x.meta = y.meta
		x.text = append(x.text, y.text...)
		x.size += len(y.text)
		// The second update is gone, and with it the weight of its objects; its text lives on in the first one.
		x.w.release(y.size - len(y.text))
		return true
	}
	old, ok := x.update.Value.(*protocol.ToolCallUpdate)
	now, ok2 := y.update.Value.(*protocol.ToolCallUpdate)
	// A value with _meta of its own is left alone: it is not known how to join those.
	if !ok || !ok2 || old.ToolCallID != now.ToolCallID || old.Meta != nil || now.Meta != nil {
		return false
	}
	// A copy: the sender may still hold the value.
	merged := *old
	mergeCall(&merged, now)
	before := x.size + y.size
	x.update.Value, x.meta = &merged, y.meta
	x.size = updateEntry + x.textSize()
	x.w.release(before - x.size)
	return true
}

// mergeable reports whether two updates may become one, with the number of the newer.
func mergeable(a, b *protocol.UpdateMeta) bool {
	if a == nil || b == nil {
		return a == b
	}
	x, y := *a, *b
	x.Seq, y.Seq = nil, nil
	return x == y
}

// mergeCall applies the newer update of a tool call to the older one. An empty member means "unchanged", as in ACP.
// Content is replaced as a whole and not joined, since every update carries all of it.
func mergeCall(u, now *protocol.ToolCallUpdate) {
	if now.Title != "" {
		u.Title = now.Title
	}
	if now.Kind != "" {
		u.Kind = now.Kind
	}
	if now.Status != "" {
		u.Status = now.Status
	}
	if now.Content != nil {
		u.Content = now.Content
	}
	if now.Locations != nil {
		u.Locations = now.Locations
	}
	if now.RawInput != nil {
		u.RawInput = now.RawInput
	}
	if now.RawOutput != nil {
		u.RawOutput = now.RawOutput
	}
}

// MarshalJSON encodes the update when it is sent. Text chunks, by far the most frequent, are written without
// encoding/json. It runs once: the update may be changed by shrink and counts as sent afterwards.
func (x *pendingUpdate) MarshalJSON() ([]byte, error) {
	// Encoded, the update leaves the queue: a waiter in admit may have its room.
	defer x.w.release(x.size)
	if x.isText {
		// An eighth more for escapes and 200 bytes for the frame are enough for most texts.
		b := make([]byte, 0, len(x.text)+len(x.text)/8+200)
		b = append(b, `{"sessionId":`...)
		b = textutil.AppendJSON(b, x.session)
		b = append(b, `,"update":{"sessionUpdate":"`...)
		b = append(b, x.update.SessionUpdate...)
		b = append(b, `","content":{"type":"text","text":`...)
		b = textutil.AppendJSON(b, x.text)
		b = append(b, '}')
		if x.message != "" {
			b = append(b, `,"messageId":`...)
			b = textutil.AppendJSON(b, x.message)
		}
		return append(x.appendMeta(append(b, '}')), '}'), nil
	}
	if x.size > maxUpdate {
		x.shrink()
	}
	update, err := x.update.MarshalJSON()
	if err != nil {
		return nil, err
	}
	b := append(make([]byte, 0, len(update)+300), `{"sessionId":`...)
	b = append(append(textutil.AppendJSON(b, x.session), `,"update":`...), update...)
	return append(x.appendMeta(b), '}'), nil
}

// appendMeta adds _meta.pillion to the object that b ends with.
func (x *pendingUpdate) appendMeta(b []byte) []byte {
	if x.meta == nil {
		return b
	}
	meta, err := rpc.JSON.Marshal(x.meta)
	if err != nil {
		return b
	}
	// An update is an object with members, so a comma always fits.
	b = append(bytes.TrimSuffix(b, []byte("}")), `,"_meta":{"pillion":`...)
	return append(append(b, meta...), "}}"...)
}

// shrink drops what makes an update larger than an editor can read; the call itself stays visible. Values are copied
// before they are changed.
func (x *pendingUpdate) shrink() {
	note := []protocol.ToolCallContent{protocol.TextOfCall("(too large to show here)")}
	switch v := x.update.Value.(type) {
	case *protocol.ToolCall:
		c := *v
		c.Content, c.RawInput, c.RawOutput = note, nil, nil
		x.update.Value = &c
	case *protocol.ToolCallUpdate:
		c := *v
		c.Content, c.RawInput, c.RawOutput = note, nil, nil
		x.update.Value = &c
	case *protocol.ContentChunk:
		x.update.Value = &protocol.ContentChunk{MessageID: v.MessageID, Content: protocol.TextBlock("(too large to show here)")}
	}
}

// rawJSON encodes one of our own types; nil if that fails, which a test would find. nil leaves the member out of the
// message.
func rawJSON(v any) json.RawMessage {
	b, err := rpc.JSON.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}
