package host

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/plugins/bundled/bundledtest"
)

// cacheDir is shared by all tests, also those of other packages, so that each module is compiled once.
var cacheDir = bundledtest.CacheDir()

type cachedMain struct{ m *testing.M }

func (c cachedMain) Run() int {
	if err := bundledtest.Compile(cacheDir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return c.m.Run()
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(cachedMain{m}) }
