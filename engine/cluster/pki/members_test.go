package pki

import (
	"context"
	"crypto/x509"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// memoryStore is a store in memory, as far as Members need it.
type memoryStore struct {
	MemberStore
	mu        sync.Mutex
	authority *store.NodeAuthority
	serials   map[string]string // of nodes, by serial
	revoked   []string
	down      error
	valid     time.Duration
}

func (k *memoryStore) EnsureNodeAuthority(
	_ context.Context,
	fresh func() (store.NodeAuthority, error),
) (store.NodeAuthority,
	error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.down != nil {
		return store.NodeAuthority{}, k.down
	}
	if k.authority == nil {
		a, err := fresh()
		if err != nil {
			return a, err
		}
		k.authority = &a
	}
	return *k.authority, nil
}

func (k *memoryStore) CreateNodeToken(
	_ context.Context,
	t store.NodeToken,
	_ [32]byte,
	valid time.Duration,
) (store.NodeToken,
	error) {
	k.valid = valid
	return t, k.down
}

func (k *memoryStore) NodeTokens(context.Context) ([]store.NodeToken, error) { return nil, k.down }

func (k *memoryStore) RevokeNodeToken(context.Context, string) error { return k.down }

func (k *memoryStore) AdmitNode(_ context.Context, c store.NodeCertificate, _ [32]byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.serials[c.Serial] = c.NodeID
	return k.down
}

func (k *memoryStore) RenewNode(ctx context.Context, c store.NodeCertificate, _ string) error {
	return k.AdmitNode(ctx, c, [32]byte{})
}

func (k *memoryStore) RevokeNode(_ context.Context, id, _ string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for serial, of := range k.serials {
		if of == id {
			k.revoked = append(k.revoked, serial)
		}
	}
	return k.down
}

func (k *memoryStore) RevokedNodes(context.Context) ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.revoked, k.down
}

func members(k *memoryStore) *Members {
	return NewMembers(MembersOptions{Store: k, Server: "s", Log: zerolog.Nop()})
}

// joined lets a node join, and returns what it shows.
func joined(t *testing.T, m *Members, id string) ([]*x509.Certificate, CertificateRequest) {
	t.Helper()
	secret, _, err := m.Token(t.Context(), engine.Actor{Name: "u"}, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	token, err := ParseToken(secret)
	if err != nil {
		t.Fatal(err)
	}
	i, err := OpenIdentity(IdentityOptions{Dir: t.TempDir(), ID: id, Token: &token})
	if err != nil {
		t.Fatal(err)
	}
	own, err := m.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	var server []*x509.Certificate
	for _, der := range own.Certificate {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		server = append(server, c)
	}
	ask, err := i.CertificateRequest(server)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Admit(t.Context(), "a:1", ask)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(s.Certificate)
	if err != nil {
		t.Fatal(err)
	}
	return []*x509.Certificate{c}, ask
}

// TestServersOfOneStoreBelieveTheSameNodes, and what one revokes the other learns by itself.
func TestServersOfOneStoreBelieveTheSameNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &memoryStore{serials: map[string]string{}}
		one, two := members(k), members(k)
		shown, _ := joined(t, one, "node-1")
		for _, m := range []*Members{one, two} {
			if who, err := m.Node(shown); err != nil || who.ID != "node-1" {
				t.Fatalf("%+v, %v", who, err)
			}
		}
		told := map[*Members]*atomic.Int64{one: {}, two: {}}
		ctx, cancel := context.WithCancel(t.Context())
		var keeping sync.WaitGroup
		for _, m := range []*Members{one, two} {
			m.Watch(func() { told[m].Add(1) })
		}
		keeping.Go(func() { two.Run(ctx) })
		time.Sleep(3 * RefreshInterval)
		if err := one.Revoke(t.Context(), "node-1", "u"); err != nil {
			t.Fatal(err)
		}
		if _, err := one.Node(shown); !errors.Is(err, ErrRevoked) || told[one].Load() != 1 {
			t.Errorf("where it was revoked: %v, told %d times", err, told[one].Load())
		}
		time.Sleep(2 * RefreshInterval)
		if _, err := two.Node(shown); !errors.Is(err, ErrRevoked) || told[two].Load() != 1 {
			t.Errorf("on the other server: %v, told %d times", err, told[two].Load())
		}
		// While the store is away, what is known holds.
		k.mu.Lock()
		k.down = store.ErrUnavailable
		k.mu.Unlock()
		time.Sleep(2 * RefreshInterval)
		if _, err := two.Node(shown); !errors.Is(err, ErrRevoked) {
			t.Errorf("while the store is away: %v", err)
		}
		if _, err := members(k).Node(shown); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a server that has never read it: %v", err)
		}
		cancel()
		keeping.Wait()
	})
}

func TestAServersOwnCertificateIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := members(&memoryStore{serials: map[string]string{}})
		first, err := m.Certificate()
		if err != nil {
			t.Fatal(err)
		}
		if same, _ := m.Certificate(); same != first {
			t.Error("each handshake has another")
		}
		time.Sleep(ServerLife*2/3 + time.Minute)
		next, err := m.Certificate()
		if err != nil || next == first {
			t.Errorf("after two thirds of its life it is the same: %v", err)
		}
	})
}

func TestANodeIsRenewedAsItself(t *testing.T) {
	m := members(&memoryStore{serials: map[string]string{}})
	shown, ask := joined(t, m, "node-1")
	who, err := m.Node(shown)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := m.Renew(t.Context(), who, ask); err != nil || s.NodeID != "node-1" {
		t.Errorf("%+v, %v", s, err)
	}
	who.ID = "node-2"
	if _, err := m.Renew(t.Context(), who, ask); !engine.HasCode(err, engine.CodeForbidden) {
		t.Errorf("as another: %v", err)
	}
	if _, err := m.Renew(t.Context(), who, CertificateRequest{}); !engine.HasCode(err, engine.CodeInvalid) {
		t.Errorf("with nothing: %v", err)
	}
}

func TestATokenHasBounds(t *testing.T) {
	k := &memoryStore{serials: map[string]string{}}
	m := members(k)
	for _, c := range []struct {
		uses  int
		valid time.Duration
		want  time.Duration // 0: refused
	}{{0, 0, DefaultTokenLife}, {1, time.Minute, time.Minute}, {MaxTokenUses, MaxTokenLife, MaxTokenLife}, {MaxTokenUses + 1, 0, 0},
		{1, MaxTokenLife + time.Second, 0}, {1, -time.Second, 0}} {
		k.valid = 0
		_, _, err := m.Token(t.Context(), engine.Actor{Name: "u"}, c.uses, c.valid)
		if k.valid != c.want || (err == nil) != (c.want > 0) || err != nil && !engine.HasCode(err, engine.CodeInvalid) {
			t.Errorf("%d uses for %s: %s, %v", c.uses, c.valid, k.valid, err)
		}
	}
}

func TestAnAddressIsReadWithCare(t *testing.T) {
	for text, want := range map[string]string{"Host.Example:9090": "host.example:9090", " a:1 ": "a:1",
		"[fd00::1]:09090": "[fd00::1]:9090", "10.0.0.1:65535": "10.0.0.1:65535",
		"": "", "a": "", ":9090": "", "a:": "", "a:0": "", "a:65536": "", "a:http": "", "http://a:1": "", "a b:1": "",
		"a/b:1": "", "u@a:1": "", strings.Repeat("a", 300) + ":1": ""} {
		got, err := CheckAddress("address", text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
}

// TestANodeOnTheLinkIsNotTakenIn, since nobody would dial it.
func TestANodeOnTheLinkIsNotTakenIn(t *testing.T) {
	for address, good := range map[string]bool{"169.254.169.254:80": false, "[fe80::1]:7000": false,
		"metadata.google.internal:80": false, "10.0.0.1:7000": true, "node.example:7000": true} {
		if err := CheckHost("--nodes", address); (err == nil) != good {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// hangingStore is a store of which nobody hears any more.
type hangingStore struct {
	*memoryStore
	requested, hangs chan struct{}
}

func (h hangingStore) RevokedNodes(ctx context.Context) ([]string, error) {
	select {
	case <-h.hangs:
		select {
		case h.requested <- struct{}{}:
		default:
		}
		<-ctx.Done()
		return nil, ctx.Err()
	default:
		return h.memoryStore.RevokedNodes(ctx)
	}
}

// TestNodesConnectWhileTheStoreHangs: what was known last holds, and is not waited for.
func TestNodesConnectWhileTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hangingStore{&memoryStore{serials: map[string]string{}}, make(chan struct{}), make(chan struct{})}
		m := NewMembers(MembersOptions{Store: h, Server: "s", Log: zerolog.Nop()})
		shown, _ := joined(t, m, "n")
		if _, err := m.Node(shown); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var keeping sync.WaitGroup
		keeping.Go(func() { m.Run(ctx) })
		close(h.hangs)
		<-h.requested
		defer keeping.Wait()
		defer cancel()
		if !m.mu.TryLock() { // who waits for a mutex stops the clock of the test
			t.Fatal("a handshake has to wait for the store")
		}
		m.mu.Unlock()
		begin := time.Now()
		if _, err := m.Node(shown); err != nil {
			t.Error(err)
		}
		if _, err := m.Certificate(); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("a handshake waited for the store for %s", took)
		}
	})
}
