package derived_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/results/record"
	"github.com/loadstone-db/loadstone/engine/results/rollup"
)

// TestTheRateOfASecondHoldsWhatWasCarriedOver: the query of docs/refresh.md gives the rate of each second of a
// measurement of which the first 5 s only ended what was due in the warm-up.
func TestTheRateOfASecondHoldsWhatWasCarriedOver(t *testing.T) {
	text, err := os.ReadFile("../../docs/refresh.md")
	if err != nil {
		t.Fatal(err)
	}
	_, query, _ := strings.Cut(string(text), "SELECT s.second, ")
	query, _, _ = strings.Cut("SELECT s.second, "+query, "```")
	// Nothing refreshes here: the table is that of the roll-ups.
	query = strings.ReplaceAll(strings.ReplaceAll(query, "…", "backlog"), "run_summary", "rollup.runs")

	d, _, reader := open(t)
	r, _ := oneRun("backlog", 1)
	r.Seconds, r.Summary.DurationSeconds = rollup.New(noon), 10
	b := &rollup.Batch{Kind: record.Texts{Values: []string{"INSERT"}}, Statement: record.Texts{Values: []string{"put"}},
		Worker: record.Texts{Values: []string{"w"}}}
	const perSecond, behind = 20, 5 * time.Second
	from := noon.Add(10400 * time.Millisecond)
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
	for second := range int32(20) {
		phase := engine.PhaseMeasurement
		if second < 10 {
			phase = engine.PhaseWarmup
		}
		r.Seconds.Report(second, &engine.WorkerSnapshot{WorkerID: "w", Phase: phase}, nil)
	}
	put(t, d, r, 1)
	rows, err := reader.Query(t.Context(), query)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for rows.Next() {
		var second int
		var rate float64
		if err := rows.Scan(&second, &rate); err != nil {
			t.Fatal(err)
		}
		n++
		if rate != perSecond || second <= 10 || second >= 20 {
			t.Errorf("second %d: %v/s", second, rate)
		}
	}
	if err := rows.Err(); err != nil || n < 7 {
		t.Errorf("%d seconds, %v", n, err)
	}
}
