// Package httpx is the server's door to the network: the certificates that it speaks TLS with, who is a trusted proxy
// and what such a one says of the client, and by which names the server may be asked for.
package httpx

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
)

// Certificate is what a handshake asks for; it has the form of tls.Config.GetCertificate.
type Certificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)

// protocol is what is spoken inside of TLS.
const protocol = "http/1.1"

// TLSConfig speaks TLS 1.2 at least with the certificate. Names that own has a certificate for are asked of it first;
// nil is none. Further protocols are those of challenges.
func TLSConfig(certificate Certificate, own map[string]*tls.Certificate, further ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: append([]string{protocol}, further...),
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			if c := own[hello.ServerName]; c != nil {
				return c, nil
			}
			return certificate(hello)
		}}
}

// Files are a certificate and its key that an operator keeps. They are read again once they have changed.
type Files struct {
	cert, key string
	log       zerolog.Logger

	mu        sync.Mutex
	loaded    *tls.Certificate
	stamp     string
	checkedAt time.Time
}

// reloadInterval is how often at most the files are looked at.
const reloadInterval = time.Second

// OpenFiles reads a certificate and its key, in PEM.
func OpenFiles(cert, key string, log zerolog.Logger) (*Files, error) {
	f := &Files{cert: cert, key: key, log: log, stamp: fileStamp(cert, key), checkedAt: time.Now()}
	var err error
	if f.loaded, err = readPair(cert, key); err != nil {
		return nil, err
	}
	if left := time.Until(f.loaded.Leaf.NotAfter); left < 0 {
		log.Warn().Time("not_after", f.loaded.Leaf.NotAfter).Str("file", cert).
			Msg("the certificate of the server has expired: browsers refuse it until the file is replaced")
	}
	return f, nil
}

// readPair reads both files.
func readPair(cert, key string) (*tls.Certificate, error) {
	for flag, path := range map[string]string{"--tls-cert": cert, "--tls-key": key} {
		if _, err := os.ReadFile(path); err != nil {
			return nil, engine.InvalidField(flag, fmt.Sprintf("names a file that cannot be read: %v", err),
				"name a file in PEM that the server's user can read")
		}
	}
	c, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, engine.InvalidField("--tls-cert", fmt.Sprintf("and --tls-key cannot be used together: %v", err),
			"give the certificate with its chain, and the key that it was made for, both in PEM and without a passphrase")
	}
	return &c, nil
}

// fileStamp tells whether files have changed.
func fileStamp(paths ...string) string {
	var b strings.Builder
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			_, _ = fmt.Fprintf(&b, "%d %d;", info.ModTime().UnixNano(), info.Size())
		}
	}
	return b.String()
}

// Get is the certificate as it is in the files now, or was when they could be read last.
func (f *Files) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checkedAt) < reloadInterval {
		return f.loaded, nil
	}
	f.checkedAt = time.Now()
	stamp := fileStamp(f.cert, f.key)
	if stamp == f.stamp {
		return f.loaded, nil
	}
	f.stamp = stamp
	c, err := readPair(f.cert, f.key)
	if err != nil {
		// One of the two may come a moment after the other: then the stamp changes once more.
		f.log.Warn().Err(err).Msg("the changed certificate cannot be used: the one before is shown on")
		return f.loaded, nil
	}
	f.loaded = c
	f.log.Info().Str("fingerprint", Fingerprint(c)).Time("not_after", c.Leaf.NotAfter).
		Msg("the certificate of the server has changed")
	return c, nil
}

// Fingerprint is the SHA-256 of a certificate as browsers show it: AB:CD:…
func Fingerprint(c *tls.Certificate) string {
	sum := sha256.Sum256(c.Certificate[0])
	return strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":")
}

// How long a certificate that the server signs itself is good for, and how long before its end another is made.
const (
	selfSignedTTL         = 398 * 24 * time.Hour
	selfSignedRenewBefore = 30 * 24 * time.Hour
)

// SelfSigned is the certificate that the server has signed itself, kept in a folder: made when there is none, when it
// is about to expire, or when it lacks one of the names. made tells that it is new.
func SelfSigned(dir string, names []string) (c *tls.Certificate, file string, made bool, err error) {
	file = filepath.Join(dir, "self-signed.pem")
	c, err = storedPair(file)
	if err == nil && coversNames(c.Leaf, names) {
		return c, file, false, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, file, false, engine.InvalidField("--tls-self-signed",
			fmt.Sprintf("has a certificate in %s that cannot be used: %v", file, err),
			"remove the file: another is made, with another fingerprint")
	}
	certificate, key, err := Sign(names, selfSignedTTL)
	if err != nil {
		return nil, file, false, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, file, false, fmt.Errorf("making the folder of the certificate: %w", err)
	}
	if err := replaceFile(file, slices.Concat(certificate, key)); err != nil {
		return nil, file, false, err
	}
	c, err = storedPair(file)
	return c, file, true, err
}

// replaceFile writes a file that its owner alone may read, whole or not at all.
func replaceFile(file string, text []byte) error {
	next := file + ".next"
	if err := os.WriteFile(next, text, 0o600); err != nil {
		return fmt.Errorf("writing the certificate: %w", err)
	}
	if err := os.Rename(next, file); err != nil {
		return fmt.Errorf("replacing the certificate: %w", err)
	}
	return nil
}

func storedPair(file string) (*tls.Certificate, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	c, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate: %w", err)
	}
	return &c, nil
}

func coversNames(leaf *x509.Certificate, names []string) bool {
	now := time.Now()
	return now.After(leaf.NotBefore) && now.Add(selfSignedRenewBefore).Before(leaf.NotAfter) &&
		!slices.ContainsFunc(names, func(name string) bool { return leaf.VerifyHostname(name) != nil })
}

// Sign makes a certificate for names and addresses, which signs itself and nothing else, and its key, both in PEM.
func Sign(names []string, valid time.Duration) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("making a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, fmt.Errorf("making a serial number: %w", err)
	}
	now := time.Now()
	template := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "Loadstone", Organization: []string{
		"Loadstone, self-signed"}}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(valid),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, fmt.Errorf("signing a certificate: %w", err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, fmt.Errorf("writing a key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), nil
}
