package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pillion-dev/pillion/tools/guard"
)

// The host cannot start a program in the view (an MCP server, a custom tool, a language server, an external agent) itself: a process can enter another
// user namespace only while it has a single thread (setns(2)), which a Go program never has. So the worker starts the program. The host
// starts a relay, which passes its own standard streams to the worker and runs as long as the program. So for the host the program is
// an ordinary child with pipes, which it can wait for and kill, and the streams pass through no other process.
//
//	host ── guard.Start ──▶ relay ── streams, request ──▶ worker ── sandbox ──▶ program
//	  ╚══════════════ the relay's standard streams ══════════════════════════════════╝

// launchFD is the descriptor at which a worker and a relay find their socket: the first of exec.Cmd.ExtraFiles.
const launchFD = 3

// launch is what a relay asks of the worker.
type launch struct {
	Path string   `json:"path"` // of the program, absolute
	Args []string `json:"args"` // from argv[0]
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`
	Rights
}

// Start starts a program in the draft's view. It is used in place of guard.Start: cmd is the program as it would be started outside, with its
// streams set; Start changes it to the relay. The program ends with the worker, and the relay's exit code is then 125. A copy has no
// namespaces, but there too the program is the worker's child, so that the worker's end kills it.
func (c *Client) Start(cmd *exec.Cmd, r Rights) error {
	if cmd.Err != nil {
		return cmd.Err
	}
	if c.launches == nil {
		return errors.New("no program can be started in this draft's view")
	}
	relay, worker, err := socketPair()
	if err != nil {
		return err
	}
	defer relay.Close()
	defer worker.Close()
	if _, _, err := c.launches.WriteMsgUnix([]byte{0}, unix.UnixRights(int(worker.Fd())), nil); err != nil {
		return fmt.Errorf("the draft's worker has ended: %w", err)
	}
	spec, err := json.Marshal(launch{Path: cmd.Path, Args: cmd.Args, Dir: cmd.Dir, Rights: r})
	if err != nil {
		return err
	}
	// The folder may exist in the view only, so the relay runs in one that is always there.
	self := c.cmd.Path
	cmd.Path, cmd.Args, cmd.Dir = self, []string{self, RelayArg, string(spec)}, "/"
	cmd.ExtraFiles = []*os.File{relay}
	return guard.Start(cmd)
}

// relayFailed is the exit code if the relay fails or the draft ends before the program, as in draft.Main.
const relayFailed = 125

// Relay is the relay's main. It returns only after a failure: once the worker has the streams, a shell that waits for the program's exit
// code takes the relay's place, as it needs a fraction of the memory.
func Relay(args []string) int {
	fmt.Fprintln(os.Stderr, "pillion: the program could not be started in the draft:", relay(args))
	return relayFailed
}

func relay(args []string) error {
	if len(args) != 1 {
		return errors.New("this is for Pillion's own use")
	}
	var l launch
	if err := json.Unmarshal([]byte(args[0]), &l); err != nil {
		return err
	}
	l.Env = os.Environ()
	for {
		err := unix.Sendmsg(launchFD, []byte{0}, unix.UnixRights(0, 1, 2), nil, 0)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	if err := json.NewEncoder(os.NewFile(launchFD, "launch")).Encode(l); err != nil {
		return err
	}
	// The relay must close its own streams, or the host would not notice that the program has closed its output.
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return err
		}
	}
	// If there is no answer, the draft has ended. The environment has the marks by which package guard finds this process.
	return syscall.Exec("/bin/sh", []string{"sh", "-c", fmt.Sprintf(`read -r code <&%d || code=%d; exit "$code"`, launchFD, relayFailed)}, os.Environ())
}

// launchSocket is a connection between the host and a worker: the host's end, and the worker's.
func launchSocket() (ours *net.UnixConn, theirs *os.File, err error) {
	a, b, err := socketPair()
	if err != nil {
		return nil, nil, err
	}
	if ours, err = unixConn(a); err != nil {
		b.Close()
		return nil, nil, err
	}
	return ours, b, nil
}

// socketPair are two connected sockets that no other child inherits.
func socketPair() (a, b *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "launch"), os.NewFile(uintptr(fds[1]), "launch"), nil
}

// unixConn takes over a socket. The file is closed: net.FileConn has its own copy.
func unixConn(f *os.File) (*net.UnixConn, error) {
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, err
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, errors.New("that is no Unix socket")
	}
	return u, nil
}

// receive reads one byte and the n files that came with it. Other numbers of files are an error, and are closed.
func receive(conn *net.UnixConn, n int) ([]*os.File, error) {
	b, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4*n))
	_, got, _, _, err := conn.ReadMsgUnix(b, rights)
	if err != nil {
		return nil, err
	}
	list, err := unix.ParseSocketControlMessage(rights[:got])
	if err != nil {
		return nil, err
	}
	var files []*os.File
	for _, m := range list {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			continue
		}
		for _, fd := range fds {
			files = append(files, os.NewFile(uintptr(fd), "passed"))
		}
	}
	if len(files) != n {
		closeAll(files)
		return nil, io.ErrUnexpectedEOF
	}
	return files, nil
}

func closeAll(list []*os.File) {
	for _, f := range list {
		f.Close()
	}
}

// withhold keeps the socket of launches from the commands that the worker starts: with it a command could start programs outside of its
// sandbox. It must run before the first of them.
func withhold() { unix.CloseOnExec(launchFD) }

// serveLaunches starts a program for each relay that the host announces, until the host has ended.
func (s *server) serveLaunches() {
	conn, err := unixConn(os.NewFile(launchFD, "launch"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "pillion:", err)
		return
	}
	defer conn.Close()
	for {
		got, err := receive(conn, 1)
		if err != nil {
			return
		}
		go func() {
			relay, err := unixConn(got[0])
			if err != nil {
				return
			}
			defer relay.Close()
			streams, err := receive(relay, 3)
			if err != nil {
				return // the relay was killed before it asked
			}
			var l launch
			if err := json.NewDecoder(relay).Decode(&l); err != nil {
				closeAll(streams)
				return
			}
			code, err := s.launch(l, streams, relay)
			if err != nil { // the host reads the reason from the program's standard error
				fmt.Fprintln(streams[2], "pillion: it could not be started in the draft:", err)
			}
			closeAll(streams)
			fmt.Fprintln(relay, code)
		}()
	}
}

// launch runs a program to its end, or kills its process group when its relay ends. If it cannot be started, err says why and exit is
// relayFailed. launch closes the streams as soon as the program has them.
func (s *server) launch(l launch, streams []*os.File, relay io.Reader) (exit int, err error) {
	cmd := guard.Command(guard.Bash, append([]string{l.Path}, l.Args[min(1, len(l.Args)):]...)...)
	cmd.Env, cmd.Dir = l.Env, l.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = streams[0], streams[1], streams[2]
	box, err := l.box(s.env, l.Dir)
	if err == nil {
		err = start(cmd, box)
	}
	if err != nil {
		return relayFailed, err
	}
	closeAll(streams)
	ended := make(chan struct{})
	gone := make(chan struct{})
	go func() { _, _ = io.Copy(io.Discard, relay); close(gone) }() // ends with the connection, which the caller closes
	go func() {
		select {
		case <-gone:
		case <-ended:
		}
		guard.KillGroup(cmd) // also ends what the program has left running
	}()
	_ = cmd.Wait()
	close(ended)
	if box != nil {
		box.Release(cmd.Process.Pid)
		box.Settle()
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code, nil
	}
	return 128 + int(unix.SIGKILL), nil // a signal ended it; which one does not matter
}
