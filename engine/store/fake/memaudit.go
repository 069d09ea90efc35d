// This part keeps the audit log in memory, a part of the store there.

package fake

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Log implements store.Audit. It is safe for concurrent use; the zero value is empty.
type Log struct {
	mu      sync.Mutex
	lines   []store.AuditEntry
	written int64
	days    int
}

// begin locks the log, unless the context is over. The caller unlocks it.
func (s *Log) begin(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("asking the control store: %w", err)
	}
	s.mu.Lock()
	return nil
}

// memauditDefaultPage is how many lines are listed where nobody says.
const memauditDefaultPage = 50

func memauditNow() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func memauditOrNow(t engine.Time) engine.Time {
	if t.IsZero() {
		return engine.At(memauditNow())
	}
	return engine.At(t.Truncate(time.Microsecond))
}

// AppendAudit implements store.Audit.
func (s *Log) AppendAudit(ctx context.Context, e store.AuditEntry) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	e.At, e.Object, e.Detail = memauditOrNow(e.At), store.CleanText(e.Object), store.CleanText(e.Detail)
	e.Outcome = cmp.Or(e.Outcome, store.OutcomeDone)
	s.written++
	e.AuditID = s.written
	s.lines = append(s.lines, e)
	return nil
}

// ListAudit implements store.Audit.
func (s *Log) ListAudit(ctx context.Context, f store.AuditFilter) ([]store.AuditEntry, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found []store.AuditEntry
	for _, e := range slices.Backward(s.lines) {
		if f.Matches(e) {
			found = append(found, e)
		}
	}
	return found[:min(cmp.Or(max(f.Limit, 0), memauditDefaultPage), len(found))], nil
}

// AuditDays implements store.Audit.
func (s *Log) AuditDays(ctx context.Context) (int, error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	return s.days, nil
}

// KeepAudit implements store.Audit.
func (s *Log) KeepAudit(ctx context.Context, days int, was *int) (before int, err error) {
	if err := store.CheckAuditDays(days); err != nil {
		return 0, err
	}
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	before = s.days
	if err := store.OtherAuditDays(was, before); err != nil {
		return before, err
	}
	s.days = days
	return before, nil
}

// PruneAudit implements store.Audit.
func (s *Log) PruneAudit(ctx context.Context, most int) (int, error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	n := 0
	for s.days > 0 && n < min(most, len(s.lines)) &&
		memauditNow().Sub(s.lines[n].At.Time) > time.Duration(s.days)*24*time.Hour {
		n++
	}
	s.lines = s.lines[n:]
	return n, nil
}
