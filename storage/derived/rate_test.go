package derived_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// TestRatedIsWhatCountsInTheRate: the query of docs/reference/sql-tables.md gives the rate of a measurement of which the first 5 s only
// ended what was due in the warm-up, and after which operations went on ending for 2 s. So do the tables, as a whole and
// in each second.
func TestRatedIsWhatCountsInTheRate(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/sql-tables.md")
	if err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(string(text), "SELECT s.kind, ")
	query, _, _ = strings.Cut("SELECT s.kind, "+query, "```")
	// Nothing refreshes here: the table is that of the roll-ups.
	query = strings.ReplaceAll(strings.ReplaceAll(query, "…", "backlog"), "run_summary", "rollup.runs")

	d, _, reader := open(t)
	r, _ := oneRun("backlog", 1)
	r.Seconds, r.Summary.DurationSeconds = rollup.New(noon), 10
	b := &rollup.Batch{Kind: record.Texts{Values: []string{"INSERT"}}, Statement: record.Texts{Values: []string{"put"}},
		Worker: record.Texts{Values: []string{"w"}}}
	const perSecond, behind = 20, 5 * time.Second
	from := noon.Add(10400 * time.Millisecond)
	r.Seconds.SetMeasurement(from, from.Add(10*time.Second))
	for end := noon.Add(behind); end.Before(from.Add(12 * time.Second)); end = end.Add(time.Second / perSecond) {
		due := end.Add(-behind)
		b.DueNs, b.ElapsedNs = append(b.DueNs, due.UnixNano()), append(b.ElapsedNs, int64(behind))
		b.Rows, b.Position, b.Success = append(b.Rows, 1), append(b.Position, 0), append(b.Success, true)
		b.Warmup = append(b.Warmup, due.Before(from))
		for _, texts := range []*record.Texts{&b.Kind, &b.Statement, &b.Worker} {
			texts.Index = append(texts.Index, 0)
		}
		b.Class.Index, b.Code.Index = append(b.Class.Index, -1), append(b.Code.Index, -1)
	}
	r.Seconds.Add(b)
	put(t, d, r, 1)
	var kind string
	var rate float64
	if err := reader.QueryRow(t.Context(), query).Scan(&kind, &rate); err != nil || kind != "INSERT" || rate != perSecond {
		t.Errorf("%s: %v/s, %v", kind, rate, err)
	}
	for _, table := range []string{"run_seconds", "kind_seconds", "statement_seconds", "worker_seconds"} {
		var rated, operations int64
		if err := reader.QueryRow(t.Context(), "SELECT sum(rated)::bigint, sum(operations)::bigint FROM rollup."+table).
			Scan(&rated, &operations); err != nil || rated != 10*perSecond || operations <= rated {
			t.Errorf("%s: %d of %d operations count in the rate, %v", table, rated, operations, err)
		}
		// So is the rate of each second, but for the first and the last one, of which a part was measured.
		rows, err := reader.Query(t.Context(), "SELECT second, sum(rated)::bigint FROM rollup."+table+
			" GROUP BY second HAVING sum(rated) > 0 ORDER BY second")
		if err != nil {
			t.Fatal(err)
		}
		whole := 0
		for rows.Next() {
			var second int
			if err := rows.Scan(&second, &rated); err != nil {
				t.Fatal(err)
			}
			inside := second > 10 && second < 20
			if second < 10 || second > 20 || inside != (rated == perSecond) {
				t.Errorf("%s: %d/s in second %d", table, rated, second)
			}
			if inside {
				whole++
			}
		}
		if err := rows.Err(); err != nil || whole != 9 {
			t.Errorf("%s: %d whole seconds, %v", table, whole, err)
		}
	}
}
