package dsn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// selfSigned is the certificate of a server that vouches for itself, and its lists: an empty one, and one with itself.
func selfSigned(t *testing.T) (c *x509.Certificate, none, itself []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "db"}, IsCA: true,
		BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCRLSign | x509.KeyUsageCertSign, DNSNames: []string{"db"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), SubjectKeyId: []byte{1}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	list := func(entries ...x509.RevocationListEntry) []byte {
		der, err := x509.CreateRevocationList(rand.Reader, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: now,
			NextUpdate: now.Add(time.Hour), RevokedCertificateEntries: entries}, c, key)
		if err != nil {
			t.Fatal(err)
		}
		return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
	}
	return c, list(), list(x509.RevocationListEntry{SerialNumber: c.SerialNumber, RevocationTime: now})
}

// TestACertificateThatIsTrustedItself needs a list as others do.
func TestACertificateThatIsTrustedItself(t *testing.T) {
	c, none, itself := selfSigned(t)
	_, stranger, _ := selfSigned(t)
	roots := x509.NewCertPool()
	roots.AddCert(c)
	for name, k := range map[string]struct {
		list []byte
		want string
	}{
		"its own list": {none, ""}, "a list with itself": {itself, `that of "db" has been revoked`},
		"a list of another": {stranger, `no revocation list of the authority "db"`},
	} {
		lists, err := readRevocations(string(k.list), "")
		if err != nil {
			t.Fatal(err)
		}
		err = lists.check(roots, tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}})
		if (err == nil) != (k.want == "") || err != nil && !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestListsOfTheHomeFolder are read where something is verified, and named there.
func TestListsOfTheHomeFolder(t *testing.T) {
	cleanEnvironment(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	c, none, _ := selfSigned(t)
	root := "'" + string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})) + "'"
	file := filepath.Join(home, ".postgresql", "root.crl")
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte("damaged"))
	for _, dsn := range []string{"host=db sslmode=disable", "host=/tmp", "host=db sslmode=require", "host=db"} {
		if _, err := (Reader{}).Config(dsn); err != nil {
			t.Errorf("%s: %v", dsn, err)
		}
	}
	const verified = "host=db sslmode=verify-full sslrootcert="
	if _, err := (Reader{}).Config(verified + root); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a damaged list: %v", err)
	}
	write(none)
	if c, err := (Reader{}).Config(verified + root); err != nil || c.TLSConfig.VerifyConnection == nil {
		t.Errorf("a list: %v", err)
	}
	if c, err := (Reader{Strict: true}).Config(verified + root); err != nil || c.TLSConfig.VerifyConnection != nil {
		t.Errorf("on a server: %v", err)
	}
}
