package postgres_test

import (
	"errors"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.M{M: m}) }

func TestConformance(t *testing.T) { conform(t, postgres.NewDriver()) }

func conform(t *testing.T, d target.Driver) {
	dsn := pgtest.Start(t).NewDatabase(t)
	t.Run("rows without end", func(t *testing.T) {
		db, err := d.Open(target.Config{DSN: secret.New(dsn)})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		for _, sql := range []string{
			"SELECT repeat('x', 1000), generate_series(1, 10000000)",
			"SELECT '', generate_series(1, 10000000)",
			"SELECT repeat('x', 10000000)",
		} {
			if rs, err := db.Query(t.Context(), sql); !errors.Is(err, target.ErrTooLarge) {
				t.Errorf("%s: %v, %v", sql, rs != nil, err)
			}
			// The connection that was left is not given to anyone else.
			if rs, err := db.Query(t.Context(), "SELECT repeat('x', 4000000) AS large"); err != nil || len(rs.Rows) != 1 {
				t.Errorf("afterwards: %v", err)
			}
		}
	})
	targettest.Run(t, targettest.Options{
		Driver: d,
		DSN:    dsn,
		Table:  "conformance",
		Create: []string{"CREATE TABLE conformance (id bigint PRIMARY KEY, f float8, t text, b bytea, o boolean, m " +
			"timestamptz)"},
		Insert:  "INSERT INTO conformance VALUES ($1, $2, $3, $4, $5, $6)",
		Lookup:  "SELECT id, f, t, b, o, m FROM conformance WHERE id = $1",
		Scan:    "SELECT * FROM conformance WHERE id >= $1 AND id < $2",
		Count:   "SELECT count(*) FROM conformance",
		Sleep:   "SELECT pg_sleep($1)",
		Wrong:   "SELECT nothing FROM nowhere",
		Comment: "SELECT obj_description('kept'::regclass)",
		Columns: []engine.Column{{Name: "id", Type: engine.TypeI64}, {Name: "f", Type: engine.TypeF64},
			{Name: "t", Type: engine.TypeText},
			{Name: "b", Type: engine.TypeBytes}, {Name: "o", Type: engine.TypeBool}, {Name: "m", Type: engine.TypeTimestamp}},
		Kill: func(t *testing.T) {
			db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn)})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Query(t.Context(),
				"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> "+
					"pg_backend_pid()"); err != nil {
				t.Fatal(err)
			}
		},
	})
}
