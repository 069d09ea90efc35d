package postgres_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// numbered are rows of an id and its text.
type numbered struct{ from, n int }

func (r numbered) Len() int { return r.n }
func (r numbered) Value(row, column int) any {
	if column == 0 {
		return int64(r.from + row)
	}
	if row%7 == 0 {
		return nil
	}
	return strings.Repeat("'x", 20)
}

// TestWhatTakesNoCopyIsLoadedByInserts: PGlite breaks when a COPY begins, with every client. Its stand-in is a real Postgres
// that calls itself so; the real one has been tried by hand.
func TestWhatTakesNoCopyIsLoadedByInserts(t *testing.T) {
	t.Parallel()
	dsn := proxy(t, func(_ int, p []byte) []byte {
		if bytes.Contains(p, []byte{'G', 0, 0, 0}) {
			t.Error("a COPY began")
		}
		return bytes.ReplaceAll(p, []byte("PostgreSQL 1"), []byte("PGlite SQL 1"))
	})
	db := openDSN(t, dsn, 0)
	if err := db.Exec(
		t.Context(),
		"DROP TABLE IF EXISTS inserted",
		"CREATE TABLE inserted (id bigint PRIMARY KEY, v text)",
	); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Exec(t.Context(), "DROP TABLE inserted") }()
	columns := []engine.Column{{Name: "id"}, {Name: "v"}}
	count := func() any {
		rs, err := db.Query(t.Context(), "SELECT count(*) FILTER (WHERE v IS NULL OR v LIKE '''x%') FROM inserted")
		if err != nil {
			t.Fatal(err)
		}
		return rs.Rows[0][0]
	}
	load := func(batches int, end error) (int64, error) {
		at, told := 0, int64(0)
		rows, err := db.Load(t.Context(), "inserted", columns, func() (plugin.Rows, error) {
			if at++; at > batches {
				return nil, end
			}
			return numbered{(at - 1) * 700, 700}, nil
		}, func(rows int64) { told = rows })
		if err == nil && told != rows {
			t.Errorf("%d rows were told, and %d loaded", told, rows)
		}
		return rows, err
	}
	failure := errors.New("no more rows")
	if _, err := load(5, failure); !errors.Is(err, failure) || count() != int64(0) {
		t.Errorf("a load that failed: %v, %v rows", err, count())
	}
	if rows, err := load(5, nil); err != nil || rows != 3500 || count() != int64(3500) {
		t.Errorf("%d rows, %v in the table, %v", rows, count(), err)
	}
	if _, err := load(1, nil); err == nil || !strings.Contains(err.Error(), "duplicate key") || count() != int64(3500) {
		t.Errorf("rows that are there: %v, %v", err, count())
	}
	info, err := db.Check(t.Context())
	if err != nil || !info.Pooled || len(info.Notes) != 1 || !strings.Contains(info.Notes[0], "PGlite") {
		t.Errorf("%+v, %v", info, err)
	}
	// Statements are not kept by the session, which all connections share.
	c, err := db.Connect(t.Context(), statements("SELECT count(*) FROM pg_prepared_statements HAVING count(*) = 0"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var batch plugin.Batch
	var res target.Result
	if err := c.Exec(t.Context(), &batch, op(0), &res); err != nil || res.Rows != 1 {
		t.Errorf("%d rows, %v", res.Rows, err)
	}
}
