package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// AppendAudit implements store.Audit.
func (s *Store) AppendAudit(ctx context.Context, e store.AuditEntry) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	e.At, e.Object, e.Detail = orNow(e.At), store.CleanText(e.Object), store.CleanText(e.Detail)
	e.Outcome = cmp.Or(e.Outcome, store.OutcomeDone)
	s.audited++
	e.AuditID = s.audited
	s.audit = append(s.audit, e)
	return nil
}

// ListAudit implements store.Audit.
func (s *Store) ListAudit(ctx context.Context, f store.AuditFilter) ([]store.AuditEntry, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var found []store.AuditEntry
	for _, e := range slices.Backward(s.audit) {
		if f.Matches(e) {
			found = append(found, e)
		}
	}
	return first(f.Limit, found), nil
}

// AuditDays implements store.Audit.
func (s *Store) AuditDays(ctx context.Context) (int, error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	return s.auditDays, nil
}

// KeepAudit implements store.Audit.
func (s *Store) KeepAudit(ctx context.Context, days int) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if days != 0 && days < store.LeastAuditDays {
		return engine.InvalidField("keep_days", "is too short", "0 keeps lines for ever; 30 is the least otherwise")
	}
	s.auditDays = days
	return nil
}

// PruneAudit implements store.Audit.
func (s *Store) PruneAudit(ctx context.Context, most int) (int, error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	n := 0
	for s.auditDays > 0 && n < min(most, len(s.audit)) &&
		now().Sub(s.audit[n].At.Time) > time.Duration(s.auditDays)*24*time.Hour {
		n++
	}
	s.audit = s.audit[n:]
	return n, nil
}
