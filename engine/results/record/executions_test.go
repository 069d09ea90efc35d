package record

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/loadstone-db/loadstone/engine"
)

var testStatements = []engine.Statement{
	{ID: "point_lookup", Kind: engine.KindPointLookup}, {ID: "range_scan", Kind: engine.KindRangeScan},
	{ID: "insert", Kind: engine.KindInsert}, {ID: "update", Kind: engine.KindUpdate},
}

var testErrors = map[uint32]engine.ExecutionError{
	1: {Class: engine.ErrClassTimeout, Code: "57014", Message: "canceling statement due to statement timeout"},
	2: {Class: engine.ErrClassConstraint, Code: "23505", Message: "duplicate key value violates unique constraint"},
	3: {Class: engine.ErrClassTimeout, Code: "57014", Message: "another text"},
}

func testError(id uint32) engine.ExecutionError { return testErrors[id] }

// realistic makes n executions as a closed loop over conns connections makes
// them: log-normal latencies, jittered starts, a mix of kinds, handed over in
// chunks of one connection each.
func realistic(n, conns, chunk int, warmup int64, failEvery int) []engine.Execution {
	rng := rand.New(rand.NewPCG(1, 2))
	at := make([]int64, conns)
	seq := make([]uint32, conns)
	const t0 = 1_790_000_000_000_000_000
	for i := range at {
		at[i] = t0 + rng.Int64N(1e6)
	}
	recs := make([]engine.Execution, 0, n)
	for c := 0; len(recs) < n; c = (c + 1) % conns {
		for range chunk {
			if len(recs) == n {
				break
			}
			elapsed := int64(math.Exp(rng.NormFloat64()*0.5) * 350_000)
			r := engine.Execution{DueAt: at[c], StartedAt: at[c], Elapsed: elapsed, Seq: seq[c], ConnectionID: uint32(c),
				Rows: 1, Success: true, Warmup: at[c]-t0 < warmup}
			switch p := rng.IntN(100); {
			case p < 70:
			case p < 80:
				r.Kind, r.Statement, r.Rows = engine.KindRangeScan, 1, int32(rng.IntN(100))
			case p < 90:
				r.Kind, r.Statement = engine.KindInsert, 2
			default:
				r.Kind, r.Statement = engine.KindUpdate, 3
			}
			if failEvery > 0 && rng.IntN(failEvery) == 0 {
				r.Success, r.Rows, r.ErrorID = false, 0, uint32(1+rng.IntN(3))
			}
			recs = append(recs, r)
			seq[c]++
			at[c] += elapsed + 2000 + rng.Int64N(3000)
		}
	}
	return recs
}

func testOptions(dir string) WriterOptions {
	return WriterOptions{Dir: dir, RunID: "run-1", ResultID: "run-1-worker-0", WorkerID: "worker-0",
		Statements: testStatements, Errors: testError}
}

func name(n int) string { return fmt.Sprintf("executions-worker-0-%05d.parquet", n) }
