package provider

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// maxCached bounds the encoded bytes that one provider keeps for all its conversations together; the one in use stays in any case.
	maxCached = 16 << 20
	// maxEntry bounds one encoded message that is kept, in bytes: a file that was pasted whole would stay in memory a second time.
	maxEntry = 4 << 20
	// idleConversation is when the encoding of an unused conversation is dropped. A session that is resumed later is encoded once more.
	idleConversation = 10 * time.Minute
)

// cache keeps what was encoded of each conversation, so that a step encodes only what is new. It belongs to one provider instance. A
// conversation is one session with one model, because the model decides what is sent (images, signatures). An entry is used again only
// for the same message: the same place, id, role and parts slice (by address; messages are immutable). After a compaction or a fork the
// changed messages therefore are encoded again without anyone telling the cache. The parts of cached messages stay in memory until their
// conversation is dropped: closed, idle for 10 minutes, or least recently used when all together hold more than 16 MiB.
type cache struct {
	// mu is released before the mutex of a conversation is taken, so that one session that encodes for long does not hold up the others.
	mu    sync.Mutex // guards what follows; never held while encoding
	convs map[string]*conversation
	tools []block // guarded by mu: lists of late conversations, the last first; a new session's are most often among them
}

// conversation is the encoding of one session with one model. Its mutex is held from acquire to
// release, while a body is built from it, so two requests of a session never share half-written bytes.
type conversation struct {
	// of is the cache that the conversation belongs to; encodeTools shares lists of tools through it.
	of      *cache
	mu      sync.Mutex
	entries []entry

	system, tools block
	// thinkFrom is set after the API refused a signature; see dropThinking.
	thinkFrom int // signed thinking of messages before this one is left out

	used time.Time // guarded by cache.mu
	size int       // guarded by cache.mu: encoded bytes at the last release
}

// entry is one encoded message. What the bytes are is the adapter's business.
type entry struct {
	// first is the address of the first part; together with the number of parts it identifies them.
	first *Part
	parts int
	id    string
	role  Role
	enc   []byte
	// thinking and calls are what the Anthropic adapter asks of a message after it was encoded; see thinkingMayStart.
	thinking bool // holds signed thinking
	calls    int  // tool calls
}

// is reports whether the entry was made of this message. It compares the address of the first part and not the contents: messages are
// immutable, and comparing a long history byte by byte at each step is the work that the cache saves.
func (e *entry) is(m *Message) bool {
	return e.parts == len(m.Parts) && e.role == m.Role && e.id == m.ID &&
		(e.parts == 0 || e.first == &m.Parts[0])
}

// block is an encoded part of the request that rarely changes, with what it was made of.
type block struct {
	system []string
	tools  []ToolSpec
	enc    []byte
}

// acquire returns the conversation, locked; the caller must release it. It also drops idle conversations, and the least recently used
// ones beyond maxCached.
func (c *cache) acquire(session, model string) *conversation {
	// A NUL is in neither part, so two pairs cannot give one key.
	key := session + "\x00" + model
	now := time.Now()
	c.mu.Lock()
	conv := c.convs[key]
	if conv == nil {
		if c.convs == nil {
			c.convs = map[string]*conversation{}
		}
		conv = &conversation{of: c}
		c.convs[key] = conv
	}
	conv.used = now
	total := 0
	for k, o := range c.convs {
		if o != conv && now.Sub(o.used) > idleConversation {
			delete(c.convs, k)
			continue
		}
		total += o.size
	}
	// The conversation that was asked for stays, also when it alone exceeds the limit.
	for total > maxCached && len(c.convs) > 1 {
		oldest := ""
		for k, o := range c.convs {
			if o != conv && (oldest == "" || o.used.Before(c.convs[oldest].used)) {
				oldest = k
			}
		}
		total -= c.convs[oldest].size
		delete(c.convs, oldest)
	}
	// Not under c.mu: the mutex of a conversation is held while a body is built, and the others would wait for that.
	c.mu.Unlock()
	conv.mu.Lock()
	return conv
}

