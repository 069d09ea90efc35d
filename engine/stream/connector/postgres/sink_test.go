package postgres_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine/stream/connector/postgres"
	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

// database is a database of its own, with a connection to look at it.
type database struct {
	t    *testing.T
	dsn  string
	conn *pgx.Conn
}

func newDatabase(t *testing.T) database {
	t.Helper()
	d := database{t: t, dsn: pgtest.Start(t).NewDatabase(t)}
	var err error
	if d.conn, err = pgx.Connect(t.Context(), d.dsn); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.conn.Close(context.Background()) })
	return d
}

func (d database) exec(sql string) {
	d.t.Helper()
	if _, err := d.conn.Exec(d.t.Context(), sql); err != nil {
		d.t.Fatalf("%s: %v", sql, err)
	}
}

// text is what a query gives: fields divided by |, rows by newlines.
func (d database) text(sql string) string {
	d.t.Helper()
	rows, err := d.conn.Query(d.t.Context(), sql, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		d.t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var row []string
		for _, v := range rows.RawValues() {
			if v == nil {
				v = []byte("NULL")
			}
			row = append(row, string(v))
		}
		all = append(all, strings.Join(row, "|"))
	}
	if rows.Err() != nil {
		d.t.Fatal(rows.Err())
	}
	return strings.Join(all, "\n")
}

// dialer connects by a connection string.
func dialer(dsn string) postgres.Dial {
	return func(ctx context.Context) (*pgconn.PgConn, error) { return pgconn.Connect(ctx, dsn) }
}

func number(bits uint8) column.Type { return column.Type{Kind: column.Int, Bits: bits} }

func unsigned(bits uint8) column.Type {
	return column.Type{Kind: column.Int, Bits: bits, Unsigned: true}
}

// everything has a column of each type.
var everything = []column.Column{{Name: "b", Type: column.BooleanType}, {Name: "i8", Type: number(8)},
	{Name: "i16", Type: number(16)}, {Name: "i32", Type: number(32)}, {Name: "i64", Type: column.Int64Type},
	{Name: "u8", Type: unsigned(8)}, {Name: "u16", Type: unsigned(16)}, {Name: "u32", Type: unsigned(32)},
	{Name: "u64", Type: unsigned(64)}, {Name: "f32", Type: column.Type{Kind: column.Float, Bits: 32}},
	{Name: "f64", Type: column.Float64Type}, {Name: "d", Type: column.Type{Kind: column.Decimal, Precision: 10, Scale: 2}},
	{Name: `Te"xt; --`, Type: column.TextType}, {Name: "at", Type: column.TimestampType}}

// row appends a row to a batch: values in the kind of their column, nil for NULL.
func row(b *column.Batch, values ...any) {
	for i, v := range values {
		switch v := v.(type) {
		case nil:
			b.Cols[i].AppendNull()
		case bool:
			b.Cols[i].AppendBool(v)
		case int:
			b.Cols[i].AppendInt(int64(v))
		case int64:
			b.Cols[i].AppendInt(v)
		case float64:
			b.Cols[i].AppendFloat(v)
		case string:
			b.Cols[i].AppendText([]byte(v))
		}
	}
	b.N++
}

func batchOf(columns []column.Column, rows ...[]any) *column.Batch {
	b := &column.Batch{}
	b.Reset(columns)
	for _, r := range rows {
		row(b, r...)
	}
	return b
}

