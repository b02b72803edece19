//go:build unix

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
)

// An editor that closes both ends at once, with an answer on its way: the process ends as it should, not by a signal.
func TestAnEditorThatIsGoneAtOnce(t *testing.T) {
	atHome(t)
	for range 5 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "acp")
		cmd.Env = append(os.Environ(), "PILLION_TEST_MAIN=1")
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stdout = w
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_ = w.Close()
		fmt.Fprintln(in, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`)
		if _, err := bufio.NewReader(r).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		_ = r.Close() // what follows is written to nobody
		for id := range 20 {
			if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"session/list","params":{}}`+"\n", id+2); err != nil {
				break
			}
		}
		_ = in.Close()
		err = cmd.Wait()
		if s := cmd.ProcessState; !s.Exited() {
			t.Fatalf("it died: %v (%v)", s, err)
		}
	}
}
