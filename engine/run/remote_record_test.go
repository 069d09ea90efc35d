package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
)

// TestARecordInAnotherDataDirectoryIsNotForgotten: the server that takes a run over says
// where its record lies, and the one that comes back there takes it in without another start.
func TestARecordInAnotherDataDirectoryIsNotForgotten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.owner = "a"
	f.start()
	run := f.run(func(sc *engine.Scenario) {
		sc.Workload.DurationSeconds = 60
		paced(sc, engine.LoadConcurrency)
	})
	f.until(run.RunID, func(p *engine.LiveState) bool { return phase(engine.PhaseMeasurement)(p) && p.Ops.Total > 50 })
	f.kill()
	conn, err := pgx.Connect(t.Context(), f.control)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	expire := func() {
		t.Helper()
		if _, err := conn.Exec(t.Context(), "UPDATE run_status SET lease_until = now() - interval '1 s'"); err != nil {
			t.Fatal(err)
		}
	}
	expire()
	other := newFixture(t)
	other.owner, other.store = "b", f.store
	other.start()
	const lies = "lies in the data directory of the server that carried it"
	notes := func(d engine.RunDetail) string { return strings.Join(d.Summary.ValidityDetail.Notes, " ") }
	d := other.settled(run.RunID)
	if d.Status != engine.StatusFailed || !strings.Contains(f.logs(run.RunID), lies) ||
		!strings.Contains(notes(d), lies) || d.Summary.Operations != 0 {
		t.Fatalf("taken over as %s with %d operations and the notes %s\n%s", d.Status, d.Summary.Operations, notes(d),
			f.logs(run.RunID))
	}
	// While the lease of the other goes on the record waits.
	f.start()
	if d := f.detail(run.RunID); d.Summary.Operations != 0 || len(spooled(t, f)) == 0 {
		t.Errorf("taken in from another server: %d operations, in the spool %v", d.Summary.Operations, spooled(t, f))
	}
	expire()
	for begin := time.Now(); !strings.Contains(f.logs(run.RunID), "were taken in"); time.Sleep(50 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("the record is not taken in\n%s", f.logs(run.RunID))
		}
	}
	if d := f.detail(run.RunID); d.Summary.Operations == 0 || strings.Contains(notes(d), lies) || len(spooled(t, f)) > 0 {
		t.Errorf("%d operations, notes %s, in the spool %v", d.Summary.Operations, notes(d), spooled(t, f))
	}
}
