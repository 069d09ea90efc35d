package exec_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// scripted is a source that gives rows of a time each, and waits before.
type scripted struct {
	steps  []step
	closed chan struct{}
	reads  atomic.Int64
}

type step struct {
	wait time.Duration
	ts   int64
	err  error
}

func script(steps ...step) *scripted { return &scripted{steps: steps, closed: make(chan struct{})} }

func (s *scripted) Read(b *column.Batch) error {
	b.Reset(tColumns)
	s.reads.Add(1)
	if len(s.steps) == 0 {
		return io.EOF
	}
	next := s.steps[0]
	s.steps = s.steps[1:]
	select {
	case <-time.After(next.wait):
	case <-s.closed:
		return io.ErrClosedPipe
	}
	if next.err != nil {
		return next.err
	}
	for i := range b.Cols {
		if b.Cols[i].Type.Kind == column.Int && i == 0 {
			b.Cols[i].AppendInt(next.ts)
		} else {
			b.Cols[i].AppendNull()
		}
	}
	b.N = 1
	return nil
}

func (s *scripted) Malformed() int64 { return 0 }
func (s *scripted) Close() error     { close(s.closed); return nil }

// endless gives a row at each read, without waiting.
type endless struct{ *scripted }

func (s endless) Read(b *column.Batch) error {
	select {
	case <-s.closed:
		return io.EOF
	default:
	}
	s.steps = append(s.steps, step{ts: 1})
	return s.scripted.Read(b)
}

func bound(t *testing.T, query string) *plan.Plan {
	t.Helper()
	parsed, err := sql.Parse(query)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Bind(query, parsed[0].Statement.(*sql.CreateQuery).Select, schemas{"t": tColumns, "u": tColumns})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

const perSecond = "SELECT start, COUNT(*) AS n FROM t WINDOW TUMBLING(ts, SIZE 1 SEC) INTO s"

// TestQuietSourcesDoNotHoldWindowsUp: after five seconds the others' time counts, until the quiet one has a row again.
func TestQuietSourcesDoNotHoldWindowsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		lively := script(step{ts: 100}, step{wait: time.Second, ts: 1200}, step{wait: 12 * time.Second, ts: 9000})
		quiet := script(step{ts: 200}, step{wait: 10 * time.Second, ts: 300}, step{wait: time.Second, ts: 8000})
		type given struct {
			start, n int64
			after    time.Duration
		}
		var all []given
		c, err := exec.Run(t.Context(), exec.Job{Plan: bound(t, perSecond), Now: time.Now,
			Sources: [][]connector.Source{{lively, quiet}}, Out: func(b *column.Batch) error {
				all = append(all, given{b.Cols[0].Ints[0], b.Cols[1].Ints[0], time.Since(begin).Round(time.Second)})
				return nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		// The window up to 1 s was waited for until the quiet source had said nothing for five seconds; its row of 300 is
		// late then.
		want := []given{{0, 2, 6 * time.Second}, {1000, 1, 13 * time.Second}, {8000, 1, 13 * time.Second},
			{9000, 1, 13 * time.Second}}
		if len(all) != len(want) || c.Late != 1 {
			t.Fatalf("%v, %+v", all, c)
		}
		for i := range want {
			if all[i].start != want[i].start || all[i].n != want[i].n || i == 0 && all[i].after != want[i].after {
				t.Errorf("%v, not %v", all[i], want[i])
			}
		}
	})
}

// TestTheLastWindowsComeOut: a source that has fallen silent holds no window back whose time is over by the machine's
// clock; what comes afterwards is counted in the windows that follow, and none is late.
func TestTheLastWindowsComeOut(t *testing.T) {
	for name, c := range map[string]struct {
		query string
		want  string
	}{
		"tumbling": {"SELECT start, COUNT(*) AS n FROM t WINDOW TUMBLING(ts, SIZE 5 SEC) INTO s",
			"0 3 6s, 5000 1 11s, 20000 1 28s"},
		"lateness": {"SELECT start, COUNT(*) AS n FROM t WINDOW TUMBLING(ts, SIZE 5 SEC, LATENESS 2 SEC) INTO s",
			"0 3 11s, 5000 1 12s, 20000 1 28s"},
		"long": {"SELECT start, COUNT(*) AS n FROM t WINDOW TUMBLING(ts, SIZE 1 MIN) INTO s", "0 5 1m0s"},
		"sliding": {"SELECT start, COUNT(*) AS n FROM t WINDOW SLIDING(ts, SIZE 10 SEC, ADVANCE BY 5 SEC) INTO s",
			"-5000 3 6s, 0 4 11s, 5000 1 15s, 15000 1 28s, 20000 1 30s"},
		"windows of windows": {"SELECT start, SUM(n) AS n FROM (SELECT start AS at, COUNT(*) AS n FROM t " +
			"WINDOW TUMBLING(ts, SIZE 5 SEC)) WINDOW TUMBLING(at, SIZE 10 SEC) INTO s", "0 4 11s, 20000 1 33s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
				defer cancel()
				s := script(step{ts: 1000}, step{wait: time.Second, ts: 2000}, step{wait: time.Second, ts: 3000},
					// It is quiet until 5 s, as its rows have it.
					step{wait: 3900 * time.Millisecond, ts: 6900}, step{wait: 17 * time.Second, ts: 23900},
					step{wait: time.Hour})
				var got []string
				counts, err := exec.Run(ctx, exec.Job{Plan: bound(t, c.query), Now: time.Now,
					Sources: [][]connector.Source{{s}}, Out: func(b *column.Batch) error {
						for i := range b.N {
							got = append(got, fmt.Sprintf("%d %d %v", b.Cols[0].Ints[i], b.Cols[1].Ints[i],
								time.Since(begin).Round(time.Second)))
						}
						return nil
					}})
				if !errors.Is(err, context.DeadlineExceeded) || counts.Late > 0 || counts.In != 5 {
					t.Fatalf("%+v, %v", counts, err)
				}
				if strings.Join(got, ", ") != c.want {
					t.Errorf("%s, not %s", strings.Join(got, ", "), c.want)
				}
			})
		})
	}
}

