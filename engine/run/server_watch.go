// This part asks beside the load of a run that reconnects which server answers, so that its outages can tell what was
// there before and after.

package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/clock"
	"github.com/loadstone-db/loadstone/engine/plan/prepare"
	"github.com/loadstone-db/loadstone/engine/run/finalize"
	"github.com/loadstone-db/loadstone/engine/target"
)

// How often the server is asked for, and for how long it may think about it.
const (
	serverAskInterval = time.Second
	serverAskTimeout  = 2 * time.Second
	// serverFindTimeout is for a connection that has to be opened: hosts that do not answer come before the one that does.
	serverFindTimeout = 30 * time.Second
	// serverTrust is for how long one connection is asked: a primary that was replaced may live on, and answer.
	serverTrust = 10 * time.Second
	// maxServers bounds what is kept: a server that is started anew every second.
	maxServers = 1000
)

// serverWatch is what is known of the servers that answered. The zero value knows nothing; its methods are safe for
// concurrent use.
type serverWatch struct {
	mu      sync.Mutex
	known   []finalize.Server
	logged  int
	stopped context.CancelFunc
}

func newServerWatch() *serverWatch { return &serverWatch{stopped: func() {}} }

func (w *serverWatch) stop() { w.stopped() }

// seen are the servers that have answered so far, in order. The caller owns them.
func (w *serverWatch) seen() []finalize.Server {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]finalize.Server(nil), w.known...)
}

// add takes an answer that came at a time of the run.
func (w *serverWatch) add(id engine.ServerIdentity, at time.Time) {
	id.At = engine.At(at)
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := len(w.known); n > 0 && w.known[n-1].Same(id) {
		w.known[n-1].LastSeen = at
		return
	}
	if len(w.known) < maxServers {
		w.known = append(w.known, finalize.Server{ServerIdentity: id, LastSeen: at})
	}
}

// unlogged are the answers that no line of the log tells of yet, each with the one before it.
func (w *serverWatch) unlogged() (pairs [][2]engine.ServerIdentity) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; w.logged < len(w.known); w.logged++ {
		var before engine.ServerIdentity
		if w.logged > 0 {
			before = w.known[w.logged-1].ServerIdentity
		}
		pairs = append(pairs, [2]engine.ServerIdentity{before, w.known[w.logged].ServerIdentity})
	}
	return pairs
}

// watchServer begins to ask which server answers, where the run reconnects and its driver can tell.
func (l *runLoop) watchServer(ctx context.Context) {
	if !l.sc.Workload.Reconnects() {
		return
	}
	ctx, l.servers.stopped = context.WithCancel(l.svc.LogContext(ctx, l.runID))
	deps, sc, plan := l.deps, l.sc, l.plan.Plan
	l.svc.routines.Go(func() {
		l.servers.ask(ctx, l.clock, func() (askedServer, error) {
			a, err := prepare.AttachBeside(ctx, deps, sc, plan, "server watch")
			if err != nil {
				return askedServer{}, err
			}
			db, _ := a.Database().(target.Identifier)
			return askedServer{db, a.Close}, nil
		})
	})
}

// askedServer is the target with connections for one question, until it is closed. It is nil where the driver cannot
// tell.
type askedServer struct {
	target.Identifier
	close func()
}

// ask asks every second until ctx ends. What cannot be asked is not known: the load tells of that. Connections are
// opened anew after an error, and now and then.
func (w *serverWatch) ask(ctx context.Context, line *clock.Clock, open func() (askedServer, error)) {
	ticker := time.NewTicker(serverAskInterval)
	defer ticker.Stop()
	var at *askedServer
	var opened time.Time
	leave := func() {
		if at != nil {
			at.close()
			at = nil
		}
	}
	defer leave()
	for {
		if at != nil && line.Now().Sub(opened) >= serverTrust {
			leave()
		}
		limit := serverAskTimeout
		if at == nil {
			limit = serverFindTimeout
			if s, err := open(); err == nil {
				if at, opened = &s, line.Now(); s.Identifier == nil {
					return
				}
			}
		}
		if at != nil {
			asking, cancel := context.WithTimeout(ctx, limit)
			id, err := at.Identity(asking)
			cancel()
			if err == nil {
				w.add(id, line.Now())
			} else {
				leave()
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// logServers writes into the run's log which server answers, when that has changed.
func (l *runLoop) logServers() {
	for _, pair := range l.servers.unlogged() {
		text := "The target is " + describeServer(pair[1])
		if changed := pair[0].Changes(pair[1]); !pair[0].At.IsZero() && changed != "" {
			text = fmt.Sprintf("After an outage %s: %s", changed, describeServer(pair[1]))
		}
		l.logNote(engine.LogInfo, engine.Note{Code: engine.NoteTargetServer, Live: true, Text: text,
			Address: pair[1].Address, At: pair[1].StartedAt})
	}
}

// describeServer leaves out where the server is and since when: public reports show it.
func describeServer(s engine.ServerIdentity) string {
	text := fmt.Sprintf("the %s, version %s", s.Role, s.Version)
	if s.Timeline > 0 {
		text += fmt.Sprintf(", timeline %d", s.Timeline)
	}
	return text
}
