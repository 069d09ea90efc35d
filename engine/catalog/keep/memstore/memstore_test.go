package memstore_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine/catalog/keep"
	"github.com/loadstone-db/loadstone/engine/catalog/keep/keeptest"
	"github.com/loadstone-db/loadstone/engine/catalog/keep/memstore"
)

func TestMemory(t *testing.T) {
	keeptest.Run(t, func(*testing.T) keep.Keeper { return &memstore.Keeper{} })
}
