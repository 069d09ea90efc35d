package rpc

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cluster/pki"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/protocoltest"
	"github.com/loadstone-db/loadstone/engine/cluster/rpc/pb"
)

// fakeTrust is a Trust that signs for whoever proves a token of it.
type fakeTrust struct {
	*pki.Authority
	mu      sync.Mutex
	tokens  map[[32]byte]bool
	revoked map[string]bool
	asked   []string
	show    func() (*tls.Certificate, error)
	renewed int
}

func newFakeTrust(t *testing.T) *fakeTrust {
	t.Helper()
	a, err := pki.NewAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	b := &fakeTrust{Authority: a, tokens: map[[32]byte]bool{}, revoked: map[string]bool{}}
	b.show = func() (*tls.Certificate, error) { c, err := a.Server("server-1", time.Now()); return &c, err }
	return b
}

func (b *fakeTrust) token() *pki.Token {
	t := pki.NewToken(b.Authority)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tokens[pki.HashProof(t.Proof())] = true
	return &t
}

func (b *fakeTrust) Certificate() (*tls.Certificate, error) { return b.show() }

func (b *fakeTrust) Node(shown []*x509.Certificate) (pki.Peer, error) {
	p, err := b.Pool().Node(shown, time.Now())
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && b.revoked[p.Serial] {
		err = pki.ErrRevoked
	}
	return p, err
}

func (b *fakeTrust) Admit(_ context.Context, address string, a pki.CertificateRequest) (pki.SignedCertificate, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, address+" "+a.TokenID)
	hash := pki.HashProof(a.Proof)
	if !b.tokens[hash] {
		return pki.SignedCertificate{}, &engine.Error{Code: engine.CodeForbidden, Message: "The token was used before.",
			Hint: "Make another."}
	}
	delete(b.tokens, hash)
	r, err := pki.ReadRequest(a.Request)
	if err != nil {
		return pki.SignedCertificate{}, err
	}
	return b.Sign(r, time.Now())
}

func (b *fakeTrust) Renew(_ context.Context, who pki.Peer, a pki.CertificateRequest) (pki.SignedCertificate, error) {
	r, err := pki.ReadRequest(a.Request)
	if err != nil || r.NodeID != who.ID {
		return pki.SignedCertificate{}, errors.New("it asks for another")
	}
	b.mu.Lock()
	b.renewed++
	b.mu.Unlock()
	return b.Sign(r, time.Now())
}