// values are rows with every edge of every type, and how Postgres shows them.
var values = []struct {
	row  []any
	want string
}{
	{[]any{true, -128, -32768, math.MinInt32, int64(math.MinInt64), 0, 0, 0, 0, math.NaN(), math.Inf(-1), -99999999_99,
		"a\tb\nc\\d\re\\N|\\.", column.MinTime},
		"t|-128|-32768|-2147483648|-9223372036854775808|0|0|0|0|NaN|-Infinity|-99999999.99|6109620a635c640d655c4e7c5c2e|" +
			"0001-01-01 00:00:00+00"},
	{[]any{false, 127, 32767, math.MaxInt32, int64(math.MaxInt64), 255, 65535, math.MaxUint32, int64(math.MaxInt64),
		float64(math.MaxFloat32), math.MaxFloat64, 1, "", column.MaxTime},
		"f|127|32767|2147483647|9223372036854775807|255|65535|4294967295|9223372036854775807|3.4028235e+38|" +
			"1.7976931348623157e+308|0.01||9999-12-31 23:59:59.999999+00"},
	{[]any{nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil},
		"NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL|NULL"},
	{[]any{true, 0, 0, 0, 0, 1, 1, 1, 1, float64(float32(0.1)), math.SmallestNonzeroFloat64, -1, "\\N", 1},
		"t|0|0|0|0|1|1|1|1|0.1|5e-324|-0.01|5c4e|1970-01-01 00:00:00.000001+00"},
	{[]any{true, 0, 0, 0, 0, 1, 1, 1, 1, math.Inf(1), math.Copysign(0, -1), 0, "ä☃😀", -1},
		"t|0|0|0|0|1|1|1|1|Infinity|0|0.00|c3a4e29883f09f9880|1969-12-31 23:59:59.999999+00"},
}

// TestEveryValueArrives: all types with their edges, NULL, NaN and infinities, texts that COPY would read otherwise,
// names with quotes; the table has its columns in another order and case, and one of its own.
func TestEveryValueArrives(t *testing.T) {
	d := newDatabase(t)
	d.exec(
		`CREATE SCHEMA "S""x"; CREATE TABLE "S""x"."T'a b" (at timestamptz, "Te""xt; --" text, D numeric(12, 3), f64 float8,
		f32 float4, u64 int8, u32 int8, u16 int4, u8 int2, i64 int8, i32 int4, I16 int2, i8 int2, b bool, own int DEFAULT 7)`,
	)
	s, err := postgres.Open(t.Context(),
		postgres.Options{Dial: dialer(d.dsn), Schema: `S"x`, Table: `T'a b`, Columns: everything})
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]any
	var want []string
	for _, v := range values {
		rows, want = append(rows, v.row), append(want, v.want+"|7")
	}
	if err := s.Write(batchOf(everything, rows...)); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	d.exec("SET timezone = 'UTC'")
	got := d.text(`SELECT b, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, d::numeric(10,2),
		encode(convert_to("Te""xt; --", 'UTF8'), 'hex'), at, own FROM "S""x"."T'a b" ORDER BY ctid`)
	if got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	// Types that hold more.
	d.exec(
		`CREATE TABLE wide (b text, i8 numeric, i16 float4, i32 float8, i64 numeric(19, 0), u8 int8, u16 text, u32 numeric(10),
		u64 numeric, f32 float8, f64 numeric, d numeric, "Te""xt; --" varchar, at timestamp)`,
	)
	s, err = postgres.Open(t.Context(), postgres.Options{Dial: dialer(d.dsn), Table: "wide", Columns: everything})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Write(batchOf(everything, rows...)), s.Close()); err != nil {
		t.Fatal(err)
	}
	if got := d.text("SELECT b, i64, u32, f64, at FROM wide ORDER BY ctid LIMIT 2"); got !=
		"true|-9223372036854775808|0|-Infinity|0001-01-01 00:00:00\n"+
			"false|9223372036854775807|4294967295|"+d.text("SELECT '1.7976931348623157e+308'::numeric")+
			"|9999-12-31 23:59:59.999999" {
		t.Errorf("got\n%s", got)
	}
}

// TestRowsGoOutWithoutMore: a row does not wait for others for long.
func TestRowsGoOutWithoutMore(t *testing.T) {
	d := newDatabase(t)
	d.exec("CREATE TABLE t (i64 int8)")
	one := everything[4:5]
	s, err := postgres.Open(t.Context(), postgres.Options{Dial: dialer(d.dsn), Table: "t", Columns: one})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	if err := s.Write(batchOf(one, []any{5})); err != nil {
		t.Fatal(err)
	}
	for begin := time.Now(); d.text("SELECT * FROM t") != "5"; time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			t.Fatal("the row is not there")
		}
	}
}

