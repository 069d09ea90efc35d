package bundled_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/dryrun"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

// TestColumnsByHand: insert_columns and update_columns choose what is written.
func TestColumnsByHand(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec(`CREATE TABLE account (id serial PRIMARY KEY, email text NOT NULL UNIQUE, state text NOT NULL DEFAULT 'new'
		CHECK (state IN ('new', 'old')), note text, twice text GENERATED ALWAYS AS (email || email) STORED)`,
		`INSERT INTO account (email) SELECT g || '@x' FROM generate_series(1, 100) g`)
	for params, want := range map[string]string{
		`{"weights":{"UPDATE":1},"update_columns":["state","note"]}`:  `SET "state" = $1, "note" = $2 WHERE`,
		`{"weights":{"UPDATE":1},"update_columns":["email"]}`:         `SET "email" = $1 WHERE`,
		`{"weights":{"INSERT":1},"insert_columns":["email"]}`:         `("email") VALUES`,
		`{"weights":{"INSERT":1},"insert_columns":["state","email"]}`: `("email", "state") VALUES`,
		// None by hand: the key fills itself, and the state has a default.
		`{"weights":{"INSERT":1}}`: `("email", "note") VALUES`,
		`{"weights":{"UPDATE":1}}`: `SET "note" = $1 WHERE`,
	} {
		plan, err := b.plan("account", params, nil)
		if err != nil {
			t.Errorf("%s: %v", params, err)
			continue
		}
		if !strings.Contains(plan.Statements[0].SQL, want) {
			t.Errorf("%s: %s", params, plan.Statements[0].SQL)
		}
		b.count(plan.Statements[0].Kind, plan, params)
	}
	for params, want := range map[string]string{
		`{"weights":{"UPDATE":1},"update_columns":["nte"]}`:      `no column "nte"`,
		`{"weights":{"UPDATE":1},"update_columns":["id"]}`:       `"id", which workload.params.update_columns names, finds the row`,
		`{"weights":{"UPDATE":1},"update_columns":["twice"]}`:    "the database alone fills",
		`{"weights":{"INSERT":1},"insert_columns":["twice"]}`:    "the database alone fills",
		`{"weights":{"INSERT":1},"insert_columns":["note"]}`:     `"email" is NOT NULL`,
		`{"weights":{"INSERT":1},"insert_columns":[]}`:           "insert_columns",
		`{"weights":{"INSERT":1},"insert_columns":["a", "a"]}`:   "insert_columns",
		`{"weights":{"INSERT":1},"insert_columns":["a\u0000b"]}`: "no column",
	} {
		if _, err := b.plan("account", params, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", params, err, want)
		}
	}
}

// TestWritesAreTriedAndUndone: the preflight and the run name the constraint and its column, and leave the table as it is.
func TestWritesAreTriedAndUndone(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec(`CREATE TABLE coded (id bigint PRIMARY KEY, code text NOT NULL UNIQUE CHECK (code ~ '^[A-Z]+$'), note text)`,
		`INSERT INTO coded SELECT g, repeat(chr(64 + g), g), 'as it was' FROM generate_series(1, 20) g`,
		`CREATE TABLE child (id serial PRIMARY KEY, coded bigint REFERENCES coded)`, `INSERT INTO child (coded) VALUES (3)`)
	find := func(f *prepare.Preflight, name string, outcome prepare.CheckResult) *prepare.CheckResult {
		at := slices.IndexFunc(
			f.Checks,
			func(c prepare.CheckResult) bool { return c.Name == name && c.Outcome == outcome.Outcome },
		)
		if at < 0 {
			return nil
		}
		return &f.Checks[at]
	}
	sc := b.asking("mix", "coded", `{"weights":{"INSERT":1,"UPDATE":1}}`, nil)
	sc.Target.AllowWrites = true
	f := b.look(sc)
	failed := find(f, "trial", prepare.CheckResult{Outcome: prepare.CheckFailed})
	if f.OK || failed == nil || failed.Field != "workload.params.weights.INSERT" ||
		!strings.Contains(
			failed.Message,
			`"coded_code_check" (on the column code)`,
		) || !strings.Contains(failed.Fix, "insert_columns") {
		t.Errorf("%+v", f.Checks)
	}
	_, err := b.ready(sc)
	if !engine.HasCode(err, engine.CodeInvalid) || !strings.Contains(err.Error(), "coded_code_check") {
		t.Errorf("%v", err)
	}
	sc.Workload.Params = []byte(`{"weights":{"UPDATE":1}}`)
	f = b.look(sc)
	if ok := find(
		f,
		"trial",
		prepare.CheckResult{Outcome: prepare.CheckOK},
	); !f.OK || ok == nil ||
		!strings.Contains(ok.Message, "update") {
		t.Errorf("%+v", f.Checks)
	}
	// Foreign keys of others are named before the run, though most rows could go.
	sc.Workload.Params = []byte(`{"weights":{"DELETE":1}}`)
	f = b.look(sc)
	if failed = find(f, "statements", prepare.CheckResult{Outcome: prepare.CheckFailed}); failed == nil ||
		!strings.Contains(
			failed.Message,
			`"child_coded_fkey" of "public"."child"`,
		) || failed.Field != "workload.params.weights.DELETE" {
		t.Errorf("%+v", f.Checks)
	}
	if got := b.value("SELECT count(*) || ' ' || count(*) FILTER (WHERE note = 'as it was') FROM coded"); got != "20 20" {
		t.Errorf("the table has %v", got)
	}
	// Without leave to write, and in a trial of statements, nothing is executed: a trigger would tell.
	b.exec(`CREATE SEQUENCE touched`, `CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN PERFORM nextval('touched'); RETURN NEW; END $$`,
		`CREATE TRIGGER touch BEFORE UPDATE ON coded FOR EACH ROW EXECUTE FUNCTION touch()`)
	sc = b.asking("mix", "coded", `{"weights":{"UPDATE":1}}`, nil)
	if f = b.look(sc); f.OK {
		t.Errorf("%+v", f.Checks)
	}
	if _, err := (&dryrun.Runner{Deps: b.deps()}).Try(t.Context(), sc, "update"); err != nil {
		t.Error(err)
	}
	if called := b.value("SELECT is_called::text FROM touched"); called != "false" {
		t.Error("something was written without leave")
	}
	sc.Target.AllowWrites = true
	f, err = prepare.InspectAll(t.Context(), b.deps(), sc, false)
	if err != nil || !f.OK || !strings.Contains(f.Checks[len(f.Checks)-1].Message, "was not tried") ||
		b.value("SELECT is_called::text FROM touched") != "false" {
		t.Errorf("without a trial: %v: %+v", err, f)
	}
	if f = b.look(sc); !f.OK || b.value("SELECT last_value::text FROM touched") != "20" {
		t.Errorf("%v: %+v", b.value("SELECT last_value::text FROM touched"), f.Checks)
	}
}