// TestTheLastPairsComeOut: a join does so, too.
func TestTheLastPairsComeOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		left := script(step{ts: 1000}, step{wait: time.Second, ts: 2000}, step{wait: time.Hour})
		right := script(step{ts: 1500}, step{wait: 2 * time.Second, ts: 3500}, step{wait: time.Hour})
		var got []string
		_, err := exec.Run(ctx, exec.Job{Now: time.Now, Sources: [][]connector.Source{{left}, {right}},
			Plan: bound(t, "SELECT t.ts AS x FROM t JOIN u ON t.ts + 500 = u.ts WINDOW TUMBLING(ts, SIZE 5 SEC) INTO s"),
			Out: func(b *column.Batch) error {
				for i := range b.N {
					got = append(got, fmt.Sprintf("%d %v", b.Cols[0].Ints[i], time.Since(begin).Round(time.Second)))
				}
				return nil
			}})
		if want := "1000 8s"; !errors.Is(err, context.DeadlineExceeded) || strings.Join(got, ", ") != want {
			t.Errorf("%q, not %s: %v", got, want, err)
		}
	})
}

// TestABusyQueryCallsNoSourceQuiet: while the sink takes its time no source falls silent.
func TestABusyQueryCallsNoSourceQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := script(step{ts: 100}, step{ts: 1100}, step{wait: 8 * time.Second, ts: 3100},
			step{wait: 3 * time.Second, ts: 9000})
		b := script(step{ts: 200}, step{ts: 1200}, step{wait: 10 * time.Second, ts: 2200},
			step{wait: 3 * time.Second, ts: 9000})
		c, err := exec.Run(t.Context(), exec.Job{Plan: bound(t, perSecond), Now: time.Now,
			Sources: [][]connector.Source{{a, b}}, Out: func(*column.Batch) error {
				time.Sleep(9 * time.Second)
				return nil
			}})
		if err != nil || c.Late != 0 || c.In != 8 {
			t.Errorf("%+v, %v", c, err)
		}
	})
}

// TestAFilterHoldsNoWindowUp: the clock is told by the scan, not by the rows that a filter lets through.
func TestAFilterHoldsNoWindowUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		s := script(step{ts: 100}, step{wait: time.Second, ts: 5000}, step{wait: time.Hour, ts: 6000})
		var after time.Duration
		_, err := exec.Run(t.Context(), exec.Job{Now: time.Now, Sources: [][]connector.Source{{s}},
			Plan: bound(t, "SELECT start, COUNT(*) AS n FROM (SELECT ts AS x FROM t WHERE ts < 1000) "+
				"WINDOW TUMBLING(x, SIZE 1 SEC) INTO s"),
			Out: func(*column.Batch) error {
				after = time.Since(begin)
				return nil
			}})
		if err != nil || after != time.Second {
			t.Errorf("the window was given out after %v, %v", after, err)
		}
	})
}

