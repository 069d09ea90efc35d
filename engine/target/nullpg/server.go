// Package nullpg is a target that does nothing: it speaks enough of the
// Postgres protocol for a driver to connect, prepare and execute, answers every
// execution with one row, and takes exactly as long as it was told. What a load
// generator measures against it is the generator itself.
//
// It is a queueing model too: with Servers set, only so many executions are in
// service at once and the others wait in order of arrival, which makes the
// drain rate Servers ÷ Latency. A freeze holds every answer back until it is over.
//
// Besides SQL, which it does not look at, it knows two simple queries: FREEZE n
// (milliseconds, from now), and STATS, which answers with its own view of the
// latencies since the last STATS, as JSON of a histogram.
package nullpg

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/histogram"
)

// Options say how long the target takes.
type Options struct {
	// Latency of each execution; 0 answers at once.
	Latency time.Duration
	// Spread makes latencies uniform between Latency − Spread and Latency + Spread.
	Spread time.Duration
	// Servers bounds how many executions are in service at once; 0 is no bound.
	Servers int
	// Stats keeps the target's own distribution, for STATS.
	Stats bool
}

// Server is a running target. Each connection has a goroutine, which waits as
// long as its executions take. Where they take no time, on Linux, a few event loops have
// all connections: the target then costs less than the generator that is measured against it.
type Server struct {
	opts   Options
	ln     net.Listener
	frozen atomic.Int64 // until then, ns since start
	began  time.Time
	slots  chan struct{}
	next   atomic.Uint64

	mu    sync.Mutex
	conns map[net.Conn]struct{}
	wg    sync.WaitGroup
	stats *histogram.Histogram
	ended bool
	loops loops
}

// Listen starts a target on a TCP address ("127.0.0.1:0") or, when it begins with a
// slash, on a unix socket. Close ends it.
func Listen(ctx context.Context, address string, o Options) (*Server, error) {
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, network, address)
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	s := &Server{opts: o, ln: ln, began: time.Now(), conns: map[net.Conn]struct{}{}, stats: histogram.New()}
	if o.Servers > 0 {
		s.slots = make(chan struct{}, o.Servers)
	}
	s.wg.Go(s.accept)
	return s, nil
}

// Addr is where the target listens.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// DSN is a connection string for it.
func (s *Server) DSN() string {
	if addr, ok := s.ln.Addr().(*net.TCPAddr); ok {
		return fmt.Sprintf("postgres://null@%s/null?sslmode=disable", addr)
	}
	// A driver forms the socket's name from a folder and a port.
	dir, port, _ := strings.Cut(s.ln.Addr().String(), "/.s.PGSQL.")
	return fmt.Sprintf("host=%s port=%s user=null dbname=null sslmode=disable", dir, port)
}

// Freeze holds back every answer that is due from now on for d.
func (s *Server) Freeze(d time.Duration) {
	s.frozen.Store(int64(time.Since(s.began) + d))
}

// Close ends the target and its connections. A second call does nothing.
func (s *Server) Close() error {
	s.mu.Lock()
	s.ended = true
	err := s.ln.Close()
	for c := range s.conns {
		_ = c.Close()
	}
	s.loops.end()
	s.mu.Unlock()
	s.wg.Wait()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}

func (s *Server) accept() {
	for {
		c, err := s.ln.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		switch {
		case s.ended:
			_ = c.Close()
		case s.opts.Latency == 0 && s.slots == nil && s.loops.take(s, c):
		default:
			s.conns[c] = struct{}{}
			s.wg.Go(func() {
				_ = s.serve(c) // a client that leaves is the ordinary end
				_ = c.Close()
				s.mu.Lock()
				delete(s.conns, c)
				s.mu.Unlock()
			})
		}
		s.mu.Unlock()
	}
}

// serve speaks the protocol until the client leaves.
func (s *Server) serve(c net.Conn) error {
	ss := &session{s: s, to: c, params: map[string]int{}}
	buf := make([]byte, readBuffer)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return fmt.Errorf("reading: %w", err)
		}
		if err := ss.feed(buf[:n]); err != nil {
			return err
		}
	}
}

// Fraction is element n of a sequence that fills 0 to 1 evenly: uniform latencies
// that are the same in every run.
func Fraction(n uint64) float64 { return float64(n*0x9E3779B97F4A7C15>>11) / (1 << 53) }

// pass waits for one service time, and for the end of a freeze.
func (s *Server) pass() {
	if d := s.opts.Latency; d > 0 {
		if s.opts.Spread > 0 {
			d += time.Duration((2*Fraction(s.next.Add(1)) - 1) * float64(s.opts.Spread))
		}
		time.Sleep(d)
	}
	for until := s.frozen.Load(); until > 0; until = s.frozen.Load() {
		left := time.Duration(until) - time.Since(s.began)
		if left <= 0 {
			return
		}
		time.Sleep(left)
	}
}

func (s *Server) takeStats() ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, err := json.Marshal(s.stats.Data())
	s.stats.Reset()
	if err != nil {
		return nil, fmt.Errorf("writing the statistics: %w", err)
	}
	return text, nil
}
