package schema_test

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/sql"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

var (
	//go:embed testdata/version_14.sql
	version14 string
	//go:embed testdata/version_15.sql
	version15 string
	//go:embed testdata/version_16.sql
	version16 string
	//go:embed testdata/version_17.sql
	version17 string
	//go:embed testdata/version_18.sql
	version18 string
)

// somebody is a user, whose row is looked at afterwards.
const somebody = "INSERT INTO users (user_id, user_name, role) VALUES ('u', 'ada', 'operator')"

// renamed are rows of the tables that had other names until version 15.
const renamed = `
INSERT INTO run_status (run_id, test_id, scenario_config) VALUES ('r', 'r', '{}');
INSERT INTO server_turns (turn_name, owner, until) VALUES ('retention', 's', now());
INSERT INTO run_wishes (run_id, kind, asked_by) VALUES ('r', 'STOP', 'ada');
INSERT INTO run_rooms (run_id, worker_id, node_id, connections) VALUES ('r', 'worker-0', 'n', 7);
INSERT INTO run_queue (run_id, works) VALUES ('r', '[]');
INSERT INTO node_wishes (node_id, wish) VALUES ('n', 'DRAIN');
INSERT INTO result_places (place, label) VALUES ('p', '/results');
INSERT INTO run_leftovers (run_id, place, whole) VALUES ('gone', 'p', true);`

// sinceRenamed are the same rows under the names of version 16.
const sinceRenamed = `
INSERT INTO run_status (run_id, test_id, scenario_config) VALUES ('r', 'r', '{}');
INSERT INTO server_leases (lease_name, owner, until) VALUES ('retention', 's', now());
INSERT INTO run_commands (run_id, kind, asked_by) VALUES ('r', 'STOP', 'ada');
INSERT INTO run_reservations (run_id, worker_id, node_id, connections) VALUES ('r', 'worker-0', 'n', 7);
INSERT INTO run_queue (run_id, demands) VALUES ('r', '[]');
INSERT INTO node_intents (node_id, desired_state) VALUES ('n', 'DRAIN');
INSERT INTO result_stores (place, label) VALUES ('p', '/results');
INSERT INTO pending_file_deletions (run_id, place, whole) VALUES ('gone', 'p', true);`

// keptRows has what became of them in one text.
const keptRows = `SELECT concat_ws(' ', (SELECT user_name FROM users), (SELECT lease_name FROM server_leases),
	(SELECT kind FROM run_commands), (SELECT connections FROM run_reservations), (SELECT demands FROM run_queue),
	(SELECT desired_state FROM node_intents), (SELECT label FROM result_stores),
	(SELECT count(*) FROM pending_file_deletions))`

func one[T any](t testing.TB, conn *pgx.Conn, query string) (value T) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// TestTheVersionBeforeIsUpgraded applies the schema to databases of the versions 14 to 18, in each of the ways there
// are. Rows stay, triggers work under their new names, and the old objects are gone.
func TestTheVersionBeforeIsUpgraded(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	for name, apply := range map[string]func(dsn string, conn *pgx.Conn) error{
		"Apply":  func(dsn string, _ *pgx.Conn) error { return schema.Apply(t.Context(), dsn) },
		"Repair": func(dsn string, _ *pgx.Conn) error { return schema.Repair(t.Context(), dsn) },
		"Print": func(_ string, conn *pgx.Conn) error {
			_, err := conn.Exec(t.Context(), sql.Print())
			return err
		},
	} {
		for version, text := range map[int]string{14: version14 + renamed, 15: version15 + renamed,
			16: version16 + sinceRenamed, 17: version17 + sinceRenamed, 18: version18 + sinceRenamed} {
			t.Run(fmt.Sprint(name, version), func(t *testing.T) {
				dsn := pg.NewDatabase(t)
				conn := connect(t, dsn)
				exec(t, conn, text)
				exec(t, conn, somebody)
				if err := schema.Check(t.Context(), conn); err == nil ||
					!strings.Contains(err.Error(), "loadstone schema apply") {
					t.Errorf("before it is upgraded: %v", err)
				}
				for range 2 {
					if err := apply(dsn, conn); err != nil {
						t.Fatal(err)
					}
				}
				// The tables are compared one by one.
				if err := schema.Compare(t.Context(), dsn); err != nil {
					t.Error(err)
				}
				if kept := one[string](t, conn, keptRows); kept != "ada retention STOP 7 [] DRAIN /results 1" {
					t.Errorf("the rows are now %q", kept)
				}
				if old := one[string](t, conn, `SELECT coalesce(string_agg(name::text, ' ' ORDER BY name), '') FROM (
					SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i', 'S')
					UNION SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace
					UNION SELECT tgname FROM pg_trigger) AS all_of_them (name)
					WHERE name::text ~ 'wish|room|turn|leftover|leave_over|result_places|tell_'`); old != "" {
					t.Errorf("old names are left: %s", old)
				}
				exec(t, conn, `UPDATE run_status SET status = 'CANCELLED', phase = NULL;
					SELECT queue_file_deletion('r', true); DELETE FROM run_status`)
				if left := one[string](t, conn, keptRows); left != "ada retention DRAIN /results 2" {
					t.Errorf("after the run ended the rows are %q", left)
				}
			})
		}
	}
}

