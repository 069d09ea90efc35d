package load_test

import (
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// lookups is a native stream of uniform point lookups.
type lookups struct {
	random *rand.Rand
	rows   int64
}

func (s *lookups) Fill(b *plugin.Batch, n int) error {
	b.Reset()
	for i := range n {
		b.Ops = append(b.Ops, plugin.Op{FirstArg: uint32(i), NArgs: 1})
		b.Args = append(b.Args, plugin.Value{Type: engine.TypeI64, I: 1 + s.random.Int64N(s.rows)})
	}
	return nil
}
func (s *lookups) Close() error { return nil }

type counting struct{ n int64 }

func (s *counting) Write(recs []engine.Execution) error { s.n += int64(len(recs)); return nil }

func lookupPlan() *engine.Plan {
	return &engine.Plan{Statements: []engine.Statement{{ID: "lookup", Kind: engine.KindPointLookup,
		SQL:   "SELECT abalance FROM pgbench_accounts WHERE aid = $1",
		Binds: []engine.Bind{{Name: "id", Type: engine.TypeI64}}}}}
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
