package quarantine

import (
	"testing"

	"go.uber.org/goleak"
)

type cleanupMain struct{ m *testing.M }

func (c cleanupMain) Run() int {
	defer Clean()
	return c.m.Run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(cleanupMain{m}) }
