// Package targettest is the conformance suite of target drivers. A driver's
// tests call Run with a real database and the few texts in its dialect.
package targettest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// Options describe the database under test.
type Options struct {
	Driver target.Driver
	// DSN reaches an empty database that the suite may fill.
	DSN string
	// Create makes the table Table with the columns id (integer, primary key),
	// f (float), t (text), b (bytes), o (boolean) and m (timestamp); all but id nullable.
	Create []string
	Table  string
	// Insert has one parameter for each column in that order; Lookup returns
	// rows with id = the parameter; Scan rows with id ≥ the first and < the second.
	Insert, Lookup, Scan string
	// Count returns the number of rows of Table as a single integer.
	Count string
	// Sleep takes seconds as a float and lasts that long.
	Sleep string
	// Wrong is SQL that cannot be prepared.
	Wrong string
	// Columns are those of Table as the adapter would list them.
	Columns []engine.Column
	// Kill ends every session of the database but the caller's own.
	Kill func(t *testing.T)
	// NoConnectionLimit: the database has no limit on connections, so that Check tells none.
	NoConnectionLimit bool
	// ErrorsKeepTransactions: a statement that fails inside a transaction is undone
	// alone, and what the transaction did before can be committed.
	ErrorsKeepTransactions bool
	// QueryIDs: the database names its queries.
	QueryIDs bool
	// Comment returns the comment of the table kept, as text, where the database is a target.TableMarker.
	Comment string
}

const (
	insert = iota
	lookup
	scan
	sleep
)

type suite struct {
	Options
	statements []engine.Statement
}

// Run runs the suite.
func Run(t *testing.T, o Options) {
	s := &suite{Options: o, statements: []engine.Statement{
		{ID: "insert", Kind: engine.KindInsert, SQL: o.Insert, Writes: true,
			Binds: []engine.Bind{{Name: "id", Type: engine.TypeI64},
				{Name: "f", Type: engine.TypeF64}, {Name: "t", Type: engine.TypeText}, {Name: "b", Type: engine.TypeBytes},
				{Name: "o", Type: engine.TypeBool}, {Name: "m", Type: engine.TypeTimestamp}}},
		{ID: "lookup", Kind: engine.KindPointLookup, SQL: o.Lookup, Binds: []engine.Bind{{Name: "id", Type: engine.TypeI64}},
			Columns: []string{"id", "f", "t", "b", "o", "m"}},
		{ID: "scan", Kind: engine.KindRangeScan, SQL: o.Scan,
			Binds:     []engine.Bind{{Name: "high", Type: engine.TypeI64}, {Name: "low", Type: engine.TypeI64}},
			BindOrder: []int{1, 0}},
		{ID: "sleep", Kind: engine.KindGenericSQL, SQL: o.Sleep,
			Binds: []engine.Bind{{Name: "seconds", Type: engine.TypeF64}}},
	}}
	db := s.open(t, target.Config{})
	if err := db.Exec(t.Context(), o.Create...); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"keeping apart its own tables", s.marks},
		{"Check", s.check}, {"Query", s.query}, {"Exec", s.exec}, {"Load", s.load}, {"LoadIsAllOrNothing", s.loadFails},
		{"BindTypesAndNulls", s.binds}, {"RowsAreCounted", s.rows}, {"QueryIDs", s.queryIDs},
		{"ErrorsKeepTheConnection", s.errors},
		{"Transactions", s.transactions}, {"Refs", s.refs}, {"ErrorsInTransactions", s.failingInside},
		{"ConnectionLostInTransaction", s.lostInside},
		{"StatementTimeout", s.timeout}, {"Cancel", s.cancel},
		{"CloseEndsExec", s.closeEnds}, {"BrokenConnection", s.broken}, {"WrongStatement", s.wrong},
	} {
		t.Run(c.name, c.run)
	}
}

func (s *suite) open(t *testing.T, cfg target.Config) target.Database {
	t.Helper()
	cfg.DSN = secret.New(s.DSN)
	db, err := s.Driver.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("closing the database: %v", err)
		}
	})
	return db
}

