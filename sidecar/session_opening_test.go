package main

import (
	"bufio"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pillion-dev/pillion/agent"
	"github.com/pillion-dev/pillion/agent/store"
	"github.com/pillion-dev/pillion/sidecar/acp"
	"github.com/pillion-dev/pillion/sidecar/editors"
)

// together sends requests in one write, so that each comes while those before it are worked on.
func (e *editor) together(lines ...string) {
	e.t.Helper()
	e.send(strings.Join(lines, "\n"))
}

func opens(id, session, cwd string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"session/load","params":{"sessionId":%q,"cwd":%q,"mcpServers":[]}}`, id, session, cwd)
}

func cancelRequest(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":%q}}`, id)
}

// errorsOf waits for the answers to requests, in whatever order, and gives their errors' codes.
func (e *editor) errorsOf(ids ...string) map[string]float64 {
	e.t.Helper()
	codes := map[string]float64{}
	for left := len(ids); left > 0; {
		m, _ := e.receive()
		id, _ := m["id"].(string)
		if m["method"] != nil || !slices.Contains(ids, id) {
			continue
		}
		left--
		if x, bad := m["error"].(map[string]any); bad {
			codes[id], _ = x["code"].(float64)
		}
	}
	return codes
}

func stored(t *testing.T) (*rig, string) {
	t.Helper()
	r := newRig(t, testStore(t), t.TempDir())
	id := r.start("")
	r.model.steps = append(r.model.steps, says("Hello."))
	r.ed.send(prompt("first", "hello"))
	r.ed.expect(`{"id":"first","result":{"stopReason":"end_turn"}}`)
	r.ed.request("session/close", `{"sessionId":"$S"}`)
	return r, id
}

func TestWhatIsAskedOfASessionInTheSameBreathAsItsOpeningFindsIt(t *testing.T) {
	t.Parallel()
	r, id := stored(t)
	for i := range 6 {
		n := fmt.Sprint(i)
		r.ed.together(opens("load"+n, id, r.cwd), prompt("prompt"+n, "go on"),
			`{"jsonrpc":"2.0","id":"mode`+n+`","method":"session/set_mode","params":{"sessionId":"$S","modeId":"build"}}`,
			`{"jsonrpc":"2.0","id":"status`+n+`","method":"_pillion/session/status","params":{"sessionId":"$S"}}`,
			`{"jsonrpc":"2.0","id":"close`+n+`","method":"session/close","params":{"sessionId":"$S"}}`)
		r.ed.expectAll(`{"id":"load`+n+`","result":"*"}`, `{"id":"prompt`+n+`","result":"*"}`, `{"id":"mode`+n+`","result":"*"}`, `{"id":"status`+n+`","result":"*"}`, `{"id":"close`+n+`","result":{}}`)
		r.ed.send(prompt("after"+n, "is it closed?"))
		r.ed.expect(`{"id":"after` + n + `","error":{"code":-32002}}`)
	}
}

func TestAClosedSessionIsOpenedAnewInTheSameBreath(t *testing.T) {
	t.Parallel()
	r, id := stored(t)
	r.ed.send(opens("load", id, r.cwd))
	r.ed.expect(`{"id":"load","result":"*"}`)
	for i := range 6 {
		n := fmt.Sprint(i)
		r.ed.together(`{"jsonrpc":"2.0","id":"close`+n+`","method":"session/close","params":{"sessionId":"$S"}}`, opens("load"+n, id, r.cwd), prompt("prompt"+n, "go on"))
		r.ed.expectAll(`{"id":"close`+n+`","result":{}}`, `{"id":"load`+n+`","result":"*"}`, `{"id":"prompt`+n+`","result":{"stopReason":"end_turn"}}`)
	}
	r.ed.together(`{"jsonrpc":"2.0","id":"delete","method":"session/delete","params":{"sessionId":"$S"}}`, opens("gone", id, r.cwd))
	r.ed.expectAll(`{"id":"delete","result":{}}`, `{"id":"gone","error":{"code":-32002}}`)
}

func TestAnOpeningThatWasCancelledCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	r, id := stored(t)
	for i := range 6 {
		n := fmt.Sprint(i)
		r.ed.together(opens("cancelled"+n, id, r.cwd), cancelRequest("cancelled"+n), opens("again"+n, id, r.cwd), prompt("prompt"+n, "go on"))
		errs := r.ed.errorsOf("cancelled"+n, "again"+n, "prompt"+n)
		if x := errs["cancelled"+n]; x != 0 && x != -32800 {
			t.Fatalf("a cancelled request is answered with %v", x)
		}
		if x := errs["again"+n]; x != 0 {
			t.Fatalf("the other try is answered with %v", x)
		}
		if x := errs["prompt"+n]; x != 0 && x != -32002 { // it was meant for the first
			t.Fatalf("a prompt whose session was not opened is answered with %v", x)
		}
		r.ed.request("session/close", `{"sessionId":"$S"}`)
	}
}

func TestACancelReachesAPromptWhoseSessionIsBeingOpened(t *testing.T) {
	t.Parallel()
	r, id := stored(t)
	for i := range 6 {
		n := fmt.Sprint(i)
		r.model.steps = append(r.model.steps, hangs(make(chan struct{})))
		r.ed.together(opens("load"+n, id, r.cwd), prompt("prompt"+n, "go on"), `{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"$S"}}`)
		r.ed.expectAll(`{"id":"load`+n+`","result":"*"}`, `{"id":"prompt`+n+`","result":{"stopReason":"cancelled"}}`)
		r.ed.request("session/close", `{"sessionId":"$S"}`)
		r.model.mu.Lock()
		r.model.steps = nil // it may not have been asked at all
		r.model.mu.Unlock()
	}
}