func identity(t *testing.T, dir, id string, token *pki.Token) *pki.Identity {
	t.Helper()
	i, err := pki.OpenIdentity(pki.IdentityOptions{Dir: dir, ID: id, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestGRPCOfANodeThatJoinsConforms(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("make check-ci: it takes many seconds")
	}
	protocoltest.Run(t, func(t *testing.T) protocoltest.Link {
		b := newFakeTrust(t)
		l, d, c := linked(t, ListenOptions{Identity: identity(t, t.TempDir(), "n", b.token())}, DialOptions{Trust: b})
		return protocoltest.Link{Dialer: d, Listener: l, Break: c.cut}
	})
}

// dialHello lets the node say who it is, and returns what the server hears.
func dialHello(t *testing.T, l *Listener, d protocol.Dialer, id string) (protocol.ServerEnd, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	said := make(chan struct{})
	go func() {
		defer close(said)
		node, err := l.Accept(ctx)
		if err == nil {
			t.Cleanup(func() { _ = node.Close() })
			_ = node.Send(ctx, protocol.Hello{NodeID: id})
		}
	}()
	end, err := d.Dial(ctx)
	if err != nil {
		cancel()
		<-said
		return nil, err
	}
	t.Cleanup(func() { _ = end.Close() })
	m, err := end.Receive(ctx)
	if h, ok := m.(protocol.Hello); err == nil && (!ok || h.NodeID != id) {
		t.Errorf("the server hears %+v", m)
	}
	return end, err
}

// back waits until the node is back on a stream after its connection was cut.
func back(t *testing.T, l *Listener, d protocol.Dialer, id string) (err error) {
	t.Helper()
	for begin := time.Now(); time.Since(begin) < 10*time.Second; time.Sleep(20 * time.Millisecond) {
		if _, err = dialHello(t, l, d, id); err == nil {
			return nil
		}
	}
	return err
}

func TestANodeJoinsWithATokenOnce(t *testing.T) {
	t.Parallel()
	b, dir := newFakeTrust(t), t.TempDir()
	token := b.token()
	l, d, c := linked(t, ListenOptions{Identity: identity(t, dir, "node-1", token)}, DialOptions{Trust: b})
	if _, err := dialHello(t, l, d, "node-1"); err != nil {
		t.Fatal(err)
	}
	// It is known by its certificate from now on.
	for range 2 {
		c.cut()
		if err := back(t, l, d, "node-1"); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.asked) != 1 || !strings.HasSuffix(b.asked[0], token.ID) {
		t.Errorf("it asked for admission by %q", b.asked)
	}
	// Another node with the same token.
	l, d, _ = linked(t, ListenOptions{Identity: identity(t, t.TempDir(), "node-2", token)}, DialOptions{Trust: b})
	if _, err := dialHello(t, l, d, "node-2"); err == nil || !strings.Contains(err.Error(), "used before") ||
		!strings.Contains(err.Error(), "Make another") {
		t.Errorf("a used token: %v", err)
	}
}

func TestANodeIsNobodyElse(t *testing.T) {
	t.Parallel()
	b := newFakeTrust(t)
	l, d, _ := linked(t, ListenOptions{Identity: identity(t, t.TempDir(), "node-1", b.token())}, DialOptions{Trust: b})
	if _, err := dialHello(t, l, d, "node-2"); err == nil || !strings.Contains(err.Error(), `calls itself "node-2"`) ||
		!strings.Contains(err.Error(), "node-1") {
		t.Errorf("a node that says it is another: %v", err)
	}
}

func TestWhoIsNotBelievedIsToldWhy(t *testing.T) {
	t.Parallel()
	b, other := newFakeTrust(t), newFakeTrust(t)
	joined := t.TempDir()
	l, d, _ := linked(t, ListenOptions{Identity: identity(t, joined, "node-1", b.token())}, DialOptions{Trust: b})
	if _, err := dialHello(t, l, d, "node-1"); err != nil {
		t.Fatal(err)
	}
	as := func(show func() (*tls.Certificate, error)) *fakeTrust {
		c := &fakeTrust{Authority: b.Authority, tokens: map[[32]byte]bool{}, revoked: map[string]bool{}, show: show}
		return c
	}
	late := as(func() (*tls.Certificate, error) {
		c, err := b.Server("s", time.Now().Add(-48*time.Hour))
		return &c, err
	})
	for name, c := range map[string]struct {
		node   *pki.Identity
		server Trust
		want   error
	}{
		"a token of another server":      {identity(t, t.TempDir(), "node-2", other.token()), b, ErrServerRejected},
		"a node of another server":       {identity(t, joined, "node-1", nil), other, pki.ErrForeign},
		"a server with an old one":       {identity(t, joined, "node-1", nil), late, ErrServerRejected},
		"a joining node, the same":       {identity(t, t.TempDir(), "node-3", b.token()), late, ErrServerRejected},
		"a node that speaks without TLS": {nil, b, ErrNotTLS},
	} {
		l, d, _ := linked(t, ListenOptions{Identity: c.node}, DialOptions{Trust: c.server})
		begin := time.Now()
		if _, err := dialHello(t, l, d, "x"); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if took := time.Since(begin); took > 4*time.Second {
			t.Errorf("%s: it took %s to say so", name, took)
		}
	}
}

func TestARevokedNodeIsCutAndStaysOut(t *testing.T) {
	t.Parallel()
	b, dir := newFakeTrust(t), t.TempDir()
	l, d, _ := linked(t, ListenOptions{Identity: identity(t, dir, "node-1", b.token())}, DialOptions{Trust: b})
	end, err := dialHello(t, l, d, "node-1")
	if err != nil {
		t.Fatal(err)
	}
	d.Recheck()
	if err := end.Send(t.Context(), protocol.Ping{}); err != nil {
		t.Fatalf("one that is believed: %v", err)
	}
	who, err := b.Node(d.trusted.shown)
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	b.revoked[who.Serial] = true
	b.mu.Unlock()
	d.Recheck()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := end.Receive(ctx); !errors.Is(err, protocol.ErrClosed) {
		t.Fatalf("the stream of a revoked node: %v", err)
	}
	if _, err := end.OpenPart(t.Context(), protocoltest.Announcement(nil)); err == nil ||
		!strings.Contains(err.Error(), pki.ErrRevoked.Error()) {
		t.Errorf("a part of it: %v", err)
	}
	for range 2 {
		if _, err := dialHello(t, l, d, "node-1"); !errors.Is(err, pki.ErrRevoked) {
			t.Fatalf("afterwards: %v", err)
		}
	}
}

func TestACertificateIsRenewedOnTheStream(t *testing.T) {
	t.Parallel()
	b := newFakeTrust(t)
	b.Life = 3 * time.Second
	i := identity(t, t.TempDir(), "node-1", b.token())
	l, d, c := linked(t, ListenOptions{Identity: i}, DialOptions{Trust: b})
	end, err := dialHello(t, l, d, "node-1")
	if err != nil {
		t.Fatal(err)
	}
	first := i.NotAfter()
	for begin := time.Now(); i.NotAfter().Equal(first); time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > 10*time.Second {
			t.Fatal("it was not renewed")
		}
	}
	if left := time.Until(first); left < 0 {
		t.Errorf("it was renewed %s after it had ended", -left)
	}
	if err := end.Send(t.Context(), protocol.Ping{}); err != nil {
		t.Errorf("the stream: %v", err)
	}
	time.Sleep(time.Until(first))
	c.cut()
	if err := back(t, l, d, "node-1"); err != nil {
		t.Errorf("with the new certificate: %v", err)
	}
}

// TestAStrangerOfAJoinedNodeSeesItsHealthOnly, and one with a certificate of another less.
func TestAStrangerOfAJoinedNodeSeesItsHealthOnly(t *testing.T) {
	t.Parallel()
	b := newFakeTrust(t)
	l, d, _ := linked(t, ListenOptions{Identity: identity(t, t.TempDir(), "node-1", b.token()),
		Plugin: func(context.Context, []byte) error { t.Error("a plugin was taken"); return nil }}, DialOptions{Trust: b})
	stranger := func(state string) {
		config := &tls.Config{InsecureSkipVerify: true}
		conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
			grpc.WithTransportCredentials(credentials.NewTLS(config)))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if r, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil ||
			r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("%s, its health: %v, %v", state, r, err)
		}
		client := pb.NewNodeServiceClient(conn)
		_, asked := client.RequestCertificate(t.Context(), &pb.RequestCertificateRequest{})
		_, brought := client.InstallCertificate(t.Context(), &pb.InstallCertificateRequest{Refusal: "go away"})
		var opened error
		if s, err := client.Control(t.Context()); err == nil {
			_ = s.Send(&pb.ToNode{Message: &pb.ToNode_Open{Open: &pb.Open{ServerProcess: "x", Session: 1}}})
			_, opened = s.Recv()
		}
		put := (&serverEnd{dialer: &Dialer{client: client}}).PutPlugin(t.Context(), "x", []byte("x"))
		for what, err := range map[string]error{"asks": asked, "brings": brought, "opens": opened, "puts": put} {
			if err == nil || !strings.Contains(err.Error(), "certificate of their authority") {
				t.Errorf("%s, a stranger %s: %v", state, what, err)
			}
		}
		web := &http.Client{Transport: &http.Transport{TLSClientConfig: config}}
		defer web.CloseIdleConnections()
		for path, want := range map[string]int{"/livez": 200, "/readyz": 200, protocol.PartsPath + "r/w/p": 401} {
			r, err := web.Get("https://" + l.Addr().String() + path)
			if err != nil {
				t.Fatal(err)
			}
			_ = r.Body.Close()
			if r.StatusCode != want {
				t.Errorf("%s, %s: %d", state, path, r.StatusCode)
			}
		}
	}
	stranger("joining")
	if _, err := dialHello(t, l, d, "node-1"); err != nil {
		t.Fatal(err)
	}
	stranger("joined")
}

