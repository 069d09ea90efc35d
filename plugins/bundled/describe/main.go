// Command describe writes what the host knows of each plugin file named, as one
// JSON object by file name. The program embeds it, so that a server need not
// compile every bundled plugin to know what it is: make runs it after building them.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/host"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, files []string) error {
	h, err := host.New(ctx, host.Options{Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	defer func() { _ = h.Close(ctx) }() // the process ends
	infos := map[string]plugin.Info{}
	for _, path := range files {
		wasm, err := os.ReadFile(path) //nolint:gosec // the files are make's
		if err != nil {
			return fmt.Errorf("reading a plugin: %w", err)
		}
		if infos[filepath.Base(path)], err = h.Inspect(ctx, wasm); err != nil {
			return fmt.Errorf("inspecting %s: %w", path, err)
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(infos); err != nil {
		return fmt.Errorf("writing what the plugins are: %w", err)
	}
	return nil
}
