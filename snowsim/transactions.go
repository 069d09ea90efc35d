package snowsim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/snowsim/translate"
)

// openTransaction is the open transaction of a session; the zero value is none.
type openTransaction struct {
	id      int64
	name    string
	started time.Time
}

// begin notes that the session is in a transaction; one that is begun within another is that one.
func (sess *session) begin(name string) {
	id := sess.server.transactionIDs.Add(1)
	sess.mu.Lock()
	defer sess.mu.Unlock()
	if sess.transaction {
		return
	}
	if name == "" {
		name = idText(sess.server.newQueryID())
	}
	sess.transaction, sess.open = true, openTransaction{id, name, time.Now()}
}

// Transactions implements translate.Host.
func (s *Server) Transactions() (list []translate.OpenTransaction) {
	for _, sess := range s.everySession() {
		sess.mu.Lock()
		if sess.transaction {
			list = append(list, translate.OpenTransaction{ID: sess.open.id, User: sess.user, Session: sess.id,
				Name: sess.open.name, Started: sess.open.started})
		}
		sess.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b translate.OpenTransaction) int { return int(a.ID - b.ID) })
	return list
}

func (s *Server) everySession() []*session {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*session, 0, len(s.sessions))
	for _, sess := range s.sessions {
		all = append(all, sess)
	}
	return all
}

// AbortTransaction implements translate.Host: what the transaction's session executes is cancelled, and all that it
// did is undone. The session stays: what it executes next is no part of the transaction. by is the session that asks,
// which executes a statement meanwhile.
func (s *Server) AbortTransaction(ctx context.Context, id, by int64) error {
	for _, sess := range s.everySession() {
		if !sess.isIn(id) {
			continue
		}
		if sess.id == by {
			sess.release(true)
			return nil
		}
		sess.cancelAll()
		for !sess.statementMu.TryLock() {
			if err := wait(ctx, time.Millisecond); err != nil {
				return fmt.Errorf("waiting for the statement of another session: %w", err)
			}
		}
		defer sess.statementMu.Unlock()
		if sess.isIn(id) {
			sess.release(true)
		}
		return nil
	}
	return nil
}

func (sess *session) isIn(id int64) bool {
	sess.mu.Lock()
	defer sess.mu.Unlock()
	return sess.transaction && sess.open.id == id
}

// cancelAll cancels what the session executes, and what waits for that.
func (sess *session) cancelAll() {
	sess.mu.Lock()
	jobs := make([]*job, 0, len(sess.jobs))
	for _, j := range sess.jobs {
		jobs = append(jobs, j)
	}
	sess.mu.Unlock()
	for _, j := range jobs {
		j.cancel(errCancelled)
	}
}

// abortBlockers ends, as an account does, the transactions that nobody has used for a while and others wait for.
func (s *Server) abortBlockers(now time.Time) {
	var idle []*session
	for _, sess := range s.everySession() {
		sess.mu.Lock()
		if sess.transaction && now.Sub(sess.used) >= s.opts.IdleTransaction {
			idle = append(idle, sess)
		}
		sess.mu.Unlock()
	}
	if len(idle) == 0 {
		return
	}
	rows, err := s.catalog.Query(s.ctx, `SELECT DISTINCT unnest(pg_blocking_pids(pid))::bigint FROM pg_stat_activity
		WHERE datname = current_database() AND wait_event_type = 'Lock'`)
	if err != nil {
		return // another time
	}
	var blocking []int64
	var pid int64
	for rows.Next() {
		if rows.Scan(&pid) == nil {
			blocking = append(blocking, pid)
		}
	}
	for _, sess := range idle {
		if !sess.statementMu.TryLock() {
			continue // it is used again
		}
		if sess.conn != nil && slices.Contains(blocking, int64(sess.conn.Conn().PgConn().PID())) {
			s.log.Debug().Int64("session", sess.id).Msg("a transaction that nobody used and others waited for was aborted")
			sess.release(true)
		}
		sess.statementMu.Unlock()
	}
}
