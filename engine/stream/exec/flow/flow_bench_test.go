package flow_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
	"github.com/loadstone-db/loadstone/engine/stream/plan"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

type schema []column.Column

func (s schema) Schema(string) ([]column.Column, bool) { return s, true }
func (s schema) Names() []string                       { return []string{"t"} }

var executions = schema{{Name: "ts", Type: column.TimestampType}, {Name: "worker", Type: column.TextType},
	{Name: "kind", Type: column.TextType}, {Name: "latency_us", Type: column.Int64Type},
	{Name: "rows_read", Type: column.Int64Type}, {Name: "ok", Type: column.BooleanType}}

// bind returns the plan of a query over executions.
func bind(t testing.TB, query string) *plan.Plan {
	t.Helper()
	parsed, err := sql.Parse(query)
	if err != nil {
		t.Fatal(err)
	}
	p, err := plan.Bind(query, parsed[0].Statement.(*sql.CreateQuery).Select, executions)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// batches are rows of some seconds, 100 000 a second, of eight workers and five kinds.
func batches(n, size int) []*column.Batch {
	r := rand.New(rand.NewPCG(1, 1))
	kinds := []string{"POINT_LOOKUP", "RANGE_SCAN", "INSERT", "UPDATE", "CHECKOUT"}
	var all []*column.Batch
	for i := range n {
		b := &column.Batch{N: size}
		b.Reset(executions)
		b.N = size
		for j := range size {
			b.Cols[0].AppendInt(int64(i*size+j)*10 - r.Int64N(1000))
			b.Cols[1].AppendText(fmt.Appendf(nil, "worker-%d", r.IntN(8)))
			b.Cols[2].AppendText([]byte(kinds[r.IntN(5)]))
			b.Cols[3].AppendInt(100 + r.Int64N(100_000))
			b.Cols[4].AppendInt(r.Int64N(100))
			b.Cols[5].AppendBool(r.IntN(100) > 0)
		}
		all = append(all, b)
	}
	return all
}

var benched = map[string]string{
	"FilterProjectTumbling": `SELECT start, kind, COUNT(*) AS n, SUM(ms) AS total, MAX(ms) AS most
		FROM (SELECT ts, kind, latency_us / 1000.0 AS ms FROM t WHERE ok AND latency_us > 1000)
		GROUP BY kind WINDOW TUMBLING(ts, SIZE 1 SEC, LATENESS 10 MS) INTO s`,
	"Quantile": `SELECT start, kind, QUANTILE(latency_us, 0.99) AS p99 FROM t WHERE ok
		GROUP BY kind WINDOW TUMBLING(ts, SIZE 1 SEC, LATENESS 10 MS) INTO s`,
	"Sliding": `SELECT start, worker, kind, AVG(latency_us) AS a, STDDEV(latency_us) AS d FROM t
		GROUP BY worker, kind WINDOW SLIDING(ts, SIZE 10 SEC, ADVANCE BY 1 SEC, LATENESS 10 MS) INTO s`,
}

// processor is how long this process has had a processor.
func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRows: an operation is a row.
func BenchmarkRows(b *testing.B) {
	for name, query := range benched {
		b.Run(name, func(b *testing.B) {
			given := 0
			q := flow.New(bind(b, query), flow.Options{Origins: []int{1}, Now: time.Now, Out: func(o *column.Batch) error {
				given += o.N
				return nil
			}})
			const size = 1024
			all := batches(256, size)
			span := int64(256 * size * 10)
			next := func(i int) {
				batch := all[i%len(all)]
				if err := q.Push(0, 0, batch); err != nil {
					b.Fatal(err)
				}
				for j := range batch.Cols[0].Ints { // the next time round it is later
					batch.Cols[0].Ints[j] += span
				}
			}
			for i := range 4 * len(all) {
				next(i) // memory grows to what is needed
			}
			b.ReportAllocs()
			before := processor()
			b.ResetTimer()
			for i := 0; i < b.N; i += size {
				next(i / size)
			}
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
			b.ReportMetric(float64(b.N)/(processor()-before).Seconds()/1e6, "Mrows/core-s")
			if given == 0 || q.Counts().Late > 0 {
				b.Fatalf("%d groups, %+v", given, q.Counts())
			}
		})
	}
}

// TestRowsCostNoAllocation: of a million rows there are a few allocations for windows, and none for rows.
func TestRowsCostNoAllocation(t *testing.T) {
	for name, query := range benched {
		q := flow.New(bind(t, query), flow.Options{Origins: []int{1}, Now: time.Now,
			Out: func(*column.Batch) error { return nil }})
		all := batches(64, 1024)
		round := func() {
			for _, b := range all {
				if err := q.Push(0, 0, b); err != nil {
					t.Fatal(err)
				}
				for j := range b.Cols[0].Ints {
					b.Cols[0].Ints[j] += 64 * 1024 * 10
				}
			}
		}
		for range 20 {
			round()
		}
		// Quantiles of a window are buckets that come and go.
		most := map[bool]float64{true: 400, false: 6}[strings.Contains(query, "QUANTILE")]
		if n := testing.AllocsPerRun(10, round); n > most {
			t.Errorf("%s: 65536 rows cost %g allocations", name, n)
		}
	}
}
