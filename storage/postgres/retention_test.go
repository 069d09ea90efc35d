package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres"
)

// keepers are the ways to keep a run that refer to it, each with the table whose row says so. Each makes ready what it
// needs, and returns what keeps the run.
var keepers = map[string]struct {
	table string
	ready func(*testing.T, *postgres.Store) (keep func(context.Context) error)
	// lost is what it is told when the run went first; nil: it is saved, and keeps nothing.
	lost error
}{
	"a link": {"run_shares", func(_ *testing.T, s *postgres.Store) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.CreateShare(ctx, store.Share{RunID: "r", ExpiresAt: engine.At(time.Now().Add(time.Hour))}, [32]byte{1})
			return err
		}
	}, store.ErrNotFound},
	"a first note": {"run_notes", func(_ *testing.T, s *postgres.Store) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.SaveRunNote(ctx, store.RunNote{RunID: "r", Text: "see the spike"})
			return err
		}
	}, store.ErrNotFound},
	"a note in place of an empty one": {"run_notes", func(t *testing.T, s *postgres.Store) func(context.Context) error {
		n, err := s.SaveRunNote(t.Context(), store.RunNote{RunID: "r"})
		if err != nil {
			t.Fatal(err)
		}
		n.Text = "see the spike"
		return func(ctx context.Context) error {
			_, err := s.SaveRunNote(ctx, n)
			return err
		}
	}, store.ErrNotFound},
	"a baseline": {"template_baselines", func(_ *testing.T, s *postgres.Store) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.SetBaseline(ctx, store.Baseline{TemplateID: "t", RunID: "r"})
			return err
		}
	}, store.ErrNotFound},
	"a new template": {"test_templates", func(_ *testing.T, s *postgres.Store) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.CreateTemplate(ctx, store.Template{Name: "again", Config: replays})
			return err
		}
	}, nil},
	"a changed template": {"test_templates", func(t *testing.T, s *postgres.Store) func(context.Context) error {
		made, err := s.CreateTemplate(t.Context(), store.Template{Name: "again", Config: engine.Scenario{Name: "again"}})
		if err != nil {
			t.Fatal(err)
		}
		made.Config = replays
		return func(ctx context.Context) error {
			_, err := s.UpdateTemplate(ctx, made)
			return err
		}
	}, nil},
	"a run that replays it": {"test_results", func(_ *testing.T, s *postgres.Store) func(context.Context) error {
		return func(ctx context.Context) error {
			return s.CreateRun(ctx, engine.Run{RunID: "again", Scenario: replays})
		}
	}, nil},
}

var replays = engine.Scenario{Name: "again", Workload: engine.Workload{Feed: &engine.Feed{Run: "r"}}}

// old makes the run r of the template t, which has completed.
func old(t *testing.T, s *postgres.Store, conn *pgx.Conn) {
	t.Helper()
	_, err := s.CreateTemplate(t.Context(), store.Template{TemplateID: "t", Name: "t", Config: engine.Scenario{Name: "t"}})
	if err == nil {
		err = s.CreateRun(t.Context(), engine.Run{RunID: "r", TemplateID: "t"})
	}
	if err != nil {
		t.Fatal(err)
	}
	exec(t, conn, "UPDATE run_status SET status = 'RUNNING', start_time = now() WHERE run_id = 'r'")
	for _, to := range []string{"STOPPING", "COMPLETED"} {
		exec(t, conn, "UPDATE run_status SET status = $1, phase = NULL WHERE run_id = 'r'", to)
	}
}

// beside runs f while somebody else holds what it needs, until it waits for a lock; end returns what came of it.
func beside(t *testing.T, conn *pgx.Conn, what string, waiting int, f func(context.Context) error) (end func() error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f(context.Background()) }() // room: it ends once, by the statement timeout of the store at most
	for since := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		var n int
		if err := conn.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n == waiting {
			return func() error { return <-done }
		}
		select {
		case err := <-done:
			t.Errorf("%s does not wait: %v", what, err)
			return func() error { return err }
		default:
		}
		if time.Since(since) > 20*time.Second {
			t.Fatalf("%s does not wait, and does not end", what)
		}
	}
}

