package fake

import (
	"context"

	"github.com/loadstone-db/loadstone/engine"
)

// SaveWarehouse implements run.ControlStore. The runs of tests have no warehouse.
func (s *Store) SaveWarehouse(ctx context.Context, runID string, epoch int64, _ engine.WarehousePoint) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	_, err := s.fenced(runID, epoch)
	return err
}

// WarehouseChanges implements run.ControlStore.
func (*Store) WarehouseChanges(context.Context, string) ([]engine.WarehousePoint, error) {
	return nil, nil
}
