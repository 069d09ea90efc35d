package fake_test

import (
	"testing"

	"github.com/loadstone-db/loadstone/engine/store/fake"
	"github.com/loadstone-db/loadstone/engine/store/storetest"
)

func TestStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) storetest.Store { return fake.New() })
}
