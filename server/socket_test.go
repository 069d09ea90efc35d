package server_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/auth"
)

func (b *bench) dial(path string, header ...string) (*websocket.Conn, *http.Response, error) {
	h := http.Header{"Authorization": {"Bearer " + b.token}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	d := websocket.Dialer{HandshakeTimeout: 5 * time.Second}
	return d.Dial("ws"+strings.TrimPrefix(b.base, "http")+path, h)
}

func (b *bench) watch(path string, header ...string) *websocket.Conn {
	b.t.Helper()
	conn, _, err := b.dial(path, header...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	return conn
}

type update struct {
	Event string           `json:"event"`
	Data  engine.LiveState `json:"data"`
}

func next(t *testing.T, conn *websocket.Conn) update {
	t.Helper()
	var u update
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	if err := conn.ReadJSON(&u); err != nil {
		t.Fatal(err)
	}
	if u.Event != "RUN_UPDATE" {
		t.Fatalf("event %q", u.Event)
	}
	return u
}

func payload(id string, elapsed float64) *engine.LiveState {
	return &engine.LiveState{RunID: id, ResultID: id, Status: engine.StatusRunning, Elapsed: elapsed}
}

func (b *bench) liveRun() string {
	run := b.createRun("live")
	b.runs.move(run.RunID, engine.PhaseMeasurement, engine.StatusRunning)
	b.runs.publish(payload(run.RunID, 1))
	return run.RunID
}

func wantClose(t *testing.T, conn *websocket.Conn, code int) {
	t.Helper()
	for {
		_, _, err := conn.NextReader()
		if err == nil {
			continue
		}
		if !websocket.IsCloseError(err, code) {
			t.Fatalf("closed with %v, want %d", err, code)
		}
		return
	}
}

func TestSocketFollowsARun(t *testing.T) {
	t.Parallel()
	b := start(t)
	id := b.liveRun()
	first, second := b.watch("/ws/runs/"+id), b.watch("/ws/test/"+id)
	for _, conn := range []*websocket.Conn{first, second} {
		if u := next(t, conn); u.Data.Elapsed != 1 {
			t.Errorf("first message %v", u.Data.Elapsed)
		}
	}
	eventually(t, func() bool { return b.runs.subscribers(id) == 1 }, "two sockets do not share one subscription")
	b.runs.publish(payload(id, 2))
	for _, conn := range []*websocket.Conn{first, second} {
		if u := next(t, conn); u.Data.Elapsed != 2 {
			t.Errorf("second message %v", u.Data.Elapsed)
		}
	}
	// What a client sends is ignored.
	if err := first.WriteMessage(websocket.TextMessage, []byte(`{"stop":true}`)); err != nil {
		t.Fatal(err)
	}
	last := payload(id, 3)
	last.Status = engine.StatusCompleted
	b.runs.publish(last)
	b.runs.end(id)
	if u := next(t, first); u.Data.Status != engine.StatusCompleted {
		t.Errorf("last message %v", u.Data.Status)
	}
	wantClose(t, first, websocket.CloseNormalClosure)
	wantClose(t, second, websocket.CloseNormalClosure)
	eventually(t, func() bool { return b.runs.subscribers(id) == 0 }, "the subscription stays")
}

func TestSocketOfAFinishedRun(t *testing.T) {
	t.Parallel()
	b := start(t)
	run := b.createRun("done")
	b.runs.move(run.RunID, engine.PhaseNone, engine.StatusRunning, engine.StatusStopping, engine.StatusCompleted)
	conn := b.watch("/ws/runs/" + run.RunID)
	_, text, err := conn.ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	var u struct{ Data map[string]any }
	if err := json.Unmarshal(text, &u); err != nil {
		t.Fatal(err)
	}
	if u.Data["status"] != "COMPLETED" || u.Data["ops"].(map[string]any)["total"] != 7.0 || u.Data["workers"] == nil ||
		u.Data["logs"] == nil {
		t.Errorf("payload %s", text)
	}
	wantClose(t, conn, websocket.CloseNormalClosure)
}

func TestSocketWaitsForAPreparedRun(t *testing.T) {
	t.Parallel()
	b := start(t)
	run := b.createRun("prepared")
	conn := b.watch("/ws/runs/" + run.RunID)
	if u := next(t, conn); u.Data.Status != engine.StatusPrepared {
		t.Errorf("status %s", u.Data.Status)
	}
	b.runs.move(run.RunID, engine.PhaseMeasurement, engine.StatusRunning)
	b.runs.publish(payload(run.RunID, 1))
	for {
		if u := next(t, conn); u.Data.Status == engine.StatusRunning {
			break
		}
	}
}

func TestSocketRefusals(t *testing.T) {
	t.Parallel()
	b := start(t)
	id := b.liveRun()
	cookie := b.session()
	host := strings.TrimPrefix(b.base, "http://")
	for _, c := range []struct {
		name, path string
		header     []string
		status     int
	}{
		{"stranger", "/ws/runs/" + id, []string{"Authorization", "Bearer x"}, 401},
		{"unknown run", "/ws/runs/nope", nil, 404},
		{"another site", "/ws/runs/" + id, []string{"Origin", "https://evil.example"}, 403},
		{"own page", "/ws/runs/" + id, []string{"Origin", "http://" + host}, 101},
	} {
		conn, res, err := b.dial(c.path, c.header...)
		if conn != nil {
			_ = conn.Close()
		}
		if res == nil || res.StatusCode != c.status {
			t.Errorf("%s: %v %v, want %d", c.name, res, err, c.status)
		}
	}
	h := http.Header{"Cookie": {auth.CookieName + "=" + cookie.Value}, "Origin": {"http://" + host}}
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(b.base, "http")+"/ws/runs/"+id, h)
	if err != nil {
		t.Fatalf("a browser's session: %v", err)
	}
	_ = conn.Close()
}

func TestLargeMessageClosesTheSocket(t *testing.T) {
	t.Parallel()
	b := start(t)
	id := b.liveRun()
	conn := b.watch("/ws/runs/" + id)
	next(t, conn)
	if conn.WriteMessage(websocket.BinaryMessage, make([]byte, 64<<10)) != nil {
		return // the server did not wait for all of it
	}
	for {
		if _, _, err := conn.NextReader(); err != nil {
			var e net.Error
			if errors.As(err, &e) && e.Timeout() {
				t.Fatal("the socket stays open")
			}
			return
		}
	}
}

// TestSlowReader lets one client stop reading: the other one misses nothing.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	b := start(t)
	id := b.liveRun()
	slow := b.watch("/ws/runs/" + id)
	fast := b.watch("/ws/runs/" + id)
	next(t, slow)
	next(t, fast)
	big := strings.Repeat("x", 1<<19)
	for i := 2; i < 40; i++ {
		p := payload(id, float64(i))
		p.RunName = big // fills every buffer on the way to the one that does not read
		b.runs.publish(p)
		if u := next(t, fast); u.Data.Elapsed != float64(i) {
			t.Fatalf("the other client got %v, want %d", u.Data.Elapsed, i)
		}
	}
	// When it reads again it skips to the newest.
	seen := 0
	for {
		seen++
		if u := next(t, slow); u.Data.Elapsed == 39 {
			break
		}
	}
	if seen >= 38 {
		t.Errorf("nothing was skipped: %d messages", seen)
	}
}

func TestShutdownClosesSockets(t *testing.T) {
	t.Parallel()
	b := start(t)
	id := b.liveRun()
	conn := b.watch("/ws/runs/" + id)
	next(t, conn)
	stuck := b.watch("/ws/runs/" + id) // never reads
	done := make(chan error, 1)
	go func() { done <- b.stop() }()
	wantClose(t, conn, websocket.CloseGoingAway)
	if err := <-done; err != nil {
		t.Error(err)
	}
	_, _ = io.Copy(io.Discard, stuck.NetConn())
	if n := b.runs.subscribers(id); n != 0 {
		t.Errorf("%d subscriptions stay", n)
	}
}
