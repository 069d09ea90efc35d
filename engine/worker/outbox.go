package worker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// outbox brings what the node says to the servers: what is about a run to the one that
// owns it, what is about the node to all. While the owner of a run has no session, its
// messages wait for it, or for the server that takes the run over. It counts the lines of
// the runs' logs that it had to drop.
type outbox struct {
	undelivered *protocol.Mailbox[protocol.FromNode] // for owners without a session

	mu       sync.Mutex
	sessions []*session
	owners   map[string]*owner // by run
	lines    map[string]int64  // dropped, by run
	// clocks outlive the sessions with the process of a server, and are in the order of their last use.
	clocks []knownClocks
}

// knownClocks are those of the process of a server.
type knownClocks struct {
	server string
	*clockSync
}

// maxClocks is how many processes of servers are remembered.
const maxClocks = 32

// session is the conversation with one server, until its stream ends.
type session struct {
	server string // names the server's process
	out    *protocol.Mailbox[protocol.FromNode]
	// clocks compares its clock with the node's.
	clocks *clockSync
}

// owner is the server whose messages about a run count.
type owner struct {
	epoch       int64
	server      string
	at          *session  // nil while it has none
	lastMessage time.Time // last
}

// A run that has not been heard of for ownerKept, and of which the node holds nothing, is
// forgotten where more than mostOwners are known.
const (
	ownerRetention = 10 * time.Minute
	maxOwners      = 1024
)

func newOutbox() *outbox {
	o := &outbox{owners: map[string]*owner{}, lines: map[string]int64{}}
	o.undelivered = o.mailbox()
	return o
}

func (o *outbox) mailbox() *protocol.Mailbox[protocol.FromNode] {
	return protocol.NewMailbox(protocol.PolicyFromNode, func(m protocol.FromNode) {
		if line, ok := m.(protocol.Log); ok {
			o.lines[line.RunID]++ // Put holds mu
		}
	})
}

// Put gives a message to whom it is for; it never waits.
func (o *outbox) Put(m protocol.FromNode) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put(m)
}

// put needs mu.
func (o *outbox) put(m protocol.FromNode) {
	runID := protocol.RunIDOf(m)
	if runID == "" {
		for _, s := range o.sessions {
			s.out.Put(m)
		}
		return
	}
	if w := o.owners[runID]; w != nil && w.at != nil {
		w.at.out.Put(m)
		return
	}
	o.undelivered.Put(m)
}

// servers counts the sessions.
func (o *outbox) servers() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.sessions)
}

// open begins a session. What waits for the server's process goes with it.
func (o *outbox) open(server string) *session {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := &session{server: server, out: o.mailbox(), clocks: o.clocksOf(server)}
	o.sessions = append(o.sessions, s)
	for runID, w := range o.owners {
		if w.server == server {
			o.assignOwner(runID, w, s)
		}
	}
	return s
}

// clocksOf compares the clocks of a server's process, from its first session on: a run worker that
// it has given the node goes on knowing its time when a stream has broken. It needs mu.
func (o *outbox) clocksOf(server string) *clockSync {
	known := knownClocks{server, newClockSync()}
	for i, c := range o.clocks {
		if c.server == server {
			known = c
			o.clocks = slices.Delete(o.clocks, i, i+1)
			break
		}
	}
	if len(o.clocks) == maxClocks {
		o.clocks = slices.Delete(o.clocks, 0, 1)
	}
	o.clocks = append(o.clocks, known)
	return known.clockSync
}

// each calls f for every session.
func (o *outbox) each(f func(*session)) {
	o.mu.Lock()
	sessions := slices.Clone(o.sessions)
	o.mu.Unlock()
	for _, s := range sessions {
		f(s)
	}
}

// close ends a session. What it has not delivered waits for another one.
func (o *outbox) close(s *session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sessions = slices.DeleteFunc(o.sessions, func(other *session) bool { return other == s })
	for _, w := range o.owners {
		if w.at == s {
			w.at = nil
		}
	}
	for _, m := range s.out.RemoveMatching(func(m protocol.FromNode) bool { return protocol.RunIDOf(m) != "" }) {
		o.put(m)
	}
}

// assignOwner gives a run to a session, with what waits about it. It needs mu.
func (o *outbox) assignOwner(runID string, w *owner, s *session) {
	before := o.undelivered
	if w.at != nil {
		before = w.at.out
	}
	w.at, w.server = s, s.server
	if before == s.out {
		return
	}
	for _, m := range before.RemoveMatching(func(m protocol.FromNode) bool { return protocol.RunIDOf(m) == runID }) {
		s.out.Put(withoutClock(m))
	}
}

// withoutClock is a message that another server may hear than the one for which it was made: it says nothing of the
// clock of that one, which who takes a run over would take for its own.
func withoutClock(m protocol.FromNode) protocol.FromNode {
	if w, ok := m.(protocol.WorkerState); ok {
		w.LineAhead, w.LineError = 0, 0
		return w
	}
	return m
}

// acceptsEpoch reports whether what the server of a session says about a run in an epoch counts:
// that of an older epoch does not. fresh: the epoch is newer than all before, so that the
// server has become the owner of the run, and does not know how it stands here.
func (o *outbox) acceptsEpoch(s *session, runID string, epoch int64, now time.Time) (counts, fresh bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.owners[runID]
	if w == nil {
		o.prune(now)
		w = &owner{}
		o.owners[runID] = w
	}
	if epoch < w.epoch {
		return false, false
	}
	fresh = epoch > w.epoch
	w.epoch, w.lastMessage = epoch, now
	o.assignOwner(runID, w, s)
	return true, fresh
}

// prune needs mu.
func (o *outbox) prune(now time.Time) {
	if len(o.owners) < maxOwners {
		return
	}
	for runID, w := range o.owners {
		if now.Sub(w.lastMessage) > ownerRetention {
			delete(o.owners, runID)
			delete(o.lines, runID)
		}
	}
}

// ownedRemotely reports whether another server than that of the session owns the run, and has
// a session: then what this one says that has no epoch does not count.
func (o *outbox) ownedRemotely(s *session, runID string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.owners[runID]
	return w != nil && w.at != nil && w.at != s
}

// ownersClocks compare the clocks of the server that owns a run; nil while it has no session.
func (o *outbox) ownersClocks(runID string) *clockSync {
	o.mu.Lock()
	defer o.mu.Unlock()
	if w := o.owners[runID]; w != nil && w.at != nil {
		return w.at.clocks
	}
	return nil
}

// linesDropped is how many lines of a run's log were dropped so far.
func (o *outbox) linesDropped(runID string) int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines[runID]
}

// dropLines counts lines that were dropped, here or before they came here.
func (o *outbox) dropLines(runID string, n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines[runID] += int64(n)
}

// shared is work that goes on while anybody needs it.
type shared struct {
	mu    sync.Mutex
	users int
	stop  context.CancelFunc
	done  chan struct{}
}

// begin does the work, in a goroutine of its own, unless it is being done; it reports whether it was not.
func (w *shared) begin(work func(ctx context.Context)) (begun bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users++; w.users > 1 {
		return false
	}
	var ctx context.Context
	ctx, w.stop = context.WithCancel(context.Background())
	done := make(chan struct{})
	w.done = done
	go func() { defer close(done); work(ctx) }()
	return true
}

// end waits for the work to end where nobody needs it any more.
func (w *shared) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.users--; w.users == 0 {
		w.stop()
		<-w.done
	}
}
