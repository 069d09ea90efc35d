// Command describe writes into a folder what the host knows of each plugin file named,
// as one JSON object by file name, and the files compressed. The program embeds both, so
// that a server need not compile every bundled plugin to know what it is: make runs it
// after building them. The same files give the same bytes.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/bundled"
	"github.com/loadstone-db/loadstone/plugins/host"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: describe FOLDER FILE.wasm...")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder string, files []string) error {
	pack, err := compressor(files)
	if err != nil {
		return err
	}
	h, err := host.New(ctx, host.Options{Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	defer func() { _ = h.Close(ctx) }() // the process ends
	infos := map[string]plugin.Info{}
	for _, path := range files {
		wasm, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("reading a plugin: %w", err)
		}
		if infos[filepath.Base(path)], err = h.Inspect(ctx, wasm); err != nil {
			return fmt.Errorf("inspecting %s: %w", path, err)
		}
		into := folder
		if infos[filepath.Base(path)].Manifest.Driver == "snowflake" {
			// What a build without Snowflake leaves out.
			into = filepath.Join(filepath.Dir(folder), "snowflake")
		}
		small, err := pack(filepath.Base(path), wasm)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(into, filepath.Base(path)+".zst"), small, 0o600); err != nil {
			return fmt.Errorf("writing a compressed plugin: %w", err)
		}
	}
	text, err := json.Marshal(infos)
	if err != nil {
		return fmt.Errorf("writing what the plugins are: %w", err)
	}
	// It comes last and appears whole: make takes it for the sign that all is there.
	target := filepath.Join(folder, "manifests.json")
	if err := os.WriteFile(target+".new", append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing what the plugins are: %w", err)
	}
	if err := os.Rename(target+".new", target); err != nil {
		return fmt.Errorf("writing what the plugins are: %w", err)
	}
	return nil
}

// compressor compresses files by name, each by its reference.
func compressor(files []string) (func(name string, wasm []byte) ([]byte, error), error) {
	content := map[string][]byte{}
	for _, path := range files {
		wasm, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("reading a plugin: %w", err)
		}
		content[filepath.Base(path)] = wasm
	}
	return func(name string, wasm []byte) ([]byte, error) {
		// One goroutine, for the bytes not to depend on the machine.
		options := []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1),
			zstd.WithWindowSize(8 << 20)}
		if reference, id := bundled.ReferenceOf(name); reference != "" {
			if content[reference] == nil {
				return nil, fmt.Errorf("compressing %s: %s, which it is compressed by, is not among the plugins", name, reference)
			}
			options = append(options, zstd.WithEncoderDictRaw(id, content[reference]))
		}
		w, err := zstd.NewWriter(nil, options...)
		if err != nil {
			return nil, fmt.Errorf("compressing %s: %w", name, err)
		}
		return w.EncodeAll(wasm, nil), nil
	}, nil
}
