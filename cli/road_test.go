package cli

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// road stands between two processes and carries what they say to each other, each way as late as it is told to be, or
// holds it until it is told to go on.
type road struct {
	t     *testing.T
	ln    net.Listener
	to    [2]string // network and address
	conns sync.WaitGroup

	mu      sync.Mutex
	open    []net.Conn
	blocked chan struct{} // nil while it carries, closed when it does again
	lag     [2]func() time.Duration
	unread  [2]chan struct{}  // nil while a direction is read
	alter   [2]func(b []byte) // changes what passes, nil
}

// there and back are the ways of a road: from who dials, and to it.
const (
	there = iota
	back
)

// delay has each piece that is read from now on arrive so much later, in order.
func (r *road) delay(way int, lag func() time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lag[way] = lag
}

// about is a delay with jitter: a time, and up to so much more.
func about(least, more time.Duration) func() time.Duration {
	return func() time.Duration {
		if more <= 0 {
			return least
		}
		return least + rand.N(more) //nolint:gosec // a test's network
	}
}

// newRoad leads to an address.
func newRoad(t *testing.T, network, address string) *road {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &road{t: t, ln: ln, to: [2]string{network, address}}
	r.conns.Go(r.accept)
	t.Cleanup(r.end)
	return r
}

func (r *road) address() string { return r.ln.Addr().String() }

func (r *road) end() {
	_ = r.ln.Close()
	r.carry()
	r.read(there)
	r.read(back)
	r.mu.Lock()
	for _, c := range r.open {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.conns.Wait()
}

// block carries nothing any more, and says so to nobody; carry goes on with what was held.
func (r *road) block() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blocked == nil {
		r.blocked = make(chan struct{})
	}
}

func (r *road) carry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blocked != nil {
		close(r.blocked)
		r.blocked = nil
	}
}

// stop reads nothing of one direction any more: the buffers of the kernel fill, and who sends waits. read goes on.
func (r *road) stop(way int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unread[way] == nil {
		r.unread[way] = make(chan struct{})
	}
}

func (r *road) read(way int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unread[way] != nil {
		close(r.unread[way])
		r.unread[way] = nil
	}
}

// change has what passes from now on be changed.
func (r *road) change(way int, alter func(b []byte)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alter[way] = alter
}

// wait waits until the road carries.
func (r *road) wait() {
	for {
		r.mu.Lock()
		blocked := r.blocked
		r.mu.Unlock()
		if blocked == nil {
			return
		}
		<-blocked
	}
}

func (r *road) accept() {
	for {
		client, err := r.ln.Accept()
		if err != nil {
			return
		}
		r.conns.Go(func() {
			r.wait()
			server, err := net.Dial(r.to[0], r.to[1])
			if err != nil {
				_ = client.Close()
				return
			}
			r.mu.Lock()
			r.open = append(r.open, client, server)
			r.mu.Unlock()
			r.conns.Go(func() { r.pass(there, client, server) })
			r.pass(back, server, client)
		})
	}
}

// piece is what was read at once, and when it arrives.
type piece struct {
	bytes []byte
	due   time.Time
	err   error
}

// pass carries one direction to its end; what was read when the road was blocked arrives when it carries again.
func (r *road) pass(way int, from, to net.Conn) {
	defer func() { _ = to.Close() }()
	pieces, left := make(chan piece, 4096), make(chan struct{})
	defer close(left)
	r.conns.Go(func() {
		var last time.Time
		for {
			r.mu.Lock()
			lag, unread, alter := r.lag[way], r.unread[way], r.alter[way]
			r.mu.Unlock()
			if unread != nil {
				<-unread
			}
			buf := make([]byte, 32<<10)
			n, err := from.Read(buf)
			if alter != nil {
				alter(buf[:n])
			}
			due := time.Now()
			if lag != nil {
				due = due.Add(lag())
			}
			if due.Before(last) {
				due = last
			}
			last = due
			select {
			case pieces <- piece{buf[:n], due, err}:
			case <-left:
				return
			}
			if err != nil {
				return
			}
		}
	})
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		r.wait()
		if _, failed := to.Write(p.bytes); failed != nil || p.err != nil {
			_ = from.Close()
			return
		}
	}
}
