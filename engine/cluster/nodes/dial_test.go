package nodes

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// handshakes are the dials that are under way, and what has become of them.
type handshakes struct {
	mu              sync.Mutex
	now, peak, made int
}

// handshake is a way to a node that takes a while to answer, or never does (0).
type handshake struct {
	all   *handshakes
	takes time.Duration
}

func (h handshake) Dial(ctx context.Context) (protocol.ServerEnd, error) {
	h.all.mu.Lock()
	h.all.now++
	h.all.peak = max(h.all.peak, h.all.now)
	h.all.mu.Unlock()
	var answered <-chan time.Time
	if h.takes > 0 {
		answered = time.After(h.takes)
	}
	defer func() { h.all.mu.Lock(); h.all.now--; h.all.mu.Unlock() }()
	select {
	case <-answered:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	h.all.mu.Lock()
	h.all.made++
	h.all.mu.Unlock()
	server, _ := protocol.Pipe(nil)
	return server, nil
}

// TestAThousandNodesAreDialledInTurn: handshakes that all begin at once would all be late, and begin
// again. Who does not answer keeps the others waiting for a moment only.
func TestAThousandNodesAreDialledInTurn(t *testing.T) {
	for name, c := range map[string]struct {
		takes  time.Duration // of all nodes but the last, which takes 100 ms
		within time.Duration
		made   int
		most   int
	}{
		"they answer":     {100 * time.Millisecond, 2 * time.Second, 1000, maxDialing},
		"they are silent": {0, 1000 / maxDialing * 2 * time.Second, 1, 1000},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var all handshakes
				dialers := make([]protocol.Dialer, 1000)
				for i := range dialers {
					dialers[i] = handshake{&all, c.takes}
				}
				dialers[len(dialers)-1] = handshake{&all, 100 * time.Millisecond}
				f := New(Options{Log: zerolog.Nop(), Dialers: dialers})
				lifetime, end := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				opening, opened := context.WithCancel(t.Context())
				opened() // nobody introduces itself here
				_ = f.Open(opening, lifetime, func(f func()) { wg.Go(f) }, &recordingListener{})
				time.Sleep(c.within)
				all.mu.Lock()
				made, most := all.made, all.peak
				all.mu.Unlock()
				if made != c.made || most > c.most {
					t.Errorf("after %v %d of 1000 nodes have a stream, and %d were dialled at once", c.within, made, most)
				}
				end()
				wg.Wait()
			})
		})
	}
}

// unreachableDialer is a way to a node that nobody answers on, and when it was tried.
type unreachableDialer struct{ attempts chan time.Time }

func (r unreachableDialer) Dial(context.Context) (protocol.ServerEnd, error) {
	r.attempts <- time.Now() // room: the test reads
	return nil, protocol.ErrClosed
}

// TestANodeThatIsAwayIsProbedEveryTenSeconds: the pause before it is dialled again grows from a
// fraction of a second to no more than ten seconds, whatever chance says.
func TestANodeThatIsAwayIsProbedEveryTenSeconds(t *testing.T) {
	for name, chance := range map[string]func(time.Duration) time.Duration{
		"at the least": func(time.Duration) time.Duration { return 0 },
		"at the most":  func(n time.Duration) time.Duration { return n - 1 },
		"by chance":    nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				way := unreachableDialer{make(chan time.Time, 1)}
				f := New(Options{Log: zerolog.Nop(), Dialers: []protocol.Dialer{way}, Jitter: chance})
				lifetime, end := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				opening, opened := context.WithCancel(t.Context())
				opened() // nobody introduces itself here
				_ = f.Open(opening, lifetime, func(f func()) { wg.Go(f) }, &recordingListener{})
				last, wanted := <-way.attempts, minBackoff
				for i := range 40 {
					at := <-way.attempts
					if pause := at.Sub(last); pause < wanted/2 || pause > wanted {
						t.Errorf("pause %d is %v, where %v to %v are due", i, pause, wanted/2, wanted)
					}
					last, wanted = at, min(2*wanted, maxBackoff)
				}
				if wanted != 10*time.Second {
					t.Errorf("the longest pause is %v", wanted)
				}
				end()
				wg.Wait()
			})
		})
	}
}
