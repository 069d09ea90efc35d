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
	"slices"

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
		if err := os.WriteFile(filepath.Join(into, filepath.Base(path)+".zst"), pack(filepath.Base(path), wasm),
			0o600); err != nil {
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

// compressor compresses files by name: the reference alone, the others by it.
func compressor(files []string) (func(name string, wasm []byte) []byte, error) {
	at := slices.IndexFunc(files, func(path string) bool { return filepath.Base(path) == bundled.Reference })
	if at < 0 {
		return nil, fmt.Errorf("compressing the plugins: %s, which the others are compressed by, is not among them",
			bundled.Reference)
	}
	content, err := os.ReadFile(files[at])
	if err != nil {
		return nil, fmt.Errorf("reading a plugin: %w", err)
	}
	// One goroutine, for the bytes not to depend on the machine.
	options := []zstd.EOption{zstd.WithEncoderLevel(zstd.SpeedBestCompression), zstd.WithEncoderConcurrency(1),
		zstd.WithWindowSize(8 << 20)}
	alone, err := zstd.NewWriter(nil, options...)
	if err != nil {
		return nil, fmt.Errorf("compressing the plugins: %w", err)
	}
	others, err := zstd.NewWriter(nil, append(options, zstd.WithEncoderDictRaw(bundled.DictionaryID, content))...)
	if err != nil {
		return nil, fmt.Errorf("compressing the plugins: %w", err)
	}
	return func(name string, wasm []byte) []byte {
		if name == bundled.Reference {
			return alone.EncodeAll(wasm, nil)
		}
		return others.EncodeAll(wasm, nil)
	}, nil
}
