package bundled_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

// asking is a run of a workload that was not given leave to write.
func (b *bench) asking(workload, table, params string, prep *engine.Prepare) engine.Scenario {
	return engine.Scenario{Name: "test",
		Workload: engine.Workload{Plugin: workload, Params: json.RawMessage(params), Seed: 7, ConcurrentConnections: 1},
		Target: engine.Target{Connection: engine.ConnectionRef{Driver: "postgres", DSN: b.dsn}, Adapter: "postgres",
			TableName: table, Prepare: prep},
		Scaling: engine.Scaling{WorkerCount: 1}}
}

func (b *bench) deps() prepare.Deps {
	return prepare.Deps{Plugins: b.host, Drivers: map[string]target.Driver{"postgres": postgres.NewDriver()},
		Connections: inline{}}
}

func (b *bench) ready(sc engine.Scenario) (*prepare.Prepared, error) {
	return prepare.Plan(context.Background(), b.deps(), sc, nil)
}

func (b *bench) look(sc engine.Scenario) *prepare.Preflight {
	b.Helper()
	f, err := prepare.Inspect(context.Background(), b.deps(), sc, true)
	if err != nil {
		b.Fatal(err)
	}
	return f
}

func (b *bench) value(sql string) any {
	b.Helper()
	rs, err := b.db.Query(context.Background(), sql)
	if err != nil {
		b.Fatal(err)
	}
	if len(rs.Rows) == 0 {
		return nil
	}
	return rs.Rows[0][0]
}

func kinds(plan *engine.Plan) string {
	var list []string
	for _, s := range plan.Statements {
		list = append(list, s.Kind.String())
	}
	return strings.Join(list, " ")
}

