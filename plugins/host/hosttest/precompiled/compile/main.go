// Command compile compiles plugin files into a folder of compiled plugins, for tests.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/plugins/host"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, files []string) error {
	h, err := host.New(ctx, host.Options{CacheDir: dir, Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	defer func() { _ = h.Close(ctx) }() // the process ends
	for _, path := range files {
		wasm, err := os.ReadFile(path) //nolint:gosec // the files are the test's
		if err != nil {
			return fmt.Errorf("reading a plugin: %w", err)
		}
		if _, err := h.Inspect(ctx, wasm); err != nil {
			return fmt.Errorf("compiling %s: %w", path, err)
		}
	}
	return nil
}
