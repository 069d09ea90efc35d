package flow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/exec/column"
	"github.com/loadstone-db/loadstone/engine/stream/exec/flow"
)

// TestPiecesOfABatchAreOneMoment: a batch that is evaluated in pieces gives the rows that it gives as a whole; no row is
// late because of those before it in the batch, also where a filter lets nothing of the last piece through.
func TestPiecesOfABatchAreOneMoment(t *testing.T) {
	long := "'" + strings.Repeat("x", 20_000) + "'"
	for name, query := range map[string]string{
		"projected": "SELECT start, COUNT(*) AS n, MAX(LENGTH(x)) AS m FROM (SELECT ts + 0 AS t2, worker || " + long +
			" AS x FROM t) WINDOW TUMBLING(t2, SIZE 10 MS) INTO s",
		"filtered": "SELECT start, COUNT(*) AS n FROM (SELECT t2 FROM (SELECT ts + 0 AS t2, latency_us AS l, worker || " + long +
			" AS x FROM t) WHERE l < 90000 AND x LIKE 'worker%') WINDOW TUMBLING(t2, SIZE 10 MS) INTO s",
		"earlier": "SELECT start, COUNT(b) AS n FROM (SELECT ts + 0 AS t2, LAG(worker || " + long + ") OVER (PARTITION BY kind) AS b " +
			"FROM t) WINDOW TUMBLING(t2, SIZE 10 MS) INTO s",
		"joined": "SELECT COUNT(*) AS n FROM (SELECT ts + 0 AS t2, worker AS w, LENGTH(worker || " + long + ") AS x FROM t) AS a JOIN " +
			"(SELECT ts + 0 AS t3, worker AS w FROM t) AS b ON a.w = b.w WINDOW TUMBLING(t2, SIZE 10 MS) INTO s",
		"groups of a window": "SELECT n, COUNT(*) AS k FROM (SELECT start + 0 AS s2, latency_us, COUNT(*) AS n FROM t GROUP BY latency_us " +
			"WINDOW TUMBLING(ts, SIZE 1 SEC, LATENESS 1 SEC)) GROUP BY n WINDOW TUMBLING(s2, SIZE 1 SEC) INTO s",
	} {
		t.Run(name, func(t *testing.T) {
			run := func(budget int) (rows []string, c flow.Counts, most int) {
				p := bind(t, query)
				origins := make([]int, len(p.Scans))
				for i := range origins {
					origins[i] = 1
				}
				q := flow.New(p, flow.Options{Origins: origins, Budget: budget, Now: time.Now, Out: func(b *column.Batch) error {
					most = max(most, b.N)
					for i := range b.N {
						row := ""
						for c := range b.Cols {
							row += fmt.Sprintf("%s ", b.Cols[c].AppendValue(nil, i))
						}
						rows = append(rows, row)
					}
					return nil
				}})
				for _, b := range batches(3, 1024) {
					for scan := range p.Scans {
						if err := q.Push(scan, 0, b); err != nil {
							t.Fatal(err)
						}
					}
				}
				for scan := range p.Scans {
					if err := q.End(scan, 0); err != nil {
						t.Fatal(err)
					}
				}
				return rows, q.Counts(), most
			}
			whole, counts, _ := run(1 << 30)
			pieces, again, _ := run(8 << 20)
			if !slices.Equal(whole, pieces) || counts.Late != again.Late || len(whole) == 0 {
				t.Errorf("%d rows and %d late, in pieces %d and %d", len(whole), counts.Late, len(pieces), again.Late)
			}
		})
	}
}
