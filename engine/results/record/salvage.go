package record

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// StoredSuffix ends the names of parts that a server has, which are kept a while for one that
// asks again, and are of no use to another process.
const StoredSuffix = ".stored"

// quarantinedSuffix ends the names of parts that could not be opened; they are tried again.
const quarantinedSuffix = ".aside"

// QuarantinedPart is a part that is kept although it could not be opened.
type QuarantinedPart struct {
	Name string // as it lies in the folder now
	Err  error
}

// QuarantineError is Salvage's error when it has set parts aside; the parts that it
// returns beside it are whole.
type QuarantineError struct{ Parts []QuarantinedPart }

func (e *QuarantineError) Error() string {
	words := make([]string, len(e.Parts))
	for i, p := range e.Parts {
		words[i] = fmt.Sprintf("%s: %v", p.Name, p.Err)
	}
	return engine.Count(len(e.Parts), "part") + " cannot be opened and were moved aside: " + strings.Join(words, "; ")
}

// Unwrap returns why each could not be opened.
func (e *QuarantineError) Unwrap() []error {
	all := make([]error, len(e.Parts))
	for i, p := range e.Parts {
		all[i] = p.Err
	}
	return all
}

// Salvage lists the whole parts that a killed process left in dir, by name, and
// removes what is torn for certain: files under construction, and files that end
// without a footer; and what a server has. A part that cannot be opened for another reason — no
// descriptors, a failing disk, a newer version's columns — is moved aside, tried
// again by the next call, and told by an *QuarantineError. No Writer may be at work in
// dir. A missing folder has no parts.
func Salvage(dir string) ([]engine.Artifact, error) { return salvage(dir, OpenPart) }

// partOpener is OpenPart, or fails as a disk would.
type partOpener func(path string) (*Part, error)

func salvage(dir string, open partOpener) ([]engine.Artifact, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("salvaging parts: %w", err)
	}
	var found []engine.Artifact
	var kept QuarantineError
	for _, entry := range entries {
		name := entry.Name()
		switch {
		case entry.IsDir():
		case strings.HasSuffix(name, extension+unfinishedSuffix), strings.HasSuffix(name, extension+StoredSuffix):
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				kept.Parts = append(kept.Parts, QuarantinedPart{name, fmt.Errorf("removing torn part: %w", err)})
			}
		case strings.HasSuffix(name, extension), strings.HasSuffix(name, extension+quarantinedSuffix):
			a, where, err := salvagePart(dir, name, open)
			switch {
			case err != nil:
				kept.Parts = append(kept.Parts, QuarantinedPart{where, err})
			case where != "":
				found = append(found, a)
			}
		}
	}
	if len(kept.Parts) > 0 {
		return found, &kept
	}
	return found, nil
}

// salvagePart opens one part and returns its name from now on, empty for one that was
// torn and is gone.
func salvagePart(dir, name string, open partOpener) (a engine.Artifact, now string, err error) {
	final := strings.TrimSuffix(name, quarantinedSuffix)
	path := filepath.Join(dir, name)
	a, err = describePart(path, open)
	if err != nil {
		if torn, why := isTorn(path); why == nil && torn {
			if err = os.Remove(path); err == nil {
				return a, "", nil
			}
			err = fmt.Errorf("removing torn part: %w", err)
		}
		if name != final {
			return a, name, err
		}
		if renameErr := os.Rename(path, path+quarantinedSuffix); renameErr != nil {
			return a, name, errors.Join(err, renameErr)
		}
		return a, name + quarantinedSuffix, err
	}
	if name != final {
		// Link does not replace a part that has the name now.
		if err := os.Link(path, filepath.Join(dir, final)); err != nil {
			return a, name, fmt.Errorf("bringing a part back: %w", err)
		}
		if err := os.Remove(path); err != nil {
			return a, name, fmt.Errorf("bringing a part back: %w", err)
		}
		a.Name = final
	}
	return a, final, nil
}

// describePart reads what a part says of itself, and its checksum.
func describePart(path string, open partOpener) (a engine.Artifact, err error) {
	if name := strings.TrimSuffix(filepath.Base(path), quarantinedSuffix); isSidecar(name) {
		if a, err = readSidecar(path, name); err != nil {
			return a, err
		}
		a.SizeBytes, a.SHA256, err = Checksum(path)
		return a, err
	}
	p, err := open(path)
	if err != nil {
		return a, err
	}
	a = p.Artifact()
	_ = p.Close() // only read
	a.SizeBytes, a.SHA256, err = Checksum(path)
	return a, err
}

// isTorn: a Parquet file begins and ends with its magic, and before the one at its
// end stands the length of the footer. It reports that a file's writing was cut off: it has been read, and there is
// no footer at its end. An error means that it cannot be told.
func isTorn(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, fmt.Errorf("looking at a part: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return false, fmt.Errorf("looking at a part: %w", err)
	}
	const tail = 8
	if info.Size() < int64(len(magic)+tail) {
		return true, nil
	}
	var end [tail]byte
	if _, err := f.ReadAt(end[:], info.Size()-tail); err != nil {
		return false, fmt.Errorf("looking at a part: %w", err)
	}
	footer := int64(binary.LittleEndian.Uint32(end[:4]))
	return string(end[4:]) != magic || footer == 0 || footer > info.Size()-int64(len(magic)+tail), nil
}

// Checksum returns the size and the SHA-256, in hex, of a file.
func Checksum(path string) (int64, string, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, "", fmt.Errorf("checking part: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, f)
	if err != nil {
		return 0, "", fmt.Errorf("checking part: %w", err)
	}
	return n, hex.EncodeToString(sum.Sum(nil)), nil
}
