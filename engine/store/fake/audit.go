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

// AuditLog implements store.Audit. It is safe for concurrent use; the zero value is empty.
type AuditLog struct {
	mu      sync.Mutex
	lines   []store.AuditEntry
	written int64
	days    int
}

// lock locks the log, unless the context is over. The caller unlocks it.
func (s *AuditLog) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("asking the control store: %w", err)
	}
	s.mu.Lock()
	return nil
}

// defaultAuditPage is how many lines are listed where nobody says.
const defaultAuditPage = 50

func auditNow() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

func auditOrNow(t engine.Time) engine.Time {
	if t.IsZero() {
		return engine.At(auditNow())
	}
	return engine.At(t.Truncate(time.Microsecond))
}

// AppendAudit implements store.Audit.
func (s *AuditLog) AppendAudit(ctx context.Context, e store.AuditEntry) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	e.At, e.Object, e.Detail = auditOrNow(e.At), store.CleanText(e.Object), store.CleanText(e.Detail)
	e.Outcome = cmp.Or(e.Outcome, store.OutcomeDone)
	s.written++
	e.AuditID = s.written
	s.lines = append(s.lines, e)
	return nil
}

// ListAudit implements store.Audit.
func (s *AuditLog) ListAudit(ctx context.Context, f store.AuditFilter) ([]store.AuditEntry, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found []store.AuditEntry
	for _, e := range slices.Backward(s.lines) {
		if f.Matches(e) {
			found = append(found, e)
		}
	}
	return found[:min(cmp.Or(max(f.Limit, 0), defaultAuditPage), len(found))], nil
}

// AuditDays implements store.Audit.
func (s *AuditLog) AuditDays(ctx context.Context) (int, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	return s.days, nil
}

// SetAuditRetention implements store.Audit.
func (s *AuditLog) SetAuditRetention(ctx context.Context, days int, was *int) (before int, err error) {
	if err := store.CheckAuditDays(days); err != nil {
		return 0, err
	}
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	before = s.days
	if err := store.AuditDaysChangedError(was, before); err != nil {
		return before, err
	}
	s.days = days
	return before, nil
}

// PruneAudit implements store.Audit.
func (s *AuditLog) PruneAudit(ctx context.Context, most int) (int, error) {
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	n := 0
	for s.days > 0 && n < min(most, len(s.lines)) &&
		auditNow().Sub(s.lines[n].At.Time) > time.Duration(s.days)*24*time.Hour {
		n++
	}
	s.lines = s.lines[n:]
	return n, nil
}
