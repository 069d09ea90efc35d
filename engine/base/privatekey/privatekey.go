// Package privatekey decrypts private keys of PKCS#8 that others have given.
package privatekey

import (
	"encoding/asn1"
	"fmt"
	"sync"

	"github.com/youmark/pkcs8"
)

// ErrTooCostly is the error of a key whose decryption would take too long, or too much memory.
var ErrTooCostly = fmt.Errorf("its encryption asks for more than %d iterations, or for more than %d MB", maxIterations,
	maxScrypt>>20)

// one is held by who decrypts: users of a server, who paste such keys, have one processor and the memory of one key
// between them, however many requests they send.
var one sync.Mutex

// Decrypt decrypts a key, of whatever kind, that somebody may have made to break the decryption. It is done one by one.
func Decrypt(der []byte, passphrase string) (key any, err error) {
	if !affordable(der) {
		return nil, ErrTooCostly
	}
	one.Lock()
	defer one.Unlock()
	defer func() {
		if r := recover(); r != nil {
			key, err = nil, fmt.Errorf("damaged: %v", r)
		}
	}()
	return pkcs8.ParsePKCS8PrivateKey(der, []byte(passphrase)) //nolint:wrapcheck // the callers say what it is
}

// What deriving a key from a passphrase may cost: OpenSSL asks for 2048 iterations, careful people for a million.
const (
	maxIterations = 10_000_000
	maxScrypt     = 128 << 20
)

// encryptedKey is the part of PKCS#8's EncryptedPrivateKeyInfo that says what decrypting costs.
type encryptedKey struct {
	Algorithm struct {
		Scheme     asn1.ObjectIdentifier
		Parameters struct {
			KDF struct {
				Name       asn1.ObjectIdentifier
				Parameters asn1.RawValue
			}
			Cipher asn1.RawValue
		}
	}
	Data []byte
}

var scryptName = asn1.ObjectIdentifier{1, 3, 6, 1, 4, 1, 11591, 4, 11}

// affordable reports that a key can be decrypted in moderate time and memory.
// What it cannot read is left to the decryption to refuse.
func affordable(der []byte) bool {
	var k encryptedKey
	if _, err := asn1.Unmarshal(der, &k); err != nil {
		return true
	}
	kdf := k.Algorithm.Parameters.KDF
	var salt asn1.RawValue
	rest, err := asn1.Unmarshal(kdf.Parameters.Bytes, &salt)
	var costs []int64
	for err == nil && len(costs) < 3 {
		var n int64
		if rest, err = asn1.Unmarshal(rest, &n); err == nil {
			if n < 0 || n > 1<<40 {
				return false
			}
			costs = append(costs, n)
		}
	}
	if kdf.Name.Equal(scryptName) {
		return len(costs) == 3 && costs[0] <= maxScrypt && costs[1] <= 1<<10 && costs[2] <= 16 &&
			128*costs[0]*costs[1] <= maxScrypt
	}
	return len(costs) == 0 || costs[0] <= maxIterations
}
