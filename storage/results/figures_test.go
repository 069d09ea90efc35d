package results

import (
	"context"
	"maps"
	"math"
	"os"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
)

// naive computes the percentiles the way the SQL standard words it.
func naive(values []float64, q float64) float64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	rn := 1 + q*float64(len(sorted)-1)
	frn, crn := math.Floor(rn), math.Ceil(rn)
	if frn == crn {
		return sorted[int(rn)-1]
	}
	return (crn-rn)*sorted[int(frn)-1] + (rn-frn)*sorted[int(crn)-1]
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(1, math.Abs(b)) }

func checkLatency(t *rapid.T, what string, got *engine.LatencyMs, values []float64) {
	if len(values) == 0 {
		if got != nil {
			t.Fatalf("%s: %+v without values", what, got)
		}
		return
	}
	var sum, m2 float64
	for _, v := range values {
		sum += v
	}
	mean := sum / float64(len(values))
	for _, v := range values {
		m2 += (v - mean) * (v - mean)
	}
	stddev := 0.0
	if len(values) > 1 {
		stddev = math.Sqrt(m2 / float64(len(values)-1))
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"p50", got.P50, naive(values, 0.5)}, {"p90", got.P90, naive(values, 0.9)}, {"p95", got.P95, naive(values, 0.95)},
		{"p99", got.P99, naive(values, 0.99)}, {"p999", got.P999, naive(values, 0.999)},
		{"min", got.Min, slices.Min(values)}, {"max", got.Max, slices.Max(values)}, {"avg", got.Avg, mean},
		{"stddev", got.StdDev, stddev},
	} {
		if !near(c.got, c.want) {
			t.Fatalf("%s %s of %d values: %v, want %v", what, c.name, len(values), c.got, c.want)
		}
	}
}

