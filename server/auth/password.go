package auth

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
)

// The cost of a password: what OWASP's cheat sheet on storing passwords gives first for Argon2id (19 MiB, two
// passes, one lane). It is written with each hash, so that it can be raised.
const (
	argonMemoryKiB = 19 << 10
	argonTime      = 2
	argonLanes     = 1
	argonSalt      = 16
	argonKey       = 32
	// maxArgonKiB bounds what a stored hash can ask for.
	maxArgonKiB = 64 << 10
)

// The bounds of passwords. Long ones are what makes guessing useless; rules about characters are not
// (NIST SP 800-63B).
const (
	minPassword = 12
	maxPassword = 200
)

// checkPassword refuses passwords that are guessed at once, and such as nobody types.
func checkPassword(field, name string, hidden secret.Secret) error {
	password := hidden.Reveal()
	switch n := utf8.RuneCountInString(password); {
	case n < minPassword:
		return engine.InvalidField(field, "is too short", fmt.Sprintf("choose at least %d characters; several words do well",
			minPassword))
	case len(password) > maxPassword:
		return engine.InvalidField(field, "is too long", fmt.Sprintf("choose at most %d bytes", maxPassword))
	case !utf8.ValidString(password):
		return engine.InvalidField(field, "is not text", "type it again")
	}
	plain := strings.ToLower(password)
	if name != "" && strings.Contains(plain, strings.ToLower(name)) &&
		utf8.RuneCountInString(plain)-utf8.RuneCountInString(name) < minPassword/2 {
		return engine.InvalidField(field, "is guessed at once", "choose several words that have nothing to do with your name")
	}
	if guessable(password) {
		return engine.InvalidField(field, "is one of the most common passwords, or made of one",
			"choose several words that do not belong together")
	}
	return nil
}

// hashPassword returns the hash with its salt and its cost, as PHC strings are written.
func hashPassword(password secret.Secret) string {
	salt := make([]byte, argonSalt)
	_, _ = rand.Read(salt) // never fails: the runtime ends the process instead
	key := argon2.IDKey([]byte(password.Reveal()), salt, argonTime, argonMemoryKiB, argonLanes, argonKey)
	b64 := base64.RawStdEncoding.EncodeToString
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemoryKiB, argonTime, argonLanes,
		b64(salt), b64(key))
}

// dummyHash is what is compared where there is no password, so that an answer takes as long for a name that
// does not exist.
var dummyHash = fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, argonMemoryKiB, argonTime,
	argonLanes, base64.RawStdEncoding.EncodeToString(make([]byte, argonSalt)),
	base64.RawStdEncoding.EncodeToString(make([]byte, argonKey)))

// matchesPassword reports whether the password is the one of a hash; a hash that cannot be read is nobody's.
func matchesPassword(hash string, password secret.Secret) bool {
	if hash == "" {
		hash = dummyHash
	}
	parts := strings.Split(hash, "$")
	if len(parts) != 6 || parts[1] != "argon2id" {
		return false
	}
	var version int
	var memory, passes uint32
	var lanes uint8
	_, err := fmt.Sscanf(parts[2]+" "+parts[3], "v=%d m=%d,t=%d,p=%d", &version, &memory, &passes, &lanes)
	if err != nil || version != argon2.Version ||
		memory == 0 || memory > maxArgonKiB || passes == 0 || passes > 8 || lanes == 0 {
		return false
	}
	salt, err := base64.RawStdEncoding.DecodeString(parts[4])
	key, bad := base64.RawStdEncoding.DecodeString(parts[5])
	if err != nil || bad != nil || len(salt) == 0 || len(key) < 16 || len(key) > 64 ||
		len(password.Reveal()) > maxPassword {
		return false
	}
	length := uint32(len(key))
	got := argon2.IDKey([]byte(password.Reveal()), salt, passes, memory, lanes, length)
	return subtle.ConstantTimeCompare(got, key) == 1 && hash != dummyHash
}
