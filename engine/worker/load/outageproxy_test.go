package load_test

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// outageProxy leads to a server, takes it away and brings it back, and knows when which answer passed it.
type outageProxy struct {
	ln net.Listener
	to string

	mu    sync.Mutex
	wait  sync.WaitGroup
	conns map[net.Conn]bool
	mode  proxyMode
	held  chan struct{} // closed when a half-open proxy carries again
	// last is when the last operation was answered before it was away, first when the first one was after that.
	last, first time.Time
	answered    int
}

// proxyMode is what a proxy does with its connections.
type proxyMode int

const (
	carries   proxyMode = iota
	refuses             // closes what there is and what comes
	halfOpens           // accepts, and carries nothing
)

func newOutageProxy(t *testing.T, to string) *outageProxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &outageProxy{ln: ln, to: to, conns: map[net.Conn]bool{}, held: make(chan struct{})}
	p.wait.Go(p.accept)
	t.Cleanup(func() {
		_ = ln.Close()
		p.set(refuses)
		p.wait.Wait()
	})
	return p
}

// set begins what the proxy does from now on. Connections that it held half open are closed when it carries again.
func (p *outageProxy) set(mode proxyMode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.mode
	if p.mode = mode; mode != carries {
		p.first = time.Time{}
	}
	if mode == refuses || was == halfOpens {
		for c := range p.conns {
			_ = c.Close()
		}
	}
	if was == halfOpens {
		close(p.held)
		p.held = make(chan struct{})
	}
}

func (p *outageProxy) truth() (last, first time.Time, answered int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last, p.first, p.answered
}

func (p *outageProxy) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		mode := p.mode
		if mode != refuses {
			p.conns[c] = true
		}
		p.mu.Unlock()
		if mode == refuses {
			_ = c.Close()
			continue
		}
		p.wait.Go(func() { p.carry(c) })
	}
}

func (p *outageProxy) carry(c net.Conn) {
	s, err := net.Dial("tcp", p.to)
	if err != nil {
		_ = c.Close()
		return
	}
	p.mu.Lock()
	p.conns[s] = true
	p.mu.Unlock()
	defer func() {
		_, _ = c.Close(), s.Close()
		p.mu.Lock()
		delete(p.conns, c)
		delete(p.conns, s)
		p.mu.Unlock()
	}()
	p.wait.Go(func() {
		_ = p.forward(s, c, nil)
		_, _ = c.Close(), s.Close()
	})
	answers := &answerCounter{}
	_ = p.forward(c, s, answers)
}

// forward carries bytes until either side ends. Nothing passes, and no answer counts, that the mode does not let through.
func (p *outageProxy) forward(to, from net.Conn, answers *answerCounter) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return err
		}
		found := 0
		if answers != nil {
			found = answers.feed(buf[:n])
		}
		p.mu.Lock()
		mode, held := p.mode, p.held
		if mode == carries {
			if found > 0 {
				now := time.Now()
				if p.answered += found; p.first.IsZero() && !p.last.IsZero() && p.awayBefore(now) {
					p.first = now
				}
				if p.first.IsZero() {
					p.last = now
				}
			}
			_, err = to.Write(buf[:n])
		}
		p.mu.Unlock()
		switch {
		case mode == halfOpens:
			<-held
			return io.EOF
		case mode == refuses || err != nil:
			return io.EOF
		}
	}
}

// awayBefore reports whether the pause since the last answer is that of an outage of these tests.
func (p *outageProxy) awayBefore(now time.Time) bool { return now.Sub(p.last) > 200*time.Millisecond }

// answerCounter counts the operations that were answered in what a server says: their BindComplete. What a connection is
// prepared with binds nothing.
type answerCounter struct{ left []byte }

func (a *answerCounter) feed(b []byte) (found int) {
	a.left = append(a.left, b...)
	for len(a.left) >= 5 {
		size := 1 + int(binary.BigEndian.Uint32(a.left[1:5]))
		if len(a.left) < size {
			break
		}
		if a.left[0] == '2' {
			found++
		}
		a.left = a.left[size:]
	}
	return found
}
