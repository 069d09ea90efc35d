// Package keyring seals secrets with AES-256-GCM under a key that is kept
// outside the database, so that a copy of the database gives no secret away.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/loadstone-db/loadstone/engine"
)

// The environment variables that hold keys (base64, 32 bytes) in place of the
// file. Several keys are separated by commas: the first of KeyEnv seals, all of
// them open, which is how a key is replaced.
const (
	KeyEnv         = "LOADSTONE_KEY"
	PreviousKeyEnv = "LOADSTONE_KEY_PREVIOUS"
)

// FileName is the name of the key file in a data directory.
const FileName = "loadstone.key"

const (
	keySize = 32
	idSize  = 4
	version = 1
	// minSealed is the size of an empty text that is sealed: version, key, nonce and tag.
	minSealed = 1 + idSize + 12 + 16
)

// The sentinel errors of opening a sealed text.
var (
	// ErrUnknownKey: the text was sealed under a key this ring does not hold.
	ErrUnknownKey = errors.New("sealed under another key")
	// ErrTampered: the text, or the context it is opened for, is not what was sealed.
	ErrTampered = errors.New("sealed text is damaged or belongs elsewhere")
)

type key struct {
	id   string // hexadecimal
	aead cipher.AEAD
}

// Keyring holds the keys. It is safe for concurrent use.
type Keyring struct {
	path string // of the file, "" where the environment has the keys

	mu sync.RWMutex
	// keys open; the first one seals, unless another is preferred.
	keys      []key
	preferred string
	// read is the file as it was when it was read last.
	read fs.FileInfo
	// fresh is whether Open has made the file.
	fresh bool
}

// Open reads the keys of the environment, or else of the file at path, one
// base64 key on each line. A file that does not exist is made with a fresh key
// and mode 0600; one that everybody can read is refused.
func Open(path string) (*Keyring, error) { return open(path, true) }

// OpenExisting is Open that makes no file.
func OpenExisting(path string) (*Keyring, error) { return open(path, false) }

func open(path string, make bool) (*Keyring, error) {
	if text := os.Getenv(KeyEnv); text != "" {
		return fromEnvironment(text, os.Getenv(PreviousKeyEnv))
	}
	if os.Getenv(PreviousKeyEnv) != "" {
		return nil, &engine.Error{Code: engine.CodeInvalid,
			Message: PreviousKeyEnv + " is set, and " + KeyEnv + " is not.",
			Hint:    "Set " + KeyEnv + " to the key that seals, or add the earlier key to " + path + " as another line."}
	}
	r := &Keyring{path: path}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if !make {
			return nil, &engine.Error{Code: engine.CodeNotFound, Cause: err,
				Message: fmt.Sprintf("There is no key file %s, and %s is not set.", path, KeyEnv),
				Hint:    "Name the data directory of a server with --data-dir, or set " + KeyEnv + " as the servers have it."}
		}
		if r.fresh, err = create(path); err != nil {
			return nil, unusable(path, err)
		}
	}
	return r, r.load()
}

func fromEnvironment(current, previous string) (*Keyring, error) {
	r := &Keyring{}
	for name, text := range map[string]string{KeyEnv: current, PreviousKeyEnv: previous} {
		keys, err := parse(strings.Split(text, ","))
		if err != nil && (name == KeyEnv || text != "") {
			return nil, &engine.Error{Code: engine.CodeInvalid, Cause: err,
				Message: fmt.Sprintf("%s cannot be used: %v.", name, err),
				Hint:    "It is 32 random bytes in base64; make one with: openssl rand -base64 32"}
		}
		if name == KeyEnv {
			r.keys = append(keys, r.keys...)
		} else {
			r.keys = append(r.keys, keys...)
		}
	}
	return r, nil
}

// load reads the file.
func (r *Keyring) load() error {
	info, err := os.Stat(r.path)
	if err != nil {
		return unusable(r.path, err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The key file %s can be read by everybody on this machine.", r.path),
			Hint:    "Run: chmod 600 " + r.path}
	}
	text, err := os.ReadFile(r.path)
	if err != nil {
		return unusable(r.path, err)
	}
	keys, err := parse(strings.Split(string(text), "\n"))
	if err != nil {
		return &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Message: fmt.Sprintf("The key file %s cannot be used: %v.", r.path, err),
			Hint: "Restore it from a backup. Without it, saved passwords cannot be read and must be entered again (move " +
				"the file away for a new key)."}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.preferred != "" && !slices.ContainsFunc(keys, func(k key) bool { return k.id == r.preferred }) {
		return &engine.Error{Code: engine.CodeInvalid, Cause: ErrUnknownKey,
			Message: fmt.Sprintf("The key file %s has lost the key %s, which seals. The keys that were read before stay "+
				"in use until this process ends.", r.path, r.preferred),
			Hint: "Put the line of that key back."}
	}
	r.keys, r.read = keys, info
	return nil
}

