package dsn

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"

	"github.com/youmark/pkcs8"
)

const keyHint = "Make one with: openssl genrsa 2048 | openssl pkcs8 -topk8 -inform PEM -out rsa_key.p8 (add " +
	"-nocrypt for one without a passphrase)."

// parseKey reads an RSA key: PKCS#8, encrypted or not, or PKCS#1; as PEM, or as
// the base64 of its DER, standard or for URLs.
func parseKey(text, passphrase string) (*rsa.PrivateKey, error) {
	der, kind := []byte(nil), ""
	if block, _ := pem.Decode([]byte(strings.TrimSpace(text))); block != nil {
		der, kind = block.Bytes, block.Type
		if block.Headers["DEK-Info"] != "" {
			return nil, refuse("private_key", keyHint,
				"The private key is encrypted in OpenSSL's old format, which is not safe.")
		}
	} else {
		plain := strings.Join(strings.Fields(text), "")
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding, base64.RawStdEncoding,
			base64.RawURLEncoding} {
			if b, err := encoding.DecodeString(plain); err == nil {
				der = b
				break
			}
		}
		if der == nil {
			return nil, refuse("private_key", keyHint, "The private key is neither PEM nor base64.")
		}
	}
	if key, err := x509.ParsePKCS1PrivateKey(der); err == nil {
		return checkKey(key)
	}
	if parsed, err := x509.ParsePKCS8PrivateKey(der); err == nil {
		key, ok := parsed.(*rsa.PrivateKey)
		if !ok {
			return nil, refuse("private_key", keyHint, "The private key is not an RSA key, and Snowflake takes no other.")
		}
		return checkKey(key)
	}
	encrypted := kind == "ENCRYPTED PRIVATE KEY"
	if passphrase == "" {
		if encrypted {
			return nil, refuse("private_key_passphrase", "Give its passphrase.", "The private key is encrypted.")
		}
		return nil, refuse("private_key", keyHint+" An encrypted key needs its passphrase.",
			"The private key cannot be read.")
	}
	if !affordable(der) {
		return nil, refuse("private_key", keyHint,
			"Decrypting the private key costs too much: its encryption asks for more than %d iterations, or for more than %d "+
				"MB.", maxIterations, maxScrypt>>20)
	}
	parsed, err := decrypt(der, passphrase)
	if err != nil {
		if encrypted {
			return nil, refuse("private_key_passphrase", "Check the passphrase. "+keyHint,
				"The private key cannot be decrypted with this passphrase.")
		}
		return nil, refuse("private_key", keyHint, "The private key cannot be read.")
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok {
		return nil, refuse("private_key", keyHint, "The private key is not an RSA key, and Snowflake takes no other.")
	}
	return checkKey(key)
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

// decrypt decrypts a key that somebody may have made to break the decryption.
func decrypt(der []byte, passphrase string) (key any, err error) {
	defer func() {
		if r := recover(); r != nil {
			key, err = nil, fmt.Errorf("damaged: %v", r)
		}
	}()
	return pkcs8.ParsePKCS8PrivateKey(der, []byte(passphrase))
}

func checkKey(key *rsa.PrivateKey) (*rsa.PrivateKey, error) {
	if key.N.BitLen() < 2048 {
		return nil, refuse("private_key", keyHint, "The private key has %d bits, and Snowflake takes 2048 or more.",
			key.N.BitLen())
	}
	return key, nil
}
