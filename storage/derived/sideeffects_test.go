package derived_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
)

// effects are expressions that wait, write, lock, stop others, run text as SQL, or read what is none of a reader's
// business.
var effects = []string{"pg_sleep(1)", "pg_sleep_for('1 s')", "pg_sleep_until(now())",
	"set_config('role', 'results', false)",
	"pg_read_file('PG_VERSION')", "pg_read_binary_file('PG_VERSION')", "pg_ls_dir('.')", "pg_stat_file('PG_VERSION')",
	"pg_ls_logdir()", "pg_ls_waldir()", "pg_current_logfile()", "pg_reload_conf()", "pg_rotate_logfile()",
	"lo_import('/etc/passwd')", "lo_export(1, '/tmp/x')", "lo_creat(-1)", "lo_create(0)", "lo_from_bytea(0, 'x')",
	"lo_unlink(1)", "lo_put(1, 0, 'x')", "pg_notify('loadstone_refresh', '')", "nextval('staging.run_versions')",
	"setval('staging.run_versions', 1)", "pg_advisory_lock(1)", "pg_try_advisory_xact_lock(1)", "pg_advisory_unlock_all()",
	"query_to_xml('SELECT 1', true, true, '')", "query_to_xmlschema('SELECT 1', true, true, '')",
	"cursor_to_xml('c', 1, true, true, '')", "ts_stat('SELECT NULL::tsvector')",
	"ts_rewrite('a'::tsquery, 'SELECT ''a''::tsquery, ''b''::tsquery')", "dblink('dbname=loadstone', 'SELECT 1')",
	"pg_terminate_backend(1)", "pg_cancel_backend(1)", "pg_switch_wal()", "pg_create_restore_point('x')",
	"pg_logical_emit_message(true, 'a', 'b')", "pg_export_snapshot()", "pg_stat_reset()", "setseed(0.5)",
	"pg_stat_clear_snapshot()", "pg_create_physical_replication_slot('x')", "pg_drop_replication_slot('x')",
	"pg_replication_origin_create('x')", "pg_import_system_collations('pg_catalog')", "pg_promote()",
	"pg_wal_replay_pause()",
	"pg_file_write('x', 'y', false)", "(SELECT rolpassword FROM pg_authid LIMIT 1)",
	"(SELECT passwd FROM pg_shadow LIMIT 1)",
	"(SELECT subconninfo FROM pg_subscription LIMIT 1)", "(SELECT umoptions FROM pg_user_mapping LIMIT 1)",
	"(SELECT data FROM pg_largeobject LIMIT 1)", "(SELECT setting FROM pg_file_settings LIMIT 1)",
	"(SELECT auth_method FROM pg_hba_file_rules LIMIT 1)", "(SELECT epoch FROM staging.fences LIMIT 1)",
	"(SELECT stavalues1::text FROM pg_statistic LIMIT 1)"}

// statements are those that do something by themselves.
var statements = []string{"SET ROLE results", "SET SESSION AUTHORIZATION results", "RESET ALL",
	"COPY rollup.runs TO '/tmp/x'",
	"COPY (SELECT 1) TO PROGRAM 'id'", "COPY rollup.runs FROM PROGRAM 'id'", "DO $$ BEGIN END $$", "CALL x()",
	"LISTEN loadstone_refresh", "NOTIFY loadstone_refresh", "PREPARE x AS SELECT 1", "EXECUTE x",
	"DECLARE c CURSOR WITH HOLD FOR SELECT 1", "LOCK TABLE rollup.runs", "VACUUM", "CHECKPOINT", "CREATE EXTENSION dblink",
	"CREATE FUNCTION tables.f() RETURNS int LANGUAGE sql SECURITY DEFINER AS 'SELECT 1'", "CREATE TEMP TABLE x (a int)",
	"CREATE VIEW tables.v AS SELECT 1", "GRANT results TO results_reader", "ALTER SYSTEM SET fsync = off",
	"EXPLAIN ANALYZE DELETE FROM rollup.runs", "WITH x AS (INSERT INTO rollup.runs DEFAULT VALUES RETURNING 1) TABLE x",
	"SELECT 1 INTO tables.x", "SELECT 1; DROP TABLE rollup.runs", "BEGIN; DELETE FROM rollup.runs; COMMIT", "LOAD 'x'",
	"IMPORT FOREIGN SCHEMA a FROM SERVER b INTO c", "REFRESH MATERIALIZED VIEW x", "TRUNCATE rollup.runs"}

// itself are first words of what a session may do to itself; nobody else notices. The control store, where notices mean
// something, is another database.
var itself = []string{"RESET", "LISTEN", "NOTIFY", "PREPARE", "BEGIN;", "DECLARE", "VACUUM"}

// TestNothingDoesMoreThanRead: whatever does more than read results is refused by all that takes SQL of users, with a
// sentence, before it is executed; so is a whole session of the reader's that says it as psql would.
func TestNothingDoesMoreThanRead(t *testing.T) {
	d, owner, reader := open(t)
	r, _ := oneRun("a", 30)
	put(t, d, r, 1)
	all := append([]string{}, statements...)
	for _, e := range effects {
		all = append(all, "SELECT count(*) FILTER (WHERE ("+e+")::text <> '') AS n FROM rollup.runs",
			"SELECT x::text FROM (SELECT CASE WHEN random() < 2 THEN ("+e+")::text END AS x) y")
	}
	for _, sql := range all {
		_, defined := d.Inspect(t.Context(), sql, "runs")
		_, seen := d.Preview(t.Context(), sql, "runs")
		_, requested := d.Query(t.Context(), sql, 10)
		for what, err := range map[string]error{"a definition": defined, "a preview": seen, "a query": requested} {
			if !engine.HasCode(err, engine.CodeInvalid) || len(engine.ErrorText(err)) < 20 {
				t.Errorf("as %s: %s: %v", what, sql, err)
			}
		}
		if first, _, _ := strings.Cut(sql, " "); slices.Contains(itself, first) {
			continue
		}
		if _, err := reader.Exec(t.Context(), sql, pgx.QueryExecModeExec); err == nil {
			t.Errorf("in a session: %s", sql)
		}
	}
	// What only says no when it is executed is planned, and refused then.
	secret := "SELECT current_setting('data_directory') AS x"
	_, seen := d.Preview(t.Context(), secret, "runs")
	_, requests := d.Query(t.Context(), secret, 10)
	_, refreshed := d.Materialize(t.Context(), refresh.Table{Name: "x", Kind: refresh.SQL, Definition: secret, Version: 1},
		claim("x", "", 2), held)
	for _, err := range []error{seen, requests, refreshed} {
		if !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), "refuses the SQL") {
			t.Errorf("%s: %v", secret, err)
		}
	}
	if n := count(t, owner, "SELECT count(*) FROM rollup.runs"); n != 1 {
		t.Errorf("%d runs are left of 1", n)
	}
	if n := count(t, owner, "SELECT count(*) FROM pg_tables WHERE schemaname = 'tables'"); n != 0 {
		t.Errorf("%d tables were made", n)
	}
}
