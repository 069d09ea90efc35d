package nodes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc"
)

// content is a segment of so many bytes.
type content int64

func (c content) Segment(context.Context, string, string) (io.ReadCloser, int64, error) {
	return io.NopCloser(io.LimitReader(zeros{}, int64(c))), int64(c), nil
}

func (content) ReadPlugin(context.Context, string) ([]byte, error) { return nil, errors.ErrUnsupported }

// countedContent counts how often a segment is opened.
type countedContent struct {
	content
	opened atomic.Int32
}

func (c *countedContent) Segment(ctx context.Context, run, name string) (io.ReadCloser, int64, error) {
	c.opened.Add(1)
	return c.content.Segment(ctx, run, name)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// isSending tells whether a segment is on its way to the node, or waits for its turn.
func (n *node) isSending() int {
	n.segments.mu.Lock()
	defer n.segments.mu.Unlock()
	return len(n.segments.known)
}

// TestANodeThatStopsReadingASegment, over gRPC: what was on its way is given up after a while, on both sides; so it is
// when the stream ends.
func TestANodeThatStopsReadingASegment(t *testing.T) {
	const gaveUp = "1"
	began, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	l, err := rpc.Listen(t.Context(), rpc.ListenOptions{Address: "127.0.0.1:0", Log: zerolog.Nop(),
		Segment: func(ctx context.Context, sum string, _ int64, content io.Reader) error {
			if _, err := content.Read(make([]byte, 10)); err != nil {
				return err
			}
			if sum == gaveUp {
				return errors.New("it stood still")
			}
			began <- struct{}{}
			<-ctx.Done() // it reads nothing more
			ended <- struct{}{}
			return ctx.Err()
		}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	d, err := rpc.NewDialer(rpc.DialOptions{Address: l.Addr().String(), Process: "server"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	var accepting sync.WaitGroup
	accepting.Go(func() {
		if end, err := l.Accept(t.Context()); err == nil {
			t.Cleanup(func() { _ = end.Close() })
		}
	})
	end, err := d.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	accepting.Wait()
	defer func() { _ = end.Close() }()
	const large = 1 << 20
	err = end.(protocol.SegmentTaker).PutSegment(t.Context(), gaveUp, large, io.LimitReader(zeros{}, large))
	if !errors.Is(err, protocol.ErrAborted) || !strings.HasSuffix(err.Error(), ": it stood still") {
		t.Errorf("the node has given it up, and the server hears %v", err)
	}
	for name, c := range map[string]struct {
		begin time.Duration
		stops bool
	}{"time is up": {50 * time.Millisecond, false}, "the stream ends": {time.Hour, true}} {
		f := New(Options{Log: zerolog.Nop(), Content: content(large), SegmentTimeout: c.begin})
		n := newNode(f, nil)
		ctx, cancel := context.WithCancel(t.Context())
		n.requestSegment(ctx, end, protocol.SegmentRequest{RunID: "r", Name: "s", SHA256: strings.Repeat("0", 64)})
		<-began
		if c.stops {
			cancel()
		}
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: it is still on its way", name)
		}
		for begin := time.Now(); n.isSending() > 0; time.Sleep(time.Millisecond) {
			if time.Since(begin) > 10*time.Second {
				t.Fatalf("%s: the server still sends it", name)
			}
		}
		cancel()
	}
}

// segmentTaker is a node that takes segments when it is let.
type segmentTaker struct {
	protocol.ServerEnd
	let          chan error
	mu           sync.Mutex
	now, most, n int
	refused      []string
	onRefusal    func(sum string)
	asked        bool
}

func (e *segmentTaker) PutSegment(ctx context.Context, _ string, _ int64, r io.Reader) error {
	e.mu.Lock()
	e.n++
	e.now++
	e.most = max(e.most, e.now)
	e.mu.Unlock()
	defer func() { e.mu.Lock(); e.now--; e.mu.Unlock() }()
	select {
	case err := <-e.let:
		_, _ = io.Copy(io.Discard, r)
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *segmentTaker) RefuseSegment(_ context.Context, sum, reason string) error {
	if e.onRefusal != nil {
		e.onRefusal(sum)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refused = append(e.refused, sum+": "+reason)
	return nil
}

// Receive asks for a segment, and ends a minute later.
func (e *segmentTaker) Receive(context.Context) (protocol.FromNode, error) {
	if e.asked {
		time.Sleep(time.Minute)
		return nil, protocol.ErrClosed
	}
	e.asked = true
	return protocol.SegmentRequest{}, nil
}

// TestSegmentsOfAStreamThatEnded are not sent any longer.
func TestSegmentsOfAStreamThatEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(New(Options{Log: zerolog.Nop(), Content: content(1 << 30)}), nil)
		n.session = "s"
		end := &segmentTaker{}
		if err := n.receive(t.Context(), end); !errors.Is(err, protocol.ErrClosed) {
			t.Fatal(err)
		}
		synctest.Wait()
		if end.n != 1 || n.isSending() != 0 || len(end.refused) != 0 {
			t.Errorf("%d were begun, %d go on, %q", end.n, n.isSending(), end.refused)
		}
	})
}

// TestSegmentsAreBroughtAFewAtATime: each once, however often it is asked for, and no more than there are places for.
func TestSegmentsAreBroughtAFewAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(New(Options{Log: zerolog.Nop(), Content: content(10)}), nil)
		end := &segmentTaker{let: make(chan error)}
		ask := func(i int) { n.requestSegment(t.Context(), end, protocol.SegmentRequest{SHA256: strconv.Itoa(i)}) }
		for range 3 {
			for i := range 10 {
				ask(i)
			}
		}
		synctest.Wait()
		if end.n != maxSegments || n.isSending() != 10 {
			t.Errorf("%d are brought, %d in all", end.n, n.isSending())
		}
		for i := range 10 {
			if i == 3 {
				end.let <- errors.New("no room")
				continue
			}
			end.let <- nil
		}
		synctest.Wait()
		if end.n != 10 || end.most != maxSegments || n.isSending() != 0 || len(end.refused) != 1 ||
			!strings.HasSuffix(end.refused[0], ": no room") {
			t.Errorf("%d were brought, %d at once, %d are left; refused were %q", end.n, end.most, n.isSending(), end.refused)
		}
		for i := range 2 * maxWaitingSegments {
			ask(i)
		}
		if n.isSending() != maxSegments+maxWaitingSegments {
			t.Errorf("%d segments wait", n.isSending())
		}
		// Whoever never answers is left after a while; what is not wanted any more is not refused.
		time.Sleep(time.Duration(maxWaitingSegments) * time.Minute)
		synctest.Wait()
		if n.isSending() != 0 {
			t.Errorf("%d segments still wait", n.isSending())
		}
		end.refused = nil
		for _, err := range []error{protocol.ErrNotWanted, fmt.Errorf("%w: it stood still", protocol.ErrAborted)} {
			ask(1)
			end.let <- err
			synctest.Wait()
			if len(end.refused) > 0 || n.isSending() != 0 {
				t.Errorf("%v: %q", err, end.refused)
			}
		}
	})
}

