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

// Reference is the file that the others are compressed by, and DictionaryID says so in
// them. Each guest in Go brings the same runtime and the same SDK, and is mostly a part of
// another. A run on Postgres needs this one in any case.
const (
	Reference    = "postgres.wasm"
	DictionaryID = 1
)

// reference is decompressed once, and kept, since the decoder of the others reads in it.
var reference = sync.OnceValues(func() ([]byte, error) {
	d, err := newDecoder()
	if err != nil {
		return nil, err
	}
	defer d.Close()
	return decompress(d, folders[0], Reference)
})

// decoder is made for the first module that is asked for; it is safe for concurrent use.
var decoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	content, err := reference()
	if err != nil {
		return nil, err
	}
	return newDecoder(zstd.WithDecoderDictRaw(DictionaryID, content))
})

func newDecoder(options ...zstd.DOption) (*zstd.Decoder, error) {
	d, err := zstd.NewReader(nil,
		append(options, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxModuleBytes))...)
	if err != nil {
		return nil, fmt.Errorf("decompressing the bundled plugins: %w", err)
	}
	return d, nil
}

func unpack(f folder, name string) ([]byte, error) {
	if name == Reference {
		content, err := reference()
		return bytes.Clone(content), err
	}
	d, err := decoder()
	if err != nil {
		return nil, err
	}
	return decompress(d, f, name)
}

func decompress(d *zstd.Decoder, f folder, name string) ([]byte, error) {
	small, err := f.files.ReadFile(f.path + "/" + name + compressedSuffix)
	if err != nil {
		return nil, fmt.Errorf("reading the bundled plugin %s: %w", name, err)
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