// checkFigures compares figures with an independent computation from the executions.
func checkFigures(t *rapid.T, fig *engine.Figures, recs []engine.Execution) {
	var all, service, lag []float64
	byKind := map[engine.Kind][]float64{}
	byClass := map[engine.ErrorClass]int64{}
	var warmup, failed, reads, writes, retries, rolledBack int64
	every := recs
	recs = slices.DeleteFunc(slices.Clone(recs), func(r engine.Execution) bool { return r.Position != 0 })
	if fig.Accounting.Statements != int64(len(every)-len(recs)) {
		t.Fatalf("%d statements of transactions, want %d", fig.Accounting.Statements, len(every)-len(recs))
	}
	checkStatements(t, fig.ByStatement, every)
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	var decode float64
	for _, r := range recs {
		if r.Warmup {
			warmup++
			continue
		}
		decode += float64(r.Decode) / 1e6
		v := float64(r.Elapsed) / 1e6
		all = append(all, v)
		service = append(service, float64(r.Elapsed-r.ScheduleLag-r.PoolWait)/1e6)
		lag = append(lag, float64(r.ScheduleLag)/1e6)
		byKind[r.Kind] = append(byKind[r.Kind], v)
		retries += int64(r.Retries)
		if r.RolledBack {
			rolledBack++
		}
		if !r.Success {
			failed++
			class := dictionary[r.ErrorID].Class
			if class == "" {
				class = engine.ErrClassOther
			}
			byClass[class]++
		}
		switch r.Kind {
		case engine.KindPointLookup, engine.KindRangeScan:
			reads++
		case engine.KindInsert, engine.KindUpdate, engine.KindDelete:
			writes++
		}
		lo, hi = min(lo, r.DueAt), max(hi, r.DueAt+r.Elapsed)
	}
	if fig.Accounting.Recorded != int64(len(recs)) || fig.Accounting.Warmup != warmup ||
		fig.Operations != int64(len(all)) ||
		fig.Reads != reads || fig.Writes != writes || fig.Errors.Count != failed {
		t.Fatalf("counts %+v, want %d recorded, %d warm-up, %d operations, %d reads, %d writes, %d failed",
			fig, len(recs), warmup, len(all), reads, writes, failed)
	}
	if fig.Retries != retries || (fig.Transactions == nil) != (len(byKind[engine.KindTransaction]) == 0) ||
		fig.Transactions != nil && fig.Transactions.RolledBack != rolledBack {
		t.Fatalf("%d retries, transactions %+v, want %d and %d rolled back", fig.Retries, fig.Transactions, retries,
			rolledBack)
	}
	if x := fig.Transactions; x != nil && x.Count != x.Committed+x.RolledBack+x.Failed {
		t.Fatalf("%+v", x)
	}
	checkLatency(t, "all", fig.LatencyMs, all)
	checkLatency(t, "service", fig.ServiceMs, service)
	checkLatency(t, "lag", fig.ScheduleLagMs, lag)
	if s := fig.SplitMs; s != nil && !near(s.ScheduleLag+s.PoolWait+s.RoundTrip+s.Decode, fig.LatencyMs.Avg) {
		t.Fatalf("the parts %+v do not add up to %v", s, fig.LatencyMs.Avg)
	}
	if s := fig.SplitMs; s != nil && !near(s.Decode, decode/float64(len(all))) {
		t.Fatalf("decoding took %v on average, want %v", s.Decode, decode/float64(len(all)))
	}
	if len(fig.ByKind) != len(byKind) {
		t.Fatalf("%d kinds, want %d", len(fig.ByKind), len(byKind))
	}
	for k, values := range byKind {
		checkLatency(t, k.String(), fig.ByKind[k].LatencyMs, values)
		if fig.ByKind[k].Count != int64(len(values)) {
			t.Fatalf("%v: %d, want %d", k, fig.ByKind[k].Count, len(values))
		}
	}
	if len(fig.Errors.ByClass) != len(byClass) {
		t.Fatalf("error classes %v, want %v", fig.Errors.ByClass, byClass)
	}
	for class, n := range byClass {
		if fig.Errors.ByClass[class] != n {
			t.Fatalf("error classes %v, want %v", fig.Errors.ByClass, byClass)
		}
	}
	if len(all) == 0 {
		if fig.QPS != nil || fig.Errors.Rate != nil || len(fig.Histogram) != 0 || len(fig.Slowest) != 0 {
			t.Fatalf("figures of nothing: %+v", fig)
		}
		return
	}
	duration := float64(hi-lo) / 1e9
	if !near(fig.DurationSeconds, duration) || duration > 0 && !near(*fig.QPS, float64(len(all))/duration) {
		t.Fatalf("duration %v, qps %v, want %v", fig.DurationSeconds, fig.QPS, duration)
	}
	checkHistogram(t, fig.Histogram, all)
	slices.SortFunc(all, func(a, b float64) int { return -cmpFloat(a, b) })
	if len(fig.Slowest) != min(20, len(all)) {
		t.Fatalf("%d slowest of %d", len(fig.Slowest), len(all))
	}
	for i, s := range fig.Slowest {
		if s.AppElapsedMs != all[i] {
			t.Fatalf("slowest %d is %v, want %v", i, s.AppElapsedMs, all[i])
		}
		found := slices.ContainsFunc(recs, func(r engine.Execution) bool {
			return r.Seq == s.Seq && r.ConnectionID == s.ConnectionID && r.Kind == s.Kind && r.Rows == s.Rows &&
				r.Position == 0 &&
				r.Success == s.Success && r.StartedAt/1e6 == s.StartedAt.UnixMilli() && float64(r.Elapsed)/1e6 == s.AppElapsedMs &&
				s.ErrorMessage == dictionary[r.ErrorID].Message && !r.Warmup && s.ServerQueryID == r.QueryID.String()
		})
		if !found {
			t.Fatalf("slowest %d is nobody's: %+v", i, s)
		}
	}
}

