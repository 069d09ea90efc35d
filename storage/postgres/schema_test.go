package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

func exec(t testing.TB, conn *pgx.Conn, text string, args ...any) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func TestUnreachableServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		dsn  string
		code engine.Code
	}{
		"nobody listens": {"postgres://ada:" + "s3cr3t@127.0.0.1:1/db?connect_timeout=1", engine.CodeUnavailable},
		"no socket":      {"host=/nowhere user=ada password=s3cr3t dbname=db", engine.CodeUnavailable},
		"not a DSN":      {"postgres://ada:s3cr3t@host:port/db", engine.CodeInvalid},
	} {
		for what, err := range map[string]error{
			"compare": schema.Compare(t.Context(), c.dsn),
			"apply":   schema.Apply(t.Context(), c.dsn),
			"open":    func() error { _, err := postgres.Open(t.Context(), c.dsn, nil); return err }(),
		} {
			if !engine.HasCode(err, c.code) {
				t.Errorf("%s, %s: %v, want code %s", name, what, err, c.code)
			}
			if strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("%s, %s: the message holds the password: %v", name, what, err)
			}
		}
	}
}

func TestServerGoesAway(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	conn := connect(t, dsn)
	ctx := context.Background()
	if _, err := conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'loadstone'`); err != nil {
		t.Fatal(err)
	}
	// The pool notices a dead connection at its next use; after that it works again.
	deadline := time.Now().Add(10 * time.Second)
	for {
		_, err := s.ListTemplates(ctx)
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("got %v, want ErrUnavailable", err)
		}
		if time.Now().After(deadline) {
			t.Fatal("the store did not come back")
		}
	}
	late, cancel := context.WithTimeout(ctx, time.Nanosecond)
	defer cancel()
	if _, err := s.ListTemplates(late); !errors.Is(err, store.ErrUnavailable) ||
		!errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("past the deadline: %v", err)
	}
}

// TestDatabaseRefusesForbiddenTransitions proves that the trigger's table is engine.Status's.
func TestDatabaseRefusesForbiddenTransitions(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	conn := connect(t, dsn)
	paths := map[engine.Status][]engine.Status{
		engine.StatusPrepared:   {},
		engine.StatusRunning:    {engine.StatusRunning},
		engine.StatusStopping:   {engine.StatusRunning, engine.StatusStopping},
		engine.StatusCancelling: {engine.StatusRunning, engine.StatusCancelling},
		engine.StatusCompleted:  {engine.StatusRunning, engine.StatusStopping, engine.StatusCompleted},
		engine.StatusFailed:     {engine.StatusRunning, engine.StatusCancelling, engine.StatusFailed},
		engine.StatusCancelled:  {engine.StatusCancelled},
	}
	for from, path := range paths {
		for _, to := range engine.Statuses() {
			id := string(from) + "-" + string(to)
			if err := s.CreateRun(t.Context(), engine.Run{RunID: id}); err != nil {
				t.Fatal(err)
			}
			for _, step := range path {
				exec(t, conn, "UPDATE run_status SET status = $2 WHERE run_id = $1", id, string(step))
			}
			_, err := conn.Exec(t.Context(), "UPDATE run_status SET status = $2 WHERE run_id = $1", id, string(to))
			if allowed := from == to || from.CanBecome(to); (err == nil) != allowed {
				t.Errorf("%s → %s: %v, allowed is %v", from, to, err, allowed)
			}
		}
	}
}

func TestDatabaseGuards(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx := t.Context()
	if err := s.CreateRun(ctx, engine.Run{RunID: "r1"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Transition(ctx, store.Transition{RunID: "r1", To: engine.StatusRunning,
		Events: []engine.Event{{Type: engine.EventStart}, {Type: engine.EventSetPhase}}}); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendAudit(ctx, store.AuditEntry{Action: "run.start"}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.TakeOver(ctx, "r1"); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, dsn)
	event := "INSERT INTO run_control_events (event_id, run_id, event_type, event_data, sequence_id) VALUES " +
		"(gen_random_uuid()::text, "
	for name, text := range map[string]string{
		"a run begins prepared": "INSERT INTO run_status (run_id, test_id, scenario_config, status) VALUES " +
			"('x', 'x', '{}', 'RUNNING')",
		"unknown status":                 "UPDATE run_status SET status = 'PAUSED'",
		"unknown phase":                  "UPDATE run_status SET phase = 'LUNCH'",
		"epoch goes back":                "UPDATE run_status SET owner_epoch = 0",
		"sequence goes back":             "UPDATE run_status SET next_sequence_id = 1",
		"run id changes":                 "UPDATE run_status SET run_id = 'y', test_id = 'y'",
		"live run is deleted":            "DELETE FROM run_status",
		"event of no run":                event + "'none', 'STOP', '{\"scope\": \"RUN\"}', 1)",
		"sequence id used twice":         event + "'r1', 'STOP', '{\"scope\": \"RUN\"}', 2)",
		"sequence id below the highest":  event + "'r1', 'STOP', '{\"scope\": \"RUN\"}', 1)",
		"sequence id that was not taken": event + "'r1', 'STOP', '{\"scope\": \"RUN\"}', 3)",
		"event without scope":            event + "'r1', 'STOP', '{}', 2)",
		"event is changed":               "UPDATE run_control_events SET event_type = 'STOP'",
		"event is deleted":               "DELETE FROM run_control_events",
		"child without parent": "INSERT INTO test_results (test_id, run_id, worker_id) VALUES ('c', 'none', " +
			"'worker-0')",
		"child without worker":  "INSERT INTO test_results (test_id, run_id) VALUES ('c', 'r1')",
		"audit line is changed": "UPDATE audit_log SET action = 'nothing'",
		"audit line is deleted": "DELETE FROM audit_log",
		"audit log is emptied":  "TRUNCATE audit_log",
		"token of no user": "INSERT INTO api_tokens (token_id, user_id, kind, secret_sha256) VALUES ('t', " +
			"'none', 'api', decode(repeat('00', 32), 'hex'))",
		"step of Find Max without a run": "INSERT INTO find_max_step_history (run_id, step_number, " +
			"total_target_connections, step_start_time) VALUES ('none', 1, 1, now())",
		"log line of an unknown level": "INSERT INTO test_logs (run_id, seq, level, message) VALUES ('r1', 1, " +
			"'CHATTY', '')",
		"worker with an unknown status": "INSERT INTO worker_heartbeats (run_id, worker_id, status) VALUES ('r1', 'w', " +
			"'ASLEEP')",
		"two rows of the schema's version": "INSERT INTO schema_version (singleton, version, hash) VALUES (false, 1, '')",
	} {
		_, err := conn.Exec(ctx, text)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) {
			t.Errorf("%s: %v, want a refusal", name, err)
		} else if class := refused.Code[:2]; class != "23" && class != "LS" {
			t.Errorf("%s: refused for another reason: %v", name, err)
		}
	}
}

func TestRollBackOfTransition(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	if err := s.CreateRun(t.Context(), engine.Run{RunID: "r1"}); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, dsn)
	exec(
		t,
		conn,
		`CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'disk on fire' USING ERRCODE = '53100'; END $$`,
	)
	exec(t, conn, `CREATE TRIGGER broken BEFORE INSERT ON run_control_events FOR EACH ROW EXECUTE FUNCTION broken()`)
	_, err := s.Transition(t.Context(),
		store.Transition{RunID: "r1", To: engine.StatusRunning, Events: []engine.Event{{Type: engine.EventStart}}})
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("got %v, want ErrUnavailable for a full disk", err)
	}
	run, err := s.Run(t.Context(), "r1")
	if err != nil || run.Status != engine.StatusPrepared {
		t.Errorf("the status changed without its event: %s, %v", run.Status, err)
	}
}

func TestPlayground(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	ctx := t.Context()
	for _, dsn := range []string{"host=/one dbname=playground", "host=/one dbname=playground",
		"host=/two dbname=playground"} {
		if err := s.EnsureBuiltin(ctx, playground(dsn)); err != nil {
			t.Fatal(err)
		}
		driver, got, err := s.OpenDSN(ctx, engine.ConnectionRef{Name: "playground"})
		if err != nil || driver != "postgres" || got.Reveal() != dsn {
			t.Errorf("got %s %q, %v, want %q", driver, got, err, dsn)
		}
	}
	c, err := s.ConnectionByName(ctx, "playground")
	if err != nil || !c.Builtin {
		t.Fatalf("playground %+v, %v", c, err)
	}
	c.DSN = "host=/three"
	if _, err := s.SaveConnection(ctx, c); !errors.Is(err, store.ErrConflict) {
		t.Errorf("editing a builtin connection: %v", err)
	}
	if err := s.DeleteConnection(ctx, c.ConnectionID, 0); !errors.Is(err, store.ErrConflict) {
		t.Errorf("deleting a builtin connection: %v", err)
	}
}

func playground(dsn string) store.Connection {
	return store.Connection{Name: "playground", Driver: "postgres", DSN: dsn, Description: "sample"}
}

func TestBuiltinLeavesWhatAUserSaved(t *testing.T) {
	t.Parallel()
	s, _ := open(t)
	mine := playground("host=/mine")
	if _, err := s.SaveConnection(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureBuiltin(t.Context(), playground("host=/one")); err != nil {
		t.Fatal(err)
	}
	if _, got, err := s.OpenDSN(
		t.Context(),
		engine.ConnectionRef{Name: "playground"},
	); err != nil ||
		got.Reveal() != mine.DSN {
		t.Errorf("the user's connection became %q, %v", got, err)
	}
}

func TestLostKey(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	if err := s.EnsureBuiltin(t.Context(), playground("host=/one")); err != nil {
		t.Fatal(err)
	}
	other, err := keyring.Open(filepath.Join(t.TempDir(), "key"))
	if err != nil {
		t.Fatal(err)
	}
	// The key was given up: `loadstone keys rotate --lost-key`.
	if _, err := connect(
		t,
		dsn,
	).Exec(
		t.Context(),
		"UPDATE key_rotation SET sealing_key = $1",
		other.FirstID(),
	); err != nil {
		t.Fatal(err)
	}
	locked, err := postgres.Open(t.Context(), dsn, other)
	if err != nil {
		t.Fatal(err)
	}
	defer locked.Close()
	if _, _, err := locked.OpenDSN(t.Context(), engine.ConnectionRef{Name: "playground"}); !engine.HasCode(err,
		engine.CodeInvalid) || !strings.Contains(err.Error(), keyring.KeyEnv) {
		t.Errorf("got %v, want an error that names %s", err, keyring.KeyEnv)
	}
	// The server's own connection heals by itself.
	if err := locked.EnsureBuiltin(t.Context(), playground("host=/one")); err != nil {
		t.Error(err)
	}
	if _, got, err := locked.OpenDSN(t.Context(), engine.ConnectionRef{Name: "playground"}); err != nil ||
		got.Reveal() != "host=/one" {
		t.Errorf("after saving it again: %q, %v", got, err)
	}
}

// TestNoPasswordInTheDatabase looks for a password in every row of every table.
func TestNoPasswordInTheDatabase(t *testing.T) {
	t.Parallel()
	s, dsn := open(t)
	ctx := t.Context()
	number := 0
	conn := connect(t, dsn)
	rapid.Check(t, func(rt *rapid.T) {
		number++
		name := fmt.Sprint("row-", number, "-end")
		// Marked, so that it is not found by chance.
		password := "Pw" + rapid.StringMatching(`[A-Za-z0-9!$%^*()_+=;:.,~-]{6,20}`).Draw(rt, "password")
		form := rapid.SampledFrom([]string{
			"postgres://ada:PASSWORD@db.example:5432/shop?sslmode=disable",
			"postgresql://ada:PASSWORD@db.example",
			"host=db.example user=ada password=PASSWORD dbname=shop",
			"host=db.example user=ada password='PASSWORD' dbname=shop",
			"postgres://db.example/shop?user=ada&password=PASSWORD",
			"ada:PASSWORD@account/shop/public",
		}).Draw(rt, "form")
		if strings.Contains(form, "?user=") {
			password = strings.NewReplacer(";", "_").Replace(password)
		}
		clear := strings.Replace(form, "PASSWORD", password, 1)
		if _, err := s.SaveConnection(ctx, store.Connection{Name: name, Driver: "postgres", DSN: clear}); err != nil {
			rt.Fatal(err)
		}
		scenario := engine.Scenario{Name: name,
			Target: engine.Target{Connection: engine.ConnectionRef{Driver: "postgres", DSN: clear}}}
		made, err := s.CreateTemplate(ctx,
			store.Template{Name: name, Config: scenario, Source: "dsn: " + clear + "\n# " + password})
		if err != nil {
			rt.Fatal(err)
		}
		if err := s.CreateRun(ctx, engine.Run{RunID: name, Scenario: scenario}); err != nil {
			rt.Fatal(err)
		}
		for _, table := range []string{"connections", "test_templates", "run_status"} {
			var found bool
			if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+table+
				" x WHERE strpos(x::text, $1) > 0 AND strpos(x::text, $2) > 0)", password, name).Scan(&found); err != nil {
				rt.Fatal(err)
			}
			if found {
				rt.Fatalf("%s holds the password %q of %q", table, password, clear)
			}
		}
		if _, got, err := s.OpenDSN(ctx, made.Config.Target.Connection); err != nil || got.Reveal() != clear {
			rt.Fatalf("opened %q, %v, want %q", got, err, clear)
		}
	})
}
