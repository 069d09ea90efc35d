package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Identity is what a node has to prove who it is, in one file. It is safe for concurrent use.
type Identity struct {
	id   string
	path string
	now  func() time.Time
	// onReject takes why a peer was not let in; it may be nil.
	onReject func(error)

	mu  sync.Mutex
	key *ecdsa.PrivateKey
	// cert and pool are nil until the node has joined.
	cert *tls.Certificate
	pool *Pool
	// joining is set while a token waits for a server.
	joining *tls.Certificate
	token   Token
	// joinedBy is the token by which the node has joined.
	joinedBy string
}

// identityFile holds the key, the certificate and the authority's certificate, PEM.
const identityFile = "node-identity.pem"

// The blocks of the file. What is said of the key stands in its headers.
const (
	blockKey   = "EC PRIVATE KEY"
	blockCert  = "CERTIFICATE"
	headerBy   = "Joined-With"
	headerNode = "Node"
)

// IdentityOptions say whose identity it is.
type IdentityOptions struct {
	// Dir is where it is kept; ID is the node's name.
	Dir, ID string
	// Token lets the node join; nil without one. It is not looked at when it is the one by
	// which the node has joined already.
	Token *Token
	// OnReject takes why a peer was not let in.
	OnReject func(error)
	// Now is the clock; nil means the machine's.
	Now func() time.Time
}

// OpenIdentity reads what the folder holds, or begins to join. Without a token and without a
// file it returns nil: the node is kept safe in another way.
func OpenIdentity(o IdentityOptions) (*Identity, error) {
	i := &Identity{id: o.ID, path: filepath.Join(o.Dir, identityFile), now: o.Now, onReject: o.OnReject}
	if i.now == nil {
		i.now = time.Now
	}
	text, err := os.ReadFile(i.path)
	switch {
	case err == nil:
		if err := i.read(text); err != nil {
			return nil, fmt.Errorf("reading %s: %w", i.path, err)
		}
	case !errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("reading the node's identity: %w", err)
	case o.Token == nil:
		return nil, nil
	}
	if o.Token != nil && o.Token.ID != i.joinedBy {
		if err := i.join(*o.Token); err != nil {
			return nil, err
		}
	}
	if i.cert == nil && i.joining == nil {
		return nil, nil // a key that never got a certificate, and no token any more
	}
	return i, nil
}

// join begins to wait for a server of the token. The key is kept before it is shown, so that
// the node which asks again after a restart is the same.
func (i *Identity) join(t Token) (err error) {
	if err := CheckID(i.id); err != nil {
		return err
	}
	if i.key == nil {
		if i.key, err = newKey(); err != nil {
			return err
		}
		if err := i.write(i.key, nil, nil, ""); err != nil {
			return err
		}
	}
	own, err := newKey()
	if err != nil {
		return err
	}
	now := i.now()
	c := &x509.Certificate{SerialNumber: newSerial(), Subject: pkix.Name{CommonName: i.id}, NotBefore: now.Add(-skew),
		NotAfter: now.Add(authorityLife), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, URIs: []*url.URL{address(roleJoining, i.id)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &own.PublicKey, own)
	if err != nil {
		return fmt.Errorf("making a certificate to join with: %w", err)
	}
	i.token, i.joining = t, &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: own}
	return nil
}

// read takes the file in.
func (i *Identity) read(text []byte) error {
	var certs [][]byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case blockKey:
			key, err := x509.ParseECPrivateKey(block.Bytes)
			if err != nil {
				return err
			}
			if name := block.Headers[headerNode]; name != i.id {
				return fmt.Errorf("it is the identity of %s, and this node is %s", name, i.id)
			}
			i.key, i.joinedBy = key, block.Headers[headerBy]
		case blockCert:
			certs = append(certs, block.Bytes)
		}
	}
	if i.key == nil {
		return errors.New("there is no key in it; move it away, and join again with a new token")
	}
	if len(certs) == 0 {
		return nil
	}
	if len(certs) != 2 {
		return errors.New("it is incomplete; move it away, and join again with a new token")
	}
	cert, pool, err := i.verified(certs[0], certs[1])
	if err != nil {
		return err
	}
	i.cert, i.pool = cert, pool
	return nil
}

// verified is a certificate for this node, with who has signed it.
func (i *Identity) verified(certificate, authority []byte) (*tls.Certificate, *Pool, error) {
	leaf, err := x509.ParseCertificate(certificate)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the node's certificate: %w", err)
	}
	ca, err := x509.ParseCertificate(authority)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the authority's certificate: %w", err)
	}
	pool := newPool(ca)
	// Whether it is good now is for who is shown it; a node with one that has expired can join again.
	peer, err := pool.Node([]*x509.Certificate{leaf}, leaf.NotAfter)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("taking a certificate: %w", err)
	case peer.ID != i.id:
		return nil, nil, fmt.Errorf("taking a certificate: it is for %s, and this node is %s", peer.ID, i.id)
	case !i.key.PublicKey.Equal(leaf.PublicKey):
		return nil, nil, errors.New("taking a certificate: it is for another key")
	}
	return &tls.Certificate{Certificate: [][]byte{certificate, authority}, PrivateKey: i.key, Leaf: leaf}, &pool, nil
}