// TestWritesToTablesOfOthersAreAskedFor: whatever the workload, and however a
// statement comes to the table.
func TestWritesToTablesOfOthersAreAskedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec("CREATE SCHEMA shop", "CREATE TABLE shop.orders (id bigint PRIMARY KEY, note text)",
		"INSERT INTO shop.orders SELECT g, 'x' FROM generate_series(1, 12345) g",
		"CREATE TABLE shop.order_items (id bigint PRIMARY KEY, o bigint REFERENCES shop.orders ON DELETE CASCADE)",
		"INSERT INTO shop.order_items VALUES (1, 1), (2, 2)",
		"CREATE TABLE item_notes (i bigint REFERENCES shop.order_items ON DELETE SET NULL)",
		"CREATE FUNCTION shop.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
		"CREATE TRIGGER a BEFORE INSERT ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.f()",
		"CREATE TRIGGER b AFTER UPDATE ON shop.orders FOR EACH ROW EXECUTE FUNCTION shop.f()",
		"ALTER TABLE shop.orders ENABLE ROW LEVEL SECURITY",
		"CREATE VIEW shop.v AS SELECT * FROM shop.orders",
		"CREATE RULE r AS ON INSERT TO shop.order_items DO ALSO DELETE FROM item_notes",
		"CREATE FUNCTION shop.pay(int) RETURNS int LANGUAGE sql AS 'SELECT 1'",
		"CREATE FUNCTION shop.twice(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 2 * $1'",
		"CREATE SEQUENCE shop.seq", "CREATE PROCEDURE shop.work() LANGUAGE plpgsql AS 'BEGIN END'")
	own := func(sql string) string {
		doc, _ := json.Marshal(map[string]any{"statements": []any{map[string]any{"id": "s", "sql": sql}}})
		return string(doc)
	}
	for _, c := range []struct{ name, workload, table, params, line string }{
		{"mix", "mix", "shop.orders", `{"weights":{"POINT_LOOKUP":1,"INSERT":1,"UPDATE":1}}`,
			"INSERT and UPDATE in shop.orders, 12 k rows; triggers: 2; cascades to: public.item_notes, order_items; " +
				"row-level security: on"},
		{"deletes", "mix", "shop.order_items", `{"weights":{"DELETE":1,"INSERT":1}}`,
			"INSERT and DELETE in shop.order_items, 2 rows; cascades to: public.item_notes. " +
				"DELETE in public.item_notes, 0 rows"},
		{"a view", "sql", "", own("INSERT INTO shop.v VALUES (99999999, 'x')"), "INSERT in shop.orders, 12 k rows"},
		{"a common table expression", "sql", "",
			own("WITH a AS (SELECT 1 /* ' */), d AS (DELETE FROM shop.orders WHERE id = 1 RETURNING 1) SELECT count(*) FROM d"),
			"DELETE in shop.orders"},
		{"an upsert", "sql", "", own("INSERT INTO shop.orders VALUES (1, 'x') ON CONFLICT (id) DO UPDATE SET note = 'y'"),
			"INSERT and UPDATE in shop.orders"},
		{"a function", "sql", "", own("SELECT shop.pay(1)"), "SELECT shop.pay, which may write"},
		{"a procedure", "sql", "", own("CALL shop.work()"), "CALL shop.work, which may write"},
		{"a sequence is set", "sql", "", own("SELECT setval('shop.seq', 1)"),
			"SELECT pg_catalog.setval, which does more than read"},
		{"a sequence is used", "sql", "", own("SELECT pg_catalog.nextval('shop.seq')"),
			"SELECT pg_catalog.nextval, which does more than read"},
		{"a large object", "sql", "", own("SELECT lo_unlink(1)"), "SELECT pg_catalog.lo_unlink, which does more than read"},
		{"sessions of others", "sql", "", own("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = 0"),
			"SELECT pg_catalog.pg_terminate_backend, which does more than read"},
		{"a text that is executed", "sql", "", own(`SELECT "query_to_xml"('DELETE FROM shop.orders', true, true, '')`),
			"SELECT pg_catalog.query_to_xml, which does more than read"},
		{"replay", "replay", "",
			`{"statements":[{"id":"s","sql":"UPDATE shop.orders SET note = :n","binds":[{"name":"n","type":"text"}]}]}`,
			"UPDATE in shop.orders"},
	} {
		t.Run(c.name, func(t *testing.T) {
			sc := b.asking(c.workload, c.table, c.params, nil)
			if c.workload == "replay" {
				sc.Workload.Feed = &engine.Feed{CSV: "at_ms,statement,n\n0,s,x\n"}
			}
			b.exec("ANALYZE shop.orders")
			f := b.look(sc)
			got := found(f, "writes", "failed")
			if f.OK || got == nil || !strings.HasPrefix(got.Message, c.line) || got.Field != "target.allow_writes" ||
				!strings.Contains(got.Fix, "--allow-writes") || strings.Contains(got.Message, "\n") {
				t.Fatalf("%+v", f.Checks)
			}
			_, err := b.ready(sc)
			if !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), c.line) ||
				!strings.Contains(err.Error(), "--allow-writes") {
				t.Errorf("the run: %v", err)
			}
			sc.Target.AllowWrites = true
			if f = b.look(sc); !f.OK || found(f, "writes", "warning") == nil || len(f.Writes) == 0 {
				t.Errorf("with leave: %+v", f.Checks)
			}
			if p, err := b.ready(sc); err != nil || !strings.Contains(strings.Join(p.Notes, "\n"), c.line) {
				t.Errorf("with leave: %v", err)
			}
		})
	}
	for _, sql := range []string{"SELECT * FROM shop.orders WHERE id = 1 FOR UPDATE",
		"SELECT shop.twice(2), 'INSERT INTO shop.orders', now(), random()",
		"SELECT last_value, pg_sequence_last_value('shop.seq'), 'setval(1)', lo_get(0) IS NULL FROM shop.seq"} {
		sc := b.asking("sql", "", own(sql), nil)
		if _, err := b.ready(sc); err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

// TestSystemCatalogsAreNeverWritten, with whatever leave.
func TestSystemCatalogsAreNeverWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	for _, c := range []struct{ workload, table, params string }{
		{"mix", "pg_catalog.pg_class", `{"weights":{"POINT_LOOKUP":1,"UPDATE":1}}`},
		{"mix", "pg_class", `{"weights":{"DELETE":1}}`},
		{"sql", "", `{"statements":[{"id":"s","sql":"UPDATE pg_settings SET setting = '1' WHERE name = 'work_mem'"}]}`},
		{"sql", "", `{"statements":[{"id":"s","sql":"DELETE FROM \"pg_catalog\".\"pg_proc\" WHERE oid = 1"}]}`},
		{"sql", "",
			`{"statements":[{"id":"s","sql":"WITH x AS (DELETE FROM information_schema.sql_features RETURNING 1) SELECT 1"}]}`},
	} {
		sc := b.asking(c.workload, c.table, c.params, nil)
		sc.Target.AllowWrites = true
		_, err := b.ready(sc)
		if !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), "catalog") {
			t.Errorf("%s: %v", c.params, err)
		}
		if f := b.look(sc); f.OK || found(f, "writes", "failed") == nil {
			t.Errorf("%s: %+v", c.params, f.Checks)
		}
	}
	if _, err := b.ready(b.asking("mix", "pg_class", `{"weights":{"POINT_LOOKUP":1}}`, nil)); err != nil {
		t.Errorf("reading a catalog: %v", err)
	}
}

