package derived_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/analytics/refresh"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/derived"
)

// putDays takes runs in, each begun on the day with its number.
func putDays(t *testing.T, d *derived.Database, epoch *int64, runs ...int) {
	t.Helper()
	for _, n := range runs {
		r, _ := oneRun(fmt.Sprintf("run-%02d", n), 30)
		r.Run.StartTime = engine.At(noon.Add(time.Duration(n/2) * 24 * time.Hour))
		r.Fingerprint = fmt.Sprint(*epoch)
		*epoch++
		put(t, d, r, *epoch)
	}
}

func content(t *testing.T, conn *pgx.Conn, sql string) string {
	t.Helper()
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, " ")
}

// TestATableInParts: its parts are gathered each by itself, one that is missing is named alone, and readers see nothing
// of it before all are there, then all at once.
func TestATableInParts(t *testing.T) {
	d, owner, reader := open(t)
	d.Settings.PartitionsPerPart = 2
	var epoch int64
	putDays(t, d, &epoch, 0, 1, 2, 3, 4, 5, 6, 7)
	table := refresh.Table{Name: "wide", Kind: refresh.SQL, Version: 1, Mode: refresh.Auto, PartitionBy: refresh.ByRun,
		Definition: "SELECT run_id, second, operations FROM rollup.run_seconds UNION ALL SELECT NULL, 0, 7"}
	do := func(subtask string) (refresh.Result, error) {
		epoch++
		return d.Materialize(t.Context(), table, claim("wide", subtask, epoch), held)
	}
	must := func(subtask string) refresh.Result {
		t.Helper()
		r, err := do(subtask)
		if err != nil {
			t.Fatalf("%q: %v", subtask, err)
		}
		return r
	}
	first := must("")
	if len(first.Parts) != 4 || !first.ReplaceParts {
		t.Fatalf("eight runs are refreshed as %+v", first)
	}
	for _, name := range first.Parts[:3] {
		if r := must(name); r.Rows == 0 || !r.Unchanged || r.Gone {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if second := must(first.Parts[0]); second.Rows == 0 {
		t.Errorf("a part that was done before: %+v", second)
	}
	if r := must(""); !slices.Equal(r.Parts, first.Parts[3:]) || r.ReplaceParts {
		t.Errorf("one part is missing, and %+v is to be done", r)
	}
	if n := count(t, owner, "SELECT count(*) FROM pg_tables WHERE schemaname = 'tables'"); n != 0 {
		t.Error("a table is there before all of its parts are")
	}
	must(first.Parts[3])
	r := must("")
	if n := count(t, reader, "SELECT count(*) FROM wide"); n != r.Rows || n != 25 || r.Mode != refresh.Full ||
		!strings.HasSuffix(r.Note, "first time. It was made in 4 parts.") || r.Unchanged {
		t.Errorf("%d rows of %+v", n, r)
	}
	if n := count(t, owner, "SELECT count(*) FROM pg_tables WHERE tablename LIKE '~%'"); n != 0 {
		t.Errorf("%d tables of parts were left", n)
	}
	// Runs that change are refreshed in parts, too, and the rows of others stay.
	putDays(t, d, &epoch, 4, 5, 6, 7)
	before := content(t, owner, "SELECT xmin::text FROM tables.wide WHERE run_id < 'run-04' ORDER BY 1")
	next := must("")
	if len(next.Parts) != 2 || next.Mode != refresh.Incremental {
		t.Fatalf("four runs that changed: %+v", next)
	}
	must(next.Parts[0])
	// The definition changes meanwhile: what was gathered is forgotten, and who gathers the rest has nothing to do.
	definition := table.Definition
	table.Definition += " -- another one"
	if r := must(next.Parts[1]); !r.Gone {
		t.Errorf("a part of an earlier definition: %+v", r)
	}
	table.Definition = definition
	must(next.Parts[1])
	if r := must(""); r.Rows != 12 || r.Mode != refresh.Incremental || len(r.Parts) != 0 {
		t.Errorf("put in place: %+v", r)
	}
	after := content(t, owner, "SELECT xmin::text FROM tables.wide WHERE run_id < 'run-04' ORDER BY 1")
	if n := count(t, reader, "SELECT count(*) FROM wide"); n != 25 || before != after {
		t.Errorf("%d rows, those of other runs were written anew: %t", n, before != after)
	}
}

// TestAStalePartIsNotPutInPlace: a worker of an earlier claim, or of a division that is forgotten, gathers for nobody.
func TestAStalePartIsNotPutInPlace(t *testing.T) {
	d, owner, reader := open(t)
	d.Settings.PartitionsPerPart = 2
	var epoch int64 = 100
	putDays(t, d, &epoch, 0, 1, 2, 3)
	table := refresh.Table{Name: "wide", Kind: refresh.SQL, Version: 1, Mode: refresh.Auto, PartitionBy: refresh.ByRun,
		Definition: "SELECT run_id, operations FROM rollup.run_seconds"}
	do := func(subtask string, at int64) (refresh.Result, error) {
		return d.Materialize(t.Context(), table, claim("wide", subtask, at), held)
	}
	r, err := do("", 200)
	if err != nil || len(r.Parts) != 2 {
		t.Fatal(r, err)
	}
	if err := d.Begin(t.Context(), claim("wide", r.Parts[0], 210)); err != nil {
		t.Fatal(err)
	}
	if _, err := do(r.Parts[0], 205); !errors.Is(err, store.ErrClaimLost) {
		t.Errorf("an earlier claim of a part: %v", err)
	}
	if _, err := do("", 199); !errors.Is(err, store.ErrClaimLost) {
		t.Errorf("an earlier claim of the table: %v", err)
	}
	for i, name := range r.Parts {
		if _, err := do(name, int64(211+i)); err != nil {
			t.Fatal(err)
		}
	}
	// What was gathered is gone, as after somebody's hand in the database: it is not half a table, but made anew.
	if _, err := owner.Exec(t.Context(), "DELETE FROM staging."+pgx.Identifier{content(t, owner,
		"SELECT min(stage) FROM staging.parts")}.Sanitize()); err != nil {
		t.Fatal(err)
	}
	if _, err := do("", 220); err == nil {
		t.Error("a table was put in place without the rows of a part")
	}
	if r, err = do("", 221); err != nil || len(r.Parts) != 2 || !r.ReplaceParts {
		t.Fatal(r, err)
	}
	for i, name := range r.Parts {
		if _, err := do(name, int64(230+i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err = do("", 240); err != nil {
		t.Fatal(err)
	}
	if n := count(t, reader, "SELECT count(*) FROM wide"); n != 12 {
		t.Errorf("%d rows of 12", n)
	}
}

// TestATableByDay: the rows of days on which something changed are made anew, and those of others stay. Where that
// cannot be, it says why.
func TestATableByDay(t *testing.T) {
	d, owner, reader := open(t)
	var epoch int64
	putDays(t, d, &epoch, 0, 1, 2, 3, 4)
	gone, _ := oneRun("never", 30)
	gone.Run.StartTime = engine.Time{}
	epoch++
	put(t, d, gone, epoch)
	table := refresh.Table{Name: "daily", Kind: refresh.SQL, Version: 1, Mode: refresh.Auto, PartitionBy: refresh.ByDay,
		Definition: `SELECT (started_at AT TIME ZONE 'UTC')::date AS day, count(*) AS runs,
			string_agg(fingerprint, '+' ORDER BY run_id) AS prints FROM rollup.runs GROUP BY 1`}
	do := func() refresh.Result {
		t.Helper()
		epoch++
		r, err := d.Materialize(t.Context(), table, claim("daily", "", epoch), held)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	days := func() string {
		return content(t, reader, "SELECT coalesce(day::text, 'none') || '=' || runs FROM daily ORDER BY day")
	}
	if r := do(); r.Mode != refresh.Full || !strings.Contains(r.Note, "first time") {
		t.Errorf("the first refresh: %+v", r)
	}
	if got := days(); got != "2026-11-22=2 2026-11-23=2 2026-11-24=1 none=1" {
		t.Errorf("days: %s", got)
	}
	if r := do(); !r.Unchanged || r.Mode != refresh.Incremental {
		t.Errorf("nothing has changed: %+v", r)
	}
	// A run changes, one is new, one that had begun on a day and one that had not are deleted.
	putDays(t, d, &epoch, 3, 5)
	for _, id := range []string{"run-00", "never"} {
		epoch++
		c := claim("runs", id, epoch)
		if err := errors.Join(d.Begin(t.Context(), c), d.DropRun(t.Context(), c)); err != nil {
			t.Fatal(err)
		}
	}
	if r := do(); r.Mode != refresh.Incremental || r.Unchanged {
		t.Errorf("runs have changed: %+v", r)
	}
	if got := days(); got != "2026-11-22=1 2026-11-23=2 2026-11-24=2" {
		t.Errorf("days: %s", got)
	}
	before := content(t, owner, "SELECT xmin::text FROM tables.daily WHERE day = '2026-11-22'")
	putDays(t, d, &epoch, 4)
	r := do()
	if after := content(t, owner, "SELECT xmin::text FROM tables.daily WHERE day = '2026-11-22'"); r.Rows != 1 ||
		before != after {
		t.Errorf("one day has changed, and others were written anew: %+v", r)
	}
	for _, c := range []struct{ by, definition, why string }{
		{refresh.ByDay, "SELECT 'x' AS day", "no column day of the type date"},
		{refresh.ByRun, "SELECT 'x' AS day", "no column run_id"},
		{"", "SELECT 'x' AS run_id", "not belong to one run or day"},
	} {
		table.PartitionBy, table.Definition = c.by, c.definition
		table.Version++
		if r := do(); r.Mode != refresh.Full || !strings.Contains(r.Note, c.why) {
			t.Errorf("%s: %+v", c.why, r)
		}
	}
}

// TestANamedNumberOfParts: a table is divided into as many parts as it says, and no more than there are runs;
// INCREMENTAL, and parts, of what has no column to tell them by are refused before there is such a table.
func TestANamedNumberOfParts(t *testing.T) {
	d, owner, _ := open(t)
	var epoch int64
	putDays(t, d, &epoch, 0, 1, 2, 3, 4, 5, 6)
	for named, want := range map[int]int{0: 0, 1: 0, 3: 3, 64: 7} {
		table := refresh.Table{Name: fmt.Sprint("named ", named), Kind: refresh.SQL, Version: 1, Mode: refresh.Auto,
			PartitionBy: refresh.ByRun, Partitions: named, Definition: "SELECT run_id, second FROM rollup.run_seconds"}
		do := func(subtask string) refresh.Result {
			t.Helper()
			epoch++
			r, err := d.Materialize(t.Context(), table, claim(table.Name, subtask, epoch), held)
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		first := do("")
		if len(first.Parts) != want {
			t.Errorf("%d named: %+v", named, first)
		}
		for _, part := range first.Parts {
			do(part)
		}
		if want > 0 {
			do("")
		}
		if n := count(t, owner, fmt.Sprintf(`SELECT count(DISTINCT run_id) FROM tables."named %d"`, named)); n != 7 {
			t.Errorf("%d named: %d runs", named, n)
		}
	}
	for _, c := range []struct {
		table refresh.Table
		says  string
	}{
		{refresh.Table{Mode: refresh.Incremental, PartitionBy: refresh.ByRun, Definition: "SELECT 1 AS id"}, "column run_id"},
		{refresh.Table{Mode: refresh.Auto, Partitions: 2, PartitionBy: refresh.ByDay, Definition: "SELECT now() AS day"},
			"column day of the type date"},
		{refresh.Table{Mode: refresh.Auto, PartitionBy: refresh.ByDay, Definition: "SELECT now() AS day"}, ""},
		{refresh.Table{Mode: refresh.Incremental, PartitionBy: refresh.ByRun, Definition: "SELECT 1 AS run_id"}, ""},
	} {
		err := d.CheckMode(t.Context(), c.table)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(engine.ErrorText(err), c.says) {
			t.Errorf("%+v: %v", c.table, err)
		}
	}
}
