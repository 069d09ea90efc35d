package snowsim

import (
	"database/sql"
	"os"
	"testing"

	"github.com/rs/zerolog"
	"github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

func TestMain(m *testing.M) {
	// What the driver would look for on the machine is not what is tested here.
	os.Setenv("SF_DISABLE_MINICORE", "true")
	os.Setenv("SNOWFLAKE_DISABLE_PLATFORM_DETECTION", "true")
	os.Exit(pgtest.Main(m))
}

// start starts a stand-in with the plain translator and quick warehouses.
func start(t testing.TB, change func(*Options)) *Server {
	t.Helper()
	opts := Options{Postgres: pgtest.Start(t).NewDatabase(t), TimeScale: 100, Seed: 1, Log: zerolog.Nop(),
		plain: plain{}}
	if change != nil {
		change(&opts)
	}
	s, err := Start(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// config is what the unmodified driver makes of the stand-in's DSN.
func config(t testing.TB, dsn string) *gosnowflake.Config {
	t.Helper()
	c, err := gosnowflake.ParseDSN(dsn + "&loginTimeout=20&requestTimeout=60&clientTimeout=60")
	if err != nil {
		t.Fatal(err)
	}
	off := "false"
	if c.Params == nil {
		c.Params = map[string]*string{}
	}
	c.Params["CLIENT_TELEMETRY_ENABLED"] = &off
	return c
}

func open(t testing.TB, c *gosnowflake.Config) *sql.DB {
	t.Helper()
	db := sql.OpenDB(gosnowflake.NewConnector(gosnowflake.SnowflakeDriver{}, *c))
	t.Cleanup(func() { db.Close() })
	return db
}

func TestQueries(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	db := open(t, config(t, s.DSN()))
	ctx := t.Context()
	var version string
	if err := db.QueryRowContext(ctx, "SELECT CURRENT_VERSION()").Scan(&version); err != nil || version != Version {
		t.Fatalf("version %q, %v", version, err)
	}
	if _, err := db.ExecContext(ctx,
		"CREATE TABLE orders (id bigint PRIMARY KEY, note text, amount numeric(10,2))"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		r, err := db.ExecContext(ctx, "INSERT INTO orders VALUES (?, ?, ?)", i, "note", "1.50")
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := r.RowsAffected(); n != 1 {
			t.Fatalf("inserted %d rows", n)
		}
	}
	rows, err := db.QueryContext(ctx, "SELECT id, note, amount FROM orders WHERE id >= ? ORDER BY id", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	count := 0
	for rows.Next() {
		var id int64
		var note, amount string
		if err := rows.Scan(&id, &note, &amount); err != nil {
			t.Fatal(err)
		}
		if count++; id != int64(count) || note != "note" || amount != "1.50" {
			t.Errorf("row %d: %d %q %q", count, id, note, amount)
		}
	}
	if rows.Err() != nil || count != 2 {
		t.Fatalf("%d rows, %v", count, rows.Err())
	}
	if n := s.Stats().Telemetry; n != 0 {
		t.Errorf("%d requests to the telemetry endpoint", n)
	}
}