// TestOlderSchemasAreRefused: whoever applies the schema to a database that it does not upgrade reads one sentence that
// says what to do, and the database stays as it is.
func TestOlderSchemasAreRefused(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	for version, hash := range map[int]string{1: "c0e7b2ac", 13: "6ac385c4", 14: "an earlier one"} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			dsn := pg.NewDatabase(t)
			conn := connect(t, dsn)
			exec(t, conn, version14)
			exec(t, conn, somebody)
			exec(t, conn, "ALTER TABLE users DROP COLUMN external_id")
			exec(t, conn, "UPDATE schema_version SET version = $1, hash = $2", version, hash)
			for name, err := range map[string]error{
				"Check":   schema.Check(t.Context(), conn),
				"Compare": schema.Compare(t.Context(), dsn),
				"Apply":   schema.Apply(t.Context(), dsn),
				"Repair":  schema.Repair(t.Context(), dsn),
			} {
				if !engine.HasCode(err, engine.CodeUnavailable) {
					t.Fatalf("%s: %v", name, err)
				}
				refusal(t, name, engine.AsError(err).Message, version, hash)
				if hint := engine.AsError(err).Hint; hint != "" {
					t.Errorf("%s says more than the sentence: %s", name, hint)
				}
			}
			_, err := conn.Exec(t.Context(), sql.Print())
			var refused *pgconn.PgError
			if !errors.As(err, &refused) {
				t.Fatalf("the printed script: %v", err)
			}
			exec(t, conn, "ROLLBACK")
			refusal(t, "Print", refused.Message, version, hash)
			if is := one[int](t, conn, "SELECT version FROM schema_version"); is != version {
				t.Errorf("the database says now that it has version %d", is)
			}
			if n := one[int](t, conn, "SELECT count(*) FROM pg_attribute WHERE attrelid = 'users'::regclass "+
				"AND attname = 'external_id'"); n != 0 {
				t.Error("the tables were changed")
			}
		})
	}
}

// refusal looks at the sentence: the version of the database, and both commands.
func refusal(t testing.TB, from, sentence string, version int, hash string) {
	t.Helper()
	for _, part := range []string{fmt.Sprintf("(version %d, %s)", version, hash), "`loadstone backup ",
		"`loadstone restore "} {
		if !strings.Contains(sentence, part) {
			t.Errorf("%s: %q is missing in %q", from, part, sentence)
		}
	}
	if strings.Count(sentence, ". ") > 0 || strings.Contains(sentence, "\n") {
		t.Errorf("%s: more than one sentence: %q", from, sentence)
	}
}

// TestApplyingTwiceChangesNothing runs all files once more over a database with rows: no object is made again, and no
// table is written again. schema.Apply itself would stop at the version.
func TestApplyingTwiceChangesNothing(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Start(t).NewDatabase(t)
	if err := schema.Apply(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, dsn)
	exec(t, conn, somebody)
	exec(t, conn, "UPDATE catalog_revision SET revision = 7")
	objects := func() map[string]bool {
		t.Helper()
		rows, err := conn.Query(t.Context(), `
			SELECT 'relation ' || relname || ' ' || oid || ' ' || relfilenode || ' ' || xmin::text FROM pg_class
				WHERE relnamespace = 'public'::regnamespace AND relkind <> 'v'
			UNION ALL SELECT 'constraint ' || conname || ' ' || oid || ' ' || xmin::text FROM pg_constraint
				WHERE connamespace = 'public'::regnamespace
			UNION ALL SELECT 'trigger ' || tgname || ' ' || oid FROM pg_trigger
			UNION ALL SELECT 'function ' || proname || ' ' || oid FROM pg_proc WHERE pronamespace = 'public'::regnamespace`)
		if err != nil {
			t.Fatal(err)
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(names) < 300 {
			t.Fatal(len(names), err)
		}
		found := map[string]bool{}
		for _, n := range names {
			found[n] = true
		}
		return found
	}
	before := objects()
	for range 2 {
		exec(t, conn, sql.Print())
	}
	after := objects()
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if !after[name] {
			t.Errorf("%s is not there any more", name)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%d objects instead of %d", len(after), len(before))
	}
	if n := one[int](t, conn, "SELECT count(*) FROM users"); n != 1 {
		t.Errorf("%d users", n)
	}
	if revision := one[int](t, conn, "SELECT revision FROM catalog_revision"); revision != 7 {
		t.Errorf("the revision of the catalog is now %d", revision)
	}
	if err := schema.Compare(t.Context(), dsn); err != nil {
		t.Error(err)
	}
}
