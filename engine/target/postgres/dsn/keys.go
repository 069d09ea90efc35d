package dsn

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loadstone-db/loadstone/engine/base/privatekey"
)

const encryptedType = "ENCRYPTED PRIVATE KEY"

var (
	errNoPassphrase    = errors.New("it is encrypted; paste it without its passphrase, or give that as sslpassword")
	errWrongPassphrase = errors.New("it is encrypted, and sslpassword does not open it")
)

// decryptKey returns a private key in plain PEM form: of PKCS#8, or of the older form that has its cipher in headers.
func decryptKey(text, passphrase string) (plain string, err error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return text, nil
	}
	old := x509.IsEncryptedPEMBlock(block) //nolint:staticcheck // libpq takes such keys
	if block.Type != encryptedType && !old {
		return text, nil
	}
	if passphrase == "" {
		return "", errNoPassphrase
	}
	if old {
		der, err := x509.DecryptPEMBlock(block, []byte(passphrase)) //nolint:staticcheck // libpq takes such keys
		if err != nil {
			return "", errWrongPassphrase
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: block.Type, Bytes: der})), nil
	}
	key, err := privatekey.Decrypt(block.Bytes, passphrase)
	if errors.Is(err, privatekey.ErrTooCostly) {
		return "", err
	}
	if err != nil {
		return "", errWrongPassphrase
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("it is of a kind that is not known: %w", err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), nil
}

// takeKeyFile reads an encrypted key of PKCS#8 and its certificate from their files, which pgx cannot; nil where there
// is none such.
func (r Reader) takeKeyFile(m map[string]string) (*certificates, error) {
	if r.Strict {
		return nil, nil
	}
	// What a service says comes before the environment and the home folder, and only pgx knows it.
	service := m["service"] != "" || os.Getenv("PGSERVICE") != ""
	find := func(key, variable string) string {
		if value, ok := m[key]; ok || service {
			return value
		}
		return os.Getenv(variable)
	}
	if find("sslcertmode", "PGSSLCERTMODE") == "disable" || find("sslmode", "PGSSLMODE") == "disable" {
		return nil, nil
	}
	cert, key := find("sslcert", "PGSSLCERT"), find("sslkey", "PGSSLKEY")
	if home, err := os.UserHomeDir(); err == nil && cert == "" && key == "" && !service {
		cert, key = filepath.Join(home, ".postgresql", "postgresql.crt"), filepath.Join(home, ".postgresql", "postgresql.key")
	}
	text, err := os.ReadFile(key)
	if err != nil {
		return nil, nil //nolint:nilerr // pgx says so, where it matters
	}
	if block, _ := pem.Decode(text); block == nil || block.Type != encryptedType {
		return nil, nil
	}
	certs, err := os.ReadFile(cert)
	if err != nil {
		return nil, nil //nolint:nilerr // pgx says so
	}
	plain, err := decryptKey(string(text), find("sslpassword", "PGSSLPASSWORD"))
	if err != nil {
		return nil, invalid("sslkey", "cannot be used: "+err.Error(), "Give the passphrase of the key as sslpassword.")
	}
	pair, err := tls.X509KeyPair(certs, []byte(plain))
	if err != nil {
		parameter, what := pairProblem(string(certs), plain, err)
		return nil, invalid(
			parameter,
			"cannot be used: "+what,
			"Give the certificate and the key that it was requested with.",
		)
	}
	m["sslcert"], m["sslkey"] = "", ""
	delete(m, "sslpassword")
	return &certificates{own: []tls.Certificate{pair}}, nil
}
