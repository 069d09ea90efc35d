package postgres_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
)

// TestConformanceOfEvents: the same suite, driven as an event loop does.
func TestConformanceOfEvents(t *testing.T) {
	t.Parallel()
	conform(t, targettest.Events(postgres.NewDriver()))
}