// Reload reads the file again when it is another than it was, so that a key
// that is added to it needs no restart. Keys of the environment stay.
func (r *Keyring) Reload() (changed bool, err error) {
	if r.path == "" {
		return false, nil
	}
	info, err := os.Stat(r.path)
	if err != nil {
		return false, unusable(r.path, err)
	}
	r.mu.RLock()
	same := os.SameFile(info, r.read) && info.ModTime().Equal(r.read.ModTime()) && info.Size() == r.read.Size()
	r.mu.RUnlock()
	if same {
		return false, nil
	}
	return true, r.load()
}

// Path is the file of the keys, "" where the environment has them.
func (r *Keyring) Path() string { return r.path }

// IDs are the names of the keys, 8 hexadecimal digits each; the one that seals comes first.
func (r *Keyring) IDs() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	ids := []string{r.sealing().id}
	for _, k := range r.keys {
		if !slices.Contains(ids, k.id) {
			ids = append(ids, k.id)
		}
	}
	return ids
}

// Fresh reports whether Open has made the file: nothing can have been sealed under its key before.
func (r *Keyring) Fresh() bool { return r.fresh }

// Discard removes a file that Open has made, so that the next start does not take its key for one of before.
func (r *Keyring) Discard() error {
	if !r.fresh {
		return nil
	}
	if err := os.Remove(r.path); err != nil {
		return unusable(r.path, err)
	}
	return nil
}

// Has reports whether the key of this name is here.
func (r *Keyring) Has(id string) bool {
	_, ok := r.find(id)
	return ok
}

// Prefer has the key of this name seal, whatever comes first in the file. A ring without it goes on as before, and says
// so with ErrUnknownKey.
func (r *Keyring) Prefer(id string) error {
	if !r.Has(id) {
		// It may have been added to the file meanwhile. What is wrong with the file is said by who reads it next.
		if _, err := r.Reload(); err != nil || !r.Has(id) {
			return fmt.Errorf("sealing under the key %s: %w", id, errors.Join(ErrUnknownKey, err))
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.preferred = id
	return nil
}

// sealing is the key that seals. It needs mu.
func (r *Keyring) sealing() key {
	for _, k := range r.keys {
		if k.id == r.preferred {
			return k
		}
	}
	return r.keys[0]
}

// FirstID is the name of the key that comes first, in the file or in KeyEnv.
func (r *Keyring) FirstID() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.keys[0].id
}

// MoveFirst puts the line of a key of the file before those of all others.
func (r *Keyring) MoveFirst(id string) error {
	text, err := os.ReadFile(r.path)
	if err != nil {
		return unusable(r.path, err)
	}
	var first, rest []string
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n") + "\n"
		if keys, err := parse([]string{line}); err == nil && keys[0].id == id {
			first = append(first, line)
		} else {
			rest = append(rest, line)
		}
	}
	if err := write(r.path, []byte(strings.Join(append(first, rest...), "")), replace); err != nil {
		return unusable(r.path, err)
	}
	return r.load()
}

// AddKey appends a fresh key to the file and returns its name. The key that
// seals stays the same until another is preferred.
func (r *Keyring) AddKey() (id string, err error) {
	text, err := os.ReadFile(r.path)
	if err != nil {
		return "", unusable(r.path, err)
	}
	if len(text) > 0 && text[len(text)-1] != '\n' {
		text = append(text, '\n')
	}
	line := fresh()
	if err := write(r.path, append(text, line...), replace); err != nil {
		return "", unusable(r.path, err)
	}
	keys, err := parse([]string{line})
	if err != nil {
		return "", err
	}
	return keys[0].id, r.load()
}

// KeyID is the name of the key that a text is sealed under; false for what is no sealed text.
func KeyID(sealed string) (id string, ok bool) {
	raw, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil || len(raw) < minSealed || raw[0] != version {
		return "", false
	}
	return hex.EncodeToString(raw[1 : 1+idSize]), true
}

