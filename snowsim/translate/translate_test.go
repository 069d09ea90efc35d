package translate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/snowsim/history"
	"github.com/loadstone-db/loadstone/snowsim/protocol"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

func TestBinds(t *testing.T) {
	c := newClient(t)
	c.must("CREATE HYBRID TABLE t (id NUMBER(38,0) PRIMARY KEY, f FLOAT, s VARCHAR, b BOOLEAN, d DATE, n " +
		"TIMESTAMP_NTZ, l TIMESTAMP_LTZ, z TIMESTAMP_TZ, x BINARY, v VARIANT)")
	c.must("INSERT INTO t (id, f, s, b, d, n, l, z, x) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
		bind("fixed", 12345678901234567), bind("real", 1.5), bind("text", "it's; -- ?"),
		bind("boolean", true), bind("date", "2026-02-03"), bind("timestamp_ntz", "2026-02-03 04:05:06.789"),
		bind("timestamp_ltz", "2026-02-03 04:05:06+00"),
		bind("text", "2026-02-03 04:05:06.000000+02:30"), bind("binary", `\xcafe`))
	if got := c.must("SELECT id FROM t WHERE z = ?", bind("text", "2026-02-03 04:05:06+02:30")).Rows; len(got) != 1 {
		t.Errorf("a text that is a TIMESTAMP_TZ found %v", got)
	}
	if _, err := c.exec("SELECT id FROM t WHERE z = ?", bind("timestamp_tz", "2026-02-03 04:05:06+02:30")); !isCode(err,
		"000002") {
		t.Errorf("a bound TIMESTAMP_TZ: %v", err)
	}
	c.must("INSERT INTO t (id, z) VALUES (8, '2026-02-03 04:05:06 -08:00')")
	c.must("INSERT INTO t (id, s) VALUES (?, ?)", bind("text", "7"),
		bind("text", nil)) // a text becomes what the column is
	got := printed(c.must("SELECT * FROM t WHERE id = ? AND s = ? LIMIT ?", bind("text", "12345678901234567"),
		bind("text", "it's; -- ?"), bind("fixed", 5)))
	want := "ID fixed(38,0) | F real | S text | B boolean | D date | N timestamp_ntz | L timestamp_ltz | Z " +
		"timestamp_tz | X binary | V variant\n" +
		`12345678901234567 | 1.5 | it's; -- ? | t | 2026-02-03 | 2026-02-03 04:05:06.789 | 2026-02-03 04:05:06+00 | ("2026-02-03 01:35:06+00",150) | CAFE | NULL` + "\n"
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if _, err := c.exec("SELECT ?"); err == nil {
		t.Error("a missing bind was taken")
	}
	if _, err := c.exec("INSERT INTO t (id) VALUES (?)", bind("fixed", 7)); !isCode(err, "200001") {
		t.Errorf("a second row of one primary key: %v", err)
	}
}

func isCode(err error, code string) bool {
	var known *protocol.Error
	return errors.As(err, &known) && known.Code == code
}

func TestWorkTellsTheModelWhatAStatementAsks(t *testing.T) {
	c := newClient(t)
	c.must("CREATE HYBRID TABLE h (id INT PRIMARY KEY, a INT, b INT, INDEX by_a (a) INCLUDE (b))")
	c.must("CREATE INTERACTIVE TABLE i CLUSTER BY (id) AS SELECT * FROM h")
	c.must("CREATE TABLE s (id INT PRIMARY KEY, a INT)")
	for sql, want := range map[string]warehouse.Work{
		"SELECT * FROM h WHERE id = 1":            {Table: warehouse.Hybrid, Op: warehouse.Lookup},
		"SELECT * FROM h WHERE a IN (1, 2)":       {Table: warehouse.Hybrid, Op: warehouse.Lookup},
		"SELECT * FROM h WHERE b = 1":             {Table: warehouse.Hybrid, Op: warehouse.Scan},
		"SELECT COUNT(*) FROM i":                  {Table: warehouse.Interactive, Op: warehouse.Scan},
		"SELECT * FROM i WHERE id = 5":            {Table: warehouse.Interactive, Op: warehouse.Lookup},
		"SELECT * FROM s WHERE a > 5":             {Table: warehouse.Standard, Op: warehouse.Scan},
		"SELECT 1":                                {},
		"SHOW TABLES":                             {},
		"INSERT INTO h (id) VALUES (1)":           {Table: warehouse.Hybrid, Op: warehouse.Write},
		"INSERT INTO s SELECT id, a FROM h":       {Table: warehouse.Standard, Op: warehouse.Load},
		"UPDATE s SET a = 1 WHERE id = 2":         {Table: warehouse.Standard, Op: warehouse.Write},
		"CREATE TABLE n AS SELECT * FROM s":       {Table: warehouse.Standard, Op: warehouse.Load},
		"SELECT * FROM INFORMATION_SCHEMA.TABLES": {},
	} {
		session := c.session
		p, err := c.tr.Plan(t.Context(), &session, sql, nil)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		got := p.Work
		if got.Table == warehouse.None {
			got.Op = 0
		}
		if got != want {
			t.Errorf("%s: %+v, want %+v", sql, got, want)
		}
	}
}

