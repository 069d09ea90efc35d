package memstore

import (
	"context"
	"slices"

	"github.com/loadstone-db/loadstone/engine/store"
)

// AppendAudit implements store.Audit.
func (s *Store) AppendAudit(ctx context.Context, e store.AuditEntry) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	e.At, e.Object, e.Detail = orNow(e.At), store.CleanText(e.Object), store.CleanText(e.Detail)
	s.audit = append(s.audit, e)
	return nil
}

// ListAudit implements store.Audit; newest first. limit ≤ 0 means 50.
func (s *Store) ListAudit(ctx context.Context, limit int) ([]store.AuditEntry, error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	all := slices.Clone(s.audit)
	slices.Reverse(all)
	return first(limit, all), nil
}
