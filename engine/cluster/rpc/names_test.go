package rpc

import (
	"crypto/tls"
	"crypto/x509"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/cluster/pki"
	"github.com/loadstone-db/loadstone/engine/cluster/protocol"
)

// TestANodeWithoutANameOfItsOwnIsRefused: its events could not be written, and what only the server
// itself may carry would be given to one that is called like the server's own.
func TestANodeWithoutANameOfItsOwnIsRefused(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", protocol.OwnNode, "a b", strings.Repeat("x", 129)} {
		l, d, _ := linked(t, ListenOptions{}, DialOptions{})
		if _, err := dialHello(t, l, d, id); err == nil {
			t.Errorf("a node called %q is let in", id)
		}
	}
	l, d, _ := linked(t, ListenOptions{}, DialOptions{})
	if _, err := dialHello(t, l, d, "local-2"); err != nil {
		t.Error(err)
	}
	if _, err := pki.OpenIdentity(pki.IdentityOptions{Dir: t.TempDir(), ID: protocol.OwnNode,
		Token: newFakeTrust(t).token()}); err == nil {
		t.Error("a node may take the name of the server's own")
	}
}

func shownBy(t *testing.T, c *tls.Certificate) (shown []*x509.Certificate) {
	t.Helper()
	for _, der := range c.Certificate {
		x, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, x)
	}
	return shown
}

// TestACertificateThatCannotBeKeptIsMadeOnce: the control store remembers each that is made.
func TestACertificateThatCannotBeKeptIsMadeOnce(t *testing.T) {
	t.Parallel()
	b := newFakeTrust(t)
	_, d, _ := linked(t, ListenOptions{Identity: identity(t, t.TempDir(), "n", b.token())}, DialOptions{Trust: b})
	server, err := b.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	node := identity(t, t.TempDir(), "n", b.token())
	ask := func() pki.CertificateRequest {
		a, err := node.CertificateRequest(shownBy(t, server))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	r := renewal{d: d, who: pki.Peer{ID: "n"}}
	first, err := r.sign(t.Context(), ask())
	if err != nil {
		t.Fatal(err)
	}
	again, err := r.sign(t.Context(), ask())
	if err != nil || again.Serial != first.Serial || b.renewed != 1 {
		t.Errorf("%d were made, %v", b.renewed, err)
	}
	r.offered = pki.SignedCertificate{} // the node has it
	if next, err := r.sign(t.Context(), ask()); err != nil || next.Serial == first.Serial || b.renewed != 2 {
		t.Errorf("the next one: %d were made, %v", b.renewed, err)
	}
}
