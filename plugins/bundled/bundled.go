// Package bundled embeds the plugins that come with Loadstone. They go through
// the same door as uploaded ones. The files are built by `make plugins` and are
// not committed. They are embedded compressed, a ninth of their size, and
// decompressed when they are first asked for.
package bundled

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/loadstone-db/loadstone/engine/plugin"
)

//go:embed all:dist
var dist embed.FS

// folders hold the files; a build without Snowflake lacks that of its adapters.
var folders = []folder{{dist, "dist"}}

type folder struct {
	files embed.FS
	path  string
}

// ErrNotBuilt is returned by Modules when the program was built without its plugins.
var ErrNotBuilt = errors.New("this build has no bundled plugins: run `make plugins` and build again")

// compressedSuffix is how the name of a compressed file ends.
const compressedSuffix = ".zst"

// maxModuleBytes bounds what a file is decompressed to.
const maxModuleBytes = 64 << 20

// Modules returns the bundled modules by file name, each as a function that
// decompresses it; who executes the bytes compares them with their hash.
func Modules() (map[string]func() ([]byte, error), error) {
	modules := map[string]func() ([]byte, error){}
	for _, f := range folders {
		entries, err := f.files.ReadDir(f.path)
		if err != nil {
			return nil, fmt.Errorf("reading the bundled plugins: %w", err)
		}
		for _, e := range entries {
			switch name, compressed := strings.CutSuffix(e.Name(), compressedSuffix); {
			case compressed:
				modules[name] = func() ([]byte, error) { return unpack(f, name) }
			case strings.HasSuffix(name, ".wasm"): // put there by hand
				modules[name] = func() ([]byte, error) { return f.files.ReadFile(f.path + "/" + name) }
			}
		}
	}
	if len(modules) == 0 {
		return nil, ErrNotBuilt
	}
	return modules, nil
}

// Reference is the file by which, directly or not, the others are compressed. Each guest in Go brings the same runtime
// and the same SDK, and is mostly a part of another. A run on Postgres needs this one in any case.
const Reference = "postgres.wasm"

// reference is a file by which others are compressed. It is decompressed once, and kept, since their decoder reads in
// it.
type reference struct {
	name, folder string
	dictionaryID uint32     // in the files that are compressed by it
	by           *reference // nil for Reference

	once    sync.Once
	content []byte
	decoder *zstd.Decoder // safe for concurrent use
	err     error
}

var (
	postgres          = &reference{name: Reference, folder: "dist", dictionaryID: 1}
	snowflakeStandard = &reference{name: "snowflake_standard.wasm", folder: "snowflake", dictionaryID: 2, by: postgres}
)

// referenceOf is what a file is compressed by: one that has most of the same libraries. It is nil for Reference.
func referenceOf(name string) *reference {
	switch name {
	case postgres.name:
		return nil
	case "snowflake_hybrid.wasm", "snowflake_interactive.wasm":
		return snowflakeStandard
	}
	return postgres
}

// ReferenceOf returns the name of the file that a file is compressed by, "" for none, and the number of its dictionary.
func ReferenceOf(name string) (file string, dictionaryID uint32) {
	if r := referenceOf(name); r != nil {
		return r.name, r.dictionaryID
	}
	return "", 0
}

func (r *reference) load() error {
	r.once.Do(func() {
		at := slices.IndexFunc(folders, func(f folder) bool { return f.path == r.folder })
		if r.content, r.err = decompress(folders[at], r.name, r.by); r.err == nil {
			r.decoder, r.err = newDecoder(zstd.WithDecoderDictRaw(r.dictionaryID, r.content))
		}
	})
	return r.err
}

func newDecoder(options ...zstd.DOption) (*zstd.Decoder, error) {
	d, err := zstd.NewReader(nil,
		append(options, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxModuleBytes))...)
	if err != nil {
		return nil, fmt.Errorf("decompressing the bundled plugins: %w", err)
	}
	return d, nil
}

func unpack(f folder, name string) ([]byte, error) {
	for _, r := range []*reference{postgres, snowflakeStandard} {
		if r.name == name {
			err := r.load()
			return bytes.Clone(r.content), err
		}
	}
	return decompress(f, name, referenceOf(name))
}

func decompress(f folder, name string, by *reference) ([]byte, error) {
	small, err := f.files.ReadFile(f.path + "/" + name + compressedSuffix)
	if err != nil {
		return nil, fmt.Errorf("reading the bundled plugin %s: %w", name, err)
	}
	var d *zstd.Decoder
	if by == nil {
		if d, err = newDecoder(); err != nil {
			return nil, err
		}
		defer d.Close()
	} else {
		if err := by.load(); err != nil {
			return nil, err
		}
		d = by.decoder
	}
	wasm, err := d.DecodeAll(small, nil)
	if err != nil {
		return nil, fmt.Errorf("decompressing the bundled plugin %s: %w", name, err)
	}
	return wasm, nil
}

// manifestsFile holds what the host knew of each file when it was built.
const manifestsFile = "dist/manifests.json"

// Infos returns what each bundled module is, by file name, without compiling it.
// Files that are not in it have to be asked; it is nil in a build without that knowledge.
func Infos() (map[string]plugin.Info, error) {
	text, err := dist.ReadFile(manifestsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading what the bundled plugins are: %w", err)
	}
	var infos map[string]plugin.Info
	if err := json.Unmarshal(text, &infos); err != nil {
		return nil, fmt.Errorf("reading what the bundled plugins are: %w", err)
	}
	return infos, nil
}