// TestNoSecretIsLogged in a whole session: joining, refused, renewed.
func TestNoSecretIsLogged(t *testing.T) {
	t.Parallel()
	b, dir := newFakeTrust(t), t.TempDir()
	token := b.token()
	var out bytes.Buffer
	who, err := pki.OpenIdentity(pki.IdentityOptions{Dir: dir, ID: "node-1", Token: token})
	if err != nil {
		t.Fatal(err)
	}
	l, err := Listen(t.Context(),
		ListenOptions{Address: "127.0.0.1:0", Identity: who, Log: zerolog.New(zerolog.SyncWriter(&out))})
	if err != nil {
		t.Fatal(err)
	}
	d, err := NewDialer(DialOptions{Address: l.Addr().String(), Process: "s", Trust: b})
	if err != nil {
		t.Fatal(err)
	}
	b.mu.Lock()
	known := b.tokens
	b.tokens = map[[32]byte]bool{}
	b.mu.Unlock()
	_, refused := dialHello(t, l, d, "node-1")
	b.mu.Lock()
	b.tokens = known
	b.mu.Unlock()
	if refused == nil {
		t.Error("a token that nobody knows was taken")
	}
	end, err := dialHello(t, l, d, "node-1")
	if err != nil {
		t.Fatal(err)
	}
	if err := end.(protocol.Refuser).Refuse(t.Context(), "another has the same name"); err != nil {
		t.Error(err)
	}
	_ = d.Close()
	_ = l.Close()
	text := out.String() + refused.Error()
	for _, want := range []string{"a server refuses this node: The token", "the node has joined",
		"another has the same name"} {
		if !strings.Contains(text, want) {
			t.Errorf("nothing says that %s: %s", want, text)
		}
	}
	secret := token.Secret()
	for n := 0; n+12 <= len(secret); n += 6 {
		if part := secret[n : n+12]; strings.Contains(text, part) {
			t.Fatalf("a part of the token is logged: %s in %s", part, text)
		}
	}
}

