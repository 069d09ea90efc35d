package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// conversions are values by their type, and the types they are bound to.
var conversions = []struct {
	from   string
	values []string
	to     []string
}{
	{"int2", []string{"0", "-32768", "77"},
		[]string{"int2", "int4", "int8", "numeric", "float4", "float8", "text", "varchar"}},
	{"int4", []string{"0", "-2147483648", "77"}, []string{"int4", "int8", "numeric", "float8", "text"}},
	{"int4", []string{"77"}, []string{"int2", "oid", "float4"}},
	{"int8", []string{"0", "-9223372036854775808", "9007199254740993"}, []string{"int8", "numeric", "float8", "text"}},
	{"int8", []string{"-77"}, []string{"int2", "int4"}},
	{"oid", []string{"0", "4294967295"}, []string{"oid", "int8", "text"}},
	{"numeric", []string{"0", "12.50", "-0.5", "2.5", "-2.5", "99.5", "9.99", "1e3", "-999.49"},
		[]string{"numeric", "int2", "int4", "int8", "float8", "text", "numeric(12,1)"}},
	{"numeric", []string{"NaN", "123456789012345678901234567890.123456789"}, []string{"numeric", "float8", "text"}},
	{"float4", []string{"0.1", "-1.5", "2.5", "1e10"}, []string{"float4", "float8", "int8", "numeric", "text"}},
	{"float8", []string{"0.1", "-1.5", "2.5", "3.5", "1e300", "NaN", "Infinity", "-Infinity"}, []string{"float8", "text"}},
	{"float8", []string{"0.1", "-1.5", "2.5", "3.5", "-10000"}, []string{"float4", "int2", "int4", "int8", "numeric"}},
	{"bool", []string{"true", "false"}, []string{"bool", "text"}},
	{"text", []string{"", "täxt", " x "}, []string{"text", "varchar", "char(8)"}},
	{"text", []string{"42"}, []string{"int2", "int4", "int8", "numeric", "float8"}},
	{"text", []string{"2024-02-29"}, []string{"date", "timestamp", "timestamptz"}},
	{"varchar(10)", []string{"", "ab  "}, []string{"text", "varchar"}},
	{"char(6)", []string{"ab", ""}, []string{"char(6)", "text", "varchar"}},
	{"bytea", []string{`\x00ff`, `\x`}, []string{"bytea"}},
	{"uuid", []string{"a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}, []string{"uuid", "text", "varchar"}},
	{"date", []string{"2024-02-29", "1969-07-20", "infinity", "-infinity", "0001-01-01"},
		[]string{"date", "timestamp", "timestamptz", "text"}},
	{"timestamp", []string{"2024-02-29 23:59:59.123456", "1969-07-20 20:17:40", "infinity", "-infinity"},
		[]string{"timestamp", "timestamptz", "date", "text"}},
	{"timestamptz", []string{"2024-02-29 23:59:59.120000+00", "1969-07-20 20:17:40+02", "infinity"},
		[]string{"timestamptz", "timestamp", "date", "text"}},
	{"time", []string{"23:59:59.5"}, []string{"time", "text"}},
	{"interval", []string{"1 mon 2 days 03:04:05.6"}, []string{"interval", "text"}},
	{"json", []string{`{"a": [1, null]}`}, []string{"json", "jsonb", "text"}},
	{"jsonb", []string{`{"a": [1, null]}`}, []string{"jsonb", "json", "text"}},
	{"int4[]", []string{"{1,NULL,3}"}, []string{"int4[]", "text"}},
	{"mood", []string{"so so"}, []string{"mood", "text"}},
	{"positive", []string{"5"}, []string{"positive", "int8", "int4"}},
}

// TestRefConversions binds what one statement returned to the next, for each pair
// of types, and lets the server compare with its own cast.
func TestRefConversions(t *testing.T) {
	t.Parallel()
	db := openDSN(t, pgtest.Start(t).NewDatabase(t), 0)
	if err := db.Exec(t.Context(), "CREATE TYPE mood AS ENUM ('sad', 'so so')",
		"CREATE DOMAIN positive AS int4 CHECK (VALUE > 0)"); err != nil {
		t.Fatal(err)
	}
	for _, c := range conversions {
		for _, value := range append(c.values, "NULL") {
			for _, to := range c.to {
				t.Run(fmt.Sprintf("%s %s to %s", c.from, value, to), func(t *testing.T) {
					literal := "'" + value + "'"
					if value == "NULL" {
						literal = "NULL"
					}
					source := fmt.Sprintf("(%s::%s)", literal, c.from)
					conn, err := db.Connect(t.Context(), []engine.Statement{
						{ID: "source", SQL: "SELECT 1, " + source, Columns: []string{"one", "v"}},
						{ID: "check", SQL: fmt.Sprintf("SELECT 1 WHERE $1::%s::text IS NOT DISTINCT FROM %s::%s::text", to, source, to),
							Binds: []engine.Bind{{Type: engine.TypeText}}},
					})
					if err != nil {
						t.Fatal(err)
					}
					defer conn.Close()
					for _, op := range []plugin.Op{{Statement: plugin.StatementBegin}, {Referred: true}, {Statement: 1, NArgs: 1},
						{Statement: plugin.StatementCommit}} {
						b := &plugin.Batch{Args: []plugin.Value{plugin.Ref(0, 1)}}
						var res target.Result
						if err := conn.Exec(t.Context(), b, op, &res); err != nil {
							t.Fatal(err)
						}
						if op.Statement == 1 && res.Rows != 1 {
							t.Error("the server's cast gives another value")
						}
					}
				})
			}
		}
	}
}

// TestTransactionAllocatesNothing: the second time, rows kept for refs cost no memory.
func TestTransactionAllocatesNothing(t *testing.T) {
	db := openDSN(t, pgtest.Start(t).NewDatabase(t), 0)
	conn, err := db.Connect(t.Context(), []engine.Statement{
		{ID: "source", SQL: "SELECT 7::int4, 12.5::numeric, 'text'", Columns: []string{"a", "b", "c"}},
		{ID: "sink", SQL: "SELECT $1::int8, $2::numeric, $3::text",
			Binds: []engine.Bind{{Type: engine.TypeI64}, {Type: engine.TypeText}, {Type: engine.TypeText}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	b := &plugin.Batch{Args: []plugin.Value{plugin.Ref(0, 0), plugin.Ref(0, 1), plugin.Ref(0, 2)}}
	ops := []plugin.Op{{Statement: plugin.StatementBegin}, {Referred: true}, {Statement: 1, NArgs: 3},
		{Statement: plugin.StatementRollback}}
	var res target.Result
	run := func() {
		for _, op := range ops {
			if err := conn.Exec(t.Context(), b, op, &res); err != nil {
				t.Fatal(err)
			}
		}
	}
	run()
	if n := testing.AllocsPerRun(50, run); n > 0.5 {
		t.Errorf("%v allocations in a transaction", n)
	}
}

// TestLongRows: rows that are too long to be kept, alone or together, fail what refers to them and
// nothing else.
func TestLongRows(t *testing.T) {
	t.Parallel()
	db := openDSN(t, pgtest.Start(t).NewDatabase(t), 0)
	c, err := db.Connect(t.Context(), []engine.Statement{
		{ID: "endless", SQL: "SELECT repeat('x', 50000000)", Columns: []string{"v"}},
		{ID: "half", SQL: "SELECT repeat('x', 150000)", Columns: []string{"v"}},
		{ID: "length", SQL: "SELECT 1 WHERE length($1::text) = 150000", Binds: []engine.Bind{{Type: engine.TypeText}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := &plugin.Batch{Args: []plugin.Value{plugin.Ref(0, 0), plugin.Ref(1, 0), plugin.Ref(2, 0)}}
	for i, step := range []struct {
		op    plugin.Op
		rows  int32
		wrong bool
	}{
		{plugin.Op{Statement: plugin.StatementBegin}, 0, false},
		{plugin.Op{Statement: 0, Referred: true}, 1, false},
		{plugin.Op{Statement: 1, Referred: true}, 1, false},
		{plugin.Op{Statement: 1, Referred: true}, 1, false},
		{plugin.Op{Statement: 2, FirstArg: 0, NArgs: 1}, 0, true},
		{plugin.Op{Statement: 2, FirstArg: 1, NArgs: 1}, 1, false},
		{plugin.Op{Statement: 2, FirstArg: 2, NArgs: 1}, 0, true},
		{plugin.Op{Statement: plugin.StatementCommit}, 0, false},
	} {
		var res target.Result
		err := c.Exec(t.Context(), b, step.op, &res)
		if (err != nil) != step.wrong || res.Rows != step.rows || step.wrong &&
			!strings.Contains(err.Error(), "more than 256 KB") {
			t.Errorf("step %d: %d rows, %v", i, res.Rows, err)
		}
	}
}

// TestPartialRows: a kept row that arrives in pieces, and is large, is kept whole.
func TestPartialRows(t *testing.T) {
	t.Parallel()
	db := openDSN(t, pgtest.Start(t).NewDatabase(t), 0)
	conn, err := db.Connect(t.Context(), []engine.Statement{
		{ID: "source", SQL: "SELECT repeat(x::text, 200000) FROM generate_series(1, 3) x", Columns: []string{"v"}},
		{ID: "check", SQL: "SELECT 1 WHERE $1::text = repeat('1', 200000)", Binds: []engine.Bind{{Type: engine.TypeText}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for i, op := range []plugin.Op{{Statement: plugin.StatementBegin}, {Referred: true}, {Statement: 1, NArgs: 1}} {
		b := &plugin.Batch{Args: []plugin.Value{plugin.Ref(0, 0)}}
		var res target.Result
		if err := conn.Exec(t.Context(), b, op, &res); err != nil || res.Rows != []int32{0, 3, 1}[i] {
			t.Fatalf("step %d: %d rows, %v", i, res.Rows, err)
		}
	}
	b, op := targettest.Batch(plugin.StatementRollback)
	if err := conn.Exec(t.Context(), b, op, new(target.Result)); err != nil {
		t.Error(err)
	}
}
