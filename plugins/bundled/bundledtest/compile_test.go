package bundledtest

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/plugins/host"
)

// TestCompile is the process that Compile starts. It is a test, because what a
// program compiled is taken by programs of the same version only, and wazero knows
// no version in a test.
func TestCompile(t *testing.T) {
	dir := os.Getenv(folderVariable)
	if dir == "" {
		t.Skip("it is for Compile")
	}
	ctx := context.Background()
	h, err := host.New(ctx, host.Options{CacheDir: dir, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = h.Close(ctx) }()
	for path := range strings.SplitSeq(os.Getenv(filesVariable), string(os.PathListSeparator)) {
		wasm, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Inspect(ctx, wasm); err != nil {
			t.Errorf("compiling %s: %v", path, err)
		}
	}
}
