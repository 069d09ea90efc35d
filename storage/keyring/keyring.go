// Package keyring seals secrets with AES-256-GCM under a key that is kept
// outside the database, so that a copy of the database gives no secret away.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// KeyEnv names the environment variable that holds the key (base64, 32 bytes)
// in place of the file. Several keys are separated by commas: the first seals,
// all of them open, which is how a key is replaced.
const KeyEnv = "LOADSTONE_KEY"

const (
	keySize = 32
	idSize  = 4
	version = 1
)

// The sentinel errors of opening a sealed text.
var (
	// ErrUnknownKey: the text was sealed under a key this ring does not hold.
	ErrUnknownKey = errors.New("sealed under another key")
	// ErrTampered: the text, or the context it is opened for, is not what was sealed.
	ErrTampered = errors.New("sealed text is damaged or belongs elsewhere")
)

type key struct {
	id   [idSize]byte
	aead cipher.AEAD
}

// Keyring holds the keys. It is safe for concurrent use.
type Keyring struct {
	keys []key
}

// Open reads the keys of the environment, or else of the file at path, one
// base64 key on each line. A file that does not exist is made with a fresh key
// and mode 0600; one that everybody can read is refused.
func Open(path string) (*Keyring, error) {
	if text := os.Getenv(KeyEnv); text != "" {
		ring, err := parse(strings.Split(text, ","))
		if err != nil {
			return nil, &engine.Error{Code: engine.CodeInvalid, Cause: err,
				Message: fmt.Sprintf("%s cannot be used: %v.", KeyEnv, err),
				Hint:    "It is 32 random bytes in base64; make one with: openssl rand -base64 32"}
		}
		return ring, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, unusable(path, err)
		}
		text, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, unusable(path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, unusable(path, err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return nil, &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The key file %s can be read by everybody on this machine.", path),
			Hint:    "Run: chmod 600 " + path}
	}
	ring, err := parse(strings.Split(string(text), "\n"))
	if err != nil {
		return nil, &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Message: fmt.Sprintf("The key file %s cannot be used: %v.", path, err),
			Hint: "Restore it from a backup. Without it, saved passwords cannot be read and must be entered again (move " +
				"the file away for a new key)."}
	}
	return ring, nil
}

func unusable(path string, err error) error {
	return &engine.Error{Code: engine.CodeUnavailable, Cause: err,
		Message: fmt.Sprintf("The key file %s cannot be read or made: %v.", path, err),
		Hint:    "Make it readable for this user, or set " + KeyEnv + "."}
}

// create makes a key file that appears whole or not at all, and never
// replaces one that another process made meanwhile.
func create(path string) error {
	secret := make([]byte, keySize)
	if _, err := rand.Read(secret); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	_, err = draft.WriteString(base64.StdEncoding.EncodeToString(secret) + "\n")
	if err == nil {
		err = draft.Sync()
	}
	if err = errors.Join(err, draft.Close()); err != nil {
		return err
	}
	if err := os.Link(draft.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

func parse(lines []string) (*Keyring, error) {
	ring := &Keyring{}
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		secret, err := base64.StdEncoding.DecodeString(line)
		if err != nil {
			return nil, errors.New("a key is not base64")
		}
		if len(secret) != keySize {
			return nil, fmt.Errorf("a key has %d bytes, not %d", len(secret), keySize)
		}
		block, err := aes.NewCipher(secret)
		if err != nil {
			return nil, fmt.Errorf("making the cipher: %w", err)
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, fmt.Errorf("making the cipher: %w", err)
		}
		sum := sha256.Sum256(append([]byte("loadstone key id "), secret...))
		k := key{aead: aead}
		copy(k.id[:], sum[:])
		ring.keys = append(ring.keys, k)
	}
	if len(ring.keys) == 0 {
		return nil, errors.New("there is no key in it")
	}
	return ring, nil
}

// Seal returns plain encrypted and authenticated, in base64. It opens only
// for the same context, so a sealed text cannot be moved to another place.
func (r *Keyring) Seal(plain []byte, context string) string {
	k := r.keys[0]
	sealed := make([]byte, 0, 1+idSize+k.aead.NonceSize()+len(plain)+k.aead.Overhead())
	sealed = append(sealed, version)
	sealed = append(sealed, k.id[:]...)
	nonce := make([]byte, k.aead.NonceSize())
	// rand.Read never fails: it ends the program when the system has no randomness.
	_, _ = rand.Read(nonce)
	sealed = append(sealed, nonce...)
	sealed = k.aead.Seal(sealed, nonce, plain, []byte(context))
	return base64.StdEncoding.EncodeToString(sealed)
}

// Open returns what Seal was given. Errors wrap ErrUnknownKey or ErrTampered.
func (r *Keyring) Open(sealed, context string) ([]byte, error) {
	raw, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil || len(raw) < 1+idSize || raw[0] != version {
		return nil, fmt.Errorf("opening sealed text: %w", ErrTampered)
	}
	id, rest := raw[1:1+idSize], raw[1+idSize:]
	for _, k := range r.keys {
		if string(k.id[:]) != string(id) {
			continue
		}
		if len(rest) < k.aead.NonceSize() {
			return nil, fmt.Errorf("opening sealed text: %w", ErrTampered)
		}
		nonce, body := rest[:k.aead.NonceSize()], rest[k.aead.NonceSize():]
		plain, err := k.aead.Open(nil, nonce, body, []byte(context))
		if err != nil {
			return nil, fmt.Errorf("opening sealed text: %w", ErrTampered)
		}
		return plain, nil
	}
	return nil, fmt.Errorf("opening sealed text: %w", ErrUnknownKey)
}
