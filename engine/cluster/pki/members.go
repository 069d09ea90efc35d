package pki

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/store"
)

// RefreshInterval is how often a server asks what was revoked.
const RefreshInterval = 2 * time.Second

// How long a token is good for: what it is without a word, and the most there is.
const (
	DefaultTokenLife = time.Hour
	MaxTokenLife     = 30 * 24 * time.Hour
	// MaxTokenUses is how many nodes may join with one token.
	MaxTokenUses = 1000
)

// storeTimeout bounds what a handshake may wait for the store.
const storeTimeout = 5 * time.Second

// MemberStore keeps who may be a node, and where nodes are. Refusals are *engine.Error that say what to do about it.
type MemberStore interface {
	TokenStore
	AddressStore
	// EnsureNodeAuthority returns the one authority, made by fresh if there is none.
	EnsureNodeAuthority(ctx context.Context, fresh func() (store.NodeAuthority, error)) (store.NodeAuthority, error)
	// AdmitNode notes the certificate of a node that joins, and counts its token as used. The
	// same node with the same key may ask again. The token may be unknown, expired or used up,
	// and the node's name another's.
	AdmitNode(ctx context.Context, c store.NodeCertificate, secretSHA256 [32]byte) error
	// RenewNode notes a certificate in place of one that has not been revoked.
	RenewNode(ctx context.Context, c store.NodeCertificate, serial string) error
	// RevokeNode ends all certificates of a node; ErrNotFound when it has none.
	RevokeNode(ctx context.Context, nodeID, by string) error
	// NoteJoinedAddress notes that a node with a certificate has answered at an address of a server's machine, and
	// HasJoinedAddress reports whether one ever has.
	NoteJoinedAddress(ctx context.Context, server, address string) error
	HasJoinedAddress(ctx context.Context, server, address string) (bool, error)
	// RevokedNodes are the serials of certificates that would be good otherwise.
	RevokedNodes(ctx context.Context) ([]string, error)
}

// TokenStore keeps those by which nodes join.
type TokenStore interface {
	CreateNodeToken(
		ctx context.Context,
		t store.NodeToken,
		secretSHA256 [32]byte,
		valid time.Duration,
	) (store.NodeToken, error)
	// NodeTokens are those by which nodes can join now, the newest first.
	NodeTokens(ctx context.Context) ([]store.NodeToken, error)
	// RevokeNodeToken has no further node join by a token; ErrNotFound when there is none. Nodes that have joined stay.
	RevokeNodeToken(ctx context.Context, id string) error
}

// AddressStore keeps the nodes that every server dials.
type AddressStore interface {
	// AddNodeAddress puts a node into the catalog; ErrConflict when it is there.
	AddNodeAddress(ctx context.Context, address, by string) (store.NodeAddress, error)
	// RemoveNodeAddress takes it out.
	RemoveNodeAddress(ctx context.Context, address string) error
	NodeAddresses(ctx context.Context) ([]store.NodeAddress, error)
}

// MembersOptions are what Members are made of.
type MembersOptions struct {
	Store MemberStore
	// Server names this server in its certificate.
	Server string
	Log    zerolog.Logger
	// Life is how long the certificate of a node is good for; 0 means NodeLife.
	Life time.Duration
}

// Members decide who is a node. Their methods are safe for concurrent use.
type Members struct {
	opts MembersOptions

	// reading is held while it is asked what was revoked, so that no older answer replaces a newer
	// one. It comes before mu, which nobody holds while the store is asked for what is known.
	reading sync.Mutex

	mu        sync.Mutex
	authority *Authority
	own       *tls.Certificate
	renewOwn  time.Time
	revoked   map[string]bool // nil until it has been read
	watch     []func()
}

// NewMembers returns the members; nothing is read before it is needed.
func NewMembers(o MembersOptions) *Members { return &Members{opts: o} }

// NoteJoined implements rpc.JoinedNodes.
func (m *Members) NoteJoined(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return m.opts.Store.NoteJoinedAddress(ctx, m.opts.Server, address)
}

// HasJoined implements rpc.JoinedNodes.
func (m *Members) HasJoined(ctx context.Context, address string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return m.opts.Store.HasJoinedAddress(ctx, m.opts.Server, address)
}

// ensureAuthority returns the authority. It needs mu.
func (m *Members) ensureAuthority(ctx context.Context) (*Authority, error) {
	if m.authority != nil {
		return m.authority, nil
	}
	kept, err := m.opts.Store.EnsureNodeAuthority(ctx, func() (store.NodeAuthority, error) {
		a, err := NewAuthority(time.Now())
		if err != nil {
			return store.NodeAuthority{}, err
		}
		key, err := a.Key()
		return store.NodeAuthority{Certificate: a.Certificate(), Key: key}, err
	})
	if err != nil {
		return nil, err
	}
	a, err := OpenAuthority(kept.Certificate, kept.Key)
	if err != nil {
		return nil, err
	}
	if m.opts.Life > 0 {
		a.Life = m.opts.Life
	}
	m.authority = a
	return a, nil
}

