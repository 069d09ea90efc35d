package host

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
)

// Where wazero keeps compiled code, and under which name, is nowhere promised. So nothing
// relies on it: code that is not found where it should be is compiled, and a module without
// code (wasm.StripCode) is used only where its code was seen before and after.

// codeFile is a file of compiled code.
type codeFile struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	// Ends is a hash of its first and last bytes: where each function begins, and wazero's own
	// sum of the code.
	Ends string `json:"ends"`
}

// sampleBytes is how many bytes at either end tell one code from another.
const sampleBytes = 64 << 10

// describeCode describes the file, which must be one.
func describeCode(dir, name string) (codeFile, error) {
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return codeFile{}, fmt.Errorf("looking at compiled code: %w", err)
	}
	defer func() { _ = file.Close() }() // only read
	info, err := file.Stat()
	if err != nil {
		return codeFile{}, fmt.Errorf("looking at compiled code: %w", err)
	}
	if !info.Mode().IsRegular() {
		return codeFile{}, errNoCode
	}
	h, n := sha256.New(), min(info.Size(), sampleBytes)
	for _, at := range []int64{0, info.Size() - n} {
		if _, err := io.Copy(h, io.NewSectionReader(file, at, n)); err != nil {
			return codeFile{}, fmt.Errorf("looking at compiled code: %w", err)
		}
	}
	return codeFile{Name: name, Size: info.Size(), Ends: hex.EncodeToString(h.Sum(nil))}, nil
}

// cpuVariants are how many kinds of a processor the compiler tells apart: by three abilities.
const cpuVariants = 8

// codeNames are the names under which wazero keeps the code of a module, one for each kind
// of processor: hashes of the module's hash.
func codeNames(module []byte) [cpuVariants]string {
	var names [cpuVariants]string
	id := sha256.New()
	id.Write(module)
	id.Write([]byte{0}) // without an end by the context
	key := append(id.Sum(nil), "WAZEVO"...)
	for i := range names {
		sum := sha256.Sum256(binary.LittleEndian.AppendUint64(key[:len(key):len(key)], uint64(i)))
		names[i] = hex.EncodeToString(sum[:])
	}
	return names
}

// errNoCode says that the code of a module is not where it was expected.
var errNoCode = errors.New("the compiled code is not found")

// singleFile returns which of the names has a file in the folder, if it is one alone.
func singleFile(dir string, names [cpuVariants]string) (kind int, file codeFile, err error) {
	kind = -1
	for i, name := range names {
		there, err := describeCode(dir, name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return -1, file, err
		case kind >= 0:
			return -1, file, errNoCode
		}
		kind, file = i, there
	}
	if kind < 0 {
		return -1, file, errNoCode
	}
	return kind, file, nil
}

// has reports that the code of a hollow module is there, and no other.
func (f codeFile) has(dir string, hollow []byte) bool {
	_, there, err := singleFile(dir, codeNames(hollow))
	return err == nil && there == f
}

// linkCode gives the code of a module to another one, which differs from it in nothing that
// the code knows.
func linkCode(dir string, module, with []byte) (codeFile, error) {
	kind, file, err := singleFile(dir, codeNames(module))
	if err != nil {
		return codeFile{}, err
	}
	names := codeNames(with)
	// What an earlier attempt has left may be the code of traps.
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return codeFile{}, fmt.Errorf("removing compiled code: %w", err)
		}
	}
	from := file.Name
	file.Name = names[kind]
	if err := os.Link(filepath.Join(dir, from), filepath.Join(dir, file.Name)); err != nil {
		return codeFile{}, fmt.Errorf("sharing compiled code: %w", err)
	}
	return file, nil
}

// compilerModule is wazero's path among the modules of the program.
const compilerModule = "github.com/tetratelabs/wazero"

// codeFolder is where the compiler keeps its code below a folder.
var codeFolder = func() func(dir string) string {
	name := sync.OnceValue(func() string {
		version := "dev" // what wazero says of itself in tests, which name no modules
		if info, ok := debug.ReadBuildInfo(); ok {
			for _, dep := range info.Deps {
				if dep.Path == compilerModule {
					version = dep.Version
				}
			}
		}
		return "wazero-" + version + "-" + runtime.GOARCH + "-" + runtime.GOOS
	})
	return func(dir string) string { return filepath.Join(dir, name()) }
}()