func TestASessionThatOneEditorLeavesWhileAnotherComesIsOpenForTheOther(t *testing.T) {
	t.Parallel()
	r, id := stored(t)
	two := r.second("")
	two.request("initialize", knowing)
	two.vars["S"] = id
	for i := range 6 {
		n := fmt.Sprint(i)
		r.ed.send(opens("load"+n, id, r.cwd))
		r.ed.expect(`{"id":"load` + n + `","result":"*"}`)
		var both sync.WaitGroup
		both.Go(func() {
			r.ed.send(`{"jsonrpc":"2.0","id":"close` + n + `","method":"session/close","params":{"sessionId":"$S"}}`)
		})
		both.Go(func() { two.send(opens("load"+n, id, r.cwd)) })
		both.Wait()
		two.expect(`{"id":"load` + n + `","result":"*"}`)
		two.send(prompt("prompt"+n, "go on"))
		two.expect(`{"id":"prompt` + n + `","result":{"stopReason":"end_turn"}}`)
		two.request("session/close", `{"sessionId":"$S"}`)
		r.ed.expect(`{"id":"close` + n + `","result":{}}`)
	}
}

func TestAQuestionGoesToTheEditorThatComesAsTheOneAskedGoes(t *testing.T) {
	t.Parallel()
	r := newRig(t, testStore(t), t.TempDir())
	write(t, filepath.Join(r.cwd, "a.txt"), "1\n")
	id := r.start("")
	for i := range 3 {
		n := fmt.Sprint(i)
		one, two := r.ed, r.second("")
		if i > 0 {
			one = r.second("")
			one.load(t, r.cwd)
		}
		two.request("initialize", knowing)
		two.vars["S"] = id
		r.model.mu.Lock()
		r.model.steps = append(r.model.steps, callsTool("read", `{"filePath":"a.txt"}`), callsTool("write", `{"filePath":"a.txt","content":"`+n+` now\n"}`), says("Done."))
		r.model.mu.Unlock()
		one.send(prompt("turn"+n, "go"))
		one.expect(`{"method":"session/request_permission"}`)
		var both sync.WaitGroup
		both.Go(func() { _ = one.conn.Close() })
		both.Go(func() { two.send(opens("load"+n, id, r.cwd)) })
		both.Wait()
		two.expect(`{"id":"load` + n + `","result":"*"}`)
		two.expect(`{"id":"?P","method":"session/request_permission"}`)
		two.send(`{"jsonrpc":"2.0","id":$P,"result":{"outcome":{"outcome":"selected","optionId":"once"}}}`)
		two.expect(`{"method":"session/update","params":{"update":{"sessionUpdate":"tool_call_update","status":"completed"}}}`)
		two.send(prompt("after"+n, "go on"))
		two.expect(`{"id":"after` + n + `","result":{"stopReason":"end_turn"}}`)
		if got := read(t, filepath.Join(r.cwd, "a.txt")); got != n+" now\n" {
			t.Fatalf("the file is %q", got)
		}
		r.model.mu.Lock()
		r.model.steps = nil // a turn that was cut off has not said everything
		r.model.mu.Unlock()
		two.request("session/close", `{"sessionId":"$S"}`)
	}
}

func TestAnOpenSessionIsNotOpenedFromAnotherFolder(t *testing.T) {
	t.Parallel()
	r := newRig(t, testStore(t), t.TempDir())
	id := r.start("")
	r.ed.send(opens("other", id, t.TempDir()))
	r.ed.expect(`{"id":"other","error":{"code":-32602}}`)
	r.ed.send(opens("relative", id, "x"))
	r.ed.expect(`{"id":"relative","error":{"code":-32602}}`)
	r.ed.send(prompt("p", "still there?"))
	r.ed.expect(`{"id":"p","result":{"stopReason":"end_turn"}}`)
}

// TestAnEditorThatReadsSlowlyHoldsUpNobody: the past is shown while it is read from the store, and others that open the
// session wait for the reading.
func TestAnEditorThatReadsSlowlyHoldsUpNobody(t *testing.T) {
	t.Parallel()
	st := testStore(t)
	r := newRig(t, st, t.TempDir())
	id := r.start("")
	r.ed.request("session/close", `{"sessionId":"$S"}`)
	const answers, size = 200, 100 << 10 // together more than the queue of a connection takes
	for i := range answers {
		d := agent.TextData{MessageID: fmt.Sprint("m", i), Text: fmt.Sprintf("answer-%03d.", i) + strings.Repeat("x", size)}
		st.Append(id, store.Event{Seq: int64(1000 + i), Time: time.Now(), Type: string(agent.EventText), Data: mustJSON(d)})
	}
	if err := st.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}

	a, b := pipes()
	served := make(chan error, 1)
	go func() {
		served <- acp.NewConnection(r.host, b, editors.NewBuffers(nil), "").Serve(context.Background())
	}()
	defer func() {
		_ = a.Close()
		<-served
	}()
	slow := bufio.NewReader(a)
	line := func() string {
		text, err := slow.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if _, err := fmt.Fprintln(a, opens("slow", id, r.cwd)); err != nil {
		t.Fatal(err)
	}
	first := line() // the reading has begun; from here on this editor reads nothing

	two := r.second("")
	two.load(t, r.cwd)

	var got []string
	for text := first; !strings.Contains(text[:min(len(text), 60)], `"id":"slow"`); text = line() {
		if at := strings.Index(text, "answer-"); at >= 0 {
			got = append(got, text[at+7:at+10])
		}
	}
	for i, n := range got {
		if n != fmt.Sprintf("%03d", i) {
			t.Fatalf("answer %s came as number %d", n, i)
		}
	}
	if len(got) != answers {
		t.Errorf("%d answers of %d were shown", len(got), answers)
	}
}