// checkStatements compares figures by statement with an independent computation.
// checkStatements compares the figures by statement with percentiles of the executions, sorted one by one.
func checkStatements(t *rapid.T, list []engine.StatementFigures, recs []engine.Execution) {
	type key struct {
		id     string
		kind   engine.Kind
		inside bool
	}
	groups := map[key][]engine.Execution{}
	for _, r := range recs {
		if r.Warmup {
			continue
		}
		s := engine.Statement{}
		if int(r.Statement) < len(statements) {
			s = statements[r.Statement]
		}
		id := s.ID
		if r.Kind == engine.KindTransaction && s.Transaction != "" {
			id = s.Transaction
		}
		k := key{id, r.Kind, r.Position != 0}
		groups[k] = append(groups[k], r)
	}
	if len(list) != len(groups) {
		t.Fatalf("%d statements, want %d", len(list), len(groups))
	}
	for _, f := range list {
		of := groups[key{f.StatementID, f.Kind, f.InTransaction}]
		var errors, rows, retries, empty int64
		var values []float64
		sum := 0.0
		for _, r := range of {
			if !r.Success {
				errors++
			} else if r.Rows == 0 {
				empty++
			}
			if !f.InTransaction {
				retries += int64(r.Retries)
			}
			rows += int64(r.Rows)
			values = append(values, float64(r.Elapsed)/1e6)
			sum += float64(r.Elapsed) / 1e6
		}
		if f.Count != int64(len(of)) || f.Errors != errors || f.Rows != rows || f.NoRows != empty || f.Retries != retries ||
			len(of) == 0 {
			t.Fatalf("%+v; want %d, %d errors, %d rows, %d retries", f, len(of), errors, rows, retries)
		}
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"p50", f.LatencyMs.P50, naive(values, 0.5)}, {"p95", f.LatencyMs.P95, naive(values, 0.95)},
			{"p99", f.LatencyMs.P99, naive(values, 0.99)},
			{"max", f.LatencyMs.Max, slices.Max(values)}, {"avg", f.LatencyMs.Avg, sum / float64(len(values))},
		} {
			if !near(c.got, c.want) {
				t.Fatalf("%s of %d executions of %s: %v, want %v", c.name, len(values), f.StatementID, c.got, c.want)
			}
		}
	}
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func checkHistogram(t *rapid.T, buckets []engine.HistogramBucket, values []float64) {
	if len(buckets) > maxBuckets+4 {
		t.Fatalf("%d buckets", len(buckets))
	}
	var total int64
	for i, b := range buckets {
		if i > 0 && b.FromMs != buckets[i-1].ToMs {
			t.Fatalf("gap before bucket %d: %+v", i, buckets)
		}
		var n int64
		for _, v := range values {
			if v > b.FromMs && v <= b.ToMs {
				n++
			}
		}
		if n != b.Count {
			t.Fatalf("bucket %+v, want %d", b, n)
		}
		total += b.Count
	}
	if total != int64(len(values)) {
		t.Fatalf("histogram counts %d of %d", total, len(values))
	}
	if buckets[0].Count == 0 || buckets[len(buckets)-1].Count == 0 {
		t.Fatalf("empty buckets at an end: %+v", buckets)
	}
}

