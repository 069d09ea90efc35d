package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net/url"
	"regexp"
	"time"
)

// How long certificates are good for.
const (
	NodeLife      = 30 * 24 * time.Hour
	ServerLife    = 24 * time.Hour
	authorityLife = 20 * 365 * 24 * time.Hour
	// skew is how far before they are made they begin.
	skew = 2 * time.Hour
)

// The roles that a certificate names, as the host of its address.
const (
	roleNode    = "node"
	roleServer  = "server"
	roleJoining = "joining"
)

// Authority signs the certificates of nodes and servers. It is safe for concurrent use.
type Authority struct {
	// Life is how long the certificate of a node is good for.
	Life time.Duration
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority with a key of its own.
func NewAuthority(now time.Time) (*Authority, error) {
	key, err := newKey()
	if err != nil {
		return nil, err
	}
	root := &x509.Certificate{SerialNumber: newSerial(), Subject: pkix.Name{CommonName: "Loadstone nodes"},
		NotBefore: now.Add(-skew), NotAfter: now.Add(authorityLife), IsCA: true, BasicConstraintsValid: true,
		MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, root, root, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("making the authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("making the authority: %w", err)
	}
	return &Authority{Life: NodeLife, cert: cert, key: key}, nil
}

// OpenAuthority returns the authority with the certificate and the key that Certificate and
// Key have given.
func OpenAuthority(certificate, key []byte) (*Authority, error) {
	cert, err := x509.ParseCertificate(certificate)
	if err != nil {
		return nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	private, err := x509.ParseECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("reading the authority's key: %w", err)
	}
	if !private.PublicKey.Equal(cert.PublicKey) {
		return nil, fmt.Errorf("reading the authority: its key is not that of its certificate")
	}
	return &Authority{Life: NodeLife, cert: cert, key: private}, nil
}

// Certificate is the authority's own, DER.
func (a *Authority) Certificate() []byte { return a.cert.Raw }

// Key is the private key, DER; whoever has it makes certificates.
func (a *Authority) Key() ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(a.key)
	if err != nil {
		return nil, fmt.Errorf("writing the authority's key: %w", err)
	}
	return der, nil
}

// Fingerprint names the authority.
func (a *Authority) Fingerprint() [32]byte { return sha256.Sum256(a.cert.Raw) }

// SignedCertificate is a certificate for a node.
type SignedCertificate struct {
	NodeID string
	// Certificate and Authority are DER.
	Certificate, Authority []byte
	// Serial names the certificate, Key the key that it is for.
	Serial    string
	Key       [32]byte
	NotBefore time.Time
	NotAfter  time.Time
}

// Request is what a node asks to be signed: its name and its key. The zero Request is none.
type Request struct {
	NodeID string
	// Key is the SHA-256 of the public key.
	Key    [32]byte
	public any
}

// ReadRequest takes a request of a node in, and checks that it holds the key that it names.
func ReadRequest(der []byte) (Request, error) {
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil {
		return Request{}, fmt.Errorf("reading the request for a certificate: %w", err)
	}
	if err := csr.CheckSignature(); err != nil {
		return Request{}, fmt.Errorf("reading the request for a certificate: %w", err)
	}
	if public, ok := csr.PublicKey.(*ecdsa.PublicKey); !ok || public.Curve != elliptic.P256() {
		return Request{}, fmt.Errorf("reading the request for a certificate: its key is not of the curve P-256")
	}
	if err := CheckID(csr.Subject.CommonName); err != nil {
		return Request{}, err
	}
	return Request{NodeID: csr.Subject.CommonName, Key: sha256.Sum256(csr.RawSubjectPublicKeyInfo),
		public: csr.PublicKey}, nil
}

// Sign makes the certificate that a node has asked for. Whether it may have it was decided before.
func (a *Authority) Sign(r Request, now time.Time) (SignedCertificate, error) {
	s := SignedCertificate{
		NodeID:    r.NodeID,
		Authority: a.cert.Raw,
		Key:       r.Key,
		NotBefore: now.Add(-skew).UTC().Truncate(time.Second),
		NotAfter:  now.Add(a.Life).UTC().Truncate(time.Second),
	}
	serial := newSerial()
	s.Serial = serialOf(serial)
	der, err := a.issue(roleNode, r.NodeID, serial, r.public, s.NotBefore, s.NotAfter, x509.ExtKeyUsageServerAuth)
	s.Certificate = der
	return s, err
}

// Server makes a certificate for a server, with a key of its own.
func (a *Authority) Server(name string, now time.Time) (tls.Certificate, error) {
	key, err := newKey()
	if err != nil {
		return tls.Certificate{}, err
	}
	der, err := a.issue(roleServer, name, newSerial(), &key.PublicKey, now.Add(-skew), now.Add(ServerLife),
		x509.ExtKeyUsageClientAuth)
	if err != nil {
		return tls.Certificate{}, err
	}
	// A node that has not joined knows the authority by its fingerprint only: it comes along.
	return tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}, nil
}

func (a *Authority) issue(role, name string, serial *big.Int, public any, from, until time.Time,
	use x509.ExtKeyUsage) ([]byte, error) {
	c := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use}, BasicConstraintsValid: true,
		URIs: []*url.URL{address(role, name)}}
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, public, a.key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate: %w", err)
	}
	return der, nil
}

// address is what a certificate calls its owner.
func address(role, name string) *url.URL {
	return &url.URL{Scheme: "loadstone", Host: role, Path: "/" + name}
}

func newKey() (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return key, nil
}

func newSerial() *big.Int {
	b := make([]byte, 16)
	_, _ = rand.Read(b) // it never fails
	b[0] &= 0x7f
	return new(big.Int).SetBytes(b)
}

func serialOf(n *big.Int) string { return fmt.Sprintf("%032x", n) }

var wellFormed = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// ownNode is protocol.OwnNode, which nobody else is: work that no other process reaches is given to it.
const ownNode = "local"

// CheckID refuses what cannot be the name of a node.
func CheckID(id string) error {
	if !wellFormed.MatchString(id) {
		return fmt.Errorf("%q is no name of a node: it has up to 128 letters, digits, dots, dashes and underscores", id)
	}
	if id == ownNode {
		return fmt.Errorf("%q is the name of the node in a server's own process; give this one another", id)
	}
	return nil
}