// Identifiers of any kind name a table and a column, and come back as they were.
func TestIdentifiersRoundTrip(t *testing.T) {
	c := newClient(t)
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		identifier := rapid.StringOfN(rapid.RuneFrom([]rune("aZ0_ \"';.?$-\\é%\n語/*")), 1, 255, -1).Draw(r, "identifier")
		quotedName := quote(identifier)
		c.must("CREATE OR REPLACE TABLE " + quotedName + " (" + quotedName + " INT)")
		c.must("INSERT INTO " + quotedName + " VALUES (1)")
		got := c.must("SELECT x." + quotedName + " FROM loadstone.public." + quotedName + " AS x")
		if len(got.Columns) != 1 || got.Columns[0].Name != identifier {
			r.Fatalf("column %q came back as %+v", identifier, got.Columns)
		}
		listed := c.must("SELECT table_name FROM information_schema.tables")
		if !slices.ContainsFunc(listed.Rows, func(row []any) bool { return row[0] == identifier }) {
			r.Fatalf("table %q is not listed: %v", identifier, listed.Rows)
		}
		c.must("DROP TABLE " + quotedName)
	})
}

func TestBadIdentifiers(t *testing.T) {
	c := newClient(t)
	c.must("CREATE TABLE keep (id INT)")
	for _, sql := range []string{
		`SELECT * FROM "` + strings.Repeat("x", 256) + `"`, "SELECT 1 AS " + strings.Repeat("y", 300),
		"SELECT * FROM \"a\x00b\"", "SELECT '\x00'", `SELECT '\0'`,
		`SELECT ""`, "SELECT * FROM keep; DROP TABLE keep", "SELECT * FROM pg_catalog.pg_class",
		`SELECT * FROM "pg_catalog"."pg_class"`, "SELECT pg_read_file('/etc/passwd')",
		"SELECT * FROM keep /*", "SELECT 'open", `SELECT "open`, "SELECT $$open", "COPY INTO keep FROM @stage",
		"SELECT 1 FROM keep AT (OFFSET => -60)", "\xff\xfe",
		"SELECT lo_import('x')", "SELECT snowsim.wait(1)", `SELECT "snowsim"."wait"(1)`,
		"SELECT " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000)} {
		_, err := c.exec(sql)
		var known *protocol.Error
		if !errors.As(err, &known) {
			t.Errorf("%.60q: %v is no error of Snowflake's", sql, err)
		}
	}
	c.must("SELECT * FROM keep")
}

// A short name that stands for a long one is the same each time, and no two long
// names share one.
func TestShortNames(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a := rapid.StringN(1, 255, -1).Draw(r, "a")
		b := rapid.StringN(1, 255, -1).Draw(r, "b")
		if len(shortName(a)) > maxPostgresName || (a != b) == (shortName(a) == shortName(b)) {
			r.Fatalf("%q and %q became %q and %q", a, b, shortName(a), shortName(b))
		}
	})
}

func TestSplit(t *testing.T) {
	got, err := split("/* a; */ SELECT ';' ; -- x;\n;SELECT 1, \";\" // y\n;\n")
	if err != nil || !slices.Equal(got, []string{"SELECT ';'", `SELECT 1, ";"`}) {
		t.Errorf("%q, %v", got, err)
	}
}

// Plans are remembered and forgotten when the catalog changes.
func TestPlansAreRemembered(t *testing.T) {
	c := newClient(t)
	c.must("CREATE TABLE t (id INT)")
	session := c.session
	first, err := c.tr.Plan(t.Context(), &session, "SELECT id FROM t WHERE id = ?", []protocol.Bind{bind("fixed", 1)})
	if err != nil {
		t.Fatal(err)
	}
	first.SQL = "spoilt" // a caller may change its plan
	second, err := c.tr.Plan(t.Context(), &session, "SELECT id FROM t WHERE id = ?", []protocol.Bind{bind("fixed", 2)})
	if err != nil || second.SQL == "spoilt" {
		t.Fatalf("%+v, %v", second, err)
	}
	c.must("DROP TABLE t")
	if _, err := c.tr.Plan(t.Context(), &session, "SELECT id FROM t WHERE id = ?",
		[]protocol.Bind{bind("fixed", 2)}); !isCode(err, "002003") {
		t.Errorf("a plan outlived its table: %v", err)
	}
}

