package findings

import (
	"iter"
	"sort"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// The rules, as findings name them.
const (
	RuleIdleInTransaction = "idle_in_transaction"
	RuleHotRow            = "hot_row"
	RuleTableLock         = "ddl_queue"
	RuleForeignLock       = "foreign_lock"
	RuleMaintenanceLock   = "maintenance_lock"
	RuleLock              = "lock"
	RuleCommit            = "commit_bound"
	RuleReplica           = "sync_replica"
	RuleMissingIndex      = "missing_index"
	RulePlan              = "plan_flip"
	RuleCache             = "cache_small"
	RuleCheckpoint        = "checkpoint_storm"
	RuleSpill             = "spill"
	RuleVacuum            = "vacuum"
	RuleProcessors        = "processors"
	RuleConnectionStorm   = "connection_storm"
	RuleJIT               = "jit"
	RuleLatch             = "latch"
	RuleWrite             = "write_bound"
	RuleClient            = "slow_client"
	RuleOther             = "other_wait"
	// ruleWork is the processor's ordinary work, and no finding.
	ruleWork = "work"
	// Rules without a share.
	RuleMaxConnections = "max_connections"
	RuleReplicaLag     = "replica_lag"
	RuleOldTransaction = "vacuum_blocked"
	RuleBloat          = "bloat"
	RuleNothing        = "nothing"
	RuleNotPermitted   = "not_permitted"
	RuleNotObserved    = "not_observed"
)

// chains finds who is at the end of a queue of sessions that wait for each other.
type chains struct {
	byID map[string]*engine.ActivitySample
}

func newChains(list []engine.ActivitySample) chains {
	c := chains{byID: make(map[string]*engine.ActivitySample, len(list))}
	for i := range list {
		c.byID[list[i].Session] = &list[i]
	}
	return c
}

// maxChain bounds how far a queue is followed.
const maxChain = 50

// root is who a session waits for in the end, nil where that is not seen. alters is the first one on the way that
// changes a table itself.
func (c chains) root(a *engine.ActivitySample) (root, alters *engine.ActivitySample) {
	for next := range c.follow(a) {
		if next.Alters && alters == nil {
			alters = next
		}
		root = next
	}
	return root, alters
}

// follow yields who a session waits for, who that one waits for, and so on; none twice.
func (c chains) follow(a *engine.ActivitySample) iter.Seq[*engine.ActivitySample] {
	return func(yield func(*engine.ActivitySample) bool) {
		seen := map[string]bool{a.Session: true}
		for at := a; at != nil && len(seen) <= maxChain; {
			var next *engine.ActivitySample
			for _, id := range at.BlockedBy {
				if b := c.byID[id]; b != nil && !seen[id] {
					next = b
					break
				}
			}
			if next == nil || !yield(next) {
				return
			}
			seen[next.Session] = true
			at = next
		}
	}
}

// causeOf is what a moment of one of the run's sessions goes to.
func (c *Collector) causeOf(a *engine.ActivitySample, chain chains) cause {
	switch a.Class {
	case engine.WaitLock:
		return c.lockCause(a, chain)
	case engine.WaitCommit:
		return cause{rule: RuleCommit}
	case engine.WaitReplica:
		return cause{rule: RuleReplica}
	case engine.WaitRead:
		return cause{rule: RuleCache}
	case engine.WaitWrite:
		return cause{rule: RuleWrite}
	case engine.WaitSpill:
		return cause{rule: RuleSpill}
	case engine.WaitLatch:
		return c.event(RuleLatch, a.Event)
	case engine.WaitClient:
		return cause{rule: RuleClient}
	case engine.WaitCPU:
		return cause{rule: ruleWork}
	}
	return c.event(RuleOther, a.Event)
}

// event is the cause of waiting for what has a name on the server.
func (c *Collector) event(rule, name string) cause {
	k := cause{rule, name}
	if !c.named[k] {
		if len(c.named) >= maxCauses {
			return cause{rule, rest}
		}
		c.named[k] = true
	}
	return k
}

// lockCause names who holds the lock that a session waits for.
func (c *Collector) lockCause(a *engine.ActivitySample, chain chains) cause {
	root, alters := chain.root(a)
	switch {
	case alters != nil:
		return cause{RuleTableLock, c.culprit(alters)}
	case root == nil && c.isHidden(a):
		return cause{RuleForeignLock, c.culprit(&engine.ActivitySample{Session: a.BlockedBy[0]})}
	case root == nil && a.Scope == "row":
		return cause{rule: RuleHotRow} // its holder was gone before it was seen
	case root == nil:
		return c.event(RuleLock, a.Event)
	case root.State == engine.SessionService:
		return cause{RuleMaintenanceLock, c.culprit(root)}
	case !root.Ours && root.State == engine.SessionInTransaction:
		return cause{RuleIdleInTransaction, c.culprit(root)}
	case !root.Ours && a.Scope == "table":
		return cause{RuleTableLock, c.culprit(root)}
	case !root.Ours:
		return cause{RuleForeignLock, c.culprit(root)}
	case a.Scope == "row":
		return cause{rule: RuleHotRow}
	}
	return c.event(RuleLock, a.Event)
}

// hiddenLooks in a row must not show a session that others wait for before it is taken for somebody else's: one of the
// run's own may have ended its transaction just then.
const hiddenLooks = 5

// isHidden reports whether a session waits for one that the role may not see.
func (c *Collector) isHidden(a *engine.ActivitySample) bool {
	return len(a.BlockedBy) > 0 && c.facts.Facts[plugin.FactOthersSeen] == "false" &&
		c.hidden[a.BlockedBy[0]] >= hiddenLooks
}

// noteHidden counts in how many looks in a row sessions were waited for that are not in them.
func (c *Collector) noteHidden(l *engine.ServerLook, chain chains) {
	hidden := map[string]int{}
	for i := range l.Sessions {
		if by := l.Sessions[i].BlockedBy; len(by) > 0 && chain.byID[by[0]] == nil {
			hidden[by[0]] = c.hidden[by[0]] + 1
		}
	}
	c.hidden = hidden
}

// culprit remembers a session, and returns its key; rest where there are too many.
func (c *Collector) culprit(a *engine.ActivitySample) string {
	key := a.Session + "\x00" + a.Application + "\x00" + a.User
	was, known := c.culprits[key]
	if known && was.Statement != "" {
		return key
	}
	if !known && len(c.culprits) >= maxCulprits {
		return rest
	}
	c.culprits[key] = sessionOf(a)
	return key
}

func sessionOf(a *engine.ActivitySample) engine.FindingSession {
	text := a.Text
	if text == "" {
		text = a.StatementID
	}
	return engine.FindingSession{
		Session:     a.Session,
		Application: a.Application,
		User:        a.User,
		Statement:   text,
		Ours:        a.Ours,
	}
}

// Blockers are the sessions of a look that others wait for, those first that most wait for.
func Blockers(l engine.ServerLook) []engine.Blocker {
	chain := newChains(l.Sessions)
	waiting := map[string]int{}
	for i := range l.Sessions {
		for next := range chain.follow(&l.Sessions[i]) {
			waiting[next.Session]++
		}
	}
	list := []engine.Blocker{}
	for i := range l.Sessions {
		a := &l.Sessions[i]
		if waiting[a.Session] == 0 {
			continue
		}
		b := engine.Blocker{FindingSession: sessionOf(a), State: a.State, Waiting: waiting[a.Session],
			TransactionSeconds: a.TransactionSeconds}
		if len(a.BlockedBy) > 0 {
			b.BlockedBy = a.BlockedBy[0]
		}
		list = append(list, b)
	}
	sort.SliceStable(list, func(i, j int) bool { return list[i].Waiting > list[j].Waiting })
	return list[:min(len(list), 50)]
}