// TestMixWithoutWeightsReadsTablesOfOthers, and writes to its own.
func TestMixWithoutWeightsReadsTablesOfOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec("CREATE TABLE theirs (id bigint PRIMARY KEY, note text)",
		"INSERT INTO theirs SELECT g, 'x' FROM generate_series(1, 100) g")
	p, err := b.ready(b.asking("mix", "theirs", "{}", nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := kinds(p.Plan); got != "POINT_LOOKUP RANGE_SCAN" || p.Plan.Tables[0].Own {
		t.Errorf("on a table of others: %s", got)
	}
	const all = "POINT_LOOKUP RANGE_SCAN INSERT UPDATE"
	for _, prep := range []*engine.Prepare{{Rows: 100, IfExists: engine.IfExistsUse},
		{Rows: 100, IfExists: engine.IfExistsUse}, nil} {
		p, err := b.ready(b.asking("mix", "ours", "{}", prep))
		if err != nil {
			t.Fatal(err)
		}
		if got := kinds(p.Plan); got != all || !p.Plan.Tables[0].Own {
			t.Errorf("on its own table: %s, %+v", got, p.Plan.Tables[0])
		}
		if seen := b.run(p.Plan, string(p.Params), 200); len(seen) != 4 {
			t.Errorf("%d kinds were issued", len(seen))
		}
	}
	// The mark is the very table's: neither a copy nor a successor has it.
	b.exec("CREATE TABLE copy (LIKE ours INCLUDING ALL)", "INSERT INTO copy SELECT * FROM ours",
		"CREATE TABLE next (LIKE ours INCLUDING ALL)", "INSERT INTO next SELECT * FROM ours")
	comment := b.value("SELECT obj_description('ours'::regclass, 'pg_class')").(string)
	b.exec("COMMENT ON TABLE copy IS '"+comment+"'", "ALTER TABLE ours RENAME TO renamed",
		"ALTER TABLE next RENAME TO ours")
	for table, want := range map[string]string{"copy": "POINT_LOOKUP RANGE_SCAN", "ours": "POINT_LOOKUP RANGE_SCAN",
		"renamed": all} {
		p, err := b.ready(b.asking("mix", table, "{}", nil))
		if err != nil {
			t.Fatal(err)
		}
		if got := kinds(p.Plan); got != want {
			t.Errorf("%s: %s", table, got)
		}
	}
}

// TestRecreateIsAtomic: the old table is there until the new one is whole, and what goes is named.
func TestRecreateIsAtomic(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	recreate := func(table string, allow bool) (*prepare.Prepared, error) {
		sc := b.asking("mix", table, "{}", &engine.Prepare{Rows: 500, IfExists: engine.IfExistsRecreate})
		sc.Target.AllowWrites = allow
		return b.ready(sc)
	}
	b.exec("CREATE TABLE theirs (id bigint PRIMARY KEY, note text)", "INSERT INTO theirs VALUES (1, 'precious')",
		"CREATE INDEX ON theirs (note)", "GRANT SELECT ON theirs TO PUBLIC")
	if _, err := recreate("theirs", false); !engine.HasCode(err, engine.CodeInvalid) ||
		!strings.Contains(err.Error(), "not made by Loadstone") || !strings.Contains(err.Error(), "--allow-writes") {
		t.Errorf("without leave: %v", err)
	}
	sc := b.asking("mix", "theirs", "{}", &engine.Prepare{Rows: 500, IfExists: engine.IfExistsRecreate})
	sc.Target.AllowWrites = true
	if c := found(b.look(sc), "table", "warning"); c == nil ||
		!strings.Contains(c.Message, "1 rows, indexes: 2, grants to PUBLIC") {
		t.Errorf("the preflight names nothing: %+v", b.look(sc).Checks)
	}
	b.exec("CREATE VIEW uses AS SELECT * FROM theirs", "CREATE TABLE child (id bigint REFERENCES theirs)")
	if _, err := recreate("theirs", true); err == nil || !strings.Contains(err.Error(), "the view uses") ||
		!strings.Contains(err.Error(), "child_id_fkey") {
		t.Errorf("a table that others use: %v", err)
	}
	b.exec("DROP VIEW uses", "DROP TABLE child")
	if n := b.value("SELECT count(*) FROM theirs WHERE note = 'precious'"); n != int64(1) {
		t.Fatalf("%v rows are left", n)
	}
	p, err := recreate("theirs", true)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(p.Notes, "\n"), `With the old "public"."theirs" go: 1 rows`) ||
		!p.Plan.Tables[0].Own || p.Plan.Tables[0].Rows != 500 {
		t.Errorf("%q %+v", p.Notes, p.Plan.Tables[0])
	}
	if b.value("SELECT count(*) FROM pg_class WHERE relname LIKE 'loadstone_new%'") != int64(0) ||
		b.value("SELECT conname FROM pg_constraint WHERE conrelid = 'theirs'::regclass") != "theirs_pkey" {
		t.Error("names of the building are left")
	}
	// Its own table needs no leave, and a second time it works too.
	if _, err := recreate("theirs", false); err != nil {
		t.Fatal(err)
	}
	// A load that fails leaves the old rows: there is no room for the new table's key.
	b.exec("UPDATE theirs SET note = 'kept'",
		"CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN IF tg_tag = 'ALTER TABLE' THEN RAISE "+
			"'not now'; END IF; END $$",
		"CREATE EVENT TRIGGER refuse ON ddl_command_end EXECUTE FUNCTION refuse()")
	if _, err := recreate("theirs", false); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Errorf("%v", err)
	}
	b.exec("DROP EVENT TRIGGER refuse")
	if b.value("SELECT count(*) FROM theirs WHERE note = 'kept'") != int64(500) ||
		b.value("SELECT count(*) FROM pg_class WHERE relname LIKE 'loadstone_new%'") != int64(0) {
		t.Error("a failed load changed the old table, or left the new one")
	}
	b.exec("CREATE TABLE parts (id bigint PRIMARY KEY, note text) PARTITION BY HASH (id)",
		"CREATE TABLE parts0 PARTITION OF parts FOR VALUES WITH (MODULUS 1, REMAINDER 0)",
		"INSERT INTO parts VALUES (1, 'x')")
	for _, table := range []string{"parts", "parts0"} {
		if _, err := recreate(table, true); err == nil || !strings.Contains(err.Error(), "partition") {
			t.Errorf("%s: %v", table, err)
		}
	}
	if b.value("SELECT count(*) FROM parts") != int64(1) {
		t.Error("the partitioned table was touched")
	}
}

