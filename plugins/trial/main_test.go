package trial

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/loadstone-db/loadstone/plugins/bundled/bundledtest"
	"github.com/loadstone-db/loadstone/plugins/host"
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

func newHost(t testing.TB) *host.Host {
	t.Helper()
	h, err := host.New(context.Background(), host.Options{CacheDir: cacheDir, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Errorf("closing the host: %v", err)
		}
	})
	return h
}

func bundledFile(t testing.TB, name string) []byte {
	t.Helper()
	files, err := bundledtest.Files()
	if err != nil {
		t.Fatal(err)
	}
	if files[name] == nil {
		t.Fatalf("%s is not among the bundled plugins: run `make plugins`", name)
	}
	return files[name]
}
