package schema_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

// TestSchemaCheckSeesWhatWasChanged damages schemas whose version rows stay as they are.
func TestSchemaCheckSeesWhatWasChanged(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	type damage struct{ sql, says string }
	for name, c := range map[string]struct {
		damages []damage
		mends   bool // applying it again does
	}{
		"harmless": {[]damage{
			{"ALTER TABLE users ADD COLUMN note text", ""},
			{"CREATE TABLE theirs (a integer NOT NULL CHECK (a > 1))", ""},
			{"CREATE INDEX theirs_too ON users (user_name)", ""},
		}, true},
		"mended": {[]damage{
			{"DROP TABLE plugin_files", "the table plugin_files is missing"},
			{"ALTER TABLE audit_log DISABLE TRIGGER refuse_change", "the trigger refuse_change of audit_log is"},
			{"DROP TRIGGER guard_run_status ON run_status", "the trigger guard_run_status of run_status is missing"},
			{"CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
				"the function refuse_change() is another one"},
			{"DROP INDEX plugins_by_name", "of plugins is missing"},
		}, true},
		"a column is gone": {[]damage{
			{"ALTER TABLE plugins DROP COLUMN inspection", "the column inspection of plugins is missing"},
		}, false},
		"changed": {[]damage{
			{"ALTER TABLE users DROP COLUMN role", "the column role of users is missing"},
			{"ALTER TABLE users ALTER COLUMN created_at DROP NOT NULL",
				`the column created_at of users is "timestamp with time zone DEFAULT now()" instead of`},
			{"ALTER TABLE users ALTER COLUMN user_name TYPE varchar(5)", "the column user_name of users is"},
			{"ALTER TABLE users ADD COLUMN shoe integer NOT NULL", "the column shoe of users is not Loadstone's"},
			{"ALTER TABLE users ADD CHECK (shoe <> 7)", "constraint CHECK ((shoe <> 7)) of users is not Loadstone's"},
			{"ALTER TABLE run_status DROP CONSTRAINT run_status_pkey CASCADE",
				"constraint PRIMARY KEY (run_id) of run_status is missing"},
			{"CREATE TRIGGER swallow BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION refuse_change()",
				"the trigger swallow of users is not Loadstone's"},
			{"ALTER TABLE audit_log SET UNLOGGED", `the table audit_log is "unlogged table" instead of "table"`},
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			dsn := pg.NewDatabase(t)
			if err := schema.Apply(t.Context(), dsn); err != nil {
				t.Fatal(err)
			}
			conn := connect(t, dsn)
			bad := false
			for _, d := range c.damages {
				exec(t, conn, d.sql)
				bad = bad || d.says != ""
			}
			err := schema.Compare(t.Context(), dsn)
			if (err != nil) != bad || bad && !engine.HasCode(err, engine.CodeUnavailable) {
				t.Errorf("got %v", err)
			}
			for _, d := range c.damages {
				if d.says != "" && !strings.Contains(err.Error(), d.says) {
					t.Errorf("%s: %q is missing in %v", d.sql, d.says, err)
				}
			}
			if bad && strings.Count(err.Error(), "\n  ") < len(c.damages) {
				t.Errorf("not everything is said: %v", err)
			}
			if err := schema.Repair(t.Context(), dsn); (err == nil) != c.mends {
				t.Errorf("repaired %v, want %v: %v", err == nil, c.mends, err)
			}
			if err := schema.Compare(t.Context(), dsn); (err == nil) != c.mends {
				t.Errorf("after applying again: %v", err)
			}
			var left int
			if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'loadstone%'").
				Scan(&left); err != nil || left != 0 {
				t.Errorf("%d schemas are left over: %v", left, err)
			}
		})
	}
}

func TestSchemaCheckSaysWhenItMayNotLook(t *testing.T) {
	t.Parallel()
	pg := pgtest.Start(t)
	dsn := pg.NewDatabase(t)
	if err := schema.Apply(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	conn := connect(t, dsn)
	exec(t, conn, "CREATE ROLE shape_reader")
	t.Cleanup(func() {
		_, _ = conn.Exec(t.Context(), "DROP OWNED BY shape_reader; DROP ROLE shape_reader", pgx.QueryExecModeSimpleProtocol)
	})
	exec(t, conn, "GRANT SELECT ON schema_version TO shape_reader")
	if err := schema.Compare(t.Context(), dsn+" options='-c role=shape_reader'"); !engine.HasCode(err,
		engine.CodeForbidden) || !strings.Contains(err.Error(), "owner") {
		t.Errorf("got %v", err)
	}
}
