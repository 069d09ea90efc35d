package server_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/loadstone-db/loadstone/server"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// loopbackProxy trusts who asks in tests.
func loopbackProxy(t *testing.T) httpx.Proxies {
	t.Helper()
	p, err := httpx.ParseProxies([]string{"127.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func hosts(t *testing.T, names ...string) httpx.Hosts {
	t.Helper()
	h, err := httpx.NewHosts(names, false)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// overTLS is a server that speaks TLS, and what trusts it.
func overTLS(t *testing.T, change ...func(*server.Options)) (*bench, *tls.Config) {
	t.Helper()
	c, _, _, err := httpx.SelfSigned(t.TempDir(), []string{"127.0.0.1", "load.example"})
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(c.Leaf)
	b := start(t, append(change, func(o *server.Options) {
		o.TLS = httpx.TLSConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c, nil }, nil)
		o.Hosts = hosts(t, "load.example")
	})...)
	trust := &tls.Config{RootCAs: pool}
	b.client.Transport = &http.Transport{DisableCompression: true, TLSClientConfig: trust}
	return b, trust
}

// TestOverTLS: the API, the session, the page's headers and a socket.
func TestOverTLS(t *testing.T) {
	t.Parallel()
	b, trust := overTLS(t)
	if !strings.HasPrefix(b.srv.URL(), "https://") {
		t.Errorf("URL %s", b.srv.URL())
	}
	b.do("GET", "/api/auth/me", nil).want(t, 200)
	cookie := b.session()
	if cookie.Name != "__Host-loadstone_session" || !cookie.Secure || !cookie.HttpOnly || cookie.Path != "/" ||
		cookie.Domain != "" {
		t.Errorf("cookie %s", cookie)
	}
	with := []string{"Authorization", "", "Cookie", cookie.Name + "=" + cookie.Value, "Origin", b.base}
	b.do("POST", "/api/auth/tokens", map[string]any{"name": "x"}, with...).want(t, 201)
	// Only the name with the prefix counts: a page without TLS can set the other one.
	b.do("GET", "/api/auth/me", nil, "Authorization", "", "Cookie", "loadstone_session="+cookie.Value).want(t, 401)
	// An origin of http is another one.
	b.do("POST", "/api/auth/tokens", map[string]any{"name": "x"}, append(with[:4:4], "Origin",
		strings.Replace(b.base, "https", "http", 1))...).want(t, 403)
	// Browsers keep HSTS for all ports of a name, so loopback has none.
	if h := b.do("GET", "/", nil).Header.Get("Strict-Transport-Security"); h != "" {
		t.Errorf("loopback has %q", h)
	}
	if h := b.do("GET", "/", nil, "Host", "load.example").Header.Get("Strict-Transport-Security"); h == "" {
		t.Error("no Strict-Transport-Security")
	}
	id := b.liveRun()
	d := websocket.Dialer{HandshakeTimeout: 5 * time.Second, TLSClientConfig: trust}
	conn, _, err := d.Dial("ws"+strings.TrimPrefix(b.base, "http")+"/ws/runs/"+id,
		http.Header{"Cookie": {cookie.Name + "=" + cookie.Value}, "Origin": {b.base}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if u := next(t, conn); u.Data.Elapsed != 1 {
		t.Errorf("first message %v", u.Data.Elapsed)
	}
	b.runs.publish(payload(id, 2))
	if u := next(t, conn); u.Data.Elapsed != 2 {
		t.Errorf("second message %v", u.Data.Elapsed)
	}
}

// TestOldTLSIsRefused: 1.2 at least.
func TestOldTLSIsRefused(t *testing.T) {
	t.Parallel()
	b, trust := overTLS(t)
	for version, refused := range map[uint16]bool{tls.VersionTLS11: true, tls.VersionTLS12: false,
		tls.VersionTLS13: false} {
		config := trust.Clone()
		config.MinVersion, config.MaxVersion = version, version
		conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", strings.TrimPrefix(b.base, "https://"))
		if (err != nil) != refused {
			t.Errorf("%s: %v", tls.VersionName(version), err)
		}
		if err == nil {
			_ = conn.Close()
		}
	}
}

// TestPlainHTTPIsSentToTLS: on the port of TLS, who reads is redirected, who brings something is told.
func TestPlainHTTPIsSentToTLS(t *testing.T) {
	t.Parallel()
	b, _ := overTLS(t)
	addr := strings.TrimPrefix(b.base, "https://")
	for request, says := range map[string][]string{
		"GET /runs?x=1 HTTP/1.1\r\nHost: " + addr + "\r\n\r\n": {" 308 ",
			"Location: https://" + addr + "/runs?x=1\r\n"},
		"GET http://evil.example/a HTTP/1.1\r\nHost: load.example\r\n\r\n": {" 400 "},
		"GET //evil.example/a HTTP/1.1\r\nHost: load.example\r\n\r\n": {" 308 ",
			"https://load.example//evil.example/a"},
		"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n":                               {" 400 ", "https"},
		"POST /api/runs HTTP/1.1\r\nHost: " + addr + "\r\nContent-Length: 0\r\n\r\n": {" 400 ", "in the clear"},
	} {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(bufio.NewReader(conn))
		for _, want := range says {
			if !strings.Contains(string(text), want) {
				t.Errorf("%q: %q, want %q", request, text, want)
			}
		}
		_ = conn.Close()
	}
	b.do("GET", "/api/auth/me", nil).want(t, 200) // the listener lives
}

// TestAnotherHost: names that were made to lead here are refused, on every address.
func TestAnotherHost(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) { o.Hosts = hosts(t, "load.example", ".bench.example", "192.0.2.7") })
	_, port, _ := strings.Cut(strings.TrimPrefix(b.base, "http://"), ":")
	for _, host := range []string{"localhost", "127.0.0.1", "127.5.5.5:99", "[::1]:" + port, "load.example:" + port,
		"LOAD.example.", "a.bench.example", "x.localhost", "192.0.2.7"} {
		b.do("GET", "/api/auth/me", nil, "Host", host).want(t, 200)
	}
	for _, host := range []string{"evil.example", "load.example.evil.example", "192.0.2.8", "bench.example",
		"127.0.0.1.nip.io",
		"xload.example", "[2001:db8::1]", "localhost.evil.example", "10.0.0.1:" + port} {
		for _, path := range []string{"/", "/healthz", "/api/auth/me", "/ws/runs/x", "/metrics"} {
			p := b.do("GET", path, nil, "Host", host).problem(t, http.StatusMisdirectedRequest, httpx.CodeMisdirected)
			if !strings.Contains(p.Hint, "--allowed-hosts") {
				t.Errorf("hint %q", p.Hint)
			}
		}
	}
	// What a stranger says of proxies does not help.
	b.do("GET", "/", nil, "Host", "evil.example", "X-Forwarded-Host", "load.example").want(t, 421)
}

// TestBehindProxies: TLS and the name are those that a trusted proxy says, and nobody else.
func TestBehindProxies(t *testing.T) {
	t.Parallel()
	b := start(t, func(o *server.Options) { o.Proxies, o.Hosts = loopbackProxy(t), hosts(t, "load.example") })
	unknown := start(t)
	const hsts = "Strict-Transport-Security"
	message := []string{"X-Forwarded-Proto", "https", "X-Forwarded-Host", "load.example"}
	if h := b.do("GET", "/", nil, message...).Header.Get(hsts); h == "" {
		t.Error("no Strict-Transport-Security behind a proxy that speaks TLS")
	}
	if h := unknown.do("GET", "/", nil, message...).Header.Get(hsts); h != "" {
		t.Error("a stranger is believed")
	}
	b.do("GET", "/", nil, "X-Forwarded-Host", "evil.example").want(t, 421)
	b.do("GET", "/", nil, "Host", "evil.example", "X-Forwarded-Host", "load.example").want(t, 421)
	id := b.liveRun()
	for origin, status := range map[string]int{b.base: 101, strings.Replace(b.base, "http", "https", 1): 403, "null": 403,
		b.base + ".evil.example": 403} {
		conn, res, err := b.dial("/ws/runs/"+id, "Origin", origin)
		if res == nil || res.StatusCode != status {
			t.Errorf("a socket from %s: %v, %v", origin, res, err)
		}
		if conn != nil {
			_ = conn.Close()
		}
	}
}