// FileIDs are the names of the keys in the text of a key file.
func FileIDs(text []byte) (ids []string, err error) {
	keys, err := parse(strings.Split(string(text), "\n"))
	for _, k := range keys {
		ids = append(ids, k.id)
	}
	return ids, err
}

func unusable(path string, err error) error {
	return &engine.Error{Code: engine.CodeUnavailable, Cause: err,
		Message: fmt.Sprintf("The key file %s cannot be read or made: %v.", path, err),
		Hint:    "Make it readable for this user, or set " + KeyEnv + "."}
}

// create makes a key file that appears whole or not at all, and never
// replaces one that another process made meanwhile.
func create(path string) (made bool, err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	err = write(path, []byte(fresh()), os.Link)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// fresh is the line of a new key.
func fresh() string {
	secret := make([]byte, keySize)
	_, _ = rand.Read(secret) // never fails: the runtime ends the process instead
	return base64.StdEncoding.EncodeToString(secret) + "\n"
}

// write writes a file that place puts where it belongs, once it is whole and on the disk.
func write(path string, text []byte, place func(draft, path string) error) error {
	draft, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(draft.Name())
	_, err = draft.Write(text)
	if err == nil {
		err = draft.Sync()
	}
	if err = errors.Join(err, draft.Close()); err != nil {
		return err
	}
	if err := place(draft.Name(), path); err != nil {
		return err
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// replace puts a draft in the place of the file that is there, whose owner and mode stay: the server may be another
// user than whoever replaces its key.
func replace(draft, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if err := os.Chmod(draft, info.Mode().Perm()); err != nil {
		return err
	}
	if was, ok := info.Sys().(*syscall.Stat_t); ok && int(was.Uid) != os.Geteuid() {
		if err := os.Chown(draft, int(was.Uid), int(was.Gid)); err != nil {
			return err
		}
	}
	return os.Rename(draft, path)
}

func parse(lines []string) (keys []key, err error) {
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
		keys = append(keys, key{hex.EncodeToString(sum[:idSize]), aead})
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key in it")
	}
	return keys, nil
}

// Seal returns plain encrypted and authenticated, in base64. It opens only
// for the same context, so a sealed text cannot be moved to another place.
func (r *Keyring) Seal(plain []byte, context string) string {
	r.mu.RLock()
	k := r.sealing()
	r.mu.RUnlock()
	sealed := make([]byte, 0, 1+idSize+k.aead.NonceSize()+len(plain)+k.aead.Overhead())
	sealed = append(sealed, version)
	sealed, _ = hex.AppendDecode(sealed, []byte(k.id)) // it was encoded here
	nonce := make([]byte, k.aead.NonceSize())
	// rand.Read never fails: it ends the program when the system has no randomness.
	_, _ = rand.Read(nonce)
	sealed = append(sealed, nonce...)
	sealed = k.aead.Seal(sealed, nonce, plain, []byte(context))
	return base64.StdEncoding.EncodeToString(sealed)
}

// Open returns what Seal was given. A key that was added to the file
// meanwhile is found. Errors wrap ErrUnknownKey or ErrTampered.
func (r *Keyring) Open(sealed, context string) ([]byte, error) {
	id, ok := KeyID(sealed)
	if !ok {
		return nil, fmt.Errorf("opening sealed text: %w", ErrTampered)
	}
	k, ok := r.find(id)
	if !ok {
		if changed, err := r.Reload(); changed && err == nil {
			k, ok = r.find(id)
		}
	}
	if !ok {
		return nil, fmt.Errorf("opening text sealed under the key %s: %w", id, ErrUnknownKey)
	}
	raw, err := base64.StdEncoding.DecodeString(sealed)
	if err != nil {
		return nil, fmt.Errorf("opening sealed text: %w", ErrTampered)
	}
	rest := raw[1+idSize:]
	plain, err := k.aead.Open(nil, rest[:k.aead.NonceSize()], rest[k.aead.NonceSize():], []byte(context))
	if err != nil {
		return nil, fmt.Errorf("opening sealed text: %w", ErrTampered)
	}
	return plain, nil
}

func (r *Keyring) find(id string) (key, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	i := slices.IndexFunc(r.keys, func(k key) bool { return k.id == id })
	if i < 0 {
		return key{}, false
	}
	return r.keys[i], true
}