func (s *suite) connect(t *testing.T, db target.Database) target.Conn {
	t.Helper()
	c, err := db.Connect(t.Context(), s.statements)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 { // twice is safe
			if err := c.Close(); err != nil {
				t.Errorf("closing: %v", err)
			}
		}
	})
	return c
}

// Batch makes a batch of one operation; arguments are nil, int64, float64,
// string, []byte, bool or time.Time.
func Batch(statement uint16, args ...any) (*plugin.Batch, plugin.Op) {
	b := &plugin.Batch{}
	for _, a := range args {
		var v plugin.Value
		switch a := a.(type) {
		case nil:
		case ref:
			v = plugin.Ref(a.k, a.c)
		case int64:
			v = plugin.Value{Type: engine.TypeI64, I: a}
		case float64:
			v = plugin.Value{Type: engine.TypeF64, F: a}
		case bool:
			v = plugin.Value{Type: engine.TypeBool}
			if a {
				v.I = 1
			}
		case time.Time:
			v = plugin.Value{Type: engine.TypeTimestamp, I: a.UnixMicro()}
		case string:
			v = plugin.Value{Type: engine.TypeText, Off: uint32(len(b.Data)), Len: uint32(len(a))}
			b.Data = append(b.Data, a...)
		case []byte:
			v = plugin.Value{Type: engine.TypeBytes, Off: uint32(len(b.Data)), Len: uint32(len(a))}
			b.Data = append(b.Data, a...)
		default:
			panic(fmt.Sprintf("no plugin type for %T", a))
		}
		b.Args = append(b.Args, v)
	}
	op := plugin.Op{Statement: statement, NArgs: uint16(len(args))}
	b.Ops = append(b.Ops, op)
	return b, op
}

func do(c target.Conn, statement uint16, args ...any) (int32, error) {
	b, op := Batch(statement, args...)
	var res target.Result
	err := c.Exec(context.Background(), b, op, &res)
	return res.Rows, err
}

func (s *suite) count(t *testing.T, db target.Database) int64 {
	t.Helper()
	rs, err := db.Query(t.Context(), s.Count)
	if err != nil {
		t.Fatal(err)
	}
	return rs.Rows[0][0].(int64)
}

func (s *suite) check(t *testing.T) {
	info, err := s.open(t, target.Config{}).Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info.Version == "" || info.Database == "" || info.User == "" || info.MaxConnections <= 0 && !s.NoConnectionLimit ||
		info.RoundTrip <= 0 {
		t.Errorf("%+v", info)
	}
}

func (s *suite) query(t *testing.T) {
	db := s.open(t, target.Config{})
	at := time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)
	c := s.connect(t, db)
	if _, err := do(c, insert, int64(1), 1.5, "a\tb\n\\", []byte{0, 255}, true, at); err != nil {
		t.Fatal(err)
	}
	rs, err := db.Query(t.Context(), s.Lookup, "1")
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(rs.Columns, []string{"id", "f", "t", "b", "o", "m"}) || len(rs.Rows) != 1 {
		t.Fatalf("%+v", rs)
	}
	row := rs.Rows[0]
	if row[0] != int64(1) || row[1] != 1.5 || row[2] != "a\tb\n\\" || row[4] != true || !at.Equal(row[5].(time.Time)) {
		t.Errorf("%#v", row)
	}
	if rs, err = db.Query(t.Context(), s.Lookup, int64(-1)); err != nil || len(rs.Rows) != 0 || len(rs.Columns) != 6 {
		t.Errorf("no rows: %+v, %v", rs, err)
	}
	if _, err := db.Query(t.Context(), s.Wrong); err == nil {
		t.Error("wrong SQL ran")
	}
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := db.Query(short, s.Sleep, 5.0); err == nil {
		t.Error("a query outlived its context")
	}
	if _, err := db.Query(t.Context(), s.Count); err != nil {
		t.Errorf("after errors: %v", err)
	}
}

func (s *suite) exec(t *testing.T) {
	db := s.open(t, target.Config{})
	before := s.count(t, db)
	if err := db.Exec(t.Context(), s.Wrong, "DELETE FROM "+s.Table); err == nil {
		t.Error("wrong SQL ran")
	}
	if n := s.count(t, db); n != before {
		t.Errorf("went on after an error: %d rows of %d", n, before)
	}
	if err := db.Exec(t.Context(), "DELETE FROM "+s.Table); err != nil || s.count(t, db) != 0 {
		t.Errorf("deleting: %v", err)
	}
}

