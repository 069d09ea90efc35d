package host

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// approvalFolder keeps, between processes, what the gate of plugins said of a file:
// what it readApproval of it, and what of the module is compiled. Reading and writing a
// guest in Go takes 50 ms of CPU, and gives the same each time for the same file and
// the same program.
//
// An approval is of one file, by its SHA-256, and by one program, by the identity of
// its executable: a later one may judge otherwise. Each entry names both and has a sum
// over all of itself. What does not match, or is torn, is no approval, and the file is
// judged again. The sum finds damage, no forger: whoever can write into the folder
// could as well change the compiled code beside it. So the folder is private.
//
// It is safe for concurrent use, by several processes too. The
// zero value holds none.
type approvalFolder struct {
	path    string
	program [sha256.Size]byte
}

// openApprovals returns the approvals below a folder that nobody else can write to, which the
// caller has made sure of. Without a program none is kept.
func openApprovals(dir, program string) (approvalFolder, error) {
	if dir == "" || program == "" {
		return approvalFolder{}, nil
	}
	f := approvalFolder{path: filepath.Join(dir, "approved"), program: sha256.Sum256([]byte(program))}
	if err := os.MkdirAll(f.path, 0o700); err != nil {
		return approvalFolder{}, fmt.Errorf("making the folder of approvals: %w", err)
	}
	return f, nil
}

// approval is what is kept of one file.
type approval struct {
	Shape  []byte // what the gate read, as its owner writes it
	Module []byte // what is compiled of it, as its owner writes it
}

const (
	approvalMagic = "loadstone approval 1\n"
	// An entry is approvalMagic, the sum of what follows, the program, the file's hash, the
	// length of the shape, the shape, the module.
	sumAt     = len(approvalMagic)
	programAt = sumAt + sha256.Size
	fileAt    = programAt + sha256.Size
	lengthAt  = fileAt + sha256.Size
	shapeAt   = lengthAt + 4
	// largestApproval bounds an entry: a module grows by a third when it is written again.
	largestApproval = 64 << 20
	// approvalKeptFor is how long an entry stays that nobody writes again. Versions of plugins
	// come and go with programs.
	approvalKeptFor = 30 * 24 * time.Hour
)

// Enabled reports that what is put is kept.
func (f approvalFolder) Enabled() bool { return f.path != "" }

// hashOf reads a SHA-256 in hexadecimal; false is one that is none, and so no file's name.
func hashOf(sha string) (sum []byte, ok bool) {
	sum, err := hex.DecodeString(sha)
	return sum, err == nil && len(sum) == sha256.Size
}

// Get returns what this program has approved of the file with that hash.
func (f approvalFolder) Get(sha string) (approval, bool) {
	file, ok := hashOf(sha)
	if f.path == "" || !ok {
		return approval{}, false
	}
	entry, err := readApproval(filepath.Join(f.path, hex.EncodeToString(file)))
	if err != nil || len(entry) < shapeAt || string(entry[:sumAt]) != approvalMagic {
		return approval{}, false
	}
	sum := sha256.Sum256(entry[programAt:])
	if !bytes.Equal(entry[sumAt:programAt], sum[:]) || !bytes.Equal(entry[programAt:fileAt], f.program[:]) ||
		!bytes.Equal(entry[fileAt:lengthAt], file) {
		return approval{}, false
	}
	rest := entry[shapeAt:]
	n := binary.LittleEndian.Uint32(entry[lengthAt:])
	if uint64(n) > uint64(len(rest)) {
		return approval{}, false
	}
	return approval{Shape: rest[:n:n], Module: rest[n:]}, true
}

// readApproval reads a file that is a file: neither a link nor a pipe that never ends.
func readApproval(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err //nolint:wrapcheck // no approval, whatever it is
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err //nolint:wrapcheck // no approval, whatever it is
	}
	if !info.Mode().IsRegular() || info.Size() > largestApproval {
		return nil, errors.New("it is no entry")
	}
	entry := make([]byte, info.Size())
	_, err = io.ReadFull(f, entry)
	return entry, err //nolint:wrapcheck // no approval, whatever it is
}

// Put keeps an approval of the file with that hash by this program, in place of an
// earlier one, and removes entries that are old.
func (f approvalFolder) Put(sha string, a approval) error {
	file, ok := hashOf(sha)
	if f.path == "" || !ok {
		return nil
	}
	entry := make([]byte, shapeAt, shapeAt+len(a.Shape)+len(a.Module))
	copy(entry, approvalMagic)
	copy(entry[programAt:], f.program[:])
	copy(entry[fileAt:], file)
	binary.LittleEndian.PutUint32(entry[lengthAt:], uint32(len(a.Shape)))
	entry = append(append(entry, a.Shape...), a.Module...)
	sum := sha256.Sum256(entry[programAt:])
	copy(entry[sumAt:], sum[:])
	f.removeOlder(time.Now().Add(-approvalKeptFor))
	return f.write(hex.EncodeToString(file), entry)
}

// write has the entry appear whole. One that a crash tears has a wrong sum.
func (f approvalFolder) write(name string, entry []byte) (err error) {
	t, err := os.CreateTemp(f.path, name+".*.new")
	if err != nil {
		return fmt.Errorf("keeping an approval: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(t.Name())
		}
	}()
	_, err = t.Write(entry)
	if err = errors.Join(err, t.Close()); err != nil {
		return fmt.Errorf("keeping an approval: %w", err)
	}
	if err = os.Rename(t.Name(), filepath.Join(f.path, name)); err != nil {
		return fmt.Errorf("keeping an approval: %w", err)
	}
	return nil
}

// removeOlder removes what was written before limit, also what a crash left half written.
func (f approvalFolder) removeOlder(limit time.Time) {
	entries, err := os.ReadDir(f.path)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.ModTime().Before(limit) {
			_ = os.Remove(filepath.Join(f.path, e.Name()))
		}
	}
}
