package coordinator_test

import (
	"context"
	"io"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
	"github.com/loadstone-db/loadstone/engine/stream/connector"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/system"
)

// TestWhatIsKnownOfAQueryThatRuns: its rates, when its last row left, and how far it has come in the time of its rows.
func TestWhatIsKnownOfAQueryThatRuns(t *testing.T) {
	t.Parallel()
	k, p := &catalogtest.Store{}, &pipes{}
	c := begin(t, k, p, "one")
	execute(t, c, "CREATE SINK s TYPE PRINT; CREATE QUERY q AS SELECT runId FROM run_events INTO s;"+
		"CREATE QUERY w AS SELECT COUNT(*) AS n FROM run_events WINDOW TUMBLING(timestamp, SIZE 1 HOUR) INTO s")
	q, w := eventually(t, k, "q", catalog.Running), eventually(t, k, "w", catalog.Running)
	began := time.Now()
	if l := c.Live()[q.ID]; l.In != 0 || !l.LastOut.IsZero() || !l.LatestRow.IsZero() {
		t.Errorf("before a row it has %+v", l)
	}
	tell(p, "START")
	var plain, windowed coordinator.Live
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		plain, windowed = c.Live()[q.ID], c.Live()[w.ID]
		if plain.Out == 1 && windowed.In == 1 {
			break
		}
	}
	if plain.InPerSecond <= 0 || plain.OutPerSecond <= 0 || plain.LastOut.Before(began) || !plain.LatestRow.IsZero() {
		t.Errorf("a query without a window: %+v", plain)
	}
	if since := time.Since(windowed.LatestRow); windowed.OutPerSecond != 0 || !windowed.LastOut.IsZero() ||
		since < 0 || since > 20*time.Second {
		t.Errorf("a query whose window is open: %+v", windowed)
	}
}

// brief is a source of one row, and of three that did not fit.
type brief struct{ read bool }

func (b *brief) Read(to *column.Batch) error {
	if b.read {
		return io.EOF
	}
	for i := range to.Cols {
		to.Cols[i].AppendNull()
	}
	b.read, to.N = true, 1
	return nil
}
func (*brief) Malformed() int64 { return 3 }
func (*brief) Close() error     { return nil }

// briefly has queries read such sources.
type briefly struct{ *pipes }

func (briefly) Source(_ context.Context, _ catalog.PhysicalSource, columns []column.Column) (connector.Source, error) {
	return feeding{&brief{}, columns}, nil
}

// feeding gives the batches of a source their columns.
type feeding struct {
	*brief
	columns []column.Column
}

func (f feeding) Read(to *column.Batch) error {
	to.Reset(f.columns)
	return f.brief.Read(to)
}

// TestWhatBecameOfRowsIsKnownWhenAQueryHasEnded: rows that were left out are told of until it is dropped.
func TestWhatBecameOfRowsIsKnownWhenAQueryHasEnded(t *testing.T) {
	t.Parallel()
	k := &catalogtest.Store{}
	c, err := coordinator.Open(t.Context(), coordinator.Options{Store: k, Connectors: briefly{&pipes{}}, Owner: "one",
		Sources: system.Sources, Lease: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	execute(t, c, "CREATE SINK s TYPE PRINT; CREATE QUERY q AS SELECT runId FROM run_events INTO s")
	q := eventually(t, k, "q", catalog.Terminated)
	for range 3 { // looks that find nothing to do
		execute(t, c, "CREATE SINK other TYPE PRINT; DROP SINK other")
		time.Sleep(100 * time.Millisecond)
	}
	if l, known := c.Live()[q.ID]; !known || l.In != 1 || l.Out != 1 || l.Malformed != 3 || l.InPerSecond != 0 ||
		l.Fragments[catalog.Server].In != 1 {
		t.Errorf("%v, %+v", known, l)
	}
	execute(t, c, "DROP QUERY q")
	eventually(t, k, "q", "")
	known := true
	for end := time.Now().Add(20 * time.Second); known && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		_, known = c.Live()[q.ID]
	}
	if known {
		t.Error("the figures of a query that is gone are kept")
	}
}
