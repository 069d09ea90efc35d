package live

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fasthttp/websocket"
	"github.com/gofiber/fiber/v2"

	"github.com/loadstone-db/loadstone/engine"
)

// serveHub serves a hub on this machine, each socket opened for the caller; the dialer reaches it.
func serveHub(tb testing.TB, hub *Hub, caller func() Viewer) *websocket.Dialer {
	tb.Helper()
	// A real connection: a deadline ends what is being read, as cutting a socket needs.
	ln, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	app := fiber.New(fiber.Config{DisableStartupMessage: true})
	app.Get("/", func(c *fiber.Ctx) error {
		c.Set("X-Kept", "yes")
		err := hub.Upgrade(c, "run", caller())
		if errors.Is(err, ErrNotASocket) {
			return c.SendStatus(fiber.StatusUpgradeRequired)
		}
		return err
	})
	go func() { _ = app.Listener(ln) }()
	tb.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = hub.Close(ctx)
		_ = app.Shutdown()
	})
	return &websocket.Dialer{NetDial: func(string, string) (net.Conn,
		error) {
		return net.Dial("tcp", ln.Addr().String())
	}}
}

// TestAPanicEndsOneSocket lets the question after a sign-in panic: its socket is told
// so, what it held is given back, and the next one is served.
func TestAPanicEndsOneSocket(t *testing.T) {
	hub := NewHub(Options{Source: &oneRun{updates: make(chan *engine.LiveState)}, PingInterval: 200 * time.Millisecond})
	var broken atomic.Bool
	var left atomic.Int32
	broken.Store(true)
	dialer := serveHub(t, hub, func() Viewer {
		return Viewer{OnClose: func() { left.Add(1) }, StillValid: func(context.Context) bool {
			if broken.Load() {
				panic("no session to ask for")
			}
			return true
		}}
	})
	open := func() *websocket.Conn {
		t.Helper()
		conn, _, err := dialer.Dial("ws://server/", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, _, err := conn.ReadMessage(); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	if _, _, err := open().ReadMessage(); !websocket.IsCloseError(err, websocket.CloseInternalServerErr) {
		t.Errorf("the socket ended with %v", err)
	}
	if hub.Clients() != 0 || left.Load() != 1 {
		t.Errorf("%d sockets are registered, %d have left", hub.Clients(), left.Load())
	}
	broken.Store(false)
	next := open()
	_ = next.WriteControl(websocket.CloseMessage, nil, time.Now().Add(time.Second))
	if _, _, err := next.ReadMessage(); websocket.IsCloseError(err, websocket.CloseInternalServerErr) {
		t.Errorf("the next socket ended with %v", err)
	}
}

// TestARefusedHandshakeKeepsTheResponse: what was set before the handshake, such as the
// headers that protect a page, is in the refusal too.
func TestARefusedHandshakeKeepsTheResponse(t *testing.T) {
	hub := NewHub(Options{Source: &oneRun{updates: make(chan *engine.LiveState)}})
	dialer := serveHub(t, hub, func() Viewer { return Viewer{} })
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) { return dialer.NetDial("", "") }}}
	for name, header := range map[string]http.Header{
		"no upgrade": {},
		"no version": {"Connection": {"Upgrade"}, "Upgrade": {"websocket"},
			"Sec-Websocket-Key": {"AAAAAAAAAAAAAAAAAAAAAA=="}},
		"no challenge key": {"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"}},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusUpgradeRequired || res.Header.Get("X-Kept") != "yes" {
			t.Errorf("%s: status %d, headers %v", name, res.StatusCode, res.Header)
		}
	}
}

// TestSocketsComeAndGo opens and ends many sockets at once, while payloads are written to
// them and the hub cuts them: connections are pooled, and one that is used after its
// handler returned would be another socket's. The race detector is what looks.
func TestSocketsComeAndGo(t *testing.T) {
	source := &oneRun{updates: make(chan *engine.LiveState, 1)}
	hub := NewHub(Options{Source: source})
	var left atomic.Int32
	dialer := serveHub(t, hub, func() Viewer { return Viewer{OnClose: func() { left.Add(1) }} })
	stop := make(chan struct{})
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for tick := 1; ; tick++ {
			select {
			case source.updates <- sample(tick):
			case <-stop:
				return
			}
		}
	})
	const sockets, rounds = 20, 5
	var all sync.WaitGroup
	var opened atomic.Int32
	for i := range sockets {
		all.Go(func() {
			for round := range rounds {
				conn, _, err := dialer.Dial("ws://server/", nil)
				if err != nil {
					t.Error(err)
					return
				}
				opened.Add(1)
				for range i % 4 {
					if _, _, err := conn.ReadMessage(); err != nil {
						t.Errorf("socket %d in round %d: %v", i, round, err)
					}
				}
				if i%2 == 0 {
					_ = conn.WriteControl(websocket.CloseMessage, nil, time.Now().Add(time.Second))
				}
				if round < rounds-1 || i%5 != 0 {
					_ = conn.Close()
				}
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := hub.Close(ctx); err != nil {
		t.Error(err)
	}
	close(stop)
	publishing.Wait()
	for until := time.Now().Add(5 * time.Second); left.Load() != opened.Load() && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if hub.Clients() != 0 || left.Load() != sockets*rounds {
		t.Errorf("%d sockets are registered; %d of %d have left", hub.Clients(), left.Load(), opened.Load())
	}
}
