package bundled_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/plugins/host/hosttest"
)

func (b *bench) allowed(table, params, adapterParams string, prep *engine.Prepare) (*prepare.Prepared, error) {
	sc := b.asking("mix", table, params, prep)
	sc.Target.AllowWrites = true
	if adapterParams != "" {
		sc.Target.Params = json.RawMessage(adapterParams)
	}
	return b.ready(sc)
}

// TestHundredsOfColumns: an operation has 255 values; what is optional beyond them is left out.
func TestHundredsOfColumns(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	wide := func(name, each string) {
		sql := "CREATE TABLE " + name + " (id bigint PRIMARY KEY"
		for i := range 300 {
			sql += fmt.Sprintf(", c%d int %s", i, each)
		}
		b.exec(sql + ")")
	}
	wide("optional", "")
	b.exec("INSERT INTO optional (id) SELECT g FROM generate_series(1, 100) g")
	const weights = `{"weights":{"POINT_LOOKUP":1,"INSERT":1,"UPDATE":1}}`
	p, err := b.allowed("optional", weights, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if seen := b.run(p.Plan, weights, 100); seen[engine.KindInsert] == nil ||
		seen[engine.KindInsert].rows != seen[engine.KindInsert].operations {
		t.Errorf("%+v", seen)
	}
	wide("needed", "NOT NULL")
	if _, err := b.allowed("needed", `{"weights":{"INSERT":1}}`, "", nil); err == nil ||
		!strings.Contains(err.Error(), "255 values at most") || !strings.Contains(err.Error(), "weights.INSERT to 0") {
		t.Errorf("%v", err)
	}
}

// TestViewsAndTablesWithoutAKey take a key that is named.
func TestViewsAndTablesWithoutAKey(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec("CREATE TABLE base (id bigint PRIMARY KEY, note text)",
		"INSERT INTO base SELECT 10 * g, 'x' FROM generate_series(1, 300) g",
		"CREATE VIEW seen AS SELECT * FROM base WHERE id > 0",
		"CREATE TABLE heap (thing_id text, other_id int, note text)",
		"INSERT INTO heap SELECT 't' || g, g, 'x' FROM generate_series(1, 300) g",
		"INSERT INTO heap (note) SELECT 'null' FROM generate_series(1, 300)")
	const weights = `{"weights":{"POINT_LOOKUP":3,"RANGE_SCAN":1,"UPDATE":1},"scan_length":3}`
	for table, key := range map[string]string{"seen": "id", "heap": "thing_id"} {
		_, err := b.allowed(table, weights, "", nil)
		if err == nil || !strings.Contains(err.Error(), "target.params.key: ["+key+"]") {
			t.Errorf("%s: %v", table, err)
		}
		// What the message says is what helps.
		p, err := b.allowed(table, weights, `{"key":["`+key+`"]}`, nil)
		if err != nil {
			t.Fatal(err)
		}
		for kind, o := range b.run(p.Plan, weights, 200) {
			if o.hits != o.operations {
				t.Errorf("%s: %s found rows in %d of %d", table, kind, o.hits, o.operations)
			}
		}
	}
	if _, err := b.allowed("heap", weights, `{"key":["nothing"]}`, nil); err == nil ||
		!strings.Contains(err.Error(), "no column") || !strings.Contains(err.Error(), "thing_id, other_id, note") {
		t.Errorf("%v", err)
	}
}

// TestALockedTableNamesItsHolder, in the preflight and in the run.
func TestALockedTableNamesItsHolder(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec("CREATE TABLE held (id bigint PRIMARY KEY, note text)", "INSERT INTO held VALUES (1, 'x')")
	holder, err := pgx.Connect(t.Context(), b.dsn+" application_name=migration")
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close(context.Background())
	if _, err := holder.Exec(t.Context(), "BEGIN; ALTER TABLE held ADD COLUMN more int"); err != nil {
		t.Fatal(err)
	}
	sc := b.asking("mix", "held", `{"weights":{"POINT_LOOKUP":1}}`, nil)
	begin := time.Now()
	f := b.look(sc)
	c := found(f, "table", "failed")
	pid := fmt.Sprint(holder.PgConn().PID())
	if f.OK || c == nil || !strings.Contains(c.Message, "The table public.held is locked: session "+pid) ||
		!strings.Contains(c.Message, "(migration) has AccessExclusiveLock") ||
		!strings.Contains(c.Message, "ALTER TABLE held ADD COLUMN more int") ||
		!strings.Contains(c.Fix, "pg_terminate_backend("+pid+")") {
		t.Errorf("%+v", f.Checks)
	}
	if took := time.Since(begin); took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
	// Load connections meet the same lock.
	if conn, err := b.db.Connect(t.Context(), []engine.Statement{{ID: "get", SQL: "SELECT * FROM held"}}); err == nil ||
		!strings.Contains(err.Error(), "public.held is locked") {
		t.Errorf("%v, %v", conn, err)
	}
}

// TestTimesThatHaveNoNumber: keys that operations cannot carry, infinity and years
// before the common era, are not looked up, and it is said.
func TestTimesThatHaveNoNumber(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	const weights = `{"weights":{"POINT_LOOKUP":3,"RANGE_SCAN":1,"UPDATE":1},"scan_length":1}`
	for _, typ := range []string{"timestamp", "timestamptz", "date"} {
		table := "times_" + typ
		b.exec("CREATE TABLE "+table+" (at "+typ+" PRIMARY KEY, note text)",
			"INSERT INTO "+table+" SELECT '2020-01-01'::"+typ+" + g * interval '1 day', 'x' FROM generate_series(1, 100) g",
			"INSERT INTO "+table+" VALUES ('infinity', 'x'), ('-infinity', 'x'), ('200000-01-01', 'x'), ('0044-03-15 BC', 'x')")
		p, err := b.allowed(table, weights, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(p.Notes, " "), "4 sampled rows") {
			t.Errorf("%s: %q", typ, p.Notes)
		}
		for kind, o := range b.run(p.Plan, weights, 300) {
			if o.hits != o.operations {
				t.Errorf("%s: %s found rows in %d of %d", typ, kind, o.hits, o.operations)
			}
		}
	}
	// A time travels as text where its column is none.
	b.exec("CREATE TABLE texts (id bigint PRIMARY KEY, at timestamp)")
	plan := &engine.Plan{Statements: []engine.Statement{{ID: "s",
		SQL:   "INSERT INTO texts VALUES ($1, $2::text::timestamp)",
		Binds: []engine.Bind{{Type: engine.TypeI64}, {Type: engine.TypeTimestamp}}}}}
	conn, err := b.db.Connect(t.Context(), plan.Statements)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	batch := plugin.Batch{Args: []plugin.Value{{Type: engine.TypeI64, I: 1},
		{Type: engine.TypeTimestamp, I: time.Date(-43, 3, 15, 12, 0, 0, 0, time.UTC).UnixMicro()}}}
	if err := conn.Exec(t.Context(), &batch, plugin.Op{NArgs: 2}, &target.Result{}); err != nil {
		t.Fatal(err)
	}
	if got := b.value("SELECT at::text FROM texts"); got != "0044-03-15 12:00:00 BC" {
		t.Errorf("%v", got)
	}
}

// TestKeysAtTheirEnd: a table whose keys are used up says so, before and while it is loaded.
func TestKeysAtTheirEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec("CREATE TABLE small (id smallint PRIMARY KEY, note text)",
		"INSERT INTO small SELECT g, 'x' FROM generate_series(32700, 32766) g",
		"CREATE TABLE nearly (id smallint PRIMARY KEY, note text)",
		"INSERT INTO nearly SELECT g, 'x' FROM generate_series(32000, 32500) g")
	_, err := b.allowed("small", `{"weights":{"INSERT":1}}`, "", nil)
	if err == nil || !strings.Contains(err.Error(),
		`"id" is smallint, which ends at 32767, and the largest key is 32766`) ||
		!strings.Contains(err.Error(), "weights.INSERT to 0") {
		t.Errorf("%v", err)
	}
	if _, err := b.allowed("small", `{"weights":{"POINT_LOOKUP":1,"UPDATE":1}}`, "", nil); err != nil {
		t.Errorf("without inserts: %v", err)
	}
	p, err := b.allowed("nearly", `{"weights":{"INSERT":1}}`, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	w, err := b.host.Workload(t.Context(), p.Plan.Workload.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	s, err := w.Open(t.Context(),
		plugin.OpenRequest{Seed: 7, KeySlot: 3, KeySlots: 4, Params: p.Params, Tables: p.Plan.Tables, Pools: p.Plan.Pools},
		p.Plan.Statements)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var batch plugin.Batch
	inserted := 0
	for err = nil; err == nil && inserted < 1000; {
		if err = s.Fill(&batch, 8); err == nil {
			inserted += len(batch.Ops)
		}
	}
	if err == nil || !strings.Contains(err.Error(), "which ends at 32767") || inserted < 50 {
		t.Errorf("after %d inserts: %v", inserted, err)
	}
}

// TestKeysOfInsertsThatFailedAreNotLookedUp: a table that takes no new rows is still read.
func TestKeysOfInsertsThatFailedAreNotLookedUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	b.exec("CREATE TABLE closed (id bigint PRIMARY KEY, note text)",
		"INSERT INTO closed SELECT g, 'x' FROM generate_series(1, 100) g")
	for _, keys := range []string{"uniform", "zipfian", "sequential"} {
		params := `{"keys":"` + keys + `","weights":{"POINT_LOOKUP":1,"UPDATE":1,"INSERT":2}}`
		p, err := b.allowed("closed", params, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		// A check that is there before would be met before the run.
		b.exec("ALTER TABLE closed ADD CONSTRAINT closed_end CHECK (id <= 100)")
		w, err := b.host.Workload(t.Context(), p.Plan.Workload.SHA256)
		if err != nil {
			t.Fatal(err)
		}
		s, err := w.Open(t.Context(),
			plugin.OpenRequest{Seed: 7, KeySlots: 4, Params: p.Params, Tables: p.Plan.Tables, Pools: p.Plan.Pools},
			p.Plan.Statements)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := b.db.Connect(t.Context(), p.Plan.Statements)
		if err != nil {
			t.Fatal(err)
		}
		var batch plugin.Batch
		missed, failed := 0, 0
		for range 20 {
			if err := s.Fill(&batch, 64); err != nil {
				t.Fatal(err)
			}
			for _, op := range batch.Ops {
				var res target.Result
				err := conn.Exec(t.Context(), &batch, op, &res)
				switch insert := p.Plan.Statements[op.Statement].Kind == engine.KindInsert; {
				case insert && err != nil:
					failed++
				case err != nil:
					t.Fatal(err)
				case res.Rows == 0:
					missed++
				}
			}
		}
		if missed > 0 || failed < 100 {
			t.Errorf("%s: %d operations found no row after %d inserts had failed", keys, missed, failed)
		}
		_ = s.Close()
		_ = conn.Close()
		b.exec("ALTER TABLE closed DROP CONSTRAINT closed_end")
	}
}

// TestRowsThatDifferFromPrepareAreSaid, in the preflight and in the run's log.
func TestRowsThatDifferFromPrepareAreSaid(t *testing.T) {
	t.Parallel()
	b := newBench(t, hosttest.Bundled(t))
	prep := &engine.Prepare{Rows: 50, IfExists: engine.IfExistsUse}
	if p, err := b.allowed("fifty", "{}", "", prep); err != nil ||
		strings.Contains(strings.Join(p.Notes, " "), "target.prepare.rows") {
		t.Fatalf("%v", err)
	}
	const says = "has 50 rows, and not the 5000 of target.prepare.rows"
	sc := b.asking("mix", "fifty", "{}", &engine.Prepare{Rows: 5000, IfExists: engine.IfExistsUse})
	if p, err := b.ready(sc); err != nil || !strings.Contains(strings.Join(p.Notes, " "), says) ||
		!strings.Contains(strings.Join(p.Remarks, " "), says) {
		t.Errorf("%v", err)
	}
	if c := found(b.look(sc), "table", "warning"); c == nil || !strings.Contains(c.Message, says) ||
		c.Field != "target.prepare.rows" {
		t.Errorf("%+v", b.look(sc).Checks)
	}
}
