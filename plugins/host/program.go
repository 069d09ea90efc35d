package host

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"runtime"
	"sync"
)

// Program names the running program by what it consists of: the build ID that Go's
// toolchain writes into each, a hash of all that went into it. It is "" where there is
// none, and on systems where a file by the program's name need not be the one that runs.
var Program = sync.OnceValue(func() string {
	if runtime.GOOS != "linux" {
		return ""
	}
	// This is what runs, also when the file has been replaced since.
	f, err := elf.Open("/proc/self/exe")
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }() // only read
	for _, p := range f.Progs {
		if p.Type != elf.PT_NOTE || p.Filesz > 1<<16 {
			continue
		}
		notes, err := io.ReadAll(p.Open())
		if err != nil {
			return ""
		}
		if id := buildID(notes, f.ByteOrder); id != "" {
			return id
		}
	}
	return ""
})

// buildID finds Go's note among those of a program.
func buildID(notes []byte, order binary.ByteOrder) string {
	const head, goName, goBuildID = 12, "Go\x00\x00", 4
	padded := func(n uint32) uint64 { return (uint64(n) + 3) &^ 3 }
	for len(notes) >= head {
		name, text, kind := order.Uint32(notes), order.Uint32(notes[4:]), order.Uint32(notes[8:])
		whole := head + padded(name) + padded(text)
		if whole > uint64(len(notes)) {
			return ""
		}
		rest := notes[head:]
		if kind == goBuildID && bytes.HasPrefix(rest, []byte(goName)) && int(name) == len(goName) {
			return string(rest[padded(name):][:text])
		}
		notes = notes[whole:]
	}
	return ""
}
