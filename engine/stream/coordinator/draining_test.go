package coordinator_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// TestADrainingNodeTakesNothingNew: what is there goes on, and begins anew there when it has to; a new query is
// refused, until the node is resumed.
func TestADrainingNodeTakesNothingNew(t *testing.T) {
	t.Parallel()
	k, p, nodes := &catalogtest.Store{}, &pipes{}, newCluster(t, "a", "b")
	c := beginOver(t, k, p, nodes)
	is := func(host string, state catalog.WorkerState) {
		t.Helper()
		within(t, host+" is "+string(state), func() bool {
			all, _ := c.Contents(t.Context())
			for _, w := range all.Workers {
				if w.Host == host {
					return w.State == state
				}
			}
			return false
		})
	}
	is("a", catalog.Active)
	is("b", catalog.Active)
	execute(t, c, overNodes)
	eventually(t, k, "q", catalog.Running)
	nodes.drain("b", true, true)
	is("b", catalog.Draining)
	const again = "CREATE QUERY r AS SELECT runId FROM e INTO s"
	_, err := c.Execute(context.Background(), again, catalog.Author{}, nil)
	var known *sql.Error
	if !errors.As(err, &known) || known.Kind != sql.PlacementError ||
		!strings.Contains(known.Message, "b is DRAINING") || !strings.Contains(known.Hint, "node resume") {
		t.Errorf("%v", err)
	}
	time.Sleep(300 * time.Millisecond)
	if q := eventually(t, k, "q", catalog.Running); q.Fragments[1].Attempts != 1 {
		t.Errorf("%+v", q.Fragments)
	}
	nodes.cut("a", true)
	eventually(t, k, "q", catalog.Deploying)
	nodes.cut("a", false)
	if q := eventually(t, k, "q", catalog.Running); q.Fragments[1].Attempts < 2 || nodes.hosts["b"].Len() != 1 {
		t.Errorf("%+v", q.Fragments)
	}
	nodes.drain("b", false, false)
	is("b", catalog.Active)
	execute(t, c, again)
	eventually(t, k, "r", catalog.Running)
	execute(t, c, "DROP QUERY q; DROP QUERY r")
	eventually(t, k, "q", "")
	eventually(t, k, "r", "")
}

// TestADrainingNodeTellsWhileItBearsLoad: a query over what nodes tell of themselves comes to one that drains as long
// as that has load, of which the query would otherwise not know, and to no idle one.
func TestADrainingNodeTellsWhileItBearsLoad(t *testing.T) {
	t.Parallel()
	k, p, nodes := &catalogtest.Store{}, &pipes{}, newCluster(t, "a", "b", "c")
	nodes.drain("b", true, true)
	nodes.drain("c", true, false)
	c := beginOver(t, k, p, nodes)
	within(t, "the nodes are workers", func() bool { all, _ := c.Contents(t.Context()); return len(all.Workers) == 4 })
	execute(t, c, "CREATE SINK s TYPE PRINT; CREATE QUERY q AS SELECT runId FROM executions INTO s")
	within(t, "it has a fragment on the node with load", func() bool {
		q := eventually(t, k, "q", catalog.Running)
		return len(q.Fragments) == 3 && nodes.hosts["b"].Len() == 1
	})
	if n := nodes.hosts["c"].Len(); n != 0 {
		t.Errorf("%d fragments came to an idle node that drains", n)
	}
	execute(t, c, "DROP QUERY q")
	eventually(t, k, "q", "")
}

// TestTheLastRowsOfANodeThatLeavesAreWaitedFor: they and its end are on their way, each on a connection of its own, when its
// stream has ended already. The query goes on without a break, and loses no window that is open. Of a node whose link is
// lost too, and of one that never says its end, nothing is waited for.
func TestTheLastRowsOfANodeThatLeavesAreWaitedFor(t *testing.T) {
	for name, tc := range map[string]struct {
		ends func(nodes *cluster)
		most int64
	}{
		"its end is late":     {func(nodes *cluster) { nodes.leaves("b", false) }, 1},
		"its link breaks":     {func(nodes *cluster) { nodes.cut("b", true) }, 2},
		"its end never comes": {func(*cluster) {}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k, p, nodes := &catalogtest.Store{}, &pipes{}, newCluster(t, "a", "b")
			c := beginOver(t, k, p, nodes)
			within(t, "the nodes are workers", func() bool { all, _ := c.Contents(t.Context()); return len(all.Workers) == 3 })
			execute(t, c, "CREATE SINK s TYPE PRINT; CREATE QUERY q AS SELECT runId FROM executions INTO s")
			within(t, "it has a fragment on both nodes", func() bool {
				return len(eventually(t, k, "q", catalog.Running).Fragments) == 3 && nodes.running() == 2
			})
			nodes.leaves("b", true)
			go nodes.hosts["b"].Close("the node is draining") // what it sends is held
			time.Sleep(50 * time.Millisecond)
			c.Wake()
			time.Sleep(700 * time.Millisecond)
			if q := eventually(t, k, "q", catalog.Running); len(q.Fragments) != 2 || q.Fragments[0].Attempts != 1 {
				t.Errorf("before its last rows have come: %+v", q.Fragments)
			}
			tc.ends(nodes)
			within(t, "the query goes on", func() bool {
				q := eventually(t, k, "q", catalog.Running)
				return len(q.Fragments) == 2 && q.Fragments[0].Attempts == tc.most
			})
			time.Sleep(200 * time.Millisecond)
			if q := eventually(t, k, "q", catalog.Running); q.Fragments[0].Attempts != tc.most {
				t.Errorf("%+v", q.Fragments)
			}
		})
	}
}