// TestBundledAdaptersDeclareWhatTheySend: the patterns come with the manifest, where a user approves them.
func TestBundledAdaptersDeclareWhatTheySend(t *testing.T) {
	t.Parallel()
	h := hosttest.Bundled(t)
	for _, name := range []string{"postgres", "snowflake_postgres", "snowflake_standard", "snowflake_hybrid",
		"snowflake_interactive"} {
		a, err := h.Adapter(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if s := a.Info().Manifest.Sends; s == nil || len(s.Query) == 0 || len(s.DDL) == 0 || s.Check() != nil {
			t.Errorf("%s declares %+v", name, s)
		}
	}
}

// TestATableOfAnEarlierVersionIsAdopted: its maker left no mark, so it is asked for, and the statement
// that is offered ends that. A table of another shape, and a view, are offered nothing.
func TestATableOfAnEarlierVersionIsAdopted(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	prep := &engine.Prepare{Rows: 100, IfExists: engine.IfExistsUse}
	const weights = `{"weights":{"POINT_LOOKUP":1,"UPDATE":1}}`
	if _, err := b.ready(b.asking("mix", "ours", weights, prep)); err != nil {
		t.Fatal(err)
	}
	b.exec("COMMENT ON TABLE ours IS NULL", "CREATE TABLE theirs (id bigint PRIMARY KEY, note text)",
		"INSERT INTO theirs VALUES (1, 'x')", "CREATE VIEW v AS SELECT * FROM ours")
	for table, offered := range map[string]bool{"ours": true, "theirs": false} {
		_, err := b.ready(b.asking("mix", table, weights, nil))
		if !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), "--allow-writes") ||
			strings.Contains(err.Error(), "COMMENT ON TABLE") != offered {
			t.Errorf("%s: %v", table, err)
		}
		f := found(b.look(b.asking("mix", table, weights, nil)), "writes", "failed")
		if f == nil || strings.Contains(f.Fix, "COMMENT ON TABLE") != offered {
			t.Errorf("%s: %+v", table, f)
		}
	}
	view := b.asking("mix", "v", weights, nil)
	view.Target.Params = json.RawMessage(`{"key":"id"}`)
	if _, err := b.ready(view); err == nil || strings.Contains(err.Error(), "COMMENT ON TABLE") {
		t.Errorf("a view: %v", err)
	}
	p, err := b.ready(b.asking("mix", "ours", "{}", prep))
	if err != nil || kinds(p.Plan) != "POINT_LOOKUP RANGE_SCAN" ||
		!strings.Contains(strings.Join(p.Notes, "\n"), "COMMENT ON TABLE") {
		t.Fatalf("without weights: %v, %q", err, p.Notes)
	}
	// recreate would drop it, so it asks too.
	_, err = b.ready(b.asking("mix", "ours", weights, &engine.Prepare{Rows: 100, IfExists: engine.IfExistsRecreate}))
	if err == nil {
		t.Fatal("it was dropped without asking")
	}
	_, statement, ok := strings.Cut(err.Error(), "say so once: ")
	if !ok {
		t.Fatalf("nothing is offered: %v", err)
	}
	end := strings.LastIndex(statement, "'")
	b.exec(statement[:end+1], "DROP VIEW v")
	for _, sc := range []engine.Scenario{b.asking("mix", "ours", weights, prep),
		b.asking("mix", "ours", weights, &engine.Prepare{Rows: 100, IfExists: engine.IfExistsRecreate})} {
		if _, err := b.ready(sc); err != nil {
			t.Errorf("when it was adopted: %v", err)
		}
	}
}

