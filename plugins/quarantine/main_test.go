package quarantine

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/plugins/quarantine/quarantinetest"
)

type cleanupMain struct{ m *testing.M }

func (c cleanupMain) Run() int {
	defer quarantinetest.Clean()
	return c.m.Run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(cleanupMain{m}) }
