package quarantine

import (
	"testing"

	"go.uber.org/goleak"
)

type cleaned struct{ m *testing.M }

func (c cleaned) Run() int {
	defer Clean()
	return c.m.Run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(cleaned{m}) }
