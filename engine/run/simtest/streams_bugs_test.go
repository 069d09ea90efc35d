package simtest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/sql"
)

// The rules that can be taken out of the world of streams, one at a time.
const (
	lacksFencing      lacking = "fencing"      // a former owner moves a query
	lacksExpiry       lacking = "expiry"       // a server goes on though its lease could not be renewed
	lacksNameLock     lacking = "name lock"    // a dropped query is gone at once
	lacksGroups       lacking = "groups"       // of statements that are refused the first ones are kept
	lacksOrder        lacking = "order"        // a change is made of what was read before, whatever came since
	lacksConfirmation lacking = "confirmation" // a fragment is said to be gone before it is
	lacksWatchdog     lacking = "watchdog"     // a query may be DEPLOYING for ever
	lacksReferences   lacking = "references"   // what is referred to can be dropped
	lacksIDs          lacking = "ids"          // the number of a query that is gone is given out again
	lacksEvents       lacking = "events"       // an event of a watch is lost
	lacksRows         lacking = "rows"         // a row is lost on its way to the sink
	lacksTruth        lacking = "truth"        // a query is called RUNNING when it is DEPLOYING
	lacksSlots        lacking = "slots"        // there are more slots than there are
	lacksAnswers      lacking = "answers"      // what was not committed is said to be
	lacksOnce         lacking = "once"         // a commit whose answer was lost is made again
	lacksFinality     lacking = "finality"     // a query that FAILED begins again
	lacksRest         lacking = "rest"         // what is as it is wanted is written again
	lacksOwnSources   lacking = "own sources"  // a query reads what came after it
	lacksLinks        lacking = "links"        // a new worker may be sent rows by the one that it sends rows to
	lacksDrains       lacking = "drains"       // a node that drains takes a new query
)

// damaged is the catalog as a server reads it that lacks a rule.
func (l *carrier) damaged(c catalog.Contents) catalog.Contents {
	for i := range c.Queries {
		q := &c.Queries[i]
		switch l.of.without {
		case lacksWatchdog:
			if q.State == catalog.Deploying {
				q.Since = time.Now().UTC()
			}
		case lacksFinality:
			if q.State == catalog.Failed && q.Desired == catalog.Running {
				q.State, q.Fragments[0].State, q.Fragments[0].Terminal = catalog.Pending, catalog.FragmentRegistered, false
			}
		case lacksRest:
			if q.State == catalog.Running {
				q.State = catalog.Deploying
			}
		case lacksOwnSources:
			for _, p := range c.Physical {
				if strings.Contains(q.Statement, "FROM "+p.Logical) && !slices.Contains(q.Sources, p.ID) {
					q.Sources = append(slices.Clone(q.Sources), p.ID)
				}
			}
		}
	}
	return c
}

// damages is a change of the catalog by a server that lacks a rule; stale is what the catalog was when it was asked.
func (s *streaming) damages(change func(*catalog.Catalog) error, stale catalog.Contents) func(*catalog.Catalog) error {
	return func(c *catalog.Catalog) error {
		if s.without == lacksOrder {
			*c = *catalog.FromContents(stale)
		}
		before := c.Clone().Contents()
		if s.without == lacksSlots {
			of := c.Contents()
			of.Workers = slices.Clone(of.Workers)
			for i := range of.Workers {
				of.Workers[i].Slots += 2
			}
			*c = *catalog.FromContents(of)
		}
		if s.without == lacksDrains {
			of := c.Contents()
			of.Workers = slices.Clone(of.Workers)
			for i := range of.Workers {
				if of.Workers[i].State == catalog.Draining {
					of.Workers[i].State = catalog.Active
				}
			}
			*c = *catalog.FromContents(of)
		}
		err := change(c)
		of := c.Contents()
		switch s.without {
		case lacksDrains:
			of.Workers = before.Workers
		case lacksLinks:
			of.Workers = slices.Clone(of.Workers)
			for _, w := range of.Workers {
				for i := range of.Workers {
					if slices.Contains(w.Peers, of.Workers[i].Host) && len(of.Workers[i].Peers) == 0 {
						of.Workers[i].Peers = []string{w.Host}
					}
				}
			}
		case lacksSlots:
			of.Workers = before.Workers
		case lacksNameLock:
			of.Queries = slices.DeleteFunc(slices.Clone(of.Queries), func(q catalog.Query) bool {
				return q.Desired == catalog.Stopped
			})
		case lacksGroups:
			err = nil
		case lacksReferences:
			if kindOf(err) == sql.ReferencedQueryExists {
				of.Sinks, err = nil, nil
			}
		case lacksIDs:
			of.LastQueryID = 0
			for _, q := range of.Queries {
				of.LastQueryID = max(of.LastQueryID, q.ID)
			}
		}
		*c = *catalog.FromContents(of)
		return err
	}
}

// TestSeededBugsOfStreamsAreFound takes one rule out at a time, and looks for it with as many seeds as it has to be
// found within, by the property that is about it.
func TestSeededBugsOfStreamsAreFound(t *testing.T) {
	ofStreams.misses(t, []seeded{
		{string(lacksFencing), "epoch:", 40},
		{string(lacksExpiry), "exactly once:", 60},
		{string(lacksNameLock), "name lock:", 20},
		{string(lacksGroups), "atomic:", 20},
		{string(lacksOrder), "atomic:", 20},
		{string(lacksConfirmation), "name lock:", 20},
		{string(lacksWatchdog), "liveness:", 60},
		{string(lacksReferences), "integrity:", 20},
		{string(lacksIDs), "exactly once:", 40},
		{string(lacksEvents), "watch:", 20},
		{string(lacksRows), "drained:", 20},
		{string(lacksTruth), "running is true:", 20},
		{string(lacksSlots), "capacity:", 40},
		{string(lacksAnswers), "answer:", 40},
		{string(lacksOnce), "atomic:", 60},
		{string(lacksFinality), "final:", 40},
		{string(lacksRest), "quiet:", 20},
		{string(lacksOwnSources), "reads:", 120},
		{string(lacksLinks), "integrity:", 20},
		{string(lacksDrains), "reachable:", 80},
	})
}
