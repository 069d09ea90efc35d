package egress_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/egress/egresstest"
)

func policy(t *testing.T, list ...string) *egress.Policy {
	t.Helper()
	p, err := egress.Parse(list)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestNeverReached: whatever the list says, and however the address is written.
func TestNeverReached(t *testing.T) {
	for _, p := range []*egress.Policy{nil, policy(t), policy(t, "0.0.0.0/0", "::/0", "metadata.google.internal")} {
		for _, at := range []string{"169.254.169.254:80", "169.254.0.1:5432", "[fe80::1]:5432", "[fe80::1%eth0]:5432",
			"[fd00:ec2::254]:80", "[::ffff:169.254.169.254]:80", "100.100.100.200:80", "0.0.0.0:5432", "[::]:5432",
			"224.0.0.1:80", "[64:ff9b::a9fe:a9fe]:80", "[::a9fe:a9fe]:80",
			"[fd00:ec2::23]:80", "[fd20:ce::254]:80", "168.63.129.16:80", "[2002:a9fe:a9fe::1]:80",
			"[64:ff9b:1:a9fe:a9:fe00::]:80"} {
			if err := p.Check("db.example", netip.MustParseAddrPort(at)); !errors.Is(err, egress.ErrRefused) ||
				!engine.HasCode(err, engine.CodeTarget) {
				t.Errorf("%s: %v", at, err)
			}
		}
		if p.Check("metadata.google.internal", netip.MustParseAddrPort("10.0.0.1:80")) == nil {
			t.Error("the name of a cloud's metadata")
		}
	}
	for _, at := range []string{"127.0.0.1:1", "[::1]:1", "10.0.0.1:5432", "192.0.2.1:443", "[fd00::1]:5432",
		"[2002:c000:201::1]:1", "[64:ff9b::a00:1]:1"} {
		if err := (*egress.Policy)(nil).Check("", netip.MustParseAddrPort(at)); err != nil {
			t.Errorf("%s: %v", at, err)
		}
	}
}

func TestTheListIsAllThereIs(t *testing.T) {
	p := policy(t, "10.0.0.0/8", "192.0.2.7:5432", "db.example.com:5432", "*.warehouse.example", "[fd00::7]:443",
		"::ffff:203.0.113.0/120")
	for _, c := range []struct {
		name, at string
		allowed  bool
	}{
		{"", "10.9.9.9:1", true}, {"x", "[::ffff:10.9.9.9]:1", true}, {"", "11.0.0.1:1", false},
		{"", "192.0.2.7:5432", true}, {"", "192.0.2.7:5433", false},
		{"DB.example.com.", "198.51.100.1:5432", true}, {"db.example.com", "198.51.100.1:5433", false},
		{"xdb.example.com", "198.51.100.1:5432", false}, {"db.example.com.evil.example", "198.51.100.1:5432", false},
		{"a.warehouse.example", "198.51.100.1:443", true}, {"warehouse.example", "198.51.100.1:443", false},
		{"", "[fd00::7]:443", true}, {"", "[fd00::8]:443", false}, {"", "127.0.0.1:5432", false},
		{"", "203.0.113.9:1", true},
	} {
		if err := p.Check(c.name, netip.MustParseAddrPort(c.at)); (err == nil) != c.allowed {
			t.Errorf("%s %s: %v", c.name, c.at, err)
		} else if err != nil && !strings.Contains(engine.AsError(err).Hint, egress.Flag) {
			t.Errorf("%s: hint %q", c.at, engine.AsError(err).Hint)
		}
	}
}

func TestListsThatAreRefused(t *testing.T) {
	for _, text := range []string{"", "10.0.0.0/33", "10.0.0", "a b", "http://a", "a:0", "a:70000", "a:b", "..", "a..b",
		"fe80::1%eth0", "10.0.0.1/"} {
		if _, err := egress.Parse([]string{text}); !engine.HasCode(err, engine.CodeInvalid) ||
			!strings.Contains(err.Error(), egress.Flag) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestRedirectsAreDialledToo: what is judged is the address of each connection, of whatever name or redirect.
func TestRedirectsAreDialledToo(t *testing.T) {
	var reached bool
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer inside.Close()
	front := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusFound))
	defer front.Close()
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(front.URL, "http://"))
	p := policy(t, "localhost:"+port)
	client := &http.Client{Transport: &http.Transport{DialContext: p.Dial, DisableKeepAlives: true}}
	res, err := client.Get("http://localhost:" + port)
	if err == nil {
		_ = res.Body.Close()
	}
	if !errors.Is(err, egress.ErrRefused) || reached {
		t.Errorf("a redirect led inside: %v, %v", reached, err)
	}
	p = policy(t, "127.0.0.0/8")
	client = &http.Client{Transport: &http.Transport{DialContext: p.Dial, DisableKeepAlives: true}}
	if res, err = client.Get("http://localhost:" + port); err != nil || !reached {
		t.Fatalf("what is allowed is not reached: %v", err)
	}
	_ = res.Body.Close()
}

// TestANameThatLeadsToTheLink: what is judged is what the name led to, when it is dialled.
func TestANameThatLeadsToTheLink(t *testing.T) {
	egresstest.StubDNS(t, egresstest.Metadata)
	for _, p := range []*egress.Policy{egress.Unrestricted(), policy(t, "db.example.com")} {
		if _, err := p.Dial(t.Context(), "tcp", "db.example.com:80"); !errors.Is(err, egress.ErrRefused) {
			t.Errorf("dialled: %v", err)
		}
	}
}

func TestInternal(t *testing.T) {
	for _, at := range []string{"127.0.0.1", "127.9.9.9", "::1", "10.0.0.7", "172.16.0.1", "192.168.1.1", "100.64.0.1",
		"fd00::7", "::ffff:10.0.0.7", "64:ff9b::a00:7", "2002:a00:7::1", "169.254.1.1", "fe80::1", "0.0.0.0"} {
		if !egress.IsInternal(netip.MustParseAddr(at)) {
			t.Errorf("%s is no internal address", at)
		}
	}
	for _, at := range []string{"8.8.8.8", "172.32.0.1", "2606:4700::1111", "64:ff9b::808:808", "100.128.0.1"} {
		if egress.IsInternal(netip.MustParseAddr(at)) {
			t.Errorf("%s is an internal address", at)
		}
	}
}