// TestWhatAWriteReachesIsSaid: partitions and heirs with their own triggers and foreign keys, foreign
// tables, and views whose triggers write.
func TestWhatAWriteReachesIsSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec("CREATE TABLE parts (id bigint PRIMARY KEY, note text) PARTITION BY RANGE (id)",
		"CREATE TABLE p1 PARTITION OF parts FOR VALUES FROM (0) TO (500)",
		"CREATE TABLE p2 PARTITION OF parts FOR VALUES FROM (500) TO (5000)",
		"INSERT INTO parts SELECT g, 'x' FROM generate_series(1, 1000) g",
		"CREATE TABLE remarks (id bigint REFERENCES p1 ON DELETE CASCADE)",
		"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'",
		"CREATE TRIGGER a BEFORE UPDATE ON parts FOR EACH ROW EXECUTE FUNCTION f()",
		"CREATE TRIGGER b BEFORE UPDATE ON p2 FOR EACH ROW EXECUTE FUNCTION f()",
		"CREATE TABLE old (id bigint PRIMARY KEY, note text)", "INSERT INTO old SELECT g, 'x' FROM generate_series(1, 100) g",
		"CREATE TABLE heir () INHERITS (old)",
		"CREATE TRIGGER c BEFORE UPDATE ON heir FOR EACH ROW EXECUTE FUNCTION f()",
		"CREATE VIEW shown AS SELECT id, upper(note) AS note FROM old",
		"CREATE TRIGGER d INSTEAD OF UPDATE ON shown FOR EACH ROW EXECUTE FUNCTION f()",
		"CREATE EXTENSION postgres_fdw", "CREATE SERVER elsewhere FOREIGN DATA WRAPPER postgres_fdw",
		"CREATE USER MAPPING FOR CURRENT_USER SERVER elsewhere",
		"CREATE FOREIGN TABLE far (id bigint, note text) SERVER elsewhere", "ANALYZE parts", "ANALYZE old")
	const both = `{"weights":{"UPDATE":1,"DELETE":1}}`
	own := func(table string) string {
		return `{"statements":[{"id":"s","sql":"UPDATE ` + table + ` SET note = 'y' WHERE id = 1"}]}`
	}
	for line, sc := range map[string]engine.Scenario{
		"UPDATE and DELETE in public.parts, 1000 rows; partitions: 2; triggers: 2; cascades to: remarks": b.asking("mix",
			"parts", both, nil),
		"UPDATE and DELETE in public.old, 100 rows; tables that inherit from it: 1; triggers: 1": b.asking("mix",
			"old", both, nil),
		"UPDATE in public.shown, a view that writes whatever its triggers do, 100 rows; triggers: 1": b.asking("sql", "",
			own("shown"), nil),
		"UPDATE in public.far, a table of the foreign server elsewhere": b.asking("sql", "",
			own("far"), nil),
	} {
		_, err := b.ready(sc)
		if err == nil {
			t.Errorf("%s: it is done without asking", line)
			continue
		}
		if text := err.Error(); strings.Count(text, line) != 1 || strings.Contains(text, line+";") ||
			strings.Contains(text, line+",") {
			t.Errorf("%s: %s", line, text)
		}
	}
}

