// Package protocoltest is the conformance suite of the control stream: what every
// transport must keep, whoever carries the messages.
package protocoltest

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// Link is a way between one server and one node.
type Link struct {
	Dialer   protocol.Dialer
	Listener protocol.Listener
	// Break cuts what carries the stream, as a pulled cable or a killed process does;
	// a later Dial works again.
	Break func()
}

// timeout is how long a test waits for what must happen.
const timeout = 20 * time.Second

// Run runs the suite; open makes a link that is closed at the end of the test.
func Run(t *testing.T, open func(t *testing.T) Link) {
	for _, c := range []struct {
		name string
		test func(*testing.T, func(*testing.T) Link)
	}{
		{"order is kept, and nothing comes twice", order},
		{"a receiver that stops reading holds up its sender only", stalled},
		{"one stalled node does not delay another", independent},
		{"a send ends with its context", sendContext},
		{"a broken stream is noticed by both ends", broken},
		{"a stream can be opened again", reconnects},
		{"messages of an old stream are ignored", old},
		{"what was sent before a close arrives", closing},
		{"a close ends although nobody reads", closeLimit},
		{"closing twice is harmless", closeTwice},
		{"too large a message is refused, and the stream goes on", large},
		{"a receipt comes from the node, not from a send", receipt},
		{"opening ends with its context", openContext},
		{"a part is read from its node", parts},
		{"nothing else than a part of the node is read", otherParts},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open) })
	}
}

