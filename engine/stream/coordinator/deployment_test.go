package coordinator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/fragment"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// slow are feeds whose sinks never open.
type slow struct{}

func (slow) Source(context.Context, catalog.PhysicalSource, []column.Column) (connector.Source, error) {
	return nil, errors.New("there is none")
}

func (slow) Sink(ctx context.Context, _ catalog.Query, _ catalog.Sink, _ []column.Column) (connector.Sink, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestWhatHasLeftIsKnownToBeGone: a fragment of this process that was not ready in time is asked for by nobody once its
// goroutine has ended: it has failed, and another attempt may begin.
func TestWhatHasLeftIsKnownToBeGone(t *testing.T) {
	t.Parallel()
	const text = "CREATE LOGICAL SOURCE a(x INT64); CREATE PHYSICAL SOURCE FOR a TYPE FILE ON n SET('a.csv' AS " +
		"SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE); CREATE SINK s TYPE PRINT; CREATE QUERY q AS SELECT x FROM a INTO s"
	c := catalog.FromContents(catalog.Contents{Workers: []catalog.Worker{{Host: "n", Slots: 1, State: catalog.Active}}})
	c.SetDefaultHost(Server, Slots)
	parsed, err := sql.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parsed {
		if _, err := c.Apply(text, p); err != nil {
			t.Fatal(err)
		}
	}
	q := c.Contents().Queries[0]
	synctest.Test(t, func(t *testing.T) {
		d := deploy(
			Options{Connectors: slow{}, Runner: noRunner{}, Now: time.Now, Log: zerolog.Nop()},
			q,
			c.Contents(),
			func() {},
		)
		<-d.done
		f := d.observe(catalog.Fragment{Host: Server})
		if f.State != catalog.FragmentStopped {
			t.Errorf("the others had to end, since the node is not there: %+v", f)
		}
	})
	c = catalog.FromContents(catalog.Contents{})
	c.SetDefaultHost(Server, Slots)
	here := strings.Replace(text, "ON n ", "", 1)
	if parsed, err = sql.Parse(here); err != nil {
		t.Fatal(err)
	}
	for _, p := range parsed {
		if _, err := c.Apply(here, p); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		d := deploy(
			Options{Connectors: idle{}, Runner: noRunner{}, Now: time.Now, Log: zerolog.Nop()},
			c.Contents().Queries[0],
			c.Contents(),
			func() {},
		)
		<-d.done
		f := d.observe(catalog.Fragment{Host: Server})
		if f.State != catalog.FragmentFailed || f.Terminal || !strings.Contains(f.Failure, "was not ready within 1m") ||
			time.Since(began) < readyTimeout {
			t.Errorf("after %v it is %+v", time.Since(began), f)
		}
	})
	for _, tc := range []struct{ before, after deployedFragment }{
		{deployedFragment{state: catalog.FragmentStarted}, deployedFragment{state: catalog.FragmentStopped}},
		{deployedFragment{state: catalog.FragmentRunning}, deployedFragment{state: catalog.FragmentStopped}},
		{deployedFragment{state: catalog.FragmentStarted, failure: "lost"}, deployedFragment{state: catalog.FragmentFailed, failure: "lost"}},
		{deployedFragment{state: catalog.FragmentTerminated}, deployedFragment{state: catalog.FragmentTerminated}},
		{deployedFragment{state: catalog.FragmentFailed, failure: "no"}, deployedFragment{state: catalog.FragmentFailed, failure: "no"}},
	} {
		p := tc.before
		(&deployment{}).markExited(&p)
		if p.state != tc.after.state || p.failure != tc.after.failure {
			t.Errorf("%+v becomes %+v, not %+v", tc.before, p, tc.after)
		}
	}
}

// idle are feeds whose sources have no rows, and whose sinks never open.
type idle struct{ slow }

func (idle) Source(context.Context, catalog.PhysicalSource, []column.Column) (connector.Source, error) {
	return &silent{make(chan struct{})}, nil
}

type silent struct{ closed chan struct{} }

func (s *silent) Read(*column.Batch) error {
	<-s.closed
	return errors.New("it is closed")
}
func (s *silent) Malformed() int64 { return 0 }
func (s *silent) Close() error     { close(s.closed); return nil }

