package rpc

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
	"github.com/loadstone-db/loadstone/engine/cluster/protocoltest"
)

// certificates are those of a node and of a server, each of which demands the other's.
func certificates(t *testing.T) (node, server *tls.Config) {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	root := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotAfter: time.Now().Add(time.Hour),
		IsCA:     true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, root, root, &signer.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	root, _ = x509.ParseCertificate(der)
	pool := x509.NewCertPool()
	pool.AddCert(root)
	issue := func(n int64) tls.Certificate {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		c := &x509.Certificate{SerialNumber: big.NewInt(n), NotAfter: time.Now().Add(time.Hour),
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"nodes.bench.svc"},
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
		der, err := x509.CreateCertificate(rand.Reader, c, root, &key.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	}
	return &tls.Config{Certificates: []tls.Certificate{issue(2)}, ClientCAs: pool,
			ClientAuth: tls.RequireAndVerifyClientCert},
		&tls.Config{Certificates: []tls.Certificate{issue(3)}, RootCAs: pool}
}

func dialled(t *testing.T, l *Listener, d *Dialer) (protocol.ServerEnd, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	go func() {
		if end, err := l.Accept(ctx); err == nil {
			t.Cleanup(func() { _ = end.Close() })
		}
	}()
	end, err := d.Dial(ctx)
	if err == nil {
		t.Cleanup(func() { _ = end.Close() })
	}
	return end, err
}

func TestWhoDoesNotKnowTheTokenGetsNothing(t *testing.T) {
	t.Parallel()
	node, server := certificates(t)
	l, d, _ := linked(t, ListenOptions{Security: Security{TLS: node, Token: secret.New("secret")}},
		DialOptions{Security: Security{TLS: server, Token: secret.New("wrong")}})
	l.Serve(func(string) (*os.File, error) { t.Error("a part was looked for"); return nil, os.ErrNotExist })
	if _, err := dialled(t, l, d); err == nil || !strings.Contains(err.Error(), "token") {
		t.Fatalf("dialling with a wrong token: %v", err)
	}
	e := &serverEnd{dialer: d}
	if err := e.PutPlugin(t.Context(), "x", []byte("x")); err == nil || !strings.Contains(err.Error(), "token") {
		t.Fatalf("a plugin with a wrong token: %v", err)
	}
	p := protocoltest.Announcement([]byte("x"))
	if _, err := e.OpenPart(t.Context(), p); err == nil || !strings.Contains(err.Error(), "401") {
		t.Fatalf("a part with a wrong token: %v", err)
	}
}

func TestWhoHasNoCertificateGetsNothing(t *testing.T) {
	t.Parallel()
	node, server := certificates(t)
	server.Certificates = nil
	l, d, _ := linked(t, ListenOptions{Security: Security{TLS: node}}, DialOptions{Security: Security{TLS: server}})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if end, err := d.Dial(ctx); err == nil {
		_ = end.Close()
		t.Fatal("a stream without a certificate was opened")
	}
	_ = l
}

// TestNodesOfAServiceAreKnownByItsName: they are dialled by addresses that no certificate has.
func TestNodesOfAServiceAreKnownByItsName(t *testing.T) {
	t.Parallel()
	for name, known := range map[string]bool{"nodes.bench.svc": true, "others.bench.svc": false} {
		node, server := certificates(t)
		server.ServerName = name
		l, d, _ := linked(t, ListenOptions{Security: Security{TLS: node}}, DialOptions{Security: Security{TLS: server}})
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		end, err := d.Dial(ctx)
		if cancel(); (err == nil) != known {
			t.Errorf("a node that is asked to be %s: %v", name, err)
		}
		if end != nil {
			_ = end.Close()
		}
		_ = l
	}
}

func TestPlainConnectionsAreForThisMachine(t *testing.T) {
	t.Parallel()
	for address, ok := range map[string]bool{"127.0.0.1:9090": true, "localhost:9090": true, "[::1]:9090": true,
		":9090":        false,
		"0.0.0.0:9090": false, "10.0.0.7:9090": false, "node.example:9090": false, "[::]:9090": false} {
		for _, s := range []Security{{}, {Token: secret.New("secret")}} {
			if err := s.check(address); (err == nil) != ok || err != nil && !errors.Is(err, ErrPlain) {
				t.Errorf("%s: %v", address, err)
			}
		}
		if err := (Security{Plain: true}).check(address); err != nil {
			t.Errorf("%s, allowed: %v", address, err)
		}
		if err := (Security{TLS: &tls.Config{}}).check(address); err != nil {
			t.Errorf("%s with TLS: %v", address, err)
		}
	}
	if _, err := NewDialer(DialOptions{Address: "10.0.0.7:9090"}); !errors.Is(err, ErrPlain) {
		t.Errorf("dialling: %v", err)
	}
	if _, err := Listen(t.Context(), ListenOptions{Address: "0.0.0.0:0"}); !errors.Is(err, ErrPlain) {
		t.Errorf("listening: %v", err)
	}
}

// TestEachServerHasAStreamOfItsOwn: a later one of the same server takes its place, and no other's.
func TestEachServerHasAStreamOfItsOwn(t *testing.T) {
	t.Parallel()
	l, d, _ := linked(t, ListenOptions{}, DialOptions{Process: "server-1"})
	server := func(process string) *Dialer {
		d, err := NewDialer(DialOptions{Address: l.Addr().String(), Process: process})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	open := func(d *Dialer, process string) (protocol.ServerEnd, protocol.NodeEnd) {
		t.Helper()
		accepted := make(chan protocol.NodeEnd, 1)
		go func() { node, _ := l.Accept(t.Context()); accepted <- node }()
		end, err := d.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		node := <-accepted
		if got := node.(protocol.Peer).Server(); got != process {
			t.Errorf("the stream is of %q, not of %q", got, process)
		}
		return end, node
	}
	first, atFirst := open(d, "server-1")
	other := server("server-2")
	second, _ := open(other, "server-2")
	// A stream that was opened before the one there, and arrives late.
	if _, err := server("server-1").Dial(t.Context()); err == nil || !strings.Contains(err.Error(), "later stream") {
		t.Fatalf("an older stream: %v", err)
	}
	again, atAgain := open(other, "server-2")
	if _, err := second.Receive(t.Context()); !errors.Is(err, protocol.ErrClosed) {
		t.Errorf("the stream before of the second server: %v", err)
	}
	for _, way := range []struct {
		from protocol.ServerEnd
		to   protocol.NodeEnd
	}{{first, atFirst}, {again, atAgain}} {
		if err := way.from.Send(t.Context(), protocol.Drain{}); err != nil {
			t.Fatal(err)
		}
		if m, err := way.to.Receive(t.Context()); err != nil || m != protocol.ToNode(protocol.Drain{}) {
			t.Errorf("%v, %v", m, err)
		}
	}
}

// TestServersThatAreGoneMakeRoom: only so many are remembered, those without a stream least long.
func TestServersThatAreGoneMakeRoom(t *testing.T) {
	t.Parallel()
	l := &Listener{held: map[string]holder{}}
	begin := func() *nodeEnd { return &nodeEnd{} }
	now := time.Now()
	for i := range maxHolders {
		if _, err := l.claimStream(fmt.Sprint(i), holder{session: 1, at: now.Add(time.Duration(i))}, begin); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := l.claimStream("more", holder{session: 1}, begin); err == nil {
		t.Error("a server more than a node remembers has a stream")
	}
	l.leave("7")
	l.leave("9")
	if _, err := l.claimStream("more", holder{session: 1, at: now}, begin); err != nil {
		t.Error(err)
	}
	if _, known := l.held["7"]; known || len(l.held) != maxHolders || l.held["9"].session != 1 {
		t.Errorf("%d are remembered, 9 as %+v", len(l.held), l.held["9"])
	}
}

func TestAPluginIsWhatWasAnnouncedOrAnError(t *testing.T) {
	t.Parallel()
	var given []byte
	l, d, _ := linked(t, ListenOptions{Plugin: func(_ context.Context, wasm []byte) error {
		given = bytes.Clone(wasm)
		return nil
	}}, DialOptions{})
	end, err := dialled(t, l, d)
	if err != nil {
		t.Fatal(err)
	}
	wasm := bytes.Repeat([]byte("wasm"), 1<<20)
	sum := sha256.Sum256(wasm)
	hash := hex.EncodeToString(sum[:])
	if err := end.(protocol.PluginReceiver).PutPlugin(t.Context(), hash, wasm); err != nil || !bytes.Equal(given, wasm) {
		t.Fatalf("%d bytes arrived, %v", len(given), err)
	}
	given = nil
	wasm[17] ^= 1
	if err := end.(protocol.PluginReceiver).PutPlugin(t.Context(), hash, wasm); err == nil || given != nil {
		t.Fatalf("with a flipped bit: %v, %d bytes were taken", err, len(given))
	}
	if err := end.(protocol.PluginReceiver).PutPlugin(
		t.Context(),
		hash,
		make([]byte, maxPlugin+1),
	); err == nil ||
		given != nil ||
		!strings.Contains(err.Error(), "larger than plugins may be") {
		t.Fatalf("one that is too large: %v, %d bytes were taken", err, len(given))
	}
}

func TestProbesAreAnsweredWithoutAToken(t *testing.T) {
	t.Parallel()
	l, _, _ := linked(t, ListenOptions{Security: Security{Token: secret.New("secret")}},
		DialOptions{Security: Security{Token: secret.New("secret")}})
	conn, err := grpc.NewClient("passthrough:///"+l.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	probe := func() (healthpb.HealthCheckResponse_ServingStatus, int) {
		answer, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.Get("http://" + l.Addr().String() + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Body.Close()
		return answer.GetStatus(), r.StatusCode
	}
	if s, code := probe(); s != healthpb.HealthCheckResponse_SERVING || code != http.StatusOK {
		t.Fatalf("%v, %d", s, code)
	}
	l.Draining()
	if s, code := probe(); s != healthpb.HealthCheckResponse_NOT_SERVING || code != http.StatusServiceUnavailable {
		t.Fatalf("while it drains: %v, %d", s, code)
	}
	http.DefaultClient.CloseIdleConnections()
}