// TestThePreflightTriesTablesOfAnyKey: it needs no more of the keys than it has looked at.
func TestThePreflightTriesTablesOfAnyKey(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec(`CREATE TABLE tokens (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), v text)`,
		`INSERT INTO tokens (v) SELECT 'x' FROM generate_series(1, 2000)`)
	sc := b.asking("mix", "tokens", `{"weights":{"INSERT":1,"UPDATE":1,"DELETE":1}}`, nil)
	sc.Target.AllowWrites = true
	if f := b.look(sc); !f.OK || !strings.Contains(fmt.Sprint(f.Checks), "insert, update and delete") {
		t.Errorf("%+v", f.Checks)
	}
}

// TestLongText: values have up to a million characters, and what is too much for an operation is refused.
func TestLongText(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec(`CREATE TABLE page (id bigint PRIMARY KEY, body text NOT NULL)`, `INSERT INTO page VALUES (1, '')`,
		`CREATE TABLE pages (id bigint PRIMARY KEY, a text, b text, c text, d text, e text, f text, g text)`)
	const params = `{"weights":{"INSERT":1,"UPDATE":1},"value_size":{"min":70000,"max":1048576}}`
	plan, err := b.plan("page", params, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.run(plan, params, 20)
	if got := b.value("SELECT (min(length(body)) FILTER (WHERE id > 1) >= 70000)::text FROM page"); got != "true" {
		t.Errorf("%v", got)
	}
	_, err = b.plan("pages", `{"weights":{"INSERT":1},"value_size":{"max":1048576}}`, nil)
	if err == nil || !strings.Contains(err.Error(), "workload.params.value_size: value_size.max is 1048576") {
		t.Errorf("%v", err)
	}
}

// TestLeftOutColumnsAreNoted: an INSERT that leaves optional columns out says which.
func TestLeftOutColumnsAreNoted(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	var columns []string
	for i := range 300 {
		columns = append(columns, fmt.Sprintf("c%d int", i))
	}
	b.exec("CREATE TABLE wide (id bigint PRIMARY KEY, " + strings.Join(columns, ", ") + ")")
	p, err := b.allowed("wide", `{"weights":{"INSERT":1}}`, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if all := strings.Join(
		p.Remarks,
		"\n",
	); !strings.Contains(
		all,
		`leaves 46 columns of table "public"."wide" NULL, from "c254" to "c299"`,
	) {
		t.Errorf("%q", all)
	}
}

// TestDeletesAreRefusedForRowsThatRefer: a foreign key by which no row refers refuses nothing, whatever its table has on
// the disk.
func TestDeletesAreRefusedForRowsThatRefer(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec(
		`CREATE TABLE base (id bigint PRIMARY KEY, up bigint REFERENCES base, note text)`,
		`INSERT INTO base SELECT g, NULL, 'x' FROM generate_series(1, 300) g`,
		`CREATE TABLE parted (id bigint, of bigint REFERENCES base) PARTITION BY HASH (id)`,
		`CREATE TABLE parted0 PARTITION OF parted FOR VALUES WITH (MODULUS 1, REMAINDER 0)`,
		`CREATE TABLE emptied (id bigint, of bigint REFERENCES base)`,
		`INSERT INTO emptied VALUES (1, 1)`,
		`DELETE FROM emptied`,
		`CREATE TABLE nulls (id bigint, "Of" bigint REFERENCES base)`,
		`INSERT INTO nulls VALUES (1, NULL)`,
	)
	sc := b.asking("mix", "base", `{"weights":{"DELETE":1}}`, nil)
	sc.Target.AllowWrites = true
	if _, err := b.ready(sc); err != nil {
		t.Errorf("no row refers: %v", err)
	}
	for table, column := range map[string]string{"parted": "of", "emptied": "of", "nulls": `"Of"`} {
		b.exec(`INSERT INTO ` + table + ` (id, ` + column + `) VALUES (2, 7)`)
		if _, err := b.ready(sc); err == nil || !strings.Contains(err.Error(), `"public"."`+table+`"`) {
			t.Errorf("%s refers: %v", table, err)
		}
		b.exec(`DELETE FROM ` + table)
	}
	b.exec(`UPDATE base SET up = 1 WHERE id = 2`)
	if _, err := b.ready(sc); err == nil || !strings.Contains(err.Error(), `"base_up_fkey"`) {
		t.Errorf("a row refers to another: %v", err)
	}
}
