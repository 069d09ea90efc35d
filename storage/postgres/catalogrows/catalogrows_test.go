package catalogrows_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loadstone-db/loadstone/engine/catalog/keep"
	"github.com/loadstone-db/loadstone/engine/catalog/keep/keeptest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
	"github.com/loadstone-db/loadstone/storage/postgres/catalogrows"
	"github.com/loadstone-db/loadstone/storage/postgres/schema"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T) *pgxpool.Pool {
	dsn := pgtest.Start(t).NewDatabase(t)
	if err := schema.Apply(t.Context(), dsn); err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func TestPostgres(t *testing.T) {
	keeptest.Run(t, func(t *testing.T) keep.Keeper { return catalogrows.New(open(t)) })
}

// TestTheDatabaseHoldsReferences: constraints stand behind what is checked before.
func TestTheDatabaseHoldsReferences(t *testing.T) {
	pool := open(t)
	rows := catalogrows.New(pool)
	err := keeptest.Apply(t.Context(), rows, `CREATE LOGICAL SOURCE a(x INT64);
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
