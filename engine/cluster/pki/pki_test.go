package pki

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func authority(t *testing.T) *Authority {
	t.Helper()
	a, err := NewAuthority(noon)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// identity of a node that waits with a token of the authority.
func identity(t *testing.T, dir, id string, token *Token) *Identity {
	t.Helper()
	i, err := OpenIdentity(IdentityOptions{Dir: dir, ID: id, Token: token, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// shownCertificates is what a server of the authority shows.
func shownCertificates(t *testing.T, a *Authority, now time.Time) []*x509.Certificate {
	t.Helper()
	c, err := a.Server("server-1", now)
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, c.Certificate)
}

func parsed(t *testing.T, all [][]byte) (certs []*x509.Certificate) {
	t.Helper()
	for _, der := range all {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		certs = append(certs, c)
	}
	return certs
}

// join lets a node join, and returns what was signed.
func join(t *testing.T, a *Authority, i *Identity) SignedCertificate {
	t.Helper()
	server := shownCertificates(t, a, noon)
	ask, err := i.CertificateRequest(server)
	if err != nil {
		t.Fatal(err)
	}
	r, err := ReadRequest(ask.Request)
	if err != nil {
		t.Fatal(err)
	}
	s, err := a.Sign(r, noon)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Install(server, s.Certificate, s.Authority); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestATokenIsReadWholeOrNotAtAll(t *testing.T) {
	a := authority(t)
	token := NewToken(a)
	text := token.Secret()
	got, err := ParseToken(" " + text + "\n")
	if err != nil || got != token {
		t.Fatalf("%v, %v", got, err)
	}
	if HashProof(got.Proof()) != HashProof(token.Proof()) || HashProof(token.Proof()) == HashProof(NewToken(a).Proof()) {
		t.Error("the proof is not the token's own")
	}
	for n := range len(text) {
		if _, err := ParseToken(text[:n]); !errors.Is(err, ErrToken) {
			t.Fatalf("%d characters of it: %v", n, err)
		}
		// A character that was misread. The last holds bits that encode nothing.
		if wrong := []byte(text); n < len(text)-1 {
			if wrong[n]++; wrong[n] == '{' {
				wrong[n] = 'a'
			}
			if _, err := ParseToken(string(wrong)); !errors.Is(err, ErrToken) {
				t.Fatalf("with another character %d: %v", n, err)
			}
		}
	}
	for _, how := range []string{"%v", "%s", "%+v", "%#v"} {
		said := fmt.Sprintf(how, token) + fmt.Sprintf(how, CertificateRequest{Proof: token.Proof()})
		if !strings.Contains(said, token.ID) || strings.Contains(said, text[20:40]) ||
			how != "%#v" && strings.Contains(said, strings.Trim(fmt.Sprintf("%d", token.Proof()[:4]), "[]")) {
			t.Errorf("%s shows %s", how, said)
		}
	}
}

func TestANodeJoinsTheServersOfItsTokenAndNoOthers(t *testing.T) {
	a, other, dir := authority(t), authority(t), t.TempDir()
	token := NewToken(a)
	i := identity(t, dir, "node-1", &token)
	if i.Joined() {
		t.Fatal("it has joined before")
	}
	if _, err := i.CertificateRequest(shownCertificates(t, other, noon)); !errors.Is(err, ErrForeign) {
		t.Errorf("a server of another authority hears the token's secret: %v", err)
	}
	// A server of another authority that shows the right one beside its own certificate.
	foreign := append(shownCertificates(t, other, noon)[:1], parsed(t, [][]byte{a.Certificate()})...)
	if _, err := i.CertificateRequest(foreign); !errors.Is(err, ErrForeign) {
		t.Errorf("one that shows the authority without its signature: %v", err)
	}
	s := join(t, a, i)
	if !i.Joined() || !i.NotAfter().Equal(noon.Add(NodeLife)) {
		t.Fatalf("joined: %v, until %s", i.Joined(), i.NotAfter())
	}
	// After a restart, with the token that it has joined with and without one.
	for _, again := range []*Token{&token, nil} {
		if i = identity(t, dir, "node-1", again); i == nil || !i.Joined() {
			t.Fatal("it does not know any more that it has joined")
		}
	}
	ask, err := i.CertificateRequest(shownCertificates(t, a, noon))
	if err != nil || len(ask.Proof) != 0 {
		t.Fatalf("renewing says a token: %v, %v", ask, err)
	}
	r, err := ReadRequest(ask.Request)
	if err != nil || r.Key != s.Key || r.NodeID != "node-1" {
		t.Fatalf("%+v, %v", r, err)
	}
	info, err := os.Stat(filepath.Join(dir, identityFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file: %v, %v", info.Mode(), err)
	}
	text, _ := os.ReadFile(filepath.Join(dir, identityFile))
	if strings.Contains(string(text), token.Secret()) {
		t.Error("the token is kept")
	}
	// Another token: the key stays, and so the node.
	next := NewToken(other)
	i = identity(t, dir, "node-1", &next)
	if i.Joined() {
		t.Fatal("a new token is not looked at")
	}
	if s := join(t, other, i); s.Key != r.Key {
		t.Error("the node has another key")
	}
	if _, err := OpenIdentity(IdentityOptions{Dir: dir, ID: "node-2"}); err == nil ||
		!strings.Contains(err.Error(), "node-1") {
		t.Errorf("the identity of another: %v", err)
	}
	if i := identity(t, t.TempDir(), "node-1", nil); i != nil {
		t.Error("an identity without a token and without a file")
	}
}

// TestARestartWhileJoiningKeepsTheKey: the token counts as used by the key.
func TestARestartWhileJoiningKeepsTheKey(t *testing.T) {
	a, dir := authority(t), t.TempDir()
	token := NewToken(a)
	var keys [2][32]byte
	for n := range keys {
		ask, err := identity(t, dir, "node-1", &token).CertificateRequest(shownCertificates(t, a, noon))
		if err != nil {
			t.Fatal(err)
		}
		r, err := ReadRequest(ask.Request)
		if err != nil {
			t.Fatal(err)
		}
		keys[n] = r.Key
	}
	if keys[0] != keys[1] {
		t.Error("the key is another after a restart")
	}
	if i := identity(t, dir, "node-1", nil); i != nil {
		t.Error("a node that has not joined, without its token")
	}
}

func TestACertificateForAnotherIsNotTaken(t *testing.T) {
	a, other := authority(t), authority(t)
	token := NewToken(a)
	i := identity(t, t.TempDir(), "node-1", &token)
	sign := func(by *Authority, id string, key *ecdsa.PrivateKey) SignedCertificate {
		der, err := x509.CreateCertificateRequest(rand.Reader,
			&x509.CertificateRequest{Subject: pkix.Name{CommonName: id}}, key)
		if err != nil {
			t.Fatal(err)
		}
		r, err := ReadRequest(der)
		if err != nil {
			t.Fatal(err)
		}
		s, err := by.Sign(r, noon)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	stranger, _ := newKey()
	server, err := a.Server("server-2", noon)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]SignedCertificate{
		"another name":      sign(a, "node-2", i.key),
		"another key":       sign(a, "node-1", stranger),
		"another authority": sign(other, "node-1", i.key),
		"of a server":       {Certificate: server.Certificate[0], Authority: a.Certificate()},
		"nothing":           {},
		"no authority":      {Certificate: sign(a, "node-1", i.key).Certificate},
	} {
		if err := i.Install(shownCertificates(t, a, noon), s.Certificate, s.Authority); err == nil || i.Joined() {
			t.Errorf("%s was taken: %v", name, err)
		}
	}
	good := sign(a, "node-1", i.key)
	if err := i.Install(shownCertificates(t, other, noon), good.Certificate, good.Authority); !errors.Is(err, ErrForeign) {
		t.Errorf("from a server of another authority: %v", err)
	}
	if err := i.Install(shownCertificates(t, a, noon), good.Certificate, good.Authority); err != nil {
		t.Error(err)
	}
}

func TestARequestIsReadWithCare(t *testing.T) {
	key, _ := newKey()
	weak, _ := rsa.GenerateKey(rand.Reader, 2048)
	request := func(id string, key any) []byte {
		der, err := x509.CreateCertificateRequest(rand.Reader,
			&x509.CertificateRequest{Subject: pkix.Name{CommonName: id}}, key)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	flipped := request("node-1", key)
	flipped[len(flipped)-1] ^= 1 // of the signature
	for name, der := range map[string][]byte{"nothing": nil, "another kind of key": request("node-1", weak),
		"no name": request("", key), "a path": request("../node", key), "a long name": request(strings.Repeat("n", 129), key),
		"line break": request("node\n1", key), "not signed by its key": flipped} {
		if _, err := ReadRequest(der); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	if _, err := ReadRequest(request("host.example-1_a", key)); err != nil {
		t.Error(err)
	}
}

func TestACertificateIsGoodForOnePurpose(t *testing.T) {
	a, other := authority(t), authority(t)
	token := NewToken(a)
	i := identity(t, t.TempDir(), "node-1", &token)
	joining := parsed(t, i.joining.Certificate)
	s := join(t, a, i)
	node, server := parsed(t, [][]byte{s.Certificate, s.Authority}), shownCertificates(t, a, noon)
	check := func(name string, err, want error) {
		t.Helper()
		if want == nil && err != nil || !errors.Is(err, want) {
			t.Errorf("%s: %v, and not %v", name, err, want)
		}
	}
	p, err := a.Pool().Node(node, noon)
	check("a node", err, nil)
	if p.ID != "node-1" || p.Serial != s.Serial {
		t.Errorf("%+v", p)
	}
	_, err = a.Pool().Server(server, noon)
	check("a server", err, nil)
	_, err = a.Pool().Node(server, noon)
	check("a server as a node", err, ErrRole)
	_, err = a.Pool().Server(node, noon)
	check("a node as a server", err, ErrRole)
	_, err = a.Pool().Node(parsed(t, [][]byte{a.Certificate()}), noon)
	check("the authority as a node", err, ErrRole)
	_, err = other.Pool().Node(node, noon)
	check("of another authority", err, ErrForeign)
	_, err = a.Pool().Node(joining, noon)
	check("not joined", err, ErrJoining)
	_, err = a.Pool().Node(nil, noon)
	check("none", err, ErrNoCertificate)
	// A clock may be an hour off, and certificates end.
	for off, want := range map[time.Duration]error{-time.Hour: nil, time.Hour: nil, -3 * time.Hour: ErrExpired,
		NodeLife - time.Minute: nil, NodeLife + time.Minute: ErrExpired} {
		_, err = a.Pool().Node(node, noon.Add(off))
		check(fmt.Sprintf("a node after %s", off), err, want)
	}
	_, err = a.Pool().Server(server, noon.Add(25*time.Hour))
	check("a server after a day", err, ErrExpired)
}

func TestAnAuthorityIsKeptAsCertificateAndKey(t *testing.T) {
	a := authority(t)
	key, err := a.Key()
	if err != nil {
		t.Fatal(err)
	}
	again, err := OpenAuthority(a.Certificate(), key)
	if err != nil || again.Fingerprint() != a.Fingerprint() {
		t.Fatal(err)
	}
	if _, err := a.Pool().Server(shownCertificates(t, again, noon), noon); err != nil {
		t.Error(err)
	}
	if _, err := OpenAuthority(authority(t).Certificate(), key); err == nil {
		t.Error("the key of another was taken")
	}
}

// TestOnlyServersOfTheAuthorityFinishAHandshake with certificates; who shows none is a stranger.
func TestOnlyServersOfTheAuthorityFinishAHandshake(t *testing.T) {
	a, other := authority(t), authority(t)
	token := NewToken(a)
	var why error
	i, err := OpenIdentity(IdentityOptions{Dir: t.TempDir(), ID: "node-1", Token: &token,
		Now: func() time.Time { return noon }, OnReject: func(err error) { why = err }})
	if err != nil {
		t.Fatal(err)
	}
	nodes := func() tls.Certificate { return *i.cert }
	handshake := func(show func() (*tls.Certificate, error), see func([]*x509.Certificate) error) (server, node error) {
		socket, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer socket.Close()
		left, err := net.Dial("tcp", socket.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		right, err := socket.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer left.Close()
		defer right.Close()
		done := make(chan error, 1)
		go func() {
			done <- tls.Server(right, i.TLS()).Handshake()
			right.Close()
		}()
		server = tls.Client(left, ClientTLS(show, see)).Handshake()
		left.Close()
		return server, <-done
	}
	of := func(by *Authority) func() (*tls.Certificate, error) {
		return func() (*tls.Certificate, error) { c, err := by.Server("server-1", noon); return &c, err }
	}
	none := func() (*tls.Certificate, error) { return &tls.Certificate{}, nil }
	seen := func(shown []*x509.Certificate) error { _, err := a.Pool().Node(shown, noon); return err }
	all := func([]*x509.Certificate) error { return nil }
	if server, _ := handshake(of(a), seen); !errors.Is(server, ErrJoining) {
		t.Errorf("before it joins: %v", server)
	}
	for _, state := range []string{"joining", "joined"} {
		if server, node := handshake(of(a), all); server != nil || node != nil {
			t.Errorf("%s, a server: %v, %v", state, server, node)
		}
		if _, node := handshake(of(other), all); !errors.Is(node, ErrForeign) || !errors.Is(why, ErrForeign) {
			t.Errorf("%s, a server of another authority: %v, %v", state, node, why)
		}
		if _, node := handshake(none, all); node != nil {
			t.Errorf("%s, without a certificate: %v", state, node)
		}
		if state == "joining" {
			join(t, a, i)
		}
	}
	if _, node := handshake(func() (*tls.Certificate, error) { c := nodes(); return &c, nil }, all); !errors.Is(node,
		ErrRole) {
		t.Errorf("another node: %v", node)
	}
	if server, node := handshake(of(a), seen); server != nil || node != nil {
		t.Errorf("both sides verified: %v, %v", server, node)
	}
}
