// Package egresstest answers the questions of this process for names, so that tests see what is dialled when a name
// leads where nobody should be sent.
package egresstest

import (
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Metadata is where clouds tell a machine its own keys.
var Metadata = netip.MustParseAddr("169.254.169.254") //nolint:gochecknoglobals // a constant

// StubDNS has every name of the process lead to an address, until the test ends. A test that calls it runs alone.
func StubDNS(t testing.TB, to netip.Addr) {
	t.Helper()
	t.Setenv("HTTP_PROXY", "") // and so no test of it is parallel
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go serveDNS(theirs, to)
		return ours, nil
	}}
	t.Cleanup(func() { net.DefaultResolver = before })
}

// answer speaks DNS as over TCP: each message behind its length.
func serveDNS(c net.Conn, to netip.Addr) {
	defer func() { _ = c.Close() }()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		asked := make([]byte, binary.BigEndian.Uint16(size[:]))
		var m dnsmessage.Message
		if _, err := io.ReadFull(c, asked); err != nil || m.Unpack(asked) != nil || len(m.Questions) != 1 {
			return
		}
		q := m.Questions[0]
		m.Response, m.RecursionAvailable, m.Additionals = true, true, nil
		if q.Type == dnsmessage.TypeA && to.Is4() {
			m.Answers = []dnsmessage.Resource{{Header: dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, TTL: 0},
				Body: &dnsmessage.AResource{A: to.As4()}}}
		}
		said, err := m.Pack()
		if err != nil || len(said) > 1<<16-1 {
			return
		}
		binary.BigEndian.PutUint16(size[:], uint16(len(said)))
		if _, err := c.Write(append(size[:], said...)); err != nil {
			return
		}
	}
}