// Store names the control store to its nodes: all servers of it have the same authority, and no others.
func (m *Members) Store(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	a, err := m.ensureAuthority(ctx)
	if err != nil {
		return "", err
	}
	sum := a.Fingerprint()
	return hex.EncodeToString(sum[:]), nil
}

// revokedSerials returns what was revoked, as it was read last.
func (m *Members) revokedSerials(ctx context.Context) (map[string]bool, error) {
	last := func() map[string]bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.revoked
	}
	if now := last(); now != nil {
		return now, nil
	}
	_, err := m.read(ctx)
	return last(), err
}

// read reads what was revoked, and reports whether that has changed.
func (m *Members) read(ctx context.Context) (more bool, err error) {
	m.reading.Lock()
	defer m.reading.Unlock()
	serials, err := m.opts.Store.RevokedNodes(ctx)
	if err != nil {
		return false, err
	}
	now := make(map[string]bool, len(serials))
	for _, s := range serials {
		now[s] = true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	more = !maps.Equal(now, m.revoked)
	m.revoked = now
	return more, nil
}

// Watch has f called when something was revoked.
func (m *Members) Watch(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watch = append(m.watch, f)
}

// Run asks what was revoked until ctx ends.
func (m *Members) Run(ctx context.Context) {
	ticker := time.NewTicker(RefreshInterval)
	defer ticker.Stop()
	for failed := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := m.refresh(ctx)
		if err != nil && !failed && ctx.Err() == nil {
			m.opts.Log.Warn().Err(err).Msg("which nodes were revoked cannot be read; what is known holds")
		}
		failed = err != nil
	}
}

// refresh reads what was revoked, and tells who watches.
func (m *Members) refresh(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	more, err := m.read(limited)
	m.mu.Lock()
	watch := m.watch
	m.mu.Unlock()
	if more {
		for _, f := range watch {
			f()
		}
	}
	return err
}

// Certificate is the server's own, as it is now.
func (m *Members) Certificate() (*tls.Certificate, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	m.mu.Lock()
	defer m.mu.Unlock()
	if now := time.Now(); m.own == nil || now.After(m.renewOwn) {
		a, err := m.ensureAuthority(ctx)
		if err != nil {
			return nil, err
		}
		own, err := a.Server(m.opts.Server, now)
		if err != nil {
			return nil, err
		}
		m.own, m.renewOwn = &own, now.Add(ServerLife*2/3)
	}
	return m.own, nil
}

// Node decides about a node by the certificates that it has shown.
func (m *Members) Node(shown []*x509.Certificate) (Peer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	m.mu.Lock()
	a, err := m.ensureAuthority(ctx)
	m.mu.Unlock()
	if err != nil {
		return Peer{}, err
	}
	revoked, err := m.revokedSerials(ctx)
	if err != nil {
		return Peer{}, err
	}
	who, err := a.Pool().Node(shown, time.Now())
	if err == nil && revoked[who.Serial] {
		err = fmt.Errorf("%w (%s)", ErrRevoked, who.ID)
	}
	return who, err
}

// sign signs for a node, and returns what is to be noted of it.
func (m *Members) sign(
	ctx context.Context,
	ask CertificateRequest,
) (SignedCertificate, store.NodeCertificate, error) {
	r, err := ReadRequest(ask.Request)
	if err != nil {
		return SignedCertificate{}, store.NodeCertificate{}, &engine.Error{Code: engine.CodeInvalid, Cause: err,
			Message: "The node asks for a certificate that cannot be made: " + err.Error() + ".",
			Hint:    "Start it with another name, on an empty data directory."}
	}
	m.mu.Lock()
	a, err := m.ensureAuthority(ctx)
	m.mu.Unlock()
	if err != nil {
		return SignedCertificate{}, store.NodeCertificate{}, err
	}
	s, err := a.Sign(r, time.Now())
	return s, store.NodeCertificate{Serial: s.Serial, NodeID: s.NodeID, Key: s.Key, ExpiresAt: s.NotAfter}, err
}

// Admit signs for a node that joins. It implements rpc.Trust.
func (m *Members) Admit(
	ctx context.Context,
	address string,
	ask CertificateRequest,
) (SignedCertificate, error) {
	s, c, err := m.sign(ctx, ask)
	if err == nil {
		// Nobody has the certificate before the store has taken it.
		err = m.opts.Store.AdmitNode(ctx, c, HashProof(ask.Proof))
	}
	log := m.opts.Log.With().Str("node_id", c.NodeID).Str("address", address).Logger()
	if err != nil {
		log.Warn().Err(err).Msg("a node may not join")
		return SignedCertificate{}, err
	}
	log.Info().Str("token_id", ask.TokenID).Time("not_after", s.NotAfter).Msg("a node has joined")
	return s, nil
}

