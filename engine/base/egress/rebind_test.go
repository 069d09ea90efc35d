package egress_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"github.com/loadstone-db/loadstone/engine/base/egress"
)

// TestANameThatTurnsIsJudgedAtEachConnect: a name that was allowed when it was saved, and that its owner's name server
// leads to a cloud's metadata, or to an address that is not on the list, with the next answer.
func TestANameThatTurnsIsJudgedAtEachConnect(t *testing.T) {
	var leads atomic.Pointer[netip.Addr]
	resolveWith(t, &leads)
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		to      string
		policy  *egress.Policy
		allowed bool
	}{
		{"127.0.0.1", egress.Unrestricted(), true},
		{"169.254.169.254", egress.Unrestricted(), false},
		{"127.0.0.1", policy(t, "127.0.0.0/8"), true},
		{"127.0.0.1", policy(t, "10.0.0.0/8"), false},
		// A name on the list is no pass to where nobody may go.
		{"127.0.0.1", policy(t, "turns.example.com"), true},
		{"169.254.169.254", policy(t, "turns.example.com"), false},
	} {
		at := netip.MustParseAddr(c.to)
		leads.Store(&at)
		conn, err := c.policy.Dial(t.Context(), "tcp4", net.JoinHostPort("turns.example.com", port))
		if err == nil {
			conn.Close()
		}
		if (err == nil) != c.allowed || !c.allowed && !errors.Is(err, egress.ErrRefused) {
			t.Errorf("it leads to %s now: %v, want allowed %t", c.to, err, c.allowed)
		}
	}
}

// resolveWith has all names of this process resolved, until the test's end, to the address that leads holds.
func resolveWith(t *testing.T, leads *atomic.Pointer[netip.Addr]) {
	server, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		question := make([]byte, 512)
		for {
			n, from, err := server.ReadFrom(question)
			if err != nil {
				return
			}
			if answer, err := answerTo(question[:n], *leads.Load()); err == nil {
				_, _ = server.WriteTo(answer, from)
			}
		}
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "udp4", server.LocalAddr().String())
	}}
	t.Cleanup(func() { net.DefaultResolver = before; server.Close() })
}

func answerTo(question []byte, to netip.Addr) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(question); err != nil {
		return nil, err
	}
	m.Response, m.Additionals = true, nil
	if m.Questions[0].Type == dnsmessage.TypeA {
		m.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: m.Questions[0].Name, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET},
			Body:   &dnsmessage.AResource{A: to.As4()},
		}}
	}
	return m.Pack()
}