// A new translator on the same database knows what the last one made.
func TestCatalogSurvives(t *testing.T) {
	c := newClient(t)
	long := strings.Repeat("L", 200)
	c.must("CREATE HYBRID TABLE " + long + " (id INT PRIMARY KEY, " + long + " INT)")
	c.must("CREATE ROLE reader")
	c.must("GRANT SELECT ON TABLE " + long + " TO ROLE reader")
	again, err := New(t.Context(), c.host, Options{})
	if err != nil {
		t.Fatal(err)
	}
	c2 := connect(t, c.host, again)
	c2.session.Role = "READER"
	if got := c2.must("SELECT * FROM " + long).Columns[1].Name; got != long {
		t.Errorf("the column is %q now", got)
	}
	if _, err := c2.exec("DELETE FROM " + long); !isCode(err, "003001") {
		t.Errorf("a privilege that was not granted: %v", err)
	}
}

func BenchmarkPlan(b *testing.B) {
	h := &host{pool: deadPool(b), history: nil, now: time.Now(), warehouses: map[string]warehouse.State{}}
	tr := &Translator{Account: newAccount(h, nil, Contract{})}
	n := objectName{database: "D", schema: "S", object: "T"}
	tr.tables.cache(&tableEntry{name: n, tableType: warehouse.Hybrid,
		tableMeta: tableMeta{Keys: []keyMeta{{Kind: "PRIMARY KEY", Columns: []string{"ID"}, Enforced: true}}}})
	s := &Session{Database: "D", Schema: "S"}
	const sql = "SELECT id, name, amount FROM d.s.t WHERE id = ? AND name ILIKE ? ORDER BY id LIMIT 10"
	binds := []protocol.Bind{bind("fixed", 1), bind("text", "x")}
	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			if _, err := tr.Plan(b.Context(), s, sql, binds); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			tr.plans.plans = nil
			if _, err := tr.Plan(b.Context(), s, sql, binds); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// deadPool is a pool that never connects.
func deadPool(t testing.TB) *pgxpool.Pool {
	config, err := pgxpool.ParseConfig("postgres://nobody@127.0.0.1:1/none?connect_timeout=1")
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// FuzzPlan feeds the translator any text: it returns a plan or an error of
// Snowflake's, does not panic, and every identifier of its SQL is in quotes.
func FuzzPlan(f *testing.F) {
	for _, seed := range []string{"SELECT a.b, 'x''y', \"q\"\"\" FROM t WHERE a = ? -- c\n",
		"INSERT INTO t (a) VALUES (1.5e3, ?)", "UPDATE t SET a = b::NUMBER(10,2) /* c */",
		"SELECT SEQ4(), RANDSTR(3, HASH(1)) FROM TABLE(GENERATOR(ROWCOUNT => 5))",
		"CREATE HYBRID TABLE x (a INT PRIMARY KEY, INDEX i (a))", "SHOW TABLES LIKE 'x'",
		"MERGE INTO t USING t AS s ON t.a = s.a WHEN MATCHED THEN DELETE",
		"SELECT v:a::STRING AS x FROM t QUALIFY ROW_NUMBER() OVER (ORDER BY a) = 1",
		"ALTER WAREHOUSE wh SET WAREHOUSE_SIZE = 'X-LARGE'",
		"SELECT * FROM (SELECT 1 AS a) v JOIN t SAMPLE (10) ON true", "GRANT SELECT ON TABLE t TO ROLE r",
		"WITH c AS (SELECT 1 AS n UNION ALL SELECT 2) SELECT * FROM c"} {
		f.Add(seed)
	}
	h := &host{pool: deadPool(f), history: &history.Store{}, now: time.Unix(0, 0),
		warehouses: map[string]warehouse.State{"WH": {}}}
	tr := &Translator{Account: newAccount(h, nil, Contract{})}
	tr.tables.cacheSchema(objectName{database: "D", schema: "S"})
	tr.tables.cacheSchema(objectName{database: "D"})
	f.Fuzz(func(t *testing.T, sql string) {
		tr.tables.cache(&tableEntry{name: objectName{database: "D", schema: "S", object: "T"}, tableType: warehouse.Standard,
			tableMeta: tableMeta{Columns: []columnMeta{{Name: "A", Postgres: "A"}}}})
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // nothing is asked of Postgres
		one, two := "1", "2"
		p, err := tr.Plan(ctx, &Session{Database: "D", Schema: "S", Role: "SYSADMIN"}, sql,
			[]protocol.Bind{{Type: "fixed", Value: &one}, {Type: "text", Value: &two}})
		var known *protocol.Error
		if err != nil && !errors.As(err, &known) && !errors.Is(err, context.Canceled) {
			t.Fatalf("%q: %v", sql, err)
		}
		if err == nil && strings.ContainsRune(p.SQL, 0) {
			t.Fatalf("%q became %q", sql, p.SQL)
		}
	})
}