func TestANodeOnThisMachineMayJoinOrNot(t *testing.T) {
	t.Parallel()
	b := newFakeTrust(t)
	for name, who := range map[string]*pki.Identity{"plain": nil, "joins": identity(t, t.TempDir(), "n", b.token())} {
		l, _, c := linked(t, ListenOptions{Identity: who}, DialOptions{})
		e, err := NewDualDialer(DialOptions{Address: c.Addr().String(), Process: "s", Trust: b})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := back(t, l, e, "n"); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			c.cut()
		}
		if joins := who != nil; e.joined.Load() != joins {
			t.Errorf("%s: remembered as one that has joined: %v", name, !joins)
		}
		// Something else answers without TLS where a node with a certificate was.
		if e.joined.Store(true); who == nil {
			if _, err := e.Dial(t.Context()); !errors.Is(err, ErrNotTLS) {
				t.Errorf("in place of a node that has joined: %v", err)
			}
		}
		_ = e.Close()
	}
	if _, err := NewDualDialer(DialOptions{Address: "10.0.0.7:9090", Trust: b}); !errors.Is(err, ErrPlain) {
		t.Errorf("beyond this machine: %v", err)
	}
}

// joinedFake remembers as a store does.
type joinedFake struct {
	addresses map[string]bool
	down      error
}