// session opens a stream on a link.
func session(t *testing.T, l Link) (protocol.ServerEnd, protocol.NodeEnd) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	accepted := make(chan protocol.NodeEnd, 1)
	go func() {
		node, err := l.Listener.Accept(ctx)
		if err != nil {
			t.Errorf("accepting: %v", err)
		}
		accepted <- node
	}()
	server, err := l.Dialer.Dial(ctx)
	for ; err != nil; server, err = l.Dialer.Dial(ctx) {
		// What was broken a moment ago may fail once more.
		if ctx.Err() != nil {
			t.Fatalf("dialling: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	node := <-accepted
	if node == nil {
		t.FailNow()
	}
	t.Cleanup(func() { _ = server.Close(); _ = node.Close() })
	return server, node
}

func ping(n int) protocol.Ping { return protocol.Ping{Seq: int64(n)} }

func toNode(t *testing.T, e protocol.NodeEnd) protocol.ToNode {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	m, err := e.Receive(ctx)
	if err != nil {
		t.Fatalf("receiving on the node: %v", err)
	}
	return m
}

func fromNode(t *testing.T, e protocol.ServerEnd) protocol.FromNode {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	m, err := e.Receive(ctx)
	if err != nil {
		t.Fatalf("receiving on the server: %v", err)
	}
	return m
}

// down passes a message to the node, up one to the server: a stream may hold nothing,
// and a send then waits for its receiver.
func down(t *testing.T, server protocol.ServerEnd, node protocol.NodeEnd, m protocol.ToNode) protocol.ToNode {
	t.Helper()
	sent := make(chan error, 1)
	go func() { sent <- server.Send(context.Background(), m) }()
	got := toNode(t, node)
	if err := <-sent; err != nil {
		t.Fatalf("sending to the node: %v", err)
	}
	return got
}

func up(t *testing.T, node protocol.NodeEnd, server protocol.ServerEnd, m protocol.FromNode) protocol.FromNode {
	t.Helper()
	sent := make(chan error, 1)
	go func() { sent <- node.Send(context.Background(), m) }()
	got := fromNode(t, server)
	if err := <-sent; err != nil {
		t.Fatalf("sending to the server: %v", err)
	}
	return got
}

// pass passes a number both ways.
func pass(t *testing.T, server protocol.ServerEnd, node protocol.NodeEnd, n int) {
	t.Helper()
	if m := down(t, server, node, ping(n)); m != protocol.ToNode(ping(n)) {
		t.Fatalf("the node got %v in place of %d", m, n)
	}
	if m := up(t, node, server, protocol.Pong(ping(n))); m != protocol.FromNode(protocol.Pong(ping(n))) {
		t.Fatalf("the server got %v in place of %d", m, n)
	}
}

func order(t *testing.T, open func(*testing.T) Link) {
	server, node := session(t, open(t))
	const n = 5000
	go func() {
		for i := range n {
			if err := server.Send(context.Background(), ping(i)); err != nil {
				t.Errorf("sending %d: %v", i, err)
			}
		}
	}()
	go func() {
		for i := range n {
			if err := node.Send(context.Background(), protocol.Pong(ping(i))); err != nil {
				t.Errorf("sending %d: %v", i, err)
			}
		}
	}()
	for i := range n {
		if m := toNode(t, node).(protocol.Ping); m.Seq != int64(i) {
			t.Fatalf("the node got message %d in place of %d", m.Seq, i)
		}
		if m := fromNode(t, server).(protocol.Pong); m.Seq != int64(i) {
			t.Fatalf("the server got message %d in place of %d", m.Seq, i)
		}
	}
}

// fill sends until the other end's standing still is noticed. Messages are large, so
// that what lies between the ends is full too.
func fill(t *testing.T, server protocol.ServerEnd) {
	t.Helper()
	text := string(bytes.Repeat([]byte("x"), 256<<10))
	for i := 0; ; i++ {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := server.Send(ctx, protocol.AssignRun{Plan: &engine.Plan{}, DSN: secret.New(text)})
		cancel()
		if errors.Is(err, protocol.ErrStalled) {
			return
		}
		if err != nil || i > 100_000 {
			t.Fatalf("message %d: %v, want ErrStalled", i, err)
		}
	}
}

func stalled(t *testing.T, open func(*testing.T) Link) {
	server, node := session(t, open(t))
	fill(t, server)
	// The other direction is free.
	if m := up(t, node, server, protocol.Pong{Seq: 7}).(protocol.Pong); m.Seq != 7 {
		t.Fatalf("got %v", m)
	}
	// Once it reads again, sending goes on.
	sent := make(chan error, 1)
	go func() { sent <- server.Send(context.Background(), ping(1)) }()
	for {
		if m, ok := toNode(t, node).(protocol.Ping); ok {
			if m.Seq != 1 {
				t.Fatalf("got %v", m)
			}
			break
		}
	}
	if err := <-sent; err != nil {
		t.Fatalf("after it reads again: %v", err)
	}
}

func independent(t *testing.T, open func(*testing.T) Link) {
	full, _ := session(t, open(t))
	server, node := session(t, open(t))
	fill(t, full)
	filling := make(chan struct{})
	go func() {
		defer close(filling)
		_ = full.Send(context.Background(), ping(0)) // waits for its deadline
	}()
	for i := range 100 {
		pass(t, server, node, i)
	}
	select {
	case <-filling:
		t.Fatal("the send to the stalled node had ended before: nothing was shown")
	default:
	}
	_ = full.Close()
	<-filling
}

func sendContext(t *testing.T, open func(*testing.T) Link) {
	server, _ := session(t, open(t))
	fill(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begin := time.Now()
	err := server.Send(ctx, ping(1))
	if !errors.Is(err, protocol.ErrStalled) || !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if waited := time.Since(begin); waited >= protocol.SendTimeout {
		t.Fatalf("it waited %v", waited)
	}
}

func broken(t *testing.T, open func(*testing.T) Link) {
	l := open(t)
	server, node := session(t, l)
	pass(t, server, node, 1)
	l.Break()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if m, err := server.Receive(ctx); !errors.Is(err, protocol.ErrClosed) {
		t.Fatalf("the server's end: %v, %v", m, err)
	}
	if m, err := node.Receive(ctx); !errors.Is(err, protocol.ErrClosed) {
		t.Fatalf("the node's end: %v, %v", m, err)
	}
	if err := server.Send(ctx, ping(1)); !errors.Is(err, protocol.ErrClosed) {
		t.Fatalf("sending on a broken stream: %v", err)
	}
	if err := node.Send(ctx, protocol.Pong{}); !errors.Is(err, protocol.ErrClosed) {
		t.Fatalf("sending on a broken stream: %v", err)
	}
}

func reconnects(t *testing.T, open func(*testing.T) Link) {
	l := open(t)
	for i := range 5 {
		server, node := session(t, l)
		pass(t, server, node, i)
		if i%2 == 0 {
			l.Break()
		} else {
			_ = server.Close()
		}
	}
}

func old(t *testing.T, open func(*testing.T) Link) {
	l := open(t)
	server, node := session(t, l)
	pass(t, server, node, 99)
	// Nobody receives these: they are under way when the next stream is opened.
	var sending sync.WaitGroup
	for i := range 10 {
		sending.Go(func() { _ = server.Send(t.Context(), ping(100+i)) })
		sending.Go(func() { _ = node.Send(t.Context(), protocol.Pong(ping(100+i))) })
	}
	time.Sleep(50 * time.Millisecond)
	newServer, newNode := session(t, l)
	for i := range 10 {
		pass(t, newServer, newNode, i)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	if m, err := node.Receive(ctx); !errors.Is(err, protocol.ErrClosed) {
		t.Fatalf("the old stream delivered %v, %v", m, err)
	}
	if err := node.Send(ctx, protocol.Pong{}); !errors.Is(err, protocol.ErrClosed) {
		t.Fatalf("the old stream took a message: %v", err)
	}
	_ = server.Close()
	sending.Wait()
	pass(t, newServer, newNode, 11)
}

func closing(t *testing.T, open func(*testing.T) Link) {
	l := open(t)
	const n = 100
	// One end sends and closes, the other receives until the stream is over.
	check := func(who string, send func(int) error, end func() error, receive func(context.Context) (int64, error)) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := range n {
				if err := send(i); err != nil {
					t.Errorf("the %s sends: %v", who, err)
				}
			}
			_ = end()
		}()
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		for i := range int64(n) {
			if seq, err := receive(ctx); err != nil || seq != i {
				t.Fatalf("closed by the %s: got message %d in place of %d, %v", who, seq, i, err)
			}
		}
		if _, err := receive(ctx); !errors.Is(err, protocol.ErrClosed) {
			t.Fatalf("closed by the %s: after the last message %v", who, err)
		}
		<-ended
	}
	server, node := session(t, l)
	check("server", func(i int) error { return server.Send(t.Context(), ping(i)) }, server.Close,
		func(ctx context.Context) (int64, error) {
			m, err := node.Receive(ctx)
			p, _ := m.(protocol.Ping)
			return p.Seq, err
		})
	server, node = session(t, l)
	check("node", func(i int) error { return node.Send(t.Context(), protocol.Pong(ping(i))) }, node.Close,
		func(ctx context.Context) (int64, error) {
			m, err := server.Receive(ctx)
			p, _ := m.(protocol.Pong)
			return p.Seq, err
		})
}

func closeLimit(t *testing.T, open func(*testing.T) Link) {
	server, _ := session(t, open(t))
	fill(t, server)
	begin := time.Now()
	_ = server.Close()
	if took := time.Since(begin); took > 10*time.Second {
		t.Fatalf("closing took %v", took)
	}
	if err := server.Send(t.Context(), ping(1)); !errors.Is(err, protocol.ErrClosed) {
		t.Fatalf("after the close: %v", err)
	}
}

func closeTwice(t *testing.T, open func(*testing.T) Link) {
	server, node := session(t, open(t))
	for range 2 {
		if err := errors.Join(server.Close(), node.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func large(t *testing.T, open func(*testing.T) Link) {
	server, node := session(t, open(t))
	text := string(bytes.Repeat([]byte("x"), 100<<20))
	if err := server.Send(t.Context(), protocol.AssignRun{Plan: &engine.Plan{}, DSN: secret.New(text)}); !errors.Is(err,
		protocol.ErrTooLarge) {
		t.Fatalf("100 MB to the node: %v", err)
	}
	if err := node.Send(t.Context(), protocol.Log{LogEntry: engine.LogEntry{Message: text}}); !errors.Is(err,
		protocol.ErrTooLarge) {
		t.Fatalf("100 MB to the server: %v", err)
	}
	// A large plan is none of these.
	feed := &engine.Feed{CSV: text[:engine.MaxFeedCSV]}
	big := protocol.AssignRun{Plan: &engine.Plan{}, Workload: engine.Workload{Feed: feed}}
	if m := down(t, server, node, big).(protocol.AssignRun); len(m.Workload.Feed.CSV) != engine.MaxFeedCSV {
		t.Fatalf("the feed has %d bytes", len(m.Workload.Feed.CSV))
	}
}

// receipt: what a node has received it says itself; the transport answers nothing.
func receipt(t *testing.T, open func(*testing.T) Link) {
	server, node := session(t, open(t))
	a := down(t, server, node, protocol.AssignRun{RunID: "r", WorkerID: "w", Plan: &engine.Plan{}}).(protocol.AssignRun)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if m, err := server.Receive(ctx); err == nil {
		t.Fatalf("the transport answered by itself: %v", m)
	}
	m := up(t, node, server, protocol.RunAccepted{RunID: a.RunID, WorkerID: a.WorkerID})
	if m != protocol.FromNode(protocol.RunAccepted{RunID: "r", WorkerID: "w"}) {
		t.Fatalf("got %v", m)
	}
}

func openContext(t *testing.T, open func(*testing.T) Link) {
	l := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := l.Listener.Accept(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("accepting what nobody dials: %v", err)
	}
}