// release unlocks a conversation and notes its size, by which acquire decides what to drop.
func (c *cache) release(conv *conversation) {
	// Shared lists of tools are counted in each conversation, so the cache holds less than it counts.
	size := len(conv.system.enc) + len(conv.tools.enc)
	for i := range conv.entries {
		e := &conv.entries[i]
		if len(e.enc) > maxEntry {
			*e = entry{} // it is no message's, so the next step encodes the message again
		}
		size += len(e.enc)
	}
	conv.mu.Unlock()
	c.mu.Lock()
	conv.size = size
	c.mu.Unlock()
}

// forget drops a session's conversations with all models, and those of the requests about it, whose id is the session's with a suffix
// ("session-title").
func (c *cache) forget(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.convs, func(key string, _ *conversation) bool {
		return strings.HasPrefix(key, session+"\x00") || strings.HasPrefix(key, session+"-")
	})
}

// reset drops all encodings after a server refused a parameter or a shape, since what was encoded may contain it. Requests under way keep
// the bytes that they hold.
func (c *cache) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.convs, c.tools = nil, nil
}

// encode brings the entries up to date with the messages and returns them. Usually only the last two are new; after a compaction
// everything behind the first change is encoded again. enc is the adapter's; it gets the message's index, because some encodings depend
// on the place.
func (c *conversation) encode(messages []Message, enc func(i int, m *Message, e *entry)) []entry {
	for i := range messages {
		m := &messages[i]
		if i < len(c.entries) && c.entries[i].is(m) {
			continue
		}
		e := entry{parts: len(m.Parts), id: m.ID, role: m.Role}
		if len(m.Parts) > 0 {
			e.first = &m.Parts[0]
		}
		enc(i, m, &e)
		if i < len(c.entries) {
			c.entries[i] = e
		} else {
			c.entries = append(c.entries, e)
		}
	}
	// What a shorter history left behind is cleared, so that its parts can be collected.
	clear(c.entries[len(messages):])
	c.entries = c.entries[:len(messages)]
	return c.entries
}

// encodeSystem encodes the system prompt again only when a block of it has changed.
func (c *conversation) encodeSystem(system []string, enc func() []byte) []byte {
	same := len(system) == len(c.system.system) && c.system.enc != nil
	for i := 0; same && i < len(system); i++ {
		// Comparing whole texts is cheap: blocks are few, and equal ones mostly share their bytes.
		same = system[i] == c.system.system[i]
	}
	if !same {
		c.system = block{system: append([]string(nil), system...), enc: enc()}
	}
	return c.system.enc
}

// encodeTools encodes a list of tools once for all conversations: its bytes follow from the list alone.
func (c *conversation) encodeTools(tools []ToolSpec, enc func() []byte) []byte {
	if c.tools.offers(tools) {
		return c.tools.enc
	}
	var ok bool
	if c.tools, ok = c.of.sharedTools(tools); !ok {
		c.tools = block{tools: slices.Clone(tools), enc: enc()}
		c.of.shareTools(c.tools)
	}
	return c.tools.enc
}

// offers reports whether b is what the tools encode to.
func (b *block) offers(tools []ToolSpec) bool {
	// Nothing was encoded yet. Without this check an empty list of tools would match.
	if b.enc == nil {
		return false
	}
	return slices.EqualFunc(tools, b.tools, func(a, b ToolSpec) bool {
		return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters)
	})
}

// sharedTools finds a list that another conversation has encoded.
func (c *cache) sharedTools(tools []ToolSpec) (block, bool) {
	c.mu.Lock()
	// The slice is replaced and never changed in place, so it may be read after unlocking.
	late := c.tools
	c.mu.Unlock()
	for _, b := range late {
		if b.offers(tools) {
			return b, true
		}
	}
	return block{}, false
}

// shareTools keeps a list for later conversations.
func (c *cache) shareTools(b block) {
	// A few, because an agent, its subagents and other projects offer different tools.
	const few = 4
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tools = append([]block{b}, c.tools[:min(len(c.tools), few-1)]...)
}
