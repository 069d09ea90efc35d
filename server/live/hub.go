// Package live shows runs to browsers: a WebSocket hub with one subscription per
// run, however many watch it. A payload is encoded once, in place of the one before,
// and each client writes the newest when it has written the last. So a client that
// reads slowly skips seconds, one that stops reading is closed when a write has been
// stuck for WriteTimeout, and neither ever slows the hub or another client. The last
// payload of a run reaches every client that reads.
//
// Sockets are read-only: what a client sends is read, bounded and ignored. A
// socket closes with 1000 after the payload of a run that is over, with 1001 when the
// server shuts down, and with 1008 when the session or token that opened it has ended.
//
// The sockets are those of gofiber/contrib. Its connections come from a pool and are
// cleared when their handler returns, so nothing of a socket outlives its handler: serve
// waits for its reader, and Close reaches a connection only while serve is registered.
// The origin is judged before, by the guard: it is this server's own as the request and
// a trusted proxy name it, which no fixed list of origins knows.
package live

import (
	"context"
	"errors"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/contrib/websocket"
	"github.com/gofiber/fiber/v2"
	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"github.com/loadstone-db/loadstone/engine"
)

// Source is what the hub needs of the runs.
type Source interface {
	// Live returns the latest payload of a live run, else nil.
	LiveState(runID string) *engine.LiveState
	// Subscribe returns a channel that holds the newest payload, the present one at
	// once, and is closed after the final one.
	Subscribe(runID string) (updates <-chan *engine.LiveState, cancel func(), err error)
	Detail(ctx context.Context, runID string) (engine.RunDetail, error)
}

// Options configure a hub; zero values mean the defaults.
type Options struct {
	Source Source
	Log    zerolog.Logger
	// MaxClients bounds the sockets of all runs; 1000 by default.
	MaxClients int
	// PingInterval is the time between pings (20 s); a client silent for 2.5 of them is gone.
	PingInterval time.Duration
	// WriteTimeout is how long one write may be stuck (10 s).
	WriteTimeout time.Duration
	// PollInterval is how often a run that nobody publishes yet (PREPARED) is looked at (1 s).
	PollInterval time.Duration
}

const (
	readLimit     = 4 << 10
	closeGrace    = time.Second
	detailTimeout = 5 * time.Second
	writeBuffer   = 16 << 10
)

// Hub holds every socket of the server.
type Hub struct {
	opts      Options
	handshake fiber.Handler
	closing   chan struct{}

	mu      sync.Mutex
	closed  bool
	feeds   map[string]*runFeed
	clients map[*client]struct{}
	// running counts handlers and feeds, for Close.
	running sync.WaitGroup
}

// NewHub returns a hub; Close ends it.
func NewHub(opts Options) *Hub {
	if opts.MaxClients <= 0 {
		opts.MaxClients = 1000
	}
	if opts.PingInterval <= 0 {
		opts.PingInterval = 20 * time.Second
	}
	if opts.WriteTimeout <= 0 {
		opts.WriteTimeout = 10 * time.Second
	}
	if opts.PollInterval <= 0 {
		opts.PollInterval = time.Second
	}
	h := &Hub{opts: opts, closing: make(chan struct{}), feeds: map[string]*runFeed{}, clients: map[*client]struct{}{}}
	h.handshake = websocket.New(h.serve, websocket.Config{
		HandshakeTimeout: opts.WriteTimeout, WriteBufferSize: writeBuffer, ReadBufferSize: 1 << 10,
		WriteBufferPool: &sync.Pool{},
		RecoverHandler:  h.recovered,
	})
	return h
}