// write replaces the file as a whole.
func (i *Identity) write(key *ecdsa.PrivateKey, certificate, authority []byte, by string) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("keeping the node's identity: %w", err)
	}
	var b bytes.Buffer
	headers := map[string]string{headerNode: i.id}
	if by != "" {
		headers[headerBy] = by
	}
	blocks := []*pem.Block{{Type: blockKey, Headers: headers, Bytes: der}}
	if certificate != nil {
		blocks = append(blocks, &pem.Block{Type: blockCert, Bytes: certificate},
			&pem.Block{Type: blockCert, Bytes: authority})
	}
	for _, block := range blocks {
		if err := pem.Encode(&b, block); err != nil {
			return fmt.Errorf("keeping the node's identity: %w", err)
		}
	}
	draft, err := os.CreateTemp(filepath.Dir(i.path), ".identity-*") // mode 0600
	if err != nil {
		return fmt.Errorf("keeping the node's identity: %w", err)
	}
	defer func() { _ = os.Remove(draft.Name()) }()
	_, err = draft.Write(b.Bytes())
	if err == nil {
		err = draft.Sync()
	}
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), i.path)
	}
	if err != nil {
		return fmt.Errorf("keeping the node's identity: %w", err)
	}
	return nil
}

// Joined reports whether the node has a certificate and waits for no other.
func (i *Identity) Joined() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.joining == nil
}

// NotAfter is until when the node's certificate is good; the zero time without one.
func (i *Identity) NotAfter() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cert == nil {
		return time.Time{}
	}
	return i.cert.Leaf.NotAfter
}

// TLS is how the node listens. Who shows no certificate is let in as a stranger, for
// probes; whoever shows one must be a server of the authority.
func (i *Identity) TLS() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		ClientAuth: tls.RequestClientCert,
		// A session that is resumed has been verified by an authority that the node may have left since.
		SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			i.mu.Lock()
			defer i.mu.Unlock()
			if i.joining != nil {
				return i.joining, nil
			}
			return i.cert, nil
		},
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return nil
			}
			_, err := i.server(s.PeerCertificates)
			if err != nil && i.onReject != nil {
				i.onReject(err)
			}
			return err
		},
	}
}

// server is who has shown the certificates, and must be a server that the node believes now.
func (i *Identity) server(shown []*x509.Certificate) (Peer, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.joining == nil {
		return i.pool.Server(shown, i.now())
	}
	pool, ok := poolFor(shown, i.token.Authority)
	if !ok {
		return Peer{}, fmt.Errorf("%w: the token was made by another server", ErrForeign)
	}
	return pool.Server(shown, i.now())
}

// HandshakeRejected notes that a server has ended a handshake. One that dials a node which joins does so.
func (i *Identity) HandshakeRejected() {
	if i.onReject != nil && i.Joined() {
		i.onReject(ErrCertificateRejected)
	}
}

// CertificateRequest is what a node says to a server that it believes, to get a certificate.
type CertificateRequest struct {
	// TokenID and Proof are of the token; both are empty where the certificate is renewed.
	TokenID string
	Proof   []byte
	// Request is read with ReadRequest.
	Request []byte
}

// String leaves the proof out.
func (a CertificateRequest) String() string { return "ask of token " + a.TokenID }

// CertificateRequest is what the node says to a server with the certificates shown. ErrForeign when it is not
// believed: the handshake may have been made before the node's trust has changed.
func (i *Identity) CertificateRequest(shown []*x509.Certificate) (CertificateRequest, error) {
	if _, err := i.server(shown); err != nil {
		return CertificateRequest{}, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: i.id}}, i.key)
	if err != nil {
		return CertificateRequest{}, fmt.Errorf("asking for a certificate: %w", err)
	}
	a := CertificateRequest{Request: der}
	if i.joining != nil {
		a.TokenID, a.Proof = i.token.ID, i.token.Proof()
	}
	return a, nil
}

// Install takes the certificate that a server with the certificates shown has made, keeps it,
// and shows it from the next handshake on.
func (i *Identity) Install(shown []*x509.Certificate, certificate, authority []byte) error {
	if _, err := i.server(shown); err != nil {
		return err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	cert, pool, err := i.verified(certificate, authority)
	if err != nil {
		return err
	}
	by := i.joinedBy
	switch {
	case i.joining != nil && sha256.Sum256(authority) != i.token.Authority:
		return fmt.Errorf("taking a certificate: %w", ErrForeign)
	case i.joining != nil:
		by = i.token.ID
	case !bytes.Equal(authority, i.pool.authority.Raw):
		return fmt.Errorf("taking a certificate: %w", ErrForeign)
	}
	if err := i.write(i.key, certificate, authority, by); err != nil {
		return err
	}
	i.cert, i.pool, i.joinedBy, i.joining, i.token = cert, pool, by, nil, Token{}
	return nil
}
