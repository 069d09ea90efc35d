package live

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/gofiber/contrib/websocket"

	"github.com/loadstone-db/loadstone/engine"
)

// TestAFeedHoldsTheNewestOnly: whoever comes late or writes slowly takes the newest message,
// once, and the end comes after the last one and never in its place.
func TestAFeedHoldsTheNewestOnly(t *testing.T) {
	f := newRunFeed(NewHub(Options{}), "run")
	waits := func(number int) bool {
		select {
		case <-f.changedAfter(number):
			return false
		default:
			return true
		}
	}
	elapsed := func(m []byte) float64 {
		var got Message
		if err := json.Unmarshal(m, &got); err != nil {
			t.Fatal(err)
		}
		return got.Data.Elapsed
	}
	if !waits(0) {
		t.Fatal("there is something before the first message")
	}
	quick, slow := 0, 0
	for tick := 1; tick <= 5; tick++ {
		before := f.changedAfter(quick)
		f.publish(sample(tick))
		select {
		case <-before:
		default:
			t.Fatalf("message %d woke nobody", tick)
		}
		var m []byte
		if m, quick, _ = f.newest(quick); m == nil || elapsed(m) != float64(tick) || !waits(quick) {
			t.Fatalf("message %d: %s", tick, m)
		}
		if m, _, _ := f.newest(quick); m != nil {
			t.Fatalf("message %d came twice", tick)
		}
	}
	f.publish(sample(6))
	f.finish()
	for _, written := range []*int{&quick, &slow} {
		m, number, over := f.newest(*written)
		if over || m == nil || elapsed(m) != 6 {
			t.Fatalf("the last message: %s, over %v", m, over)
		}
		if m, _, over := f.newest(number); m != nil || !over || waits(number) {
			t.Errorf("after the last message: %s, over %v", m, over)
		}
	}
}

// TestASlowPageGetsTheLastState: one that did not read for a while skips seconds, sees time go forward,
// and has the last state of the run before its socket closes.
func TestASlowPageGetsTheLastState(t *testing.T) {
	source := &oneRun{updates: make(chan *engine.LiveState)}
	hub := NewHub(Options{Source: source})
	dialer := serveHub(t, hub, func() Viewer { return Viewer{} })
	conn, _, err := dialer.Dial("ws://server/", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
	// More than the buffers of a connection hold.
	const ticks = 3000
	for tick := 1; tick <= ticks; tick++ {
		p := sample(tick)
		if tick == ticks {
			p.Status = engine.StatusCompleted
		}
		source.updates <- p
	}
	close(source.updates)
	last, got := -1.0, 0
	for {
		_, text, err := conn.ReadMessage()
		if err != nil {
			if !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
				t.Errorf("the socket ended with %v", err)
			}
			break
		}
		var m Message
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		if m.Data.Elapsed <= last {
			t.Fatalf("second %v came after %v", m.Data.Elapsed, last)
		}
		last = m.Data.Elapsed
		got++
	}
	if last != ticks {
		t.Errorf("the last state is that of second %v of %d", last, ticks)
	}
	t.Logf("%d of %d messages were written", got, ticks)
}
