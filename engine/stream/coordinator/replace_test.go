package coordinator_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
	"github.com/loadstone-db/loadstone/engine/stream/coordinator"
	"github.com/loadstone-db/loadstone/engine/stream/system"
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
		if _, open, _ := p.counts(); nodes.running() != 2 || open != 1 {
			n := nodes.running()
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

// TestAReplacedQueryWaitsForALostNode: what ran on a node that is cut off may run on, so that the next query, which is
// not there, does not begin until the node says that it has ended, or has been away for long enough; and it says what it
// waits for. It makes no difference whether the query had begun to end when it was replaced.
func TestAReplacedQueryWaitsForALostNode(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"cut", "replaced"} {
		for _, back := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s first, back %t", first, back), func(t *testing.T) {
				t.Parallel()
				waitsForALostNode(t, first == "cut", back)
			})
		}
	}
}

func waitsForALostNode(t *testing.T, cutFirst, back bool) {
	t.Helper()
	k, p, nodes := &catalogtest.Store{}, &pipes{}, newCluster(t, "a", "b")
	c, ahead := beginAhead(t, k, p, nodes)
	nodes.cut("b", true)
	if cutFirst {
		eventually(t, k, "q", catalog.Deploying)
		within(t, "the others have ended", func() bool { return nodes.hosts["a"].Len() == 0 })
	}
	execute(t, c, "CREATE OR REPLACE QUERY q AS SELECT event FROM f INTO s")
	within(t, "it says what it waits for", func() bool {
		ahead.Add(int64(20 * time.Millisecond))
		q := eventually(t, k, "q", catalog.Pending)
		return q.Failure == "what ran of it before is not known to have ended on b"
	})
	within(t, "nothing but what is lost runs", func() bool {
		_, open, _ := p.counts()
		return nodes.hosts["b"].Len() == 1 && nodes.hosts["a"].Len() == 0 && open == 0
	})
	if back {
		nodes.cut("b", false)
	} else {
		ahead.Add(int64(coordinator.ReleaseAfter))
	}
	if q := eventually(t, k, "q", catalog.Running); q.Failure != "" {
		t.Errorf("it runs, and says %q", q.Failure)
	}
	if back && nodes.hosts["b"].Len() != 0 {
		t.Error("what ran on the node runs beside the next query")
	}
	nodes.cut("b", false)
}

// beginAhead is a coordinator whose clock can be put forward, and the query of overNodes with a source f that is read on
// one of the nodes alone.
func beginAhead(
	t *testing.T,
	k *catalogtest.Store,
	p *pipes,
	nodes *cluster,
) (*coordinator.Coordinator, *atomic.Int64) {
	t.Helper()
	ahead := new(atomic.Int64)
	c := openOver(t, coordinator.Options{Store: k, Connectors: p, Owner: "one", Runner: nodes, Cluster: nodes,
		Sources: system.Sources, Lease: 2 * time.Second,
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	within(t, "the nodes are workers", func() bool { all, _ := c.Contents(t.Context()); return len(all.Workers) == 3 })
	execute(t, c, overNodes+"; CREATE LOGICAL SOURCE f(timestamp TIMESTAMP, runId TEXT, event TEXT, status TEXT, phase "+
		"TEXT, reason TEXT); CREATE PHYSICAL SOURCE FOR f TYPE SYSTEM ON a SET('run_events' AS SOURCE.STREAM)")
	eventually(t, k, "q", catalog.Running)
	return c, ahead
}

// TestAReplacedQueryDrainsOnce: a query that was dropped gracefully and made anew ends at once when what it uses is
// replaced later; and where its last rows do not reach the sink it is ended after a while, and says meanwhile what it
// waits for.
func TestAReplacedQueryDrainsOnce(t *testing.T) {
	t.Parallel()
	k, p, nodes := &catalogtest.Store{}, &pipes{}, newCluster(t, "a", "b")
	c, ahead := beginAhead(t, k, p, nodes)
	execute(
		t,
		c,
		"DROP QUERY q GRACEFUL; CREATE QUERY q AS SELECT event FROM e INTO s; CREATE OR REPLACE SINK s TYPE PRINT "+
			"SET('JSON' AS SINK.INPUT_FORMAT)",
	)
	if q := eventually(t, k, "q", catalog.Running); !q.Graceful {
		t.Error("what was dropped gracefully, and made anew, does not drain")
	}
	execute(t, c, "CREATE OR REPLACE SINK s TYPE PRINT SET('CSV' AS SINK.INPUT_FORMAT)")
	if q := eventually(t, k, "q", catalog.Running); q.Graceful {
		t.Error("it drains whenever something is replaced")
	}
	nodes.hold("b", true)
	execute(t, c, "DROP QUERY q GRACEFUL; CREATE QUERY q AS SELECT runId FROM f INTO s")
	within(t, "it says what it waits for", func() bool {
		ahead.Add(int64(20 * time.Millisecond))
		q := eventually(t, k, "q", catalog.Pending)
		return q.Failure == "what ran of it before has not ended: its last rows are on their way to the sink"
	})
	ahead.Add(int64(2*time.Minute + time.Second))
	eventually(t, k, "q", catalog.Running)
}