func (j *joinedFake) NoteJoined(_ context.Context, address string) error {
	if j.down == nil {
		j.addresses[address] = true
	}
	return j.down
}

func (j *joinedFake) HasJoined(_ context.Context, address string) (bool, error) {
	return j.addresses[address], j.down
}

// TestAPortOfAJoinedNodeIsRememberedAfterARestart: a node without a certificate gets no work at the address of one that
// has joined, from a server that was restarted meanwhile either.
func TestAPortOfAJoinedNodeIsRememberedAfterARestart(t *testing.T) {
	t.Parallel()
	b, kept := newFakeTrust(t), &joinedFake{addresses: map[string]bool{}}
	dialer := func(address string) *DualDialer {
		e, err := NewDualDialer(DialOptions{Address: address, Process: "s", Trust: b, Joined: kept})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		return e
	}
	l, _, c := linked(t, ListenOptions{Identity: identity(t, t.TempDir(), "n", b.token())}, DialOptions{})
	if err := back(t, l, dialer(c.Addr().String()), "n"); err != nil {
		t.Fatal(err)
	}
	if !kept.addresses[c.Addr().String()] {
		t.Fatal("it is not remembered that a node has joined")
	}
	// Another listens there without TLS, as far as a dialer that knows nothing can tell.
	plain, _, p := linked(t, ListenOptions{}, DialOptions{})
	at := p.Addr().String()
	kept.addresses[at] = true
	if _, err := dialer(at).Dial(t.Context()); !errors.Is(err, ErrNotTLS) {
		t.Errorf("in place of a node that has joined: %v", err)
	}
	kept.addresses = map[string]bool{}
	// A store that is away says nothing of a node that is new, and takes none away that is known.
	e := dialer(at)
	kept.down = errors.New("the store is away")
	if _, err := e.Dial(t.Context()); !errors.Is(err, ErrNotTLS) {
		t.Errorf("while it cannot be asked: %v", err)
	}
	kept.down = nil
	if err := back(t, plain, e, "n"); err != nil {
		t.Error(err)
	}
	p.cut()
	kept.down = errors.New("the store is away")
	if err := back(t, plain, e, "n"); err != nil {
		t.Errorf("a node that is known, while the store is away: %v", err)
	}
}

// TestTwoAddressesOfANodeAreOneStream: the second is refused while the first stands, and takes
// over when it is gone.
func TestTwoAddressesOfANodeAreOneStream(t *testing.T) {
	t.Parallel()
	l, _, c := linked(t, ListenOptions{}, DialOptions{})
	var sessions atomic.Int64
	var ways []*Dialer
	for _, address := range []string{c.Addr().String(), l.Addr().String()} {
		d, err := NewDialer(DialOptions{Address: address, Process: "s", Sessions: &sessions})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		ways = append(ways, d)
	}
	end, err := dialHello(t, l, ways[0], "node-1")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := dialHello(t, l, ways[1], "node-1"); !errors.Is(err, protocol.ErrSameNode) ||
			!strings.Contains(err.Error(), c.Addr().String()) {
			t.Fatalf("by the other address: %v", err)
		}
	}
	if err := end.Send(t.Context(), protocol.Ping{}); err != nil {
		t.Errorf("the first stream: %v", err)
	}
	time.Sleep(100 * time.Millisecond) // it comes, and nobody receives it
	first := l.holder(t, "s").end
	c.cut()
	_ = c.Close()
	if err := back(t, l, ways[1], "node-1"); err != nil {
		t.Error(err)
	}
	// What the first had in its hand is no message any more.
	if m, err := first.Receive(t.Context()); !errors.Is(err, protocol.ErrClosed) {
		t.Errorf("by the first stream comes %+v, %v", m, err)
	}
}

// holder is what a listener knows of the stream of a server's process.
func (l *Listener) holder(t *testing.T, process string) holder {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[process]
}