var anyExecutions = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) engine.Execution {
	at := 1_790_000_000_000_000_000 + rapid.Int64Range(0, 5e9).Draw(t, "at")
	lag := rapid.SampledFrom([]int64{0, 0, 1, 12_345_678}).Draw(t, "lag")
	r := engine.Execution{DueAt: at, StartedAt: at + lag, ScheduleLag: lag,
		// Few distinct values make ties; the wide range makes orders of magnitude.
		Elapsed: rapid.OneOf(rapid.Int64Range(1, 5), rapid.Int64Range(1, 1e6), rapid.Int64Range(1, 1e12)).Draw(t, "elapsed"),
		Kind:    engine.Kind(rapid.IntRange(0, int(engine.NumKinds)-1).Draw(t, "kind")),
		Warmup:  rapid.Bool().Draw(t, "warmup"),
		Seq:     rapid.Uint32().Draw(t, "seq"), ConnectionID: rapid.SampledFrom([]uint32{0, 1, 2, 70_000}).Draw(t, "conn"),
		Rows: rapid.Int32Range(-1, 100).Draw(t, "rows"), Statement: uint16(rapid.IntRange(0, 4).Draw(t, "statement")),
		Success: true}
	r.QueryID = engine.QueryID{3: byte(rapid.IntRange(0, 2).Draw(t, "query id"))}
	r.Decode = rapid.SampledFrom([]int64{0, 0, 1, 9_876_543}).Draw(t, "decode")
	r.Retries = uint8(rapid.SampledFrom([]int{0, 0, 1, 100}).Draw(t, "retries"))
	if r.Kind == engine.KindTransaction {
		r.RolledBack = rapid.Bool().Draw(t, "rolled back")
	} else if rapid.Bool().Draw(t, "inside") {
		r.Position = uint16(rapid.IntRange(1, 258).Draw(t, "position"))
	}
	if !r.RolledBack && rapid.IntRange(0, 3).Draw(t, "fails") == 0 {
		r.Success, r.ErrorID = false, uint32(rapid.IntRange(0, len(dictionary)-1).Draw(t, "error"))
	}
	return r
}), 0, 60)

// TestFiguresAreExact checks every figure against an independent computation,
// over several workers and parts.
func TestFiguresAreExact(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(base, "results")
		if err != nil {
			rt.Fatal(err)
		}
		f, err := Open(dir)
		if err != nil {
			rt.Fatal(err)
		}
		var all []engine.Execution
		byWorker := map[string][]engine.Execution{}
		for _, worker := range []string{"worker-0", "worker-1"} {
			for range rapid.IntRange(0, 2).Draw(rt, "parts") {
				recs := anyExecutions.Draw(rt, "executions")
				if len(recs) == 0 {
					continue
				}
				byWorker[worker] = append(byWorker[worker], recs...)
				all = append(all, recs...)
			}
			if n := len(byWorker[worker]); n > 0 {
				put(t, f, worker, byWorker[worker][:n/2+1], byWorker[worker][n/2+1:])
			}
		}
		ctx := context.Background()
		ids := append(slices.Sorted(maps.Keys(byWorker)), "none")
		parent, children, err := f.FiguresByWorker(ctx, "run", ids, engine.Window{})
		if err != nil {
			rt.Fatal(err)
		}
		checkFigures(rt, parent, all)
		if len(children) != len(ids) || children[len(ids)-1].Accounting.Recorded != 0 {
			rt.Fatalf("%d workers, want %d", len(children), len(ids))
		}
		for i, worker := range ids[:len(ids)-1] {
			recs := byWorker[worker]
			checkFigures(rt, children[i], recs)
			one, err := f.FiguresIn(ctx, "run", worker, engine.Window{})
			if err != nil {
				rt.Fatal(err)
			}
			checkFigures(rt, one, recs)
			if !reflect.DeepEqual(one, children[i]) {
				rt.Fatalf("%s: figures differ in the second reading: %+v and %+v", worker, one, children[i])
			}
		}
	})
}

// TestPercentileInterpolates pins PERCENTILE_CONT to figures that Postgres gives.
func TestPercentileInterpolates(t *testing.T) {
	d := distribution{
		pieces: []sortedPiece{newPiece([]uint64{key(1), key(4)}, 0, 0), newPiece([]uint64{key(2), key(10)}, 0, 1)},
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 0.25: 1.75, 0.9: 8.2, 1: 10} {
		if got := d.percentile(q); math.Abs(got-want) > 1e-12 {
			t.Errorf("percentile_cont(%v) = %v, want %v", q, got, want)
		}
	}
	one := distribution{pieces: []sortedPiece{newPiece([]uint64{key(7)}, 0, 0)}}
	if got := one.latency(); got.P50 != 7 || got.P999 != 7 || got.StdDev != 0 {
		t.Errorf("one value: %+v", got)
	}
}