// TestWhatKeepsARunIsJudgedWithItsDeletion: who makes something that keeps a run is waited for by who deletes it, and
// waits for who does.
func TestWhatKeepsARunIsJudgedWithItsDeletion(t *testing.T) {
	t.Parallel()
	for name, k := range keepers {
		t.Run(name+" comes first", func(t *testing.T) {
			s, dsn := open(t)
			conn := connect(t, dsn)
			old(t, s, conn)
			keep := k.ready(t, s)
			// Who keeps it stops between its row and the end of its transaction.
			exec(t, conn, `CREATE FUNCTION halt() RETURNS trigger LANGUAGE plpgsql AS
				'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END'`)
			exec(t, conn, "CREATE TRIGGER halt AFTER INSERT OR UPDATE ON "+k.table+" FOR EACH ROW EXECUTE FUNCTION halt()")
			exec(t, conn, "SELECT pg_advisory_lock(7)")
			kept := beside(t, conn, name, 1, keep)
			expired := beside(t, conn, "the deletion", 2, func(ctx context.Context) error {
				return s.Expire(ctx, store.Expiry{RunID: "r", Whole: true})
			})
			exec(t, conn, "SELECT pg_advisory_unlock(7)")
			if err := kept(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if err := expired(); !errors.Is(err, store.ErrConflict) {
				t.Errorf("the deletion: %v", err)
			}
			if _, err := s.Run(t.Context(), "r"); err != nil {
				t.Errorf("the run: %v", err)
			}
		})
		t.Run(name+" comes late", func(t *testing.T) {
			s, dsn := open(t)
			conn := connect(t, dsn)
			old(t, s, conn)
			keep := k.ready(t, s)
			exec(t, conn, `CREATE FUNCTION halt() RETURNS trigger LANGUAGE plpgsql AS
				'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NULL; END'`)
			exec(t, conn, "CREATE TRIGGER halt AFTER INSERT ON pending_file_deletions FOR EACH ROW EXECUTE FUNCTION halt()")
			exec(t, conn, "SELECT pg_advisory_lock(7)")
			expired := beside(t, conn, "the deletion", 1, func(ctx context.Context) error {
				return s.Expire(ctx, store.Expiry{RunID: "r", Whole: true})
			})
			kept := beside(t, conn, name, 2, keep)
			exec(t, conn, "SELECT pg_advisory_unlock(7)")
			if err := expired(); err != nil {
				t.Errorf("the deletion: %v", err)
			}
			if err := kept(); !errors.Is(err, k.lost) {
				t.Errorf("%s: %v, want %v", name, err, k.lost)
			}
		})
	}
}

// TestADeletionWithoutItsLineIsNone: what cannot be told in the audit log is not done.
func TestADeletionWithoutItsLineIsNone(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	conn := connect(t, dsn)
	old(t, s, conn)
	exec(t, conn, "ALTER TABLE audit_log ADD CONSTRAINT full_up CHECK (action <> 'run.delete')")
	e := store.Expiry{RunID: "r", Whole: true, Line: store.AuditEntry{UserName: "retention", Action: "run.delete"}}
	if err := s.Expire(t.Context(), e); err == nil {
		t.Error("it was let go of without a line")
	}
	left, err := s.PendingDeletions(t.Context(), "", 10)
	if _, gone := s.Run(t.Context(), "r"); gone != nil || err != nil || len(left) != 0 {
		t.Errorf("the run: %v; left over %v, %v", gone, left, err)
	}
	exec(t, conn, "ALTER TABLE audit_log DROP CONSTRAINT full_up")
	if err := s.Expire(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	lines, err := s.ListAudit(t.Context(), store.AuditFilter{Action: "run.delete"})
	if err != nil || len(lines) != 1 {
		t.Errorf("the audit log: %v, %v", lines, err)
	}
}