// The reasons for which a socket is not opened.
var (
	ErrClosed = &engine.Error{Code: engine.CodeUnavailable, Message: "The server is shutting down.",
		Hint: "Connect again in a few seconds."}
	ErrFull = &engine.Error{Code: engine.CodeUnavailable, Message: "Too many pages are watching runs.",
		Hint: "Close some of them, or wait."}
	ErrNotASocket  = errors.New("not a WebSocket handshake")
	closeShutdown  = websocket.FormatCloseMessage(websocket.CloseGoingAway, "the server is shutting down")
	closeSignedOut = websocket.FormatCloseMessage(websocket.ClosePolicyViolation, "the sign-in has ended")
	closeRunIsOver = websocket.FormatCloseMessage(websocket.CloseNormalClosure, "the run is over")
	closeInternal  = websocket.FormatCloseMessage(websocket.CloseInternalServerErr, "something went wrong in the server")
)

// Viewer is who watches, for as long as the sign-in lasts. The zero value watches without end.
type Viewer struct {
	// Revoked is closed when the session or token is revoked.
	Revoked <-chan struct{}
	// ExpiresAt is when it expires; zero means never.
	ExpiresAt time.Time
	// StillValid asks, with each ping, whether it has been revoked elsewhere.
	StillValid func(ctx context.Context) bool
	// OnClose is called when the socket has ended.
	OnClose func()
}

func (c Viewer) stillValid() bool {
	if c.StillValid == nil {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), detailTimeout)
	defer cancel()
	return c.StillValid(ctx)
}

// expiry is a channel that has a value when the caller's time is over.
func (c Viewer) expiry() (<-chan time.Time, func()) {
	if c.ExpiresAt.IsZero() {
		return nil, func() {}
	}
	timer := time.NewTimer(time.Until(c.ExpiresAt))
	return timer.C, func() { timer.Stop() }
}

// watch is what a socket was opened for. The handshake hands it on to serve.
type watch struct {
	runID  string
	viewer Viewer
}

// watchKey is where the handshake finds it.
const watchKey = "live.watch"

// Upgrade makes the request a socket that watches a run. The caller has checked
// that the run exists and that the caller may see it. An error means that
// nothing was upgraded and that the caller answers the request.
func (h *Hub) Upgrade(c *fiber.Ctx, runID string, caller Viewer) error {
	h.mu.Lock()
	switch {
	case h.closed:
		h.mu.Unlock()
		return ErrClosed
	case len(h.clients) >= h.opts.MaxClients:
		h.mu.Unlock()
		return ErrFull
	}
	h.mu.Unlock()
	c.Locals(watchKey, watch{runID, caller})
	// A handshake that fails clears the response, and with it what others set there.
	var kept fasthttp.ResponseHeader
	c.Response().Header.CopyTo(&kept)
	if h.handshake(c) != nil {
		kept.CopyTo(&c.Response().Header)
		return ErrNotASocket
	}
	return nil
}

// recovered ends a socket whose handler panicked; the server goes on.
func (h *Hub) recovered(conn *websocket.Conn) {
	cause := recover()
	if cause == nil {
		return
	}
	h.opts.Log.Error().Interface("panic", cause).Bytes("stack", debug.Stack()).Msg("a socket panicked and was closed")
	_ = conn.WriteControl(websocket.CloseMessage, closeInternal, time.Now().Add(closeGrace))
}

// Clients is the number of open sockets.
func (h *Hub) Clients() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients)
}

// Close closes every socket with 1001 and waits for their ends; when ctx ends
// first, the connections are cut. Twice is safe.
func (h *Hub) Close(ctx context.Context) error {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.closing)
	}
	h.mu.Unlock()
	done := make(chan struct{})
	go func() {
		h.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	h.mu.Lock()
	for c := range h.clients {
		c.interruptRead()
		_ = c.conn.NetConn().SetWriteDeadline(expiredDeadline)
	}
	h.mu.Unlock()
	<-done
	return nil
}

// join registers a client with the run's feed, which it starts if it is the first.
func (h *Hub) join(c *client, runID string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.clients[c] = struct{}{}
	f := h.feeds[runID]
	if f == nil {
		f = newRunFeed(h, runID)
		h.feeds[runID] = f
		h.running.Add(1)
		go f.run()
	}
	c.feed = f
	f.add(c)
	h.running.Add(1)
	return true
}

