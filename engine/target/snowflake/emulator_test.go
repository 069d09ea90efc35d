package snowflake_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
)

// TestEmulator runs the driver against somebody else's emulator of Snowflake, so
// that not only our own reading of the protocol is tested with itself. It needs
// one: `make test-snowflake-emulator` installs and starts it.
func TestEmulator(t *testing.T) {
	dsn := os.Getenv("LOADSTONE_SNOWFLAKE_EMULATOR")
	if dsn == "" {
		t.Skip("no emulator: run `make test-snowflake-emulator`")
	}
	ctx := t.Context()
	db, err := snowflake.NewDriver().
		Open(target.Config{DSN: secret.New(dsn), ConnectTimeout: 20 * time.Second, ApplicationName: "loadstone"})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()

	t.Run("check", func(t *testing.T) {
		info, err := db.Check(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if info.Version == "" || !info.Emulated || !info.Simulated {
			t.Errorf("%+v", info)
		}
		t.Logf("it says it is %s", info.Version)
	})

	t.Run("statements", func(t *testing.T) {
		if err := db.Exec(ctx, "CREATE OR REPLACE TABLE emulated (id NUMBER(38,0), note VARCHAR, amount NUMBER(12,2), ok "+
			"BOOLEAN, made TIMESTAMP_NTZ)"); err != nil {
			t.Fatal(err)
		}
		if err := db.Exec(ctx, "INSERT INTO emulated VALUES (1, 'one', 1.50, TRUE, '2024-02-29 13:14:15'), (2, NULL, "+
			"NULL, NULL, NULL)"); err != nil {
			t.Fatal(err)
		}
		got, err := db.Query(ctx, "SELECT id, note, amount, ok, made FROM emulated WHERE id <= ? ORDER BY id", int64(2))
		if err != nil {
			t.Fatal(err)
		}
		if want := "[ID NOTE AMOUNT OK MADE]"; fmt.Sprint(got.Columns) != want {
			t.Errorf("the columns are %v", got.Columns)
		}
		if len(got.Rows) != 2 {
			t.Fatalf("%d rows", len(got.Rows))
		}
		if first := got.Rows[0]; fmt.Sprint(first[0]) != "1" || first[1] != "one" ||
			!strings.HasPrefix(fmt.Sprint(first[2]), "1.5") || fmt.Sprint(first[3]) != "true" {
			t.Errorf("the first row is %v", first)
		}
		// Not the timestamp: fakesnow marks the parts of its NULL as missing, and not the whole.
		for i, v := range got.Rows[1][1:4] {
			if v != nil {
				t.Errorf("column %d of the second row is %v, not NULL", i+1, v)
			}
		}
	})

	t.Run("errors", func(t *testing.T) {
		_, err := db.Query(ctx, "SELECT * FROM there_is_no_such_table")
		if err == nil {
			t.Fatal("a table that does not exist can be read")
		}
		if c := db.Classify(err); c.Class == "" {
			t.Errorf("%v has no class", err)
		}
	})

	t.Run("load", func(t *testing.T) {
		if err := db.Exec(ctx, "CREATE OR REPLACE TABLE loaded (id NUMBER(38,0), note VARCHAR)"); err != nil {
			t.Fatal(err)
		}
		columns := []engine.Column{{Name: "ID", Type: engine.TypeI64, DBType: "NUMBER(38,0)"},
			{Name: "NOTE", Type: engine.TypeText, DBType: "VARCHAR"}}
		given := false
		n, err := db.Load(ctx, `"LOADED"`, columns, func() (plugin.Rows, error) {
			if given {
				return nil, nil
			}
			given = true
			return someRows(50), nil
		}, func(int64) {})
		if err != nil || n != 50 {
			t.Fatalf("%d rows were loaded: %v", n, err)
		}
		got, err := db.Query(ctx, "SELECT COUNT(*), SUM(id) FROM loaded WHERE note = 'note ' || id")
		if err != nil {
			t.Fatal(err)
		}
		if fmt.Sprint(got.Rows[0]) != "[50 1225]" {
			t.Errorf("count and sum are %v", got.Rows[0])
		}
	})

	t.Run("connection", func(t *testing.T) {
		conn, err := db.Connect(ctx, []engine.Statement{
			{ID: "lookup", Kind: engine.KindPointLookup, SQL: "SELECT id, note FROM loaded WHERE id = ?",
				Binds: []engine.Bind{{Name: "id", Type: engine.TypeI64}}, Columns: []string{"id", "note"}},
			{ID: "insert", Kind: engine.KindInsert, SQL: "INSERT INTO loaded VALUES (?, ?)", Writes: true,
				Binds: []engine.Bind{{Name: "id", Type: engine.TypeI64}, {Name: "note", Type: engine.TypeText}}},
			{ID: "update", Kind: engine.KindUpdate, SQL: "UPDATE loaded SET note = ? WHERE id = ?", Writes: true,
				Binds: []engine.Bind{{Name: "note", Type: engine.TypeText}, {Name: "id", Type: engine.TypeI64}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, c := range []struct {
			statement uint16
			args      []any
			rows      int32
		}{{0, []any{int64(7)}, 1}, {0, []any{int64(-7)}, 0}, {1, []any{int64(1000), "a 'quoted' \"note\""}, 1},
			{2, []any{nil, int64(1000)}, 1}} {
			batch, op := targettest.Batch(c.statement, c.args...)
			var result target.Result
			if err := conn.Exec(ctx, batch, op, &result); err != nil {
				t.Errorf("statement %d with %v: %v", c.statement, c.args, err)
			} else if result.Rows != c.rows || result.QueryID == (engine.QueryID{}) {
				t.Errorf("statement %d with %v: %d rows, not %d, query id %v", c.statement, c.args, result.Rows, c.rows,
					result.QueryID)
			}
		}
		if conn.Broken() {
			t.Error("the connection is broken")
		}
	})
}

type someRows int

func (n someRows) Len() int { return int(n) }

func (n someRows) Value(r, c int) any {
	if c == 0 {
		return int64(r)
	}
	return fmt.Sprint("note ", r)
}
