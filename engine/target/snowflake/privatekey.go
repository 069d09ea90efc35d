package snowflake

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"

	"github.com/loadstone-db/loadstone/engine/base/privatekey"
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
	parsed, err := privatekey.Decrypt(der, passphrase)
	if errors.Is(err, privatekey.ErrTooCostly) {
		return nil, refuse("private_key", keyHint, "Decrypting the private key costs too much: %v.", err)
	}
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

func checkKey(key *rsa.PrivateKey) (*rsa.PrivateKey, error) {
	if key.N.BitLen() < 2048 {
		return nil, refuse("private_key", keyHint, "The private key has %d bits, and Snowflake takes 2048 or more.",
			key.N.BitLen())
	}
	return key, nil
}
