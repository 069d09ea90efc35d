package memstore_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/store/memstore"
	"github.com/loadstone-db/loadstone/engine/store/storetest"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return memstore.New(postgres.NewDriver(), snowflake.NewDriver()) })
}
