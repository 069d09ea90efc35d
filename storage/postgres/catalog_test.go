package postgres_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres"
	"github.com/loadstone-db/loadstone/storage/postgres/postgrestest"
)

func catalogOpen(t *testing.T) *pgxpool.Pool {
	dsn := postgrestest.NewControl(t)
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func keys(t *testing.T) *keyring.Keyring {
	t.Helper()
	ring, err := keyring.Open(filepath.Join(t.TempDir(), "secret.key"))
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// TestAnAddressIsSealed: what is behind the host of a webhook is read back, but stands nowhere in the clear; with
// another key the sink is there without it, and can be dropped.
func TestAnAddressIsSealed(t *testing.T) {
	t.Parallel()
	const address = "https://hooks.example.com/services/T0/canary"
	pool := catalogOpen(t)
	rows := postgres.NewCatalogStore(pool, keys(t))
	if err := catalogtest.Apply(
		t.Context(),
		rows,
		"CREATE SINK w TYPE WEBHOOK SET('"+address+"' AS SINK.URL)",
	); err != nil {
		t.Fatal(err)
	}
	read := func(r *postgres.CatalogStore) catalog.Contents {
		c, err := r.CatalogContents(t.Context())
		if err != nil || len(c.Sinks) != 1 {
			t.Fatalf("the catalog is %+v, %v", c, err)
		}
		return c
	}
	if got := read(rows).Sinks[0].Config.String("SINK.URL"); got != address {
		t.Errorf("the address is read as %q", got)
	}
	shown, err := catalog.FromContents(read(rows)).Get("", &sql.Get{Entity: sql.Sink})
	if text := fmt.Sprint(shown); err != nil || strings.Contains(text, "canary") ||
		!strings.Contains(text, `SINK.URL="https://hooks.example.com/…"`) {
		t.Errorf("GET SINKS shows %s, %v", text, err)
	}
	var kept string
	if err := pool.QueryRow(t.Context(), "SELECT config::text FROM sinks").Scan(&kept); err != nil ||
		!strings.Contains(kept, "SINK.URL") || strings.Contains(kept, "canary") || strings.Contains(kept, "hooks.") {
		t.Errorf("the database keeps %s, %v", kept, err)
	}
	other := postgres.NewCatalogStore(pool, keys(t))
	if got := read(other).Sinks[0].Config.String("SINK.URL"); got != "" {
		t.Errorf("with another key the address is %q", got)
	}
	if err := catalogtest.Apply(t.Context(), other, "DROP SINK w"); err != nil {
		t.Error(err)
	}
}

func TestPostgres(t *testing.T) {
	t.Parallel()
	catalogtest.Run(t, func(t *testing.T) catalog.Store { return postgres.NewCatalogStore(catalogOpen(t), keys(t)) })
}

// TestTheDatabaseHoldsReferences: constraints stand behind what is checked before.
func TestTheDatabaseHoldsReferences(t *testing.T) {
	t.Parallel()
	pool := catalogOpen(t)
	rows := postgres.NewCatalogStore(pool, keys(t))
	err := catalogtest.Apply(t.Context(), rows, `CREATE LOGICAL SOURCE a(x INT64);
		CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('a' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE); CREATE SINK s TYPE PRINT;
		CREATE QUERY q AS SELECT x FROM a INTO s`)
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{"DELETE FROM logical_sources", "DELETE FROM physical_sources", "DELETE FROM sinks",
		"DELETE FROM workers", "DELETE FROM global_query_states", "UPDATE queries SET execution_state = 'LOST'",
		"UPDATE physical_sources SET source_type = 'PIPE'", "INSERT INTO sinks VALUES ('S', '[]', NULL, 'PRINT', '{}')",
		"INSERT INTO logical_sources VALUES ('b', '[]')", "INSERT INTO network_links VALUES ('server', 'server')",
		"UPDATE workers SET capacity = 0"} {
		if _, err := pool.Exec(t.Context(), sql); err == nil {
			t.Errorf("%s was done", sql)
		}
	}
}
