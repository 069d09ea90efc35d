package load_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/worker/load"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// transfers makes transactions on few accounts: reading two balances and writing
// them back through refs, or locking two rows in any order.
type transfers struct {
	random *rand.Rand
	refs   bool
	left   int
}

const accounts = 4

func (s *transfers) Fill(b *plugin.Batch, most int) error {
	b.Reset()
	for len(b.Ops) < most {
		if s.left == 0 {
			if len(b.Ops) == 0 {
				return plugin.ErrEnded
			}
			return nil
		}
		s.left--
		from := s.random.Int64N(accounts)
		to := (from + 1 + s.random.Int64N(accounts-1)) % accounts
		op := func(statement uint16, referred bool, args ...plugin.Value) {
			b.Ops = append(b.Ops, plugin.Op{Statement: statement, FirstArg: uint32(len(b.Args)), NArgs: uint16(len(args)),
				Referred: referred})
			b.Args = append(b.Args, args...)
		}
		id := func(v int64) plugin.Value { return plugin.Value{Type: engine.TypeI64, I: v} }
		op(plugin.StatementBegin, false)
		if s.refs {
			op(0, true, id(from))
			op(0, true, id(to))
			op(1, false, plugin.Ref(0, 0), id(-1), id(from))
			op(1, false, plugin.Ref(1, 0), id(1), id(to))
		} else {
			op(2, false, id(-1), id(from))
			op(2, false, id(1), id(to))
		}
		end := plugin.StatementCommit
		if s.random.IntN(10) == 0 {
			end = plugin.StatementRollback
		}
		op(end, false)
	}
	return nil
}
func (s *transfers) Close() error { return nil }

// TestConflictsAreRetriedOnPostgres: transactions that lose against others by
// serialization failures and deadlocks are repeated until they succeed, what they
// moved adds up, and every record is there.
func TestConflictsAreRetriedOnPostgres(t *testing.T) {
	for _, c := range []struct {
		name    string
		session []string
		refs    bool
		class   engine.ErrorClass
	}{
		{"serialization", []string{"SET default_transaction_isolation = serializable", "SET deadlock_timeout = '5ms'"}, true,
			engine.ErrClassSerialization},
		{"deadlock", []string{"SET deadlock_timeout = '5ms'"}, false, engine.ErrClassDeadlock},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := pgtest.Start(t)
			dsn := server.NewDatabase(t)
			db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(dsn), Session: c.session})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			if err := db.Exec(t.Context(), "CREATE TABLE accounts (id int PRIMARY KEY, balance numeric(12,2) NOT NULL)",
				"INSERT INTO accounts SELECT g, 100 FROM generate_series(0, 3) g"); err != nil {
				t.Fatal(err)
			}
			bind := func(names ...string) (list []engine.Bind) {
				for _, n := range names {
					list = append(list, engine.Bind{Name: n, Type: engine.TypeI64})
				}
				return list
			}
			sink := &records{}
			const transactions = 400
			g, err := load.Open(t.Context(), load.Config{
				Stream: &transfers{rand.New(rand.NewPCG(1, 2)), c.refs, transactions}, Database: db, Sink: sink, Log: zerolog.Nop(),
				Workload: engine.Workload{Retry: &engine.Retry{Max: 100,
					Classes: []engine.ErrorClass{engine.ErrClassSerialization, engine.ErrClassDeadlock}, BackoffMs: 0.2}},
				Plan: &engine.Plan{Statements: []engine.Statement{
					{ID: "read", Kind: engine.KindPointLookup, SQL: "SELECT balance FROM accounts WHERE id = $1", Binds: bind("id"),
						Columns: []string{"balance"}},
					{ID: "write", Kind: engine.KindUpdate, SQL: "UPDATE accounts SET balance = $1::numeric + $2::int WHERE id = $3",
						Binds: bind("old", "delta", "id"), Writes: true},
					{ID: "add", Kind: engine.KindUpdate, SQL: "UPDATE accounts SET balance = balance + $1 WHERE id = $2",
						Binds: bind("delta", "id"), Writes: true},
				}}}, 8, nil)
			if err != nil {
				t.Fatal(err)
			}
			g.Start(engine.PhaseMeasurement)
			select {
			case <-g.Done():
			case <-time.After(time.Minute):
				t.Error("it does not end")
			}
			if err := g.Drain(t.Context()); err != nil {
				t.Error(err)
			}
			defer g.Close()
			n := g.Totals()
			if n.Started != transactions || n.Failed != 0 || n.Recorded != n.Started ||
				n.Recorded+n.Statements != int64(len(sink.list)) {
				t.Errorf("%+v, %d records, first error %+v", n, len(sink.list), g.Error(1))
			}
			var retries, rolledBack, failures int64
			seen := false
			for _, r := range sink.list {
				switch {
				case r.Position == 0:
					retries += int64(r.Retries)
					if r.RolledBack {
						rolledBack++
					}
				case !r.Success:
					failures++
					seen = seen || g.Error(r.ErrorID).Class == c.class
				}
			}
			if retries == 0 || failures != retries || rolledBack == 0 || !seen {
				t.Errorf("%d retries, %d failures of statements, %d rolled back, %+v", retries, failures, rolledBack, g.Error(1))
			}
			t.Logf("%d transactions, %d retries, %d rolled back", n.Started, retries, rolledBack)
			rs, err := db.Query(t.Context(), "SELECT sum(balance)::text, count(*) FILTER (WHERE balance <> 100) FROM accounts")
			if err != nil {
				t.Fatal(err)
			}
			if rs.Rows[0][0] != "400.00" || rs.Rows[0][1] == int64(0) {
				t.Errorf("the balances add up to %v, %v accounts moved", rs.Rows[0][0], rs.Rows[0][1])
			}
		})
	}
}

// records keeps what it is given.
type records struct{ list []engine.Execution }

func (s *records) Write(recs []engine.Execution) error {
	s.list = append(s.list, recs...)
	return nil
}