// leave undoes join; the last client of a feed ends it.
func (h *Hub) leave(c *client) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clients, c)
	if f := c.feed; f.remove(c) == 0 && h.feeds[f.runID] == f {
		delete(h.feeds, f.runID)
		close(f.stop)
	}
	h.running.Done()
}

// client is one socket.
type client struct {
	conn *websocket.Conn
	feed *runFeed
	gone chan struct{} // closed when the peer has left
	// interrupted is set when the reader shall not wait any longer.
	interrupted atomic.Bool
}

// expiredDeadline is a deadline that ends a read or a write at once.
var expiredDeadline = time.Unix(1, 0)

// interruptRead ends the reader. Closing would not: fasthttp closes a hijacked connection
// only when its handler has returned.
func (c *client) interruptRead() {
	c.interrupted.Store(true)
	_ = c.conn.SetReadDeadline(expiredDeadline)
}

// setReadDeadline gives the reader until then, unless it has been cut.
func (c *client) setReadDeadline(until time.Time) {
	_ = c.conn.SetReadDeadline(until)
	if c.interrupted.Load() {
		_ = c.conn.SetReadDeadline(expiredDeadline)
	}
}

// serve runs in the connection's own goroutine and writes; a second one reads.
// The connection is its own only until it returns.
func (h *Hub) serve(conn *websocket.Conn) {
	opened, _ := conn.Locals(watchKey).(watch)
	runID, caller := opened.runID, opened.viewer
	if caller.OnClose != nil {
		defer caller.OnClose()
	}
	expired, cancel := caller.expiry()
	defer cancel()
	c := &client{conn: conn, gone: make(chan struct{})}
	if !h.join(c, runID) {
		_ = conn.WriteControl(websocket.CloseMessage, closeShutdown, time.Now().Add(closeGrace))
		return
	}
	defer h.leave(c)
	defer func() {
		c.interruptRead()
		<-c.gone
	}()
	go h.read(c)

	ping := time.NewTicker(h.opts.PingInterval)
	defer ping.Stop()
	for written := 0; ; {
		select {
		case <-h.closing:
			h.sendClose(c, closeShutdown)
			return
		default:
		}
		select {
		case <-c.feed.changedAfter(written):
			m, number, over := c.feed.newest(written)
			if over {
				h.sendClose(c, closeRunIsOver)
				return
			}
			written = number
			if m == nil {
				continue
			}
			_ = conn.SetWriteDeadline(time.Now().Add(h.opts.WriteTimeout))
			if err := conn.WriteMessage(websocket.TextMessage, m); err != nil {
				h.opts.Log.Debug().Err(err).Str("run_id", runID).Msg("closed a socket that did not take its payload")
				return
			}
		case <-caller.Revoked:
			h.sendClose(c, closeSignedOut)
			return
		case <-expired:
			h.sendClose(c, closeSignedOut)
			return
		case <-ping.C:
			if !caller.stillValid() {
				h.sendClose(c, closeSignedOut)
				return
			}
			if err := conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(h.opts.WriteTimeout)); err != nil {
				return
			}
		case <-c.gone:
			return
		case <-h.closing:
			h.sendClose(c, closeShutdown)
			return
		}
	}
}

// sendClose sends a close frame and gives the peer a moment to answer it.
func (h *Hub) sendClose(c *client, frame []byte) {
	if c.conn.WriteControl(websocket.CloseMessage, frame, time.Now().Add(closeGrace)) != nil {
		return
	}
	timer := time.NewTimer(closeGrace)
	defer timer.Stop()
	select {
	case <-c.gone:
	case <-timer.C:
	}
}

// read drops what the client sends and notices when it is gone.
func (h *Hub) read(c *client) {
	defer close(c.gone)
	patience := h.opts.PingInterval*2 + h.opts.PingInterval/2
	c.conn.SetReadLimit(readLimit)
	alive := func() { c.setReadDeadline(time.Now().Add(patience)) }
	alive()
	c.conn.SetPongHandler(func(string) error { alive(); return nil })
	for {
		_, r, err := c.conn.NextReader()
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			return
		}
	}
}
