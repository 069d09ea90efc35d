package exec_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/memory"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// bombs are queries that take as much as they can, over rows with a text of 20 KB.
var bombs = map[string]string{
	"wide": "SELECT " + repeated(
		300,
		func(i int) string { return fmt.Sprintf("k || k || '%d' AS c%d", i, i) },
	) + " FROM t INTO s",
	"joined":  "SELECT " + strings.Repeat("k || ", 2000) + "k AS x FROM t INTO s",
	"nested":  "SELECT " + strings.Repeat("CONCAT(", 50) + "k" + strings.Repeat(", k)", 50) + " AS x FROM t INTO s",
	"doubled": "SELECT " + nested(9, "k", "CONCAT(%[1]s, %[1]s)") + " AS x FROM t INTO s",
	"raised":  "SELECT " + nested(90, "k", "UPPER(LOWER(%s))") + " AS x FROM t INTO s",
	"alternative": "SELECT " + repeated(
		300,
		func(i int) string { return fmt.Sprintf("CASE WHEN j > %d THEN k ELSE k || k END AS c%d", i, i) },
	) + " FROM t INTO s",
	"alike": "SELECT " + repeated(
		50,
		func(i int) string { return fmt.Sprintf("k || k LIKE '%%' || k || 'b%d' AS c%d", i, i) },
	) + " FROM t INTO s",
	"long list": "SELECT j IN (" + repeated(3000, func(i int) string { return fmt.Sprint(-i) }) + ") AS x FROM t INTO s",
	"pairs":     "SELECT t.k AS a, u.k AS b FROM t JOIN u ON t.v = u.v WINDOW TUMBLING(ts, SIZE 1 DAY) INTO s",
	"largest": "SELECT j, MAX(k) AS a, LAST(k || k) AS b, " + repeated(
		50,
		func(i int) string { return fmt.Sprintf("MIN(k || '%d') AS c%d", i, i) },
	) +
		" FROM t GROUP BY j WINDOW TUMBLING(ts, SIZE 1 DAY) INTO s",
	"many keys":      "SELECT j, COUNT(*) AS n FROM t GROUP BY j WINDOW TUMBLING(ts, SIZE 1 DAY) INTO s",
	"long keys":      "SELECT k || k, j, COUNT(*) AS n FROM t GROUP BY k || k, j WINDOW TUMBLING(ts, SIZE 1 DAY) INTO s",
	"sliding":        "SELECT j, QUANTILE(v, 0.9) AS q FROM t GROUP BY j WINDOW SLIDING(ts, SIZE 1 DAY, ADVANCE BY 1 SEC) INTO s",
	"earlier values": "SELECT LAG(k || k, 1000) OVER (PARTITION BY j) AS x FROM t INTO s",
}

func repeated(n int, one func(i int) string) string {
	var list []string
	for i := range n {
		list = append(list, one(i))
	}
	return strings.Join(list, ", ")
}

func nested(depth int, inner, level string) string {
	for range depth {
		inner = fmt.Sprintf(level, inner)
	}
	return inner
}

// heavy is a source of rows with a text of 20 KB, without an end, a megabyte at a time.
type heavy struct {
	next   int
	text   []byte
	closed atomic.Bool
}

func newHeavy() *heavy { return &heavy{text: []byte(strings.Repeat("abcdefghi ", 2048))} }

func (h *heavy) Read(b *column.Batch) error {
	if h.closed.Load() {
		return io.EOF
	}
	b.Reset(tColumns)
	for range 50 {
		for c, col := range tColumns {
			switch {
			case col.Name == "v":
				b.Cols[c].AppendInt(1)
			case col.Type.Kind == column.Int:
				b.Cols[c].AppendInt(int64(h.next))
			case col.Name == "k":
				b.Cols[c].AppendText(h.text)
			default:
				b.Cols[c].AppendNull()
			}
		}
		h.next++
		b.N++
	}
	return nil
}
func (h *heavy) Malformed() int64 { return 0 }
func (h *heavy) Close() error     { h.closed.Store(true); return nil }

// explode runs a bomb until ctx ends.
func explode(ctx context.Context, p *plan.Plan, limits memory.Limits) error {
	var sources [][]connector.Source
	for range p.Scans {
		sources = append(sources, []connector.Source{newHeavy()})
	}
	_, err := exec.Run(ctx, exec.Job{Plan: p, Now: time.Now, Sources: sources, Limits: limits,
		Out: func(*column.Batch) error { return nil }})
	return err
}

// TestBombsEndWhenTheyAreTold: whatever a query is doing, within two seconds.
func TestBombsEndWhenTheyAreTold(t *testing.T) {
	for name, query := range bombs {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			p := bound(t, query)
			go func() { ended <- explode(ctx, p, memory.Limits{}) }()
			var err error
			select {
			case err = <-ended: // it was too much
			case <-time.After(300 * time.Millisecond):
				told := time.Now()
				cancel()
				err = <-ended
				if took := time.Since(told); took > 2*time.Second {
					t.Errorf("it went on for %v", took)
				}
			}
			var e *sql.Error
			if !errors.Is(err, context.Canceled) && (!errors.As(err, &e) || e.Kind != sql.StateLimit) {
				t.Errorf("it ended with %v", err)
			}
		})
	}
}

// TestBombsTogetherStayWithinTheBounds: all at once, in the memory that the process has for all, and a query that holds
// little goes on as if they were not there.
func TestBombsTogetherStayWithinTheBounds(t *testing.T) {
	const total = 128 << 20
	limits := memory.Limits{Pool: memory.NewPool(total)}
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	before, most := stats.HeapAlloc, uint64(0)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	var all sync.WaitGroup
	for _, query := range bombs {
		p := bound(t, query)
		all.Go(func() { _ = explode(ctx, p, limits) })
	}
	small, p := make(chan error, 1), bound(t, perSecond)
	go func() { small <- explode(ctx, p, limits) }()
	for ctx.Err() == nil {
		runtime.GC()
		runtime.ReadMemStats(&stats)
		most = max(most, stats.HeapAlloc)
		time.Sleep(20 * time.Millisecond)
	}
	all.Wait()
	if err := <-small; !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the small query ended with %v", err)
	}
	// What has grown was moved, and what is left behind waits for the collector, which has no processor to itself here.
	if took := most - min(most, before); took > 4*total {
		t.Errorf("%d MiB were held, of %d", took>>20, total>>20)
	}
	if used := limits.Pool.Used(); used != 0 {
		t.Errorf("%d bytes are in an account though nothing runs", used)
	}
}

// TestAUsersQueriesEndNoOtherUsers: several that hold much end one of their own user, not a larger one of another.
func TestAUsersQueriesEndNoOtherUsers(t *testing.T) {
	limits := memory.Limits{Pool: memory.NewPool(64 << 20)}
	other := limits.Open(memory.Holder{Owner: "bob"}, 0, nil)
	defer other.Close()
	if err := other.Grow(24 << 20); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	ended := make(chan error, 3)
	for range cap(ended) {
		p := bound(t, bombs["earlier values"])
		go func() {
			_, err := exec.Run(ctx, exec.Job{Plan: p, Now: time.Now, Sources: [][]connector.Source{{newHeavy()}},
				Owner: "eve", Limits: limits, Budget: 20 << 20, Out: func(*column.Batch) error { return nil }})
			ended <- err
		}()
	}
	var e *sql.Error
	if err := <-ended; !errors.As(err, &e) || e.Kind != sql.StateLimit {
		t.Errorf("it ended with %v", err)
	}
	cancel()
	<-ended
	<-ended
	if other.Stopped() {
		t.Error("another user's query was ended")
	}
}