// generated are rows of the suite's table.
type generated struct {
	first int64
	n     int
	bad   int64 // this row has a value that does not fit
}

func (g generated) Len() int { return g.n }
func (g generated) Value(r, c int) any {
	id := g.first + int64(r)
	switch c {
	case 0:
		if id == g.bad {
			return "not a number"
		}
		return id
	case 1:
		return float64(id) / 2
	case 2:
		return fmt.Sprintf("row\t%d\\\n", id)
	case 3:
		if id%2 == 0 {
			return nil
		}
		return []byte{0, byte(id)}
	case 4:
		return id%2 == 0
	}
	return time.UnixMicro(1e15 + id).UTC()
}

// source returns rows from 1 on, in parts.
func source(total int64, bad int64) func() (plugin.Rows, error) {
	next := int64(1)
	return func() (plugin.Rows, error) {
		if next > total {
			return nil, nil
		}
		g := generated{first: next, n: int(min(500, total-next+1)), bad: bad}
		next += int64(g.n)
		return g, nil
	}
}

func (s *suite) load(t *testing.T) {
	db := s.open(t, target.Config{})
	var last int64
	n, err := db.Load(t.Context(), s.Table, s.Columns, source(10_000, 0), func(rows int64) {
		if rows < last {
			t.Errorf("progress went from %d to %d", last, rows)
		}
		last = rows
	})
	if err != nil || n != 10_000 || last != n || s.count(t, db) != n {
		t.Errorf("%d rows, %d reported: %v", n, last, err)
	}
	rs, err := db.Query(t.Context(), s.Lookup, int64(4711))
	if err != nil || len(rs.Rows) != 1 {
		t.Fatalf("%+v, %v", rs, err)
	}
	if row := rs.Rows[0]; row[1] != 2355.5 || row[2] != "row\t4711\\\n" || row[4] != false ||
		!row[5].(time.Time).Equal(time.UnixMicro(1e15+4711)) {
		t.Errorf("%#v", row)
	}
	if err := db.Exec(t.Context(), "DELETE FROM "+s.Table); err != nil {
		t.Fatal(err)
	}
}

func (s *suite) loadFails(t *testing.T) {
	db := s.open(t, target.Config{})
	broke := errors.New("the generator broke")
	cancelled, cancel := context.WithCancel(t.Context())
	defer cancel()
	counting := func(next func() (plugin.Rows, error), at int, then func() error) func() (plugin.Rows, error) {
		calls := 0
		return func() (plugin.Rows, error) {
			if calls++; calls == at {
				if err := then(); err != nil {
					return nil, err
				}
			}
			return next()
		}
	}
	for _, c := range []struct {
		name string
		ctx  context.Context
		next func() (plugin.Rows, error)
		want string
	}{
		{"generator", t.Context(), counting(source(10_000, 0), 10, func() error { return broke }), broke.Error()},
		{"value", t.Context(), source(10_000, 7_777), ""},
		{"duplicate", t.Context(), counting(source(10_000, 0), 21, func() error { return nil }), ""},
		{"context", cancelled, counting(source(1_000_000_000, 0), 50, func() error { cancel(); return nil }), "canceled"},
		{"table", t.Context(), source(1, 0), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			table := s.Table
			switch c.name {
			case "table":
				table = "there_is_no_such_table"
			case "duplicate":
				first, again := source(10_000, 0), source(1, 0)
				c.next = func() (plugin.Rows, error) {
					if rows, err := first(); rows != nil || err != nil {
						return rows, err
					}
					return again()
				}
			}
			n, err := db.Load(c.ctx, table, s.Columns, c.next, nil)
			if err == nil || n != 0 || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d rows: %v", n, err)
			}
			if n := s.count(t, db); n != 0 {
				t.Errorf("%d rows are left", n)
			}
		})
	}
}

