package protocol_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAReaderThatStoppedDelaysOnlyItsOwnDirection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, node := protocol.Pipe(nil)
		ctx := context.Background()
		// Nobody reads what goes to the node.
		var stalled error
		for stalled == nil {
			stalled = server.Send(ctx, protocol.Ping{})
		}
		if !errors.Is(stalled, protocol.ErrStalled) {
			t.Fatalf("a full queue gave %v, want ErrStalled", stalled)
		}
		begin := time.Now()
		go func() { _ = node.Send(ctx, protocol.Pong{Seq: 7}) }()
		m, err := server.Receive(ctx)
		if err != nil || m.(protocol.Pong).Seq != 7 {
			t.Fatalf("got %v, %v", m, err)
		}
		if waited := time.Since(begin); waited != 0 {
			t.Fatalf("the other direction waited %v", waited)
		}
	})
}

func TestASendEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := protocol.Pipe(nil)
		var err error
		begin := time.Now()
		for err == nil {
			begin = time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			err = server.Send(ctx, protocol.Ping{})
			cancel()
		}
		if !errors.Is(err, protocol.ErrStalled) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		if waited := time.Since(begin); waited != 100*time.Millisecond {
			t.Fatalf("waited %v, want the context's 100ms", waited)
		}
	})
}

func TestAClosedStreamTakesAndGivesNothing(t *testing.T) {
	server, node := protocol.Pipe(nil)
	ctx := context.Background()
	_ = node.Close()
	_ = server.Close()
	if _, err := server.Receive(ctx); !errors.Is(err, protocol.ErrClosed) {
		t.Fatalf("receive after close: %v, want ErrClosed", err)
	}
	if err := node.Send(ctx, protocol.Pong{}); !errors.Is(err, protocol.ErrClosed) {
		t.Fatalf("send after close: %v, want ErrClosed", err)
	}
}

func TestOrderIsKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 500).Draw(t, "n")
		server, node := protocol.Pipe(nil)
		ctx := context.Background()
		go func() {
			for i := range n {
				_ = server.Send(ctx, protocol.Ping{Seq: int64(i)})
			}
		}()
		for i := range n {
			m, err := node.Receive(ctx)
			if err != nil || m.(protocol.Ping).Seq != int64(i) {
				t.Fatalf("message %d: %v, %v", i, m, err)
			}
		}
	})
}
