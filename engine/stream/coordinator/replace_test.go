package coordinator_test

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
)

// TestAQueryIsReplacedWhereItRuns: what was before ends on all its workers before the next begins, also where the
// workers are others and where the one before drains; and what is replaced by the same goes on as it does.
func TestAQueryIsReplacedWhereItRuns(t *testing.T) {
	for _, drop := range []string{"", "DROP QUERY q;", "DROP QUERY q GRACEFUL;"} {
		k, p, nodes := &catalogtest.Store{}, &pipes{}, newCluster(t, "a", "b")
		c := beginOver(t, k, p, nodes)
		within(t, "the nodes are workers", func() bool { all, _ := c.Contents(t.Context()); return len(all.Workers) == 3 })
		execute(t, c, overNodes)
		was := eventually(t, k, "q", catalog.Running)
		tell(nodes.feeds["a"], "BEFORE")
		within(t, "the row before", func() bool { _, _, rows := p.counts(); return len(rows) == 1 })
		create := "CREATE OR REPLACE QUERY q AS SELECT event, runId FROM e WHERE event <> 'no' INTO s"
		if drop != "" {
			create = drop + strings.Replace(create, "OR REPLACE ", "", 1)
		}
		execute(t, c, create)
		within(t, "the next query runs", func() bool {
			q := eventually(t, k, "q", catalog.Running)
			return strings.HasPrefix(q.Statement, "SELECT event") && q.ID == was.ID
		})
		tell(nodes.feeds["b"], "AFTER")
		within(t, "the row after", func() bool {
			_, _, rows := p.counts()
			return len(rows) == 2 && strings.HasPrefix(rows[1], "AFTER,")
		})
		if n, open := nodes.running(), 0; n != 2 {
			t.Errorf("%q: %d fragments run on nodes, %d sinks are open", drop, n, open)
		}
		// Only a is read from now on.
		execute(t, c, "CREATE LOGICAL SOURCE f(timestamp TIMESTAMP, runId TEXT, event TEXT, status TEXT, phase TEXT, "+
			"reason TEXT); CREATE PHYSICAL SOURCE FOR f TYPE SYSTEM ON a SET('run_events' AS SOURCE.STREAM); "+
			"CREATE OR REPLACE QUERY q AS SELECT event FROM f INTO s")
		within(t, "it runs on one node", func() bool {
			q := eventually(t, k, "q", catalog.Running)
			return len(q.Fragments) == 2 && nodes.running() == 1
		})
		is := eventually(t, k, "q", catalog.Running)
		execute(t, c, "CREATE OR REPLACE QUERY q AS SELECT event FROM f INTO s; CREATE OR REPLACE SINK s TYPE PRINT")
		time.Sleep(100 * time.Millisecond)
		if q := eventually(t, k, "q", catalog.Running); q.Revision != is.Revision || !q.CreatedAt.Equal(is.CreatedAt) {
			t.Errorf("%q: it began anew: %+v", drop, q)
		}
		execute(t, c, "DROP QUERY q")
		eventually(t, k, "q", "")
		if _, open, _ := p.counts(); nodes.running() != 0 || open != 0 {
			t.Errorf("%q: %d fragments and %d sinks are left", drop, nodes.running(), open)
		}
	}
}