func (s *suite) binds(t *testing.T) {
	db := s.open(t, target.Config{})
	c := s.connect(t, db)
	at := time.Date(1969, 7, 20, 20, 17, 40, 1000, time.UTC)
	long := strings.Repeat("long ", 300_000)
	for i, args := range [][]any{
		{int64(10), -0.25, "täxt", []byte("\x00\x01\xff"), false, at},
		{int64(11), nil, nil, nil, nil, nil},
		{int64(12), int64(3), "", []byte{}, true, time.Date(2262, 1, 1, 0, 0, 0, 0, time.UTC)},
		{int64(13), 1e300, long, []byte(long), true, at},
	} {
		if n, err := do(c, insert, args...); err != nil || n != 1 {
			t.Fatalf("row %d: %d rows, %v", i, n, err)
		}
	}
	want := map[int64][]any{
		10: {int64(10), -0.25, "täxt", false}, 11: {int64(11), nil, nil, nil}, 12: {int64(12), 3.0, "", true},
		13: {int64(13), 1e300, long, true},
	}
	for id, row := range want {
		rs, err := db.Query(t.Context(), s.Lookup, id)
		if err != nil || len(rs.Rows) != 1 {
			t.Fatalf("row %d: %v", id, err)
		}
		got := rs.Rows[0]
		if !reflect.DeepEqual([]any{got[0], got[1], got[2], got[4]}, row) {
			t.Errorf("row %d: %.100v", id, got)
		}
		if id == 10 && !at.Equal(got[5].(time.Time)) || id == 11 && got[5] != nil {
			t.Errorf("row %d: time %v", id, got[5])
		}
		if n, err := do(c, lookup, id); err != nil || n != 1 {
			t.Errorf("looking %d up: %d rows, %v", id, n, err)
		}
	}
}

func (s *suite) rows(t *testing.T) {
	db := s.open(t, target.Config{})
	if err := db.Exec(t.Context(), "DELETE FROM "+s.Table); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Load(t.Context(), s.Table, s.Columns, source(5_000, 0), nil); err != nil {
		t.Fatal(err)
	}
	c := s.connect(t, db)
	for _, want := range []int64{0, 1, 10, 4_000} {
		// The bind order of the statement swaps the two.
		if n, err := do(c, scan, 100+want, int64(100)); err != nil || int64(n) != want {
			t.Errorf("%d rows, %d wanted: %v", n, want, err)
		}
	}
}

// queryIDs: each execution has its own, one that failed too; or none has any.
func (s *suite) queryIDs(t *testing.T) {
	db := s.open(t, target.Config{})
	c := s.connect(t, db)
	seen := map[engine.QueryID]bool{}
	for _, args := range [][]any{{uint16(lookup), int64(1)}, {uint16(lookup), int64(1)}, {uint16(lookup), "not a number"},
		{plugin.StatementBegin}, {plugin.StatementRollback}} {
		b, op := Batch(args[0].(uint16), args[1:]...)
		res := target.Result{QueryID: engine.QueryID{1}}
		_ = c.Exec(t.Context(), b, op, &res) // the failures are wanted
		if res.QueryID == (engine.QueryID{}) == s.QueryIDs || seen[res.QueryID] {
			t.Errorf("%v has the query id %q", args, res.QueryID)
		}
		seen[res.QueryID] = s.QueryIDs
	}
}

func (s *suite) errors(t *testing.T) {
	db := s.open(t, target.Config{})
	c := s.connect(t, db)
	row := []any{int64(900_001), nil, nil, nil, nil, nil}
	if _, err := do(c, insert, row...); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		n, err := do(c, insert, row...)
		if e := db.Classify(err); err == nil || n != 0 || e.Class != engine.ErrClassConstraint || e.Code == "" ||
			e.Message == "" {
			t.Fatalf("a duplicate: %d rows, %v, %+v", n, err, e)
		}
		if c.Broken() {
			t.Fatal("an error broke the connection")
		}
		if n, err := do(c, lookup, int64(900_001)); err != nil || n != 1 {
			t.Fatalf("after it: %d rows, %v", n, err)
		}
	}
	_, err := do(c, lookup, "not a number")
	if e := db.Classify(err); err == nil || e.Class != engine.ErrClassData || c.Broken() {
		t.Errorf("text for a number: %v, %+v", err, e)
	}
	if _, err := do(c, lookup); err == nil || c.Broken() {
		t.Errorf("an argument too few: %v", err)
	}
	if _, err := do(c, 99); err == nil || c.Broken() {
		t.Errorf("an unknown statement: %v", err)
	}
	if n, err := do(c, lookup, int64(900_001)); err != nil || n != 1 {
		t.Fatalf("after all: %d rows, %v", n, err)
	}
}

