package cli

import (
	"net"
	"sync"
	"testing"
)

// road stands between two processes and carries what they say to each other, or holds it until it is told to go on.
type road struct {
	t     *testing.T
	ln    net.Listener
	to    [2]string // network and address
	conns sync.WaitGroup

	mu      sync.Mutex
	open    []net.Conn
	blocked chan struct{} // nil while it carries, closed when it does again
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
			r.conns.Go(func() { r.pass(client, server) })
			r.pass(server, client)
		})
	}
}

// pass carries one direction to its end; what was read when the road was blocked arrives when it carries again.
func (r *road) pass(from, to net.Conn) {
	defer func() { _ = to.Close() }()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		r.wait()
		if _, failed := to.Write(buf[:n]); failed != nil || err != nil {
			_ = from.Close()
			return
		}
	}
}
