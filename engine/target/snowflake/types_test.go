package snowflake

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
)

// TestAMillionRows: load counts them in bounded memory, preparation refuses them.
func TestAMillionRows(t *testing.T) {
	s := standIn(t, nil)
	db := openDSN(t, s.DSN(), target.Config{})
	const many = "SELECT SEQ4() AS n, 'some text of a moderate length' AS t FROM TABLE(GENERATOR(ROWCOUNT => 1000000))"
	c, err := db.Connect(t.Context(), []engine.Statement{{ID: "many", SQL: many}, {ID: "few", SQL: "SELECT 1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	res, err := exec(c, 0)
	if err != nil || res.Rows != 1_000_000 || res.FirstByte.IsZero() {
		t.Fatalf("%+v, %v", res, err)
	}
	if res, err := exec(c, 1); err != nil || res.Rows != 1 {
		t.Fatalf("afterwards: %+v, %v", res, err)
	}
	if _, err := db.Query(t.Context(), many); !errors.Is(err, target.ErrTooLarge) {
		t.Error(err)
	}
	if rs, err := db.Query(t.Context(), "SELECT 1"); err != nil || len(rs.Rows) != 1 {
		t.Errorf("afterwards: %v", err)
	}
}

// TestTypesOfTables writes and reads Snowflake's types through binds, loading and refs.
func TestTypesOfTables(t *testing.T) {
	s := standIn(t, nil)
	db := openDSN(t, s.DSN(), target.Config{})
	if err := db.Exec(
		t.Context(),
		`CREATE TABLE "lower; case" (id NUMBER(38,0), n NUMBER(38,10), f FLOAT, tz TIMESTAMP_TZ, ntz TIMESTAMP_NTZ, v VARIANT, d DATE, "we""ird" VARCHAR)`,
	); err != nil {
		t.Fatal(err)
	}
	const read = `SELECT n, f, tz, ntz, v, d, "we""ird" FROM "lower; case" WHERE id = ?`
	c, err := db.Connect(t.Context(), []engine.Statement{
		{ID: "w", SQL: `INSERT INTO "lower; case" SELECT ?, ?, ?, ?, ?, PARSE_JSON(?), ?, ?`, Writes: true,
			Binds: make([]engine.Bind, 8)},
		{ID: "r", SQL: read, Binds: make([]engine.Bind, 1)},
		{ID: "c", SQL: `INSERT INTO "lower; case" SELECT ?, ?, ?, ?, ?, PARSE_JSON(?), ?, ?`, Writes: true,
			Binds: make([]engine.Bind, 8)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	at := time.Date(2024, 2, 29, 23, 59, 59, 123456000, time.UTC)
	if res, err := exec(c, 0, int64(1), "12345678901234567890.1234567891", 0.1, at, at, `{"a": [1, null]}`, "2024-02-29",
		"täxt"); err != nil || res.Rows != 1 {
		t.Fatal(res, err)
	}
	if res, err := exec(c, 0, int64(2), nil, nil, nil, nil, nil, nil, nil); err != nil || res.Rows != 1 {
		t.Fatal(res, err)
	}
	rs, err := db.Query(t.Context(), read, int64(1))
	if err != nil || len(rs.Rows) != 1 {
		t.Fatal(rs, err)
	}
	row := rs.Rows[0]
	if row[0] != "12345678901234567890.1234567891" || row[1] != 0.1 || row[6] != "täxt" {
		t.Errorf("%#v", row)
	}
	for i, want := range map[int]time.Time{2: at, 3: at, 5: time.Date(2024, 2, 29, 0, 0, 0, 0, time.UTC)} {
		if got, ok := row[i].(time.Time); !ok || !got.Equal(want) {
			t.Errorf("%s is %v", rs.Columns[i], row[i])
		}
	}
	if rs, err := db.Query(t.Context(), read, int64(2)); err != nil ||
		!reflect.DeepEqual(rs.Rows, [][]any{{nil, nil, nil, nil, nil, nil, nil}}) {
		t.Errorf("NULLs: %v, %v", rs, err)
	}
	// A row of each type goes through refs and comes out as it was.
	for _, from := range []int64{1, 2} {
		steps := []func() error{
			func() error { return second(exec(c, plugin.StatementBegin)) },
			func() error { return refer(c, 1, plugin.Value{Type: engine.TypeI64, I: from}) },
			func() error {
				args := []plugin.Value{{Type: engine.TypeI64, I: from + 10}}
				for col := range uint8(7) {
					args = append(args, plugin.Ref(0, col))
				}
				return run(c, plugin.Op{Statement: 2}, args...)
			},
			func() error { return second(exec(c, plugin.StatementCommit)) },
		}
		for i, step := range steps {
			if err := step(); err != nil {
				t.Fatalf("step %d of %d: %v", i, from, err)
			}
		}
		original, err1 := db.Query(t.Context(), read, from)
		copied, err2 := db.Query(t.Context(), read, from+10)
		if err := errors.Join(err1, err2); err != nil || !reflect.DeepEqual(original.Rows, copied.Rows) {
			t.Errorf("%v became %v, %v", original, copied, err)
		}
	}
}

func refer(c target.Conn, statement uint16, args ...plugin.Value) error {
	return run(c, plugin.Op{Statement: statement, Referred: true}, args...)
}

func run(c target.Conn, op plugin.Op, args ...plugin.Value) error {
	op.NArgs = uint16(len(args))
	b := &plugin.Batch{Ops: []plugin.Op{op}, Args: args}
	var res target.Result
	return c.Exec(context.Background(), b, op, &res)
}
