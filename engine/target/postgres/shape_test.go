package postgres_test

import (
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/nullpg"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
)

// What answers every question with one row of one number is no Postgres: whatever is asked of it, the process lives on.
func TestAnAnswerOfAnotherShapeEndsNoProcess(t *testing.T) {
	t.Parallel()
	server, err := nullpg.Listen(t.Context(), "127.0.0.1:0", nullpg.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	own := []engine.OwnDatabase{{SystemID: "1", OID: 1, Name: "loadstone", What: "store"}}
	for name, d := range map[string]target.Driver{"one's own": postgres.NewDriver(),
		"a server's": postgres.NewStrictDriver(func() []engine.OwnDatabase { return own }, nil)} {
		db, err := d.Open(target.Config{DSN: secret.New(server.DSN()), ConnectTimeout: 5 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if info, err := db.Check(t.Context()); err != nil || info.Version != "" || info.MaxConnections != 0 {
			t.Errorf("%s: Check says %+v, %v", name, info, err)
		}
		for what, ask := range map[string]func() error{
			"columns": func() error {
				_, err := db.(target.Describer).Columns(t.Context(), 10)
				return err
			},
			"parameters": func() error {
				_, err := db.(target.Describer).Parameters(t.Context(), "SELECT $1, $2")
				return err
			},
			"a mark": func() error {
				_, err := db.(target.TableMarker).MarkSQL(t.Context(), "t")
				return err
			},
		} {
			if err := ask(); err == nil {
				t.Errorf("%s: %s are taken from what is no Postgres", name, what)
			}
		}
		if own, err := db.(target.TableMarker).Owned(t.Context(), "t"); err != nil || own[0] {
			t.Errorf("%s: its table is ours: %v, %v", name, own, err)
		}
		_, _ = db.(target.TableMarker).Writes(t.Context(), []engine.Statement{{ID: "s", SQL: "UPDATE t SET a = f(1)"}})
		if c, err := db.Connect(t.Context(), nil); err != nil {
			t.Errorf("%s: %v", name, err)
		} else {
			_ = c.Close()
		}
	}
}
