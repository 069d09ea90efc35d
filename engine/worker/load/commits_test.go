package load_test

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/load"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// failingCommits is a transaction whose COMMIT fails, one whose COMMIT is cancelled, and a SELECT, each in turn.
type failingCommits struct{ n int }

func (s *failingCommits) Fill(b *plugin.Batch, _ int) error {
	b.Reset()
	s.n++
	inside := uint16(1)
	if s.n%10 == 0 {
		inside = 2
	}
	b.Ops = append(b.Ops, plugin.Op{Statement: plugin.StatementBegin}, plugin.Op{Statement: inside},
		plugin.Op{Statement: plugin.StatementCommit}, plugin.Op{})
	return nil
}

func (*failingCommits) Close() error { return nil }

// executed counts executions by their statement and outcome.
type executed struct{ selects, failedSelects, transactions, committed int }

func (e *executed) Write(recs []engine.Execution) error {
	for _, r := range recs {
		switch {
		case r.Position > 0:
		case r.Kind == engine.KindTransaction && r.Success:
			e.committed++
		case r.Kind == engine.KindTransaction:
			e.transactions++
		case r.Success:
			e.selects++
		default:
			e.failedSelects++
		}
	}
	return nil
}

// TestAFailedCommitIsNoLostConnection: what comes after it succeeds, and no connection is closed.
func TestAFailedCommitIsNoLostConnection(t *testing.T) {
	onEach(t, func(t *testing.T, io engine.IOEngine) {
		dsn := pgtest.Start(t).NewDatabase(t)
		database, err := postgres.NewDriver().Open(
			target.Config{DSN: secret.New(dsn), StatementTimeout: 100 * time.Millisecond},
		)
		if err != nil {
			t.Fatal(err)
		}
		defer database.Close()
		if err := database.Exec(t.Context(), "CREATE TABLE u (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)",
			"INSERT INTO u VALUES (1)", "CREATE TABLE w (n int)", "CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS "+
				"'BEGIN PERFORM pg_sleep(30); RETURN NULL; END'", "CREATE CONSTRAINT TRIGGER late AFTER INSERT ON w "+
				"DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION late()"); err != nil {
			t.Fatal(err)
		}
		var sink executed
		g, err := load.Open(t.Context(), load.Config{Stream: &failingCommits{}, Database: database, Sink: &sink,
			Log: zerolog.Nop(), Workload: engine.Workload{IOEngine: io},
			Plan: &engine.Plan{Statements: []engine.Statement{{ID: "healthy", SQL: "SELECT 1"},
				{ID: "deferred", SQL: "INSERT INTO u VALUES (1)"}, {ID: "late", SQL: "INSERT INTO w VALUES (1)"}}}}, 3, nil)
		if err != nil {
			t.Fatal(err)
		}
		g.Start(engine.PhaseMeasurement)
		time.Sleep(600 * time.Millisecond)
		select {
		case err := <-g.Failed():
			t.Errorf("the run ended: %v", err)
		default:
		}
		if err := g.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		n := g.Totals()
		if sink.selects == 0 || sink.failedSelects > 0 || sink.transactions == 0 || sink.committed > 0 ||
			n.Connections.Lost > 0 || n.Connections.Reopened > 0 {
			t.Errorf("%+v, %+v", sink, n)
		}
	})
}
