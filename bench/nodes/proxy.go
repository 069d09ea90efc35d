package main

import (
	"context"
	"io"
	"net"
	"sync"
)

// proxy is the network between the servers and a node: it can break, and it can swallow all
// that is sent without saying so.
type proxy struct {
	ln     net.Listener
	target string

	mu    sync.Mutex
	pairs map[*pair]struct{}
	hole  bool // nothing passes any more
	open  *sync.Cond
}

type pair struct{ client, server *net.TCPConn }

func newProxy(ctx context.Context, target string) (*proxy, error) {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{ln: ln, target: target, pairs: map[*pair]struct{}{}}
	p.open = sync.NewCond(&p.mu)
	go p.accept()
	return p, nil
}

func (p *proxy) address() string { return p.ln.Addr().String() }

func (p *proxy) accept() {
	for {
		c, err := p.ln.Accept()
		if err != nil {
			return
		}
		go p.pass(c.(*net.TCPConn)) //nolint:forcetypeassert // of a TCP listener
	}
}

func (p *proxy) pass(client *net.TCPConn) {
	p.wait()
	s, err := (&net.Dialer{}).Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	c := &pair{client, s.(*net.TCPConn)} //nolint:forcetypeassert // of a TCP address
	p.mu.Lock()
	p.pairs[c] = struct{}{}
	p.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { p.copy(c.server, c.client) })
	both.Go(func() { p.copy(c.client, c.server) })
	both.Wait()
	p.mu.Lock()
	delete(p.pairs, c)
	p.mu.Unlock()
	c.close()
}

// copy brings what one sends to the other, while there is no hole.
func (p *proxy) copy(to, from *net.TCPConn) {
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		p.wait()
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	_ = to.CloseWrite()
	_, _ = io.Copy(io.Discard, from)
}

// wait returns when things pass.
func (p *proxy) wait() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.hole {
		p.open.Wait()
	}
}

// swallow makes a hole of the network, or ends it.
func (p *proxy) swallow(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hole = on
	p.open.Broadcast()
}

// reset breaks all connections with a reset, as a router that has restarted does.
func (p *proxy) reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.pairs {
		_ = c.client.SetLinger(0)
		_ = c.server.SetLinger(0)
		c.close()
	}
}

func (p *proxy) close() {
	_ = p.ln.Close()
	p.swallow(false)
	p.reset()
}

func (c *pair) close() {
	_ = c.client.Close()
	_ = c.server.Close()
}
