// Package share lets other processes of the same person reach a running sidecar over a private local socket: mode 0600
// in a folder of mode 0700 that belongs to them. The system must say that the other process is the same user's, and it must
// know a token. A file beside each socket says whose it is. A sidecar that is not joinable takes only questions: whoever
// reaches it can show the person an approval request, and nothing else.
//
//	l, err := share.Listen(share.Options{Version: "0.1.0", Cwd: cwd, Folder: folder})
//	for { c, err := l.Accept(); if err != nil { break }; go serve(c) }
//
//	for _, p := range share.List() { conn, welcome, err := share.Dial(ctx, p, share.Hello{}) … }
package share

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pillion-dev/pillion/tools/guard"
)

// Process is a sidecar that can be reached. It is also the content of the file beside the socket, so whoever can
// read that file has the token; its mode is 0600.
type Process struct {
	PID     int       `json:"pid"`
	Cwd     string    `json:"cwd"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Token   string    `json:"token"`
	// AsksOnly means that it takes questions (Hello.Ask) and cannot be joined.
	AsksOnly bool `json:"asksOnly,omitempty"`

	// socket is not stored: it follows from the name of the file.
	socket string
}

// Session is a live session of a process. Clients use it to let the person choose, and to send Hello.Session.
type Session struct {
	ID    string `json:"id"`
	Cwd   string `json:"cwd"`
	Title string `json:"title,omitempty"`
	State string `json:"state"` // idle, running, waiting
}

// Hello is the first line that a client sends.
type Hello struct {
	Token   string `json:"token"`
	Session string `json:"session,omitempty"` // the session that the first session/new opens
	List    bool   `json:"list,omitempty"`    // only list the sessions
	// Ask is an absolute folder: the client wants to put a question to the person who has it open.
	Ask string `json:"ask,omitempty"`
}

// Welcome is the answer to it, also one line. After an Error the connection ends. A refused client reads the reason
// in Error; it says nothing about the sessions.
type Welcome struct {
	OK       bool      `json:"ok"`
	Error    string    `json:"error,omitempty"`
	Sessions []Session `json:"sessions,omitempty"`
	Used     time.Time `json:"used,omitzero"` // the answer to Hello.Ask: when the person used the folder last
}

// Limits of a handshake: the other side is a process of the same user, but may be a broken one.
const (
	handshake = 5 * time.Second
	maxLine   = 64 << 10 // bytes
	// While this many are under way, at most one further connection is accepted; the rest wait in
	// the system's backlog.
	maxHandshakes = 16  // handshakes at once
	maxPath       = 100 // bytes of a socket's path; the system's limit is a little above
)

// ErrUnsupported means that the system has no private sockets.
var ErrUnsupported = errors.New("sharing a session is not available on this system yet: it needs Unix sockets")

// Options are what a Listener is made of. Both functions may be called at any time, from several goroutines.
type Options struct {
	Version, Cwd string
	// Sessions lists the live sessions to processes that may join them; nil: nobody may, and questions are all that is taken.
	Sessions func() []Session
	// Folder reports whether an editor shows a folder now, and when the person used it last. Questions about other folders are refused.
	Folder func(path string) (used time.Time, open bool)
}

// Listener accepts connections that know the token. Close removes the socket.
type Listener struct {
	o          Options
	token      string
	socket     string
	l          net.Listener
	ready      chan Conn
	handshakes chan struct{}
	done       chan struct{}
	once       sync.Once
	wg         sync.WaitGroup
}

// Conn is a connection after its handshake.
type Conn struct {
	net.Conn
	Session string // what Hello asked for
	// Ask is the folder of the question that follows; empty: the connection carries ACP.
	Ask string
}

// Listen opens a socket for this process and writes the file beside it.
func Listen(o Options) (*Listener, error) {
	if !supported {
		return nil, ErrUnsupported
	}
	dir, err := folder()
	if err != nil {
		return nil, err
	}
	removeStale(dir)
	raw := make([]byte, 32)
	if _, err := rand.Read(raw); err != nil {
		return nil, err
	}
	// The token is all 32 random bytes; four of them in the name keep two runs with one process id apart.
	l := &Listener{o: o, token: hex.EncodeToString(raw), ready: make(chan Conn), handshakes: make(chan struct{}, maxHandshakes), done: make(chan struct{})}
	l.socket = filepath.Join(dir, strconv.Itoa(os.Getpid())+"-"+hex.EncodeToString(raw[:4])+".sock")
	p := Process{PID: os.Getpid(), Cwd: o.Cwd, Version: o.Version, Started: time.Now().UTC(), Token: hex.EncodeToString(raw), AsksOnly: o.Sessions == nil}
	if l.l, err = net.Listen("unix", l.socket); err != nil {
		return nil, fmt.Errorf("the session cannot be shared: %w", err)
	}
	text, err := json.Marshal(p)
	if err == nil {
		// The socket exists with the mode of the umask for a moment; the mode of its folder keeps others out
		// meanwhile.
		err = os.Chmod(l.socket, 0o600)
	}
	if err == nil {
		err = os.WriteFile(infoFile(l.socket), text, 0o600)
	}
	if err != nil {
		l.Close()
		return nil, fmt.Errorf("the session cannot be shared: %w", err)
	}
	l.wg.Go(l.run)
	return l, nil
}

// Socket is the path of the socket.
func (l *Listener) Socket() string { return l.socket }

// Accept returns the next connection that has passed the handshake; net.ErrClosed after Close.
func (l *Listener) Accept() (Conn, error) {
	select {
	case c := <-l.ready:
		return c, nil
	case <-l.done:
		return Conn{}, net.ErrClosed
	}
}

// Close stops listening and removes the socket. Accepted connections stay open.
func (l *Listener) Close() {
	l.once.Do(func() {
		close(l.done)
		_ = l.l.Close()
		_ = os.Remove(l.socket)
		_ = os.Remove(infoFile(l.socket))
	})
	l.wg.Wait()
}

// run accepts connections until Close.
func (l *Listener) run() {
	for {
		c, err := l.l.Accept()
		if err != nil {
			return // closed
		}
		select {
		case l.handshakes <- struct{}{}:
		case <-l.done:
			_ = c.Close()
			return
		}
		l.wg.Go(func() {
			defer func() { <-l.handshakes }()
			l.shakeHands(c)
		})
	}
}

// shakeHands reads the handshake of one connection and answers it. The token is compared in constant time.
func (l *Listener) shakeHands(c net.Conn) {
	stop := make(chan struct{})
	defer close(stop)
	go func() { // Close must not wait for a handshake
		select {
		case <-l.done:
			_ = c.SetDeadline(time.Now())
		case <-stop:
		}
	}()
	_ = c.SetDeadline(time.Now().Add(handshake))
	refuse := func(why string) {
		_ = write(c, Welcome{Error: why})
		_ = c.Close()
	}
	// Before a byte is read: a token that got into wrong hands must not be enough.
	if err := sameUser(c); err != nil {
		refuse(err.Error())
		return
	}
	var h Hello
	line, err := readLine(c)
	if err != nil {
		_ = c.Close()
		return
	}
	if json.Unmarshal(line, &h) != nil {
		refuse("the first line is not a handshake; connect with `pillion attach`")
		return
	}
	if subtle.ConstantTimeCompare([]byte(h.Token), []byte(l.token)) != 1 {
		refuse("the token is wrong")
		return
	}
	if h.Ask != "" {
		l.admitQuestion(c, h.Ask, refuse)
		return
	}
	if l.o.Sessions == nil {
		refuse("this sidecar takes questions only; start it with `pillion acp --share` to join its sessions")
		return
	}
	// The sessions are listed only after the token was checked: titles are words from prompts.
	all := l.o.Sessions()
	if h.Session != "" && !slices.ContainsFunc(all, func(s Session) bool { return s.ID == h.Session }) {
		refuse("no open session " + h.Session)
		return
	}
	if err := write(c, Welcome{OK: true, Sessions: all}); err != nil || h.List {
		_ = c.Close()
		return
	}
	l.deliver(Conn{Conn: c, Session: h.Session})
}

// admitQuestion accepts a question about a folder that an editor of this process shows.
func (l *Listener) admitQuestion(c net.Conn, folder string, refuse func(string)) {
	var used time.Time
	open := false
	if l.o.Folder != nil && filepath.IsAbs(folder) {
		used, open = l.o.Folder(folder)
	}
	if !open {
		refuse("no editor has the folder open")
		return
	}
	if write(c, Welcome{OK: true, Used: used}) != nil {
		_ = c.Close()
		return
	}
	l.deliver(Conn{Conn: c, Ask: folder})
}

// deliver hands a connection to Accept, without the deadline of the handshake.
func (l *Listener) deliver(c Conn) {
	_ = c.SetDeadline(time.Time{})
	select {
	case l.ready <- c:
	case <-l.done:
		_ = c.Close()
	}
}

// List are the processes that can be reached, the newest first. It removes what ended processes have left.
func List() []Process {
	if !supported {
		return nil
	}
	dir, err := folder()
	if err != nil {
		return nil
	}
	all := removeStale(dir)
	slices.SortFunc(all, func(a, b Process) int { return b.Started.Compare(a.Started) })
	return all
}

// Dial connects to a process. After it the connection carries ACP, or the question that hello announces, unless hello only asks for
// the list.
func Dial(ctx context.Context, p Process, hello Hello) (net.Conn, Welcome, error) {
	c, err := guard.Dialer(guard.Reason{Who: guard.Sharing}, guard.Network{Timeout: handshake})(ctx, "unix", p.socket)
	if err != nil {
		return nil, Welcome{}, err
	}
	_ = c.SetDeadline(time.Now().Add(handshake))
	hello.Token = p.Token
	var w Welcome
	if err = sameUser(c); err == nil { // before the token leaves
		err = write(c, hello)
	}
	if err == nil {
		var line []byte
		if line, err = readLine(c); err == nil {
			err = json.Unmarshal(line, &w)
		}
	}
	if err == nil && !w.OK {
		err = errors.New(w.Error)
	}
	if err != nil {
		_ = c.Close()
		return nil, w, err
	}
	_ = c.SetDeadline(time.Time{})
	return c, w, nil
}

// removeStale lists a folder's processes and removes sockets on which no process listens. It connects to each, because a
// process id proves nothing: another process may have it by now. A socket is removed only when the connection is
// refused or the path is gone; one that times out may belong to a busy process.
func removeStale(dir string) (alive []Process) {
	names, _ := filepath.Glob(filepath.Join(dir, "*.sock"))
	cards, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, c := range cards {
		if s := strings.TrimSuffix(c, ".json") + ".sock"; !slices.Contains(names, s) {
			names = append(names, s)
		}
	}
	for _, socket := range names {
		c, err := guard.Dialer(guard.Reason{Who: guard.Sharing}, guard.Network{Timeout: time.Second})(context.Background(), "unix", socket)
		if err != nil {
			if isStale(err) {
				_ = os.Remove(socket)
				_ = os.Remove(infoFile(socket))
			}
			continue
		}
		_ = c.Close()
		text, err := os.ReadFile(infoFile(socket))
		// A socket without its file is left alone: Listen makes the socket first, so its process may be about to
		// write the file.
		p := Process{}
		if err == nil && json.Unmarshal(text, &p) == nil && p.Token != "" {
			p.socket = socket
			alive = append(alive, p)
		}
	}
	return alive
}

// infoFile is the file beside a socket that describes the process and holds the token; only its owner can read it.
func infoFile(socket string) string { return strings.TrimSuffix(socket, ".sock") + ".json" }

// write sends one line.
func write(c net.Conn, v any) error {
	text, err := json.Marshal(v)
	if err == nil {
		_, err = c.Write(append(text, '\n'))
	}
	return err
}

// readLine reads one line of at most maxLine bytes and not a byte more: what follows belongs to ACP, and a buffered
// reader would swallow it.
func readLine(c net.Conn) ([]byte, error) {
	var line []byte
	var b [1]byte
	for len(line) < maxLine {
		if _, err := c.Read(b[:]); err != nil {
			return nil, err
		}
		if b[0] == '\n' {
			return line, nil
		}
		line = append(line, b[0])
	}
	return nil, errors.New("the line is too long")
}
