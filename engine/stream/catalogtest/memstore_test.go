package catalogtest_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine/stream/catalog"
	"github.com/loadstone-db/loadstone/engine/stream/catalogtest"
)

func TestMemory(t *testing.T) {
	catalogtest.Run(t, func(*testing.T) catalog.Store { return &catalogtest.Store{} })
}