// TestAWantThatNobodyRepeats leaves its place, and its segment is not opened; one that is repeated keeps it.
func TestAWantThatNobodyRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted := &countedContent{content: 10}
		n := newNode(New(Options{Log: zerolog.Nop(), Content: counted}), nil)
		end := &segmentTaker{let: make(chan error)}
		ask := func(i int) { n.requestSegment(t.Context(), end, protocol.SegmentRequest{SHA256: strconv.Itoa(i)}) }
		for i := range maxSegments {
			ask(i)
		}
		synctest.Wait()
		for i := range 10 {
			ask(maxSegments + i)
		}
		for range 9 { // 27 s, within what a segment may take
			time.Sleep(3 * time.Second)
			ask(maxSegments)
		}
		synctest.Wait()
		if n.isSending() != maxSegments+1 || counted.opened.Load() != maxSegments {
			t.Errorf("%d are known, %d were opened", n.isSending(), counted.opened.Load())
		}
		for range maxSegments + 1 {
			end.let <- nil
		}
		synctest.Wait()
		if n.isSending() != 0 || counted.opened.Load() != maxSegments+1 {
			t.Errorf("%d are known, %d were opened", n.isSending(), counted.opened.Load())
		}
	})
}

// TestARefusedSegmentIsWantedAgain at once by whoever hears that: it is brought again, and known while it is.
func TestARefusedSegmentIsWantedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newNode(New(Options{Log: zerolog.Nop(), Content: content(10)}), nil)
		end := &segmentTaker{let: make(chan error)}
		ask := func(sum string) { n.requestSegment(t.Context(), end, protocol.SegmentRequest{SHA256: sum}) }
		end.onRefusal = ask
		ask("1")
		end.let <- errors.New("it cannot be read")
		synctest.Wait()
		if end.n != 2 || n.isSending() != 1 || len(end.refused) != 1 {
			t.Errorf("begun %d times, %d known, %q", end.n, n.isSending(), end.refused)
		}
		end.let <- nil
		synctest.Wait()
		if n.isSending() != 0 {
			t.Error("it has stayed")
		}
	})
}
