package targettest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// ref is an argument of do that stands for a column of an earlier row.
type ref struct{ k, c uint8 }

// keep runs an operation whose row later ones refer to.
func keep(c target.Conn, statement uint16, args ...any) (int32, error) {
	b, op := Batch(statement, args...)
	op.Referred = true
	var res target.Result
	err := c.Exec(context.Background(), b, op, &res)
	return res.Rows, err
}

func must(t *testing.T, wantRows int32) func(rows int32, err error) {
	t.Helper()
	return func(rows int32, err error) {
		t.Helper()
		if err != nil || rows != wantRows {
			t.Fatalf("%d rows, %d wanted: %v", rows, wantRows, err)
		}
	}
}

func (s *suite) transactions(t *testing.T) {
	db := s.open(t, target.Config{})
	c := s.connect(t, db)
	before := s.count(t, db)
	for _, end := range []uint16{plugin.StatementRollback, plugin.StatementCommit} {
		for _, step := range []error{
			second(do(c, plugin.StatementBegin)), second(do(c, insert, int64(910_000)+int64(end), nil, nil, nil, nil, nil)),
			second(do(c, end)),
		} {
			if step != nil {
				t.Fatal(step)
			}
		}
	}
	if n := s.count(t, db); n != before+1 {
		t.Errorf("%d rows more, 1 committed", n-before)
	}
}

// refs copies a row column by column through refs, more than once on one connection.
func (s *suite) refs(t *testing.T) {
	db := s.open(t, target.Config{})
	c := s.connect(t, db)
	at := time.Date(1969, 7, 20, 20, 17, 40, 1000, time.UTC)
	must(t, 1)(do(c, insert, int64(920_000), -0.25, "täxt", []byte("\x00\xff"), true, at))
	must(t, 1)(do(c, insert, int64(920_001), nil, nil, nil, nil, nil))
	for i, from := range []int64{920_000, 920_001, 920_002} {
		copied := 920_010 + int64(i)
		must(t, 0)(do(c, plugin.StatementBegin))
		must(t, 1)(do(c, lookup, int64(920_000)))
		rows, err := keep(c, lookup, from)
		if err != nil || (rows == 1) != (from < 920_002) {
			t.Fatalf("%d rows: %v", rows, err)
		}
		// A reading of many rows keeps the first.
		if n, err := keep(c, scan, from+1, from); err != nil || n != rows {
			t.Fatalf("%d rows: %v", n, err)
		}
		must(t, 1)(do(c, insert, copied, ref{1, 1}, ref{2, 2}, ref{1, 3}, ref{2, 4}, ref{1, 5}))
		must(t, 0)(do(c, plugin.StatementCommit))
		got, err := db.Query(t.Context(), s.Lookup, copied)
		if err != nil || len(got.Rows) != 1 {
			t.Fatalf("%+v, %v", got, err)
		}
		want := []any{copied, nil, nil, nil, nil, nil}
		if source, err := db.Query(t.Context(), s.Lookup, from); err != nil {
			t.Fatal(err)
		} else if len(source.Rows) == 1 {
			want = append([]any{copied}, source.Rows[0][1:]...)
		}
		if !reflect.DeepEqual(got.Rows[0], want) {
			t.Errorf("the copy of %d is %#v, expected %#v", from, got.Rows[0], want)
		}
	}
	// A key through a ref finds the row.
	must(t, 0)(do(c, plugin.StatementBegin))
	must(t, 1)(keep(c, lookup, int64(920_000)))
	must(t, 1)(do(c, lookup, ref{0, 0}))
	for _, wrong := range []ref{{0, 99}, {7, 0}} {
		if _, err := do(c, lookup, wrong); err == nil || c.Broken() {
			t.Errorf("%+v: %v, broken %v", wrong, err, c.Broken())
		}
	}
	must(t, 0)(do(c, plugin.StatementRollback))
	if _, err := do(c, lookup, ref{0, 0}); err == nil || c.Broken() {
		t.Errorf("a ref outside a transaction: %v", err)
	}
	must(t, 1)(do(c, lookup, int64(920_000)))
}

// failingInside: after an error the connection goes on. The transaction can only
// be rolled back, and a COMMIT that did not commit is an error; or it stands.
func (s *suite) failingInside(t *testing.T) {
	db := s.open(t, target.Config{StatementTimeout: time.Second})
	c := s.connect(t, db)
	before := s.count(t, db)
	fail := map[string]func() error{
		"an error":  func() error { return second(do(c, lookup, "not a number")) },
		"a timeout": func() error { return second(do(c, sleep, 30.0)) },
	}
	for name, step := range fail {
		for _, end := range []uint16{plugin.StatementRollback, plugin.StatementCommit} {
			must(t, 0)(do(c, plugin.StatementBegin))
			must(t, 1)(do(c, insert, int64(930_000), nil, nil, nil, nil, nil))
			if err := step(); err == nil || c.Broken() {
				t.Fatalf("%s: %v, broken %v", name, err, c.Broken())
			}
			_, err := do(c, end)
			committed := end == plugin.StatementCommit && s.ErrorsKeepTransactions
			if (err == nil) != (end == plugin.StatementRollback || committed) || c.Broken() {
				t.Errorf("%s, then %#x: %v, broken %v", name, end, err, c.Broken())
			}
			if e := db.Classify(err); err != nil && (e.Code == "" || e.Message == "") {
				t.Errorf("%+v", e)
			}
			if committed {
				if n := s.count(t, db); n != before+1 {
					t.Errorf("%s: %d rows more, 1 committed", name, n-before)
				}
				if err := db.Exec(t.Context(), "DELETE FROM "+s.Table+" WHERE id = 930000"); err != nil {
					t.Fatal(err)
				}
			}
			if n := s.count(t, db); n != before {
				t.Errorf("%s: %d rows more", name, n-before)
			}
		}
	}
	must(t, 1)(do(c, insert, int64(930_001), nil, nil, nil, nil, nil))
}

// lostInside: what a connection had begun is gone with it.
func (s *suite) lostInside(t *testing.T) {
	db := s.open(t, target.Config{})
	c := s.connect(t, db)
	before := s.count(t, db)
	must(t, 0)(do(c, plugin.StatementBegin))
	must(t, 1)(do(c, insert, int64(940_000), nil, nil, nil, nil, nil))
	s.Kill(t)
	_, err := do(c, plugin.StatementCommit)
	if e := db.Classify(err); err == nil || e.Class != engine.ErrClassConnection || !c.Broken() {
		t.Errorf("%v, %+v", err, e)
	}
	if n := s.count(t, db); n != before {
		t.Errorf("%d rows more", n-before)
	}
}