// TestTablesThatDoNotFit: what is wrong is named, and what to do.
func TestTablesThatDoNotFit(t *testing.T) {
	d := newDatabase(t)
	d.exec(`CREATE SCHEMA closed; CREATE TABLE closed.t (a int8); CREATE TABLE plain (a int8, small int2, short varchar(5),
		"Two" int8, two int8, uu uuid, f4 float4, n numeric(5, 2));
		CREATE TABLE needs (a int8, need int NOT NULL, has int NOT NULL DEFAULT 1, id int GENERATED ALWAYS AS IDENTITY);
		CREATE TABLE makes (a int8, b int8 GENERATED ALWAYS AS (a + 1) STORED);
		CREATE VIEW v AS SELECT * FROM plain; CREATE UNLOGGED TABLE u (a int8); CREATE DOMAIN pos AS int8 CHECK (VALUE > 0);
		CREATE TABLE dom (a pos); CREATE TABLE parts (a int8) PARTITION BY RANGE (a)`)
	col := func(name string, t column.Type) column.Column { return column.Column{Name: name, Type: t} }
	a := []column.Column{col("a", column.Int64Type)}
	for _, c := range []struct {
		schema, table string
		columns       []column.Column
		want, hint    string
	}{
		{"", "nothing", a, "there is no table nothing", ""},
		{"public", "nothing", a, "there is no table public.nothing", ""},
		{"", "v", a, "public.v is no table", ""},
		{"", "u", a, "UNLOGGED", "SET LOGGED"},
		{"", "plain", []column.Column{col("z", column.Int64Type)},
			"public.plain has no column z", "its columns are a, small"},
		{"", "plain", []column.Column{col("small", column.Int64Type)}, "small is INT64, and public.plain.small is smallint",
			`ALTER TABLE "public"."plain" ALTER COLUMN "small" TYPE bigint`},
		{"", "plain", []column.Column{col("short", column.TextType)}, "character varying(5)", "TYPE text"},
		{"", "plain", []column.Column{col("uu", column.TextType)}, "is uuid", "TYPE text"},
		{"", "plain", []column.Column{col("f4", column.Float64Type)}, "is real", "TYPE double precision"},
		{"", "plain", []column.Column{col("n", everything[11].Type)}, "is numeric(5,2)", "TYPE numeric(10, 2)"},
		{"", "plain", []column.Column{col("TWO", column.Int64Type)}, "several columns", "x AS `Two`"},
		{"", "plain", []column.Column{col("a", column.Int64Type), col("A", column.Int64Type)},
			"both written to a", "x AS name"},
		{"", "needs", a, "the column need of public.needs has to have a value", "DROP NOT NULL"},
		{"", "makes", []column.Column{col("b", column.Int64Type)}, "is generated", "leave it out"},
		{"", "dom", a, "is pos", "TYPE bigint"},
	} {
		_, err := postgres.Open(t.Context(),
			postgres.Options{Dial: dialer(d.dsn), Schema: c.schema, Table: c.table, Columns: c.columns})
		var e *sql.Error
		if !errors.As(err, &e) || e.Kind != sql.InvalidConfig || !strings.Contains(e.Message, c.want) ||
			!strings.Contains(e.Hint, c.hint) {
			t.Errorf("%s: %v", c.table, err)
		}
	}
	// Those that do.
	for table, columns := range map[string][]column.Column{"parts": a,
		"plain": {col("two", column.Int64Type), col("Two", column.Int64Type)}} {
		s, err := postgres.Open(t.Context(),
			postgres.Options{Dial: dialer(d.dsn), Table: table, Columns: columns})
		if err != nil {
			t.Error(err)
			continue
		}
		_ = s.Close()
	}
}

// What answers with other rows and columns than were asked for is refused, and ends no process.
func TestWhatIsNoPostgresHasNoTable(t *testing.T) {
	server, err := nullpg.Listen(t.Context(), "127.0.0.1:0", nullpg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if table, err := postgres.Describe(t.Context(), dialer(server.DSN()), "", "t"); err == nil {
		t.Errorf("a table of what is no Postgres: %+v", table)
	}
}