// Renew signs for a node that has shown who it is. It implements rpc.Trust.
func (m *Members) Renew(ctx context.Context, who Peer, ask CertificateRequest) (SignedCertificate, error) {
	s, c, err := m.sign(ctx, ask)
	if err == nil && c.NodeID != who.ID {
		err = &engine.Error{Code: engine.CodeForbidden,
			Message: fmt.Sprintf("The node %s asks for the certificate of %s.", who.ID, c.NodeID)}
	}
	if err == nil {
		err = m.opts.Store.RenewNode(ctx, c, who.Serial)
	}
	log := m.opts.Log.With().Str("node_id", who.ID).Logger()
	if err != nil {
		log.Warn().Err(err).Msg("the certificate of a node is not renewed")
		return SignedCertificate{}, err
	}
	log.Info().Time("not_after", s.NotAfter).Msg("the certificate of a node was renewed")
	return s, nil
}

// Token makes a token by which nodes join, and returns its secret. 0 uses are one, 0 valid
// is DefaultTokenLife.
func (m *Members) Token(ctx context.Context, by engine.Actor, uses int, valid time.Duration) (string, store.NodeToken,
	error) {
	uses, valid = max(uses, 1), valid.Truncate(time.Second)
	if valid == 0 {
		valid = DefaultTokenLife
	}
	switch {
	case uses > MaxTokenUses:
		return "", store.NodeToken{},
			engine.InvalidField("uses", fmt.Sprintf("is %d", uses), fmt.Sprintf("up to %d", MaxTokenUses))
	case valid < time.Second || valid > MaxTokenLife:
		return "", store.NodeToken{}, engine.InvalidField("valid_seconds", fmt.Sprintf("is %s", valid),
			"from a second to 30 days")
	}
	m.mu.Lock()
	a, err := m.ensureAuthority(ctx)
	m.mu.Unlock()
	if err != nil {
		return "", store.NodeToken{}, err
	}
	t := NewToken(a)
	made, err := m.opts.Store.CreateNodeToken(
		ctx,
		store.NodeToken{TokenID: t.ID, Uses: uses, CreatedBy: by.Name, CreatedByID: by.ID},
		HashProof(t.Proof()),
		valid,
	)
	if err != nil {
		return "", store.NodeToken{}, err
	}
	return t.Secret(), made, nil
}

// Tokens are those by which nodes can join now.
func (m *Members) Tokens(ctx context.Context) ([]store.NodeToken, error) {
	return m.opts.Store.NodeTokens(ctx)
}

// RevokeToken has no further node join by a token.
func (m *Members) RevokeToken(ctx context.Context, id string) error {
	return m.opts.Store.RevokeNodeToken(ctx, id)
}

// Revoke ends all certificates of a node, here at once.
func (m *Members) Revoke(ctx context.Context, nodeID, by string) error {
	if err := m.opts.Store.RevokeNode(ctx, nodeID, by); err != nil {
		return err
	}
	m.opts.Log.Info().Str("node_id", nodeID).Msg("a node was revoked")
	return m.refresh(ctx)
}

// Add puts a node into the catalog.
func (m *Members) Add(ctx context.Context, address, by string) (store.NodeAddress, error) {
	address, err := CheckAddress("address", address)
	if err == nil {
		err = CheckHost("address", address)
	}
	if err != nil {
		return store.NodeAddress{}, err
	}
	return m.opts.Store.AddNodeAddress(ctx, address, by)
}

// Remove takes a node out of the catalog.
func (m *Members) Remove(ctx context.Context, address string) error {
	address, err := CheckAddress("address", address)
	if err != nil {
		return err
	}
	return m.opts.Store.RemoveNodeAddress(ctx, address)
}

// Catalog are the nodes of the catalog.
func (m *Members) Catalog(ctx context.Context) ([]store.NodeAddress, error) {
	return m.opts.Store.NodeAddresses(ctx)
}

// CheckHost refuses a node's host:port that leads where nobody is spoken with; field is where it was written.
func CheckHost(field, address string) error {
	if host, _, err := net.SplitHostPort(address); err == nil && egress.IsForbiddenHost(host) {
		return egress.InvalidFlag(field, host)
	}
	return nil
}

// CheckAddress reads host:port; field is where it was written.
func CheckAddress(field, text string) (string, error) {
	text = strings.TrimSpace(text)
	host, port, err := net.SplitHostPort(text)
	n, numeric := strconv.Atoi(port)
	if err != nil || numeric != nil || n < 1 || n > 65535 || host == "" || len(text) > 300 ||
		strings.ContainsAny(text, " \t\n/@?#") {
		return "", engine.InvalidField(field, fmt.Sprintf("%.300q is no address of a node", text), "write host:port")
	}
	return net.JoinHostPort(strings.ToLower(host), strconv.Itoa(n)), nil
}