func second(_ int32, err error) error { return err }

func (s *suite) timeout(t *testing.T) {
	const limit = 500 * time.Millisecond // a lookup takes less on a busy machine, too
	db := s.open(t, target.Config{StatementTimeout: limit})
	c := s.connect(t, db)
	for range 2 {
		begin := time.Now()
		_, err := do(c, sleep, 30.0)
		if e := db.Classify(err); err == nil || e.Class != engine.ErrClassTimeout {
			t.Fatalf("%v, %+v", err, e)
		}
		if d := time.Since(begin); d < limit || d > 10*time.Second {
			t.Errorf("it took %v", d)
		}
		if c.Broken() {
			t.Fatal("a timeout that the server answered broke the connection")
		}
		for range 50 { // the cancellation must not hit a later operation
			if _, err := do(c, lookup, int64(1)); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Many short operations in a row are not one long one.
	for begin := time.Now(); time.Since(begin) < 5*limit/2; {
		if _, err := do(c, sleep, 0.01); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *suite) cancel(t *testing.T) {
	db := s.open(t, target.Config{})
	c := s.connect(t, db)
	if err := c.Cancel(t.Context()); err != nil {
		t.Errorf("cancelling nothing: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- second(do(c, sleep, 30.0)) }()
	time.Sleep(200 * time.Millisecond)
	if err := c.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if e := db.Classify(err); err == nil || e.Class != engine.ErrClassCancelled {
			t.Errorf("%v, %+v", err, e)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it was not cancelled")
	}
	if c.Broken() {
		t.Error("cancelling broke the connection")
	}
	if _, err := do(c, lookup, int64(1)); err != nil {
		t.Error(err)
	}
}

func (s *suite) closeEnds(t *testing.T) {
	db := s.open(t, target.Config{})
	c := s.connect(t, db)
	done := make(chan error, 1)
	go func() { done <- second(do(c, sleep, 30.0)) }()
	time.Sleep(100 * time.Millisecond)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-done:
		if e := db.Classify(err); err == nil || e.Class != engine.ErrClassConnection || !c.Broken() {
			t.Errorf("%v, %+v, broken %v", err, e, c.Broken())
		}
	case <-time.After(10 * time.Second):
		t.Fatal("Exec goes on after Close")
	}
}

func (s *suite) broken(t *testing.T) {
	db := s.open(t, target.Config{})
	idle, busy := s.connect(t, db), s.connect(t, db)
	if _, err := do(idle, lookup, int64(1)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- second(do(busy, sleep, 30.0)) }()
	time.Sleep(200 * time.Millisecond)
	s.Kill(t)
	for name, err := range map[string]error{"busy": <-done, "idle": second(do(idle, lookup, int64(1)))} {
		if e := db.Classify(err); err == nil || e.Class != engine.ErrClassConnection {
			t.Errorf("%s: %v, %+v", name, err, e)
		}
	}
	if !busy.Broken() || !idle.Broken() {
		t.Error("a lost connection is not broken")
	}
	if _, err := do(idle, lookup, int64(1)); err == nil {
		t.Error("a broken connection answers")
	}
	if _, err := db.Query(t.Context(), s.Count); err != nil {
		t.Errorf("the database does not recover: %v", err)
	}
}

func (s *suite) wrong(t *testing.T) {
	db := s.open(t, target.Config{})
	_, err := db.Connect(t.Context(), []engine.Statement{{ID: "the_wrong_one", SQL: s.Wrong}})
	var e *engine.Error
	if !errors.As(err, &e) || e.Code != engine.CodeTarget || !strings.Contains(e.Message, "the_wrong_one") {
		t.Errorf("%v", err)
	}
}
