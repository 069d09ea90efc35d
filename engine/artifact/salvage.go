package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// Salvage lists the whole parts that a killed process left in dir, by name,
// and removes the torn ones: files under construction, and files without a
// valid footer. No Writer may be at work in dir. A missing folder has no parts.
func Salvage(dir string) ([]engine.Artifact, error) {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("salvaging parts: %w", err)
	}
	var found []engine.Artifact
	for _, entry := range entries {
		name := entry.Name()
		path := filepath.Join(dir, name)
		switch {
		case entry.IsDir():
		case strings.HasSuffix(name, extension+unfinished):
			if err := os.Remove(path); err != nil {
				return nil, fmt.Errorf("removing torn part: %w", err)
			}
		case strings.HasSuffix(name, extension):
			p, err := OpenPart(path)
			if err != nil {
				if err := os.Remove(path); err != nil {
					return nil, fmt.Errorf("removing torn part: %w", err)
				}
				continue
			}
			a := p.Artifact()
			_ = p.Close() // only read
			if a.SizeBytes, a.SHA256, err = Checksum(path); err != nil {
				return nil, err
			}
			found = append(found, a)
		}
	}
	return found, nil
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
