package promql

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
	"github.com/loadstone-db/loadstone/engine/results/segment"
)

// stuck is a segment of which nothing comes (any more), until its call ends.
type stuck struct{ call context.Context }

func (s stuck) Read([]byte) (int, error) { <-s.call.Done(); return 0, s.call.Err() }

// asked is a cache with a session, and what that was asked for.
func asked(t *testing.T) (*Cache, chan protocol.SegmentRequest) {
	t.Helper()
	c := NewCache(folder(t.TempDir()), zerolog.Nop())
	a := NewExecutor(
		ExecutorOptions{Cache: c, Disk: c.disk, Log: zerolog.Nop(), Evaluate: NewEvaluator(c.Read, DefaultOptions(), 1)},
	)
	all := make(chan protocol.SegmentRequest, 100)
	s := a.Serve(func(m protocol.FromNode) { all <- m.(protocol.SegmentRequest) })
	t.Cleanup(s.Close)
	return c, all
}

// oneSegment is the segment of a run without operations.
func oneSegment(t *testing.T) (Segment, []byte) {
	t.Helper()
	begin := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	content, _, err := segment.Bytes(&rollup.Run{Run: engine.Run{RunID: "r", StartTime: engine.At(begin)},
		Seconds: rollup.New(begin), PerHour: func(engine.Warehouse) (float64, bool) { return 0, false }})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(content)
	return Segment{RunID: "r", Name: "r", Bytes: int64(len(content)), SHA256: hex.EncodeToString(sum[:]),
		From: begin.UnixMilli(), To: begin.UnixMilli()}, content
}

// put is the call of a server, which ends when the node answers.
func put(c *Cache, sum string, size int64, of func(context.Context) io.Reader) error {
	call, end := context.WithCancel(context.Background())
	defer end()
	return c.Put(call, sum, size, of(call))
}

func nothing(call context.Context) io.Reader { return stuck{call} }

// TestASegmentOfWhichNothingComes: another server is asked, and what that brings is read; where all stand still, who
// waits is not held up for ever, and nothing stays behind.
func TestASegmentOfWhichNothingComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, content := oneSegment(t)
		c, wanted := asked(t)
		half := func(call context.Context) io.Reader {
			return io.MultiReader(bytes.NewReader(content[:s.Bytes/2]), stuck{call})
		}
		read := make(chan error, 1)
		begin := time.Now()
		go func() { _, _, err := c.Read(t.Context(), s); read <- err }()
		for range segmentMaxAttempts {
			if m := <-wanted; m.SHA256 != s.SHA256 {
				t.Fatalf("%+v", m)
			}
			if err := put(c, s.SHA256, s.Bytes, half); !errors.Is(err, errStalled) {
				t.Fatalf("the server hears %v", err)
			}
		}
		if err := <-read; !errors.Is(err, errStalled) || time.Since(begin) != segmentMaxAttempts*segmentStallTimeout {
			t.Fatalf("%v after %v", err, time.Since(begin))
		}
		if len(c.waits) > 0 {
			t.Errorf("a wait has stayed")
		}
		other := make(chan protocol.SegmentRequest, 100)
		c.join(&Session{send: func(m protocol.FromNode) { other <- m.(protocol.SegmentRequest) }})
		go func() { _, _, err := c.Read(t.Context(), s); read <- err }()
		<-wanted
		if err := put(c, s.SHA256, s.Bytes, half); !errors.Is(err, errStalled) {
			t.Fatalf("the server hears %v", err)
		}
		<-other
		if err := put(c, s.SHA256, s.Bytes, func(context.Context) io.Reader {
			return bytes.NewReader(content)
		}); err != nil {
			t.Fatal(err)
		}
		if err := <-read; err != nil || len(c.waits) > 0 || !c.has(s.SHA256) {
			t.Errorf("%v, %d waits", err, len(c.waits))
		}
	})
}

// slow is a segment of which a byte comes every second.
type slow struct{ content io.Reader }

func (s slow) Read(p []byte) (int, error) {
	time.Sleep(time.Second)
	return s.content.Read(p[:1])
}

// TestNobodyWaitsForASegment: nobody takes what comes unasked; but what is on its way comes, however long that takes
// and whoever gives up, and the next who asks has it.
func TestNobodyWaitsForASegment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sum := sha256.Sum256(nil)
		s := Segment{RunID: "r", SHA256: hex.EncodeToString(sum[:])}
		c, wanted := asked(t)
		// Not on its way yet.
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		go func() { _, err := c.fetch(ctx, s); done <- err }()
		<-wanted
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) || len(c.waits) > 0 {
			t.Errorf("%v, %d waits", err, len(c.waits))
		}
		if err := put(c, s.SHA256, 1, nothing); !errors.Is(err, protocol.ErrNotWanted) {
			t.Errorf("nobody waits, and the server hears %v", err)
		}
		// Nobody brings it at all.
		begin := time.Now()
		if _, err := c.fetch(t.Context(), s); !errors.Is(err, errSegmentTimeout) || time.Since(begin) != segmentTimeout ||
			len(c.waits) > 0 {
			t.Errorf("%v after %v, %d waits", err, time.Since(begin), len(c.waits))
		}
		// On its way: one gives up, another comes later and has it, after more than segmentLimit. So has one who waits
		// for another segment meanwhile.
		for len(wanted) > 0 {
			<-wanted
		}
		const size = 100
		ctx, cancel = context.WithCancel(t.Context())
		go func() { _, err := c.fetch(ctx, s); done <- err }()
		<-wanted
		heard := make(chan error, 1)
		go func() {
			heard <- put(c, s.SHA256, size, func(context.Context) io.Reader {
				return slow{bytes.NewReader(make([]byte, size))}
			})
		}()
		synctest.Wait()
		if err := put(c, s.SHA256, 1, nothing); !errors.Is(err, protocol.ErrNotWanted) {
			t.Errorf("it is on its way, and the second server hears %v", err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		begin = time.Now()
		next := s
		next.SHA256 = hex.EncodeToString(bytes.Repeat([]byte{1}, 32))
		go func() { _, err := c.fetch(t.Context(), next); done <- err }()
		if n, err := c.fetch(t.Context(), s); err != nil || n != size || time.Since(begin) < size*time.Second {
			t.Errorf("%d, %v after %v", n, err, time.Since(begin))
		}
		if err := <-heard; err != nil || len(done) > 0 || !c.has(s.SHA256) {
			t.Errorf("the server hears %v, %d have given up", err, len(done))
		}
		if err := <-done; !errors.Is(err, errSegmentTimeout) || len(c.waits) > 0 {
			t.Errorf("%v, %d waits", err, len(c.waits))
		}
	})
}
