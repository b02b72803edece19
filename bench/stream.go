package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/pillion-dev/pillion/agent/provider/wiretest"
)

const howStream = `20,000 deltas of the OpenAI chat format, as fast as the scripted server writes them, through to the ACP client: from the
request's arrival to the turn's end, which comes after the events are stored; the text that arrives is compared. The same
stream read line by line over plain HTTP is the physical limit, bench/limit the agent that forwards what has arrived, deltas that came together as one update.
First delta: from the bytes leaving the server to the update in the client, the stream paused behind it.`

const deltas = 20_000

func (b *bench) stream() {
	r := b.rig()
	defer r.close()
	pieces := make([]string, deltas)
	for i := range pieces {
		pieces[i] = fmt.Sprintf("word%d ", i)
	}
	want := strings.Join(pieces, "")
	burst := wiretest.Step{Deltas: pieces, Burst: true}
	updates := 0

	through := func(c *client) func() float64 {
		return func() float64 {
			session := c.newSession(r.cwd)
			var kept [][]byte
			c.listen(func(line []byte, _ time.Time) { kept = append(kept, line) })
			r.m.Add(burst)
			r.m.take()
			end, err := c.prompt(session, "write")
			check(err)
			c.listen(nil)
			arrived := r.m.take()[0].arrived
			if got, n := chunks(kept); got != want {
				failf("%d bytes of %d arrived, or others", len(got), len(want))
			} else if c == r.ours {
				updates = n
			}
			return deltas / end.Sub(arrived).Seconds()
		}
	}
	raw := func() float64 {
		r.m.Add(burst)
		r.m.take()
		n := b.readRaw(r.m)
		end := time.Now()
		if n < deltas {
			failf("the raw reader saw %d events", n)
		}
		return deltas / end.Sub(r.m.take()[0].arrived).Seconds()
	}
	s := inTurns(b.rounds(20), through(r.ours), raw, through(r.limit))
	b.add(Row{What: "deltas through to the client", Unit: "/s", Ours: s[0], Beside: s[1], BesideName: "raw HTTP reader", Target: Target{AtLeast: 100_000}, Note: fmt.Sprintf("nothing lost, joined to %d updates", updates)})
	b.add(Row{What: "the same", Unit: "/s", Ours: s[0], Beside: s[2], BesideName: "the limit"})

	first := func(c *client) func() float64 {
		return func() float64 {
			session := c.newSession(r.cwd)
			hold := make(chan struct{})
			var at time.Time
			c.listen(func(line []byte, t time.Time) {
				if at.IsZero() && strings.Contains(string(line), "firstdelta") && strings.Contains(string(line), "agent_message_chunk") {
					at = t
					close(hold)
				}
			})
			r.m.watch("firstdelta")
			r.m.Add(wiretest.Step{Text: "firstdelta", Chunk: -1, Pause: hold})
			_, err := c.prompt(session, "write")
			check(err)
			c.listen(nil)
			return ms(at.Sub(r.m.seen()))
		}
	}
	s = inTurns(b.rounds(100), first(r.ours), first(r.limit))
	b.add(Row{What: "first delta", Unit: "ms", Ours: s[0], Beside: s[1], BesideName: "the limit", Target: Target{AtMost: 2}})
}

// readRaw asks the model and counts the events of its answer, line by line.
func (b *bench) readRaw(m *model) int {
	resp, err := http.Post(m.url+"/chat/completions", "application/json", strings.NewReader(`{"model":"m","stream":true,"messages":[]}`))
	check(err)
	defer resp.Body.Close()
	n := 0
	for in := bufio.NewReaderSize(resp.Body, 64<<10); ; {
		line, err := in.ReadSlice('\n')
		if strings.HasPrefix(string(line), "data: ") {
			n++
		}
		if err == io.EOF {
			return n
		}
		check(err)
	}
}

// chunks joins the message text of session updates and counts them.
func chunks(kept [][]byte) (string, int) {
	var text strings.Builder
	n := 0
	for _, line := range kept {
		var u struct {
			Params struct {
				Update struct {
					SessionUpdate string
					Content       json.RawMessage
				}
			}
		}
		if json.Unmarshal(line, &u) != nil || u.Params.Update.SessionUpdate != "agent_message_chunk" {
			continue
		}
		var c struct{ Text string }
		if json.Unmarshal(u.Params.Update.Content, &c) == nil {
			text.WriteString(c.Text)
			n++
		}
	}
	return text.String(), n
}