// TestLocksNeedLeaveAndCopiesDoNot: a LOCK that keeps others from a table is a write to it, and COPY … TO STDOUT does
// what its query does.
func TestLocksNeedLeaveAndCopiesDoNot(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec("CREATE TABLE held (id bigint PRIMARY KEY, note text)", `CREATE TABLE "Also" (id bigint PRIMARY KEY)`,
		"INSERT INTO held VALUES (1, 'x')")
	for text, want := range map[string]string{
		"LOCK TABLE held IN ACCESS EXCLUSIVE MODE": "LOCK in public.held",
		"LOCK held":                                                                  "LOCK in public.held",
		"LOCK ONLY held IN SHARE MODE NOWAIT":                                        "LOCK in public.held",
		"lock table held in row exclusive mode":                                      "LOCK in public.held",
		"LOCK TABLE public.held, \"Also\" IN EXCLUSIVE MODE":                         `LOCK in public."Also"`,
		"LOCK TABLE held IN SHARE ROW EXCLUSIVE MODE":                                "LOCK in public.held",
		"LOCK TABLE held IN ACCESS SHARE MODE":                                       "",
		"LOCK held IN ROW SHARE MODE NOWAIT":                                         "",
		"COPY held TO STDOUT":                                                        "",
		"COPY held (id, note) TO STDOUT WITH (FORMAT csv)":                           "",
		"COPY (SELECT * FROM held WHERE id > 0) TO STDOUT":                           "",
		"COPY (DELETE FROM held RETURNING id) TO STDOUT":                             "DELETE in public.held",
		"COPY (WITH d AS (DELETE FROM held RETURNING id) SELECT * FROM d) TO STDOUT": "DELETE in public.held",
		"COPY (SELECT lo_create(0) FROM held) TO STDOUT":                             "lo_create",
	} {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = b.ready(
			b.asking("sql", "", `{"statements":[{"id":"tx","transaction":[{"id":"a","sql":"SELECT 1"},{"id":"s","sql":`+
				string(quoted)+`}]}]}`, nil),
		)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", text, err, want)
		}
	}
}