// ends is a way to workers that end what they are told to.
type ends struct {
	noRunner
	told []string
}

func (e *ends) Stop(_ context.Context, host string, _ fragment.Key) error {
	e.told = append(e.told, host)
	return nil
}

// TestAFragmentThatCameAfterItsAttemptEnds: a worker came to a query whose attempt had failed on another; its fragment
// was STARTED for ever, since nobody asked that worker, and the query neither FAILED nor let its name go.
func TestAFragmentThatCameAfterItsAttemptEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		workers := &ends{}
		d := adoptedDeployment(Options{Runner: workers, Now: time.Now}, catalog.Query{Fragments: []catalog.Fragment{
			{Host: "n1", State: catalog.FragmentFailed}}}, func() {})
		came := catalog.Fragment{Host: "n0", State: catalog.FragmentStarted}
		d.confirm(came.Host)
		synctest.Wait()
		if f := d.observe(came); f.State != catalog.FragmentStopped || len(workers.told) != 1 {
			t.Errorf("it is %s, and %q were asked", f.State, workers.told)
		}
		d.confirm("n1") // which has ended, as is known
		synctest.Wait()
		if len(workers.told) != 1 {
			t.Errorf("%q were asked", workers.told)
		}
	})
}

// TestTheLastAttemptIsTold: what an attempt read that was lost is read again by the next one; where that found nothing,
// nothing was read. One that only ended what may have run elsewhere tells nothing. Times are the server's.
func TestTheLastAttemptIsTold(t *testing.T) {
	t.Parallel()
	const ahead = time.Hour
	c := &Coordinator{running: map[int64]*deployment{}, ended: map[int64]Live{}}
	attempt := func(went bool, read int64) {
		d := adoptedDeployment(Options{Now: func() time.Time { return time.Now().Add(ahead) }}, catalog.Query{ID: 1,
			Fragments: []catalog.Fragment{{Host: "n", State: catalog.FragmentTerminated}}}, func() {})
		d.started = went
		d.parts["n"].counts.In, d.parts["n"].counts.Malformed = read, 3*read
		c.running[1] = d
		c.keepCounts(1)
	}
	for i, a := range []struct {
		went       bool
		read, want int64
	}{{false, 0, 0}, {true, 7, 7}, {false, 0, 7}, {true, 0, 0}, {true, 2, 2}} {
		attempt(a.went, a.read)
		l := c.ended[1]
		if l.In != a.want || l.Malformed != 3*a.want || l.Fragments["n"].In != a.want {
			t.Errorf("attempt %d: %+v, want %d rows", i+1, l, a.want)
		}
		if off := l.Since.Sub(time.Now().Add(ahead)).Abs(); off > time.Minute {
			t.Errorf("attempt %d began %v from the server's time", i+1, off)
		}
	}
}

// TestWhatIsLeftOfAReplacedQuery: something may run wherever it is not known to have ended, until its worker has been
// away for long enough; who is there is asked.
func TestWhatIsLeftOfAReplacedQuery(t *testing.T) {
	t.Parallel()
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		state             catalog.FragmentState
		there             bool
		since, away       time.Duration
		asked, mayBeThere bool
	}{
		{catalog.FragmentStopped, true, time.Second, 0, false, false},
		{catalog.FragmentTerminated, false, time.Second, time.Second, false, false},
		{catalog.FragmentStarted, true, time.Hour, 0, true, true},
		{catalog.FragmentRunning, true, time.Second, 0, true, true},
		{catalog.FragmentStarted, false, time.Second, time.Second, false, true},
		{catalog.FragmentStarted, false, time.Hour, time.Second, false, true},
		{catalog.FragmentStarted, false, time.Second, time.Hour, false, true},
		{catalog.FragmentStarted, false, time.Hour, time.Hour, false, false},
	} {
		w := Workers{
			Active:    func(string) bool { return tc.there },
			AwaySince: func(string) time.Time { return now.Add(-tc.away) },
		}
		ask, all := leftovers([]catalog.Fragment{{Host: "n", State: tc.state}}, w, now.Add(-tc.since), now)
		if (len(ask) > 0) != tc.asked || (len(all) > 0) != tc.mayBeThere {
			t.Errorf("%+v: %q are asked, %q are waited for", tc, ask, all)
		}
	}
}