// TestWhatEndsAQuery: a lost source, a sink that fails, too much state, being told to; sources are closed by then.
func TestWhatEndsAQuery(t *testing.T) {
	lost, full := errors.New("lost"), errors.New("the disk is full")
	synctest.Test(t, func(t *testing.T) {
		run := func(ctx context.Context, query string, state int, s *scripted, out error) error {
			_, err := exec.Run(ctx, exec.Job{Plan: bound(t, query), Now: time.Now, Budget: state,
				Sources: [][]connector.Source{{s}}, Out: func(*column.Batch) error { return out }})
			select {
			case <-s.closed:
			default:
				t.Error("the source is open")
			}
			return err
		}
		var e *sql.Error
		err := run(t.Context(), perSecond, 0, script(step{ts: 1}, step{err: lost}), nil)
		if !errors.As(err, &e) || e.Kind != sql.NetworkError || !errors.Is(err, lost) {
			t.Errorf("a lost source: %v", err)
		}
		if err := run(t.Context(), "SELECT ts FROM t INTO s", 0, script(step{ts: 1}), full); !errors.Is(err, full) {
			t.Errorf("a full disk: %v", err)
		}
		for _, query := range []string{"SELECT ts, COUNT(*) AS n FROM t GROUP BY ts WINDOW TUMBLING(ts, SIZE 1 DAY) INTO s",
			"SELECT LAG(k) OVER (PARTITION BY ts) AS l FROM t INTO s"} {
			var steps []step
			for i := range 1000 {
				steps = append(steps, step{ts: int64(i)})
			}
			err := run(t.Context(), query, 20_000, script(steps...), nil)
			if !errors.As(err, &e) || e.Kind != sql.StateLimit || !strings.Contains(err.Error(), "would hold more than") {
				t.Errorf("too much state: %v", err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err = run(ctx, perSecond, 0, script(step{ts: 1}, step{wait: time.Hour}), nil)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("told to end: %v", err)
		}
	})
}

// TestWhatIsDroppedIsReportedWhileTheSinkWaits: the counts go on while nothing of the query moves.
func TestWhatIsDroppedIsReportedWhileTheSinkWaits(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	reports := make(chan exec.Counts, 100) // room: for those of the seconds that it takes
	returned := false
	_, err := exec.Run(ctx, exec.Job{Plan: bound(t, "SELECT ts FROM t ON OVERFLOW DROP INTO s"), Now: time.Now,
		Sources: [][]connector.Source{{endless{script()}}}, Report: func(c exec.Counts) {
			if returned {
				t.Error("it reports though it has returned")
			}
			reports <- c
		},
		Out: func(b *column.Batch) error {
			if err := ctx.Err(); err != nil {
				return err // this one had come before the end
			}
			var last int64
			for range 2 {
				select {
				case c := <-reports:
					if c.Dropped <= last || c.Out != int64(b.N) {
						t.Errorf("%+v", c)
					}
					last = c.Dropped
				case <-time.After(10 * time.Second):
					t.Error("nothing is reported")
				}
			}
			cancel()
			return nil
		}})
	returned = true
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	time.Sleep(1200 * time.Millisecond)
}

// TestASlowSinkHoldsTheSourceBack, or rows are dropped and counted where the query says so.
func TestASlowSinkHoldsTheSourceBack(t *testing.T) {
	for _, drop := range []bool{false, true} {
		s := endless{script()}
		query := "SELECT ts FROM t INTO s"
		if drop {
			query = "SELECT ts FROM t ON OVERFLOW DROP INTO s"
		}
		ctx, cancel := context.WithCancel(t.Context())
		written := int64(0)
		c, err := exec.Run(ctx, exec.Job{Plan: bound(t, query), Now: time.Now, Sources: [][]connector.Source{{s}},
			Out: func(*column.Batch) error {
				time.Sleep(2 * time.Millisecond)
				if written++; written == 20 {
					cancel()
				}
				return nil
			}})
		cancel()
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		ahead := s.reads.Load() - written
		if drop && (c.Dropped < 20 || ahead-c.Dropped > 10) || !drop && (c.Dropped > 0 || ahead > 10) {
			t.Errorf("drop %v: %d rows were written, %d read ahead, %d dropped", drop, written, ahead, c.Dropped)
		}
	}
}

// spoilt has left out rows.
type spoilt struct {
	*scripted
	rows int64
}

func (s spoilt) Malformed() int64 { return s.rows }

// TestRowsThatAreLeftOutAreToldWhileTheQueryRuns: those that did not fit too, and not only when it ends.
func TestRowsThatAreLeftOutAreToldWhileTheQueryRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []int64
		c, err := exec.Run(t.Context(), exec.Job{Plan: bound(t, perSecond), Now: time.Now,
			Sources: [][]connector.Source{{spoilt{script(step{wait: 3500 * time.Millisecond, ts: 1}), 4},
				spoilt{script(step{wait: time.Second, ts: 1}), 3}}},
			Out: func(*column.Batch) error { return nil }, Report: func(c exec.Counts) { told = append(told, c.Malformed) }})
		if err != nil || c.Malformed != 7 || len(told) < 3 || told[0] != 7 {
			t.Errorf("%v in the end, told %v, %v", c.Malformed, told, err)
		}
	})
}
