package rpc

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/loadstone-db/loadstone/engine/base/egress/egresstest"
)

// TestANodeThatLeadsToTheLink: an address that a node announced, or that a name leads to, is judged when it is dialled.
func TestANodeThatLeadsToTheLink(t *testing.T) {
	egresstest.StubDNS(t, egresstest.Metadata)
	for _, address := range []string{"node.example:7000", "169.254.169.254:80"} {
		d, err := NewDialer(DialOptions{Address: address, Security: Security{Plain: true}})
		if err != nil {
			t.Fatal(err)
		}
		err = d.conn.Invoke(t.Context(), "/any/method", &emptypb.Empty{}, &emptypb.Empty{})
		if err == nil || !strings.Contains(err.Error(), "connections to it are refused") {
			t.Errorf("%s: %v", address, err)
		}
		res, err := d.http.Get("http://" + address)
		if err == nil {
			_ = res.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "connections to it are refused") {
			t.Errorf("parts of %s: %v", address, err)
		}
		_ = d.Close()
	}
}

// TestWhyNobodyWasReachedIsTold: an address at which nothing listens, and one at which something else does, are told
// apart by who looks at why a node takes no work.
func TestWhyNobodyWasReachedIsTold(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it is connected to, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = silent.Close() }()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	page := httptest.NewServer(http.NotFoundHandler())
	defer page.Close()
	for address, want := range map[string]string{
		closed.Addr().String(): "connection refused", silent.Addr().String(): "has not answered in time",
		page.Listener.Addr().String(): "is no node of Loadstone: check the address, or start loadstone worker",
	} {
		d, err := NewDialer(DialOptions{Address: address, Security: Security{Plain: true}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		_, err = d.Dial(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), address) {
			t.Errorf("%s: %v, want %q", address, err, want)
		}
		_ = d.Close()
	}
}
