package pki

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Why a peer is not believed.
var (
	// ErrJoining: the node has not joined yet, and waits for a server of its token.
	ErrJoining = errors.New("the node has not joined yet")
	// ErrForeign: the certificate is of another authority.
	ErrForeign = errors.New("its certificate is of another authority")
	// ErrExpired: the certificate is not good any more, or not yet, by this machine's clock.
	ErrExpired = errors.New("its certificate is not valid now")
	// ErrRole: the certificate is not for what it is used for.
	ErrRole = errors.New("its certificate is for another purpose")
	// ErrRevoked: the certificate was revoked.
	ErrRevoked = errors.New("its certificate was revoked")
	// ErrCertificateRejected: a server has refused this node's certificate.
	ErrCertificateRejected = errors.New("it does not believe this node's certificate, which was revoked or has expired")
	// ErrNoCertificate: there is none.
	ErrNoCertificate = errors.New("it shows no certificate")
)

// Peer is who has shown a certificate.
type Peer struct {
	// ID is the name in the certificate, Serial the certificate's own.
	ID, Serial string
	// Issued is when the certificate was made, NotAfter until when it is good.
	Issued, NotAfter time.Time
}

// RenewAt is when two thirds of the certificate's life are over.
func (p Peer) RenewAt() time.Time { return p.NotAfter.Add(-p.NotAfter.Sub(p.Issued) / 3) }

// Pool verifies certificates of one authority.
type Pool struct {
	authority *x509.Certificate
	roots     *x509.CertPool
}

func newPool(authority *x509.Certificate) Pool {
	roots := x509.NewCertPool()
	roots.AddCert(authority)
	return Pool{authority, roots}
}

// Pool are the certificates that the authority has signed.
func (a *Authority) Pool() Pool { return newPool(a.cert) }

// Node is who has shown the certificates, which must be a node.
func (p Pool) Node(shown []*x509.Certificate, now time.Time) (Peer, error) {
	return p.peer(shown, now, roleNode, x509.ExtKeyUsageServerAuth)
}

// Server is the same for a server.
func (p Pool) Server(shown []*x509.Certificate, now time.Time) (Peer, error) {
	return p.peer(shown, now, roleServer, x509.ExtKeyUsageClientAuth)
}

func (p Pool) peer(shown []*x509.Certificate, now time.Time, role string, use x509.ExtKeyUsage) (Peer, error) {
	if len(shown) == 0 {
		return Peer{}, ErrNoCertificate
	}
	leaf := shown[0]
	is, name := subject(leaf)
	if is == roleJoining {
		return Peer{}, ErrJoining
	}
	// By hand before Verify, whose errors do not tell the reasons apart.
	if err := leaf.CheckSignatureFrom(p.authority); err != nil {
		return Peer{}, ErrForeign
	}
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return Peer{}, fmt.Errorf("%w: it is good from %s to %s, and the clock here says %s", ErrExpired,
			leaf.NotBefore.UTC().Format(time.RFC3339), leaf.NotAfter.UTC().Format(time.RFC3339),
			now.UTC().Format(time.RFC3339))
	}
	if is != role {
		return Peer{}, ErrRole
	}
	if _, err := leaf.Verify(x509.VerifyOptions{Roots: p.roots, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{use}}); err != nil {
		return Peer{}, fmt.Errorf("%w: %w", ErrRole, err)
	}
	return Peer{ID: name, Serial: serialOf(leaf.SerialNumber), Issued: leaf.NotBefore.Add(skew),
		NotAfter: leaf.NotAfter}, nil
}

// subject is what a certificate says whose it is.
func subject(c *x509.Certificate) (role, name string) {
	if len(c.URIs) != 1 || c.URIs[0].Scheme != "loadstone" {
		return "", ""
	}
	return c.URIs[0].Host, strings.TrimPrefix(c.URIs[0].Path, "/")
}

// poolFor is the pool of the authority with the fingerprint, if it is among what was shown.
func poolFor(shown []*x509.Certificate, fingerprint [sha256.Size]byte) (Pool, bool) {
	for _, c := range shown {
		if sha256.Sum256(c.Raw) == fingerprint {
			return newPool(c), true
		}
	}
	return Pool{}, false
}

// ClientTLS is how a server dials: certificate is asked for in each handshake, and check
// decides about the node by what it has shown.
func ClientTLS(certificate func() (*tls.Certificate, error), check func([]*x509.Certificate) error) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return certificate()
		},
		// A node is known by the name in its certificate and not by its address, which Go would
		// compare: VerifyConnection does all of the verification, in each handshake.
		InsecureSkipVerify: true, //nolint:gosec // see above
		VerifyConnection:   func(s tls.ConnectionState) error { return check(s.PeerCertificates) },
	}
}
