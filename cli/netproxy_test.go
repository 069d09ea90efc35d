package cli

import (
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// netProxy forwards bytes between two processes. The test sets the delay of each direction, and can pause one.
type netProxy struct {
	t     *testing.T
	ln    net.Listener
	to    [2]string // network and address
	conns sync.WaitGroup

	mu      sync.Mutex
	open    []net.Conn
	blocked chan struct{} // nil while it carries, closed when it does again
	latency [2]func() time.Duration
	unread  [2]chan struct{}  // nil while a direction is read
	alter   [2]func(b []byte) // changes what passes, nil
}

// there and back are the ways of a road: from who dials, and to it.
const (
	outbound = iota
	inbound
)

// delay has each piece that is read from now on arrive so much later, in order.
func (r *netProxy) delay(route int, lag func() time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.latency[route] = lag
}

// jittered is a delay with jitter: a time, and up to so much more.
func jittered(minimum, more time.Duration) func() time.Duration {
	return func() time.Duration {
		if more <= 0 {
			return minimum
		}
		return minimum + rand.N(more)
	}
}

// newNetProxy leads to an address.
func newNetProxy(t *testing.T, network, address string) *netProxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &netProxy{t: t, ln: ln, to: [2]string{network, address}}
	r.conns.Go(r.accept)
	t.Cleanup(r.end)
	return r
}

func (r *netProxy) address() string { return r.ln.Addr().String() }

func (r *netProxy) end() {
	_ = r.ln.Close()
	r.carry()
	r.read(outbound)
	r.read(inbound)
	r.mu.Lock()
	for _, c := range r.open {
		_ = c.Close()
	}
	r.mu.Unlock()
	r.conns.Wait()
}

// block carries nothing any more, and says so to nobody; carry goes on with what was held.
func (r *netProxy) block() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blocked == nil {
		r.blocked = make(chan struct{})
	}
}

func (r *netProxy) carry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.blocked != nil {
		close(r.blocked)
		r.blocked = nil
	}
}

// stop reads nothing of one direction any more: the buffers of the kernel fill, and who sends waits. read goes on.
func (r *netProxy) stop(route int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unread[route] == nil {
		r.unread[route] = make(chan struct{})
	}
}

func (r *netProxy) read(route int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unread[route] != nil {
		close(r.unread[route])
		r.unread[route] = nil
	}
}

// alterBytes has what passes from now on be changed.
func (r *netProxy) alterBytes(route int, alter func(b []byte)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.alter[route] = alter
}

// wait waits until the road carries.
func (r *netProxy) wait() {
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

func (r *netProxy) accept() {
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
			r.conns.Go(func() { r.forward(outbound, client, server) })
			r.forward(inbound, server, client)
		})
	}
}

// piece is what was read at once, and when it arrives.
type piece struct {
	bytes []byte
	due   time.Time
	err   error
}

// forward carries one direction to its end; what was read when the road was blocked arrives when it carries again.
func (r *netProxy) forward(route int, from, to net.Conn) {
	defer func() { _ = to.Close() }()
	pieces, left := make(chan piece, 4096), make(chan struct{})
	defer close(left)
	r.conns.Go(func() {
		var last time.Time
		for {
			r.mu.Lock()
			lag, unread, alter := r.latency[route], r.unread[route], r.alter[route]
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
