package httpx_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"github.com/loadstone-db/loadstone/server/httpx"
)

func write(t *testing.T, dir string, names ...string) (cert, key string) {
	t.Helper()
	c, k, err := httpx.Sign(names, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, "c.pem"), filepath.Join(dir, "k.pem")
	for path, text := range map[string][]byte{cert: c, key: k} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

// TestFilesAreReadAgain: a changed certificate is shown soon; a broken one is not, and the one before stays.
func TestFilesAreReadAgain(t *testing.T) {
	dir := t.TempDir()
	cert, key := write(t, dir, "one.example")
	var log bytes.Buffer
	f, err := httpx.OpenFiles(cert, key, zerolog.New(&log))
	if err != nil {
		t.Fatal(err)
	}
	shows := func(name string) bool {
		for range 100 {
			c, err := f.Get(nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.Leaf.VerifyHostname(name) == nil {
				return true
			}
			time.Sleep(50 * time.Millisecond)
		}
		return false
	}
	if !shows("one.example") {
		t.Error("not what is in the files")
	}
	write(t, dir, "two.example")
	if !shows("two.example") {
		t.Error("the change is not seen")
	}
	if err := os.WriteFile(key, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	for !strings.Contains(log.String(), "cannot be used") {
		time.Sleep(50 * time.Millisecond)
		if !shows("two.example") {
			t.Fatal("a broken file takes the place of a good one")
		}
	}
	write(t, dir, "three.example")
	if !shows("three.example") {
		t.Error("it is not read once it is whole again")
	}
}

func TestFilesThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	cert, key := write(t, dir, "one.example")
	other := t.TempDir()
	_, foreign := write(t, other, "two.example")
	for _, c := range [][2]string{{cert, foreign}, {cert, cert}, {filepath.Join(dir, "none"), key}, {cert, dir}} {
		if _, err := httpx.OpenFiles(c[0], c[1], zerolog.Nop()); err == nil || !strings.Contains(err.Error(), "--tls-") {
			t.Errorf("%v: %v", c, err)
		}
	}
}

// TestSelfSignedIsKept: the same one over restarts, another when a name is missing; nobody else may read it.
func TestSelfSignedIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	first, file, made, err := httpx.SelfSigned(dir, []string{"localhost", "127.0.0.1"})
	if err != nil || !made {
		t.Fatalf("%v, %v", made, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	second, _, made, err := httpx.SelfSigned(dir, []string{"127.0.0.1"})
	if err != nil || made || httpx.Fingerprint(first) != httpx.Fingerprint(second) {
		t.Errorf("another one: %v, %v", made, err)
	}
	more, _, made, err := httpx.SelfSigned(dir, []string{"127.0.0.1", "bench.example"})
	if err != nil || !made || httpx.Fingerprint(first) == httpx.Fingerprint(more) {
		t.Errorf("a name is missing: %v, %v", made, err)
	}
	if err := os.WriteFile(file, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := httpx.SelfSigned(dir, nil); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a broken file: %v", err)
	}
}

// TestRedirect sends to the port of TLS, and lets challenges pass.
func TestRedirect(t *testing.T) {
	h, err := httpx.NewHosts([]string{"bench.example"}, false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := httpx.OpenRedirect("127.0.0.1:0", "8443", h, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if strings.HasPrefix(req.URL.Path, "/.well-known/") {
				_, _ = w.Write([]byte("token"))
				return
			}
			next.ServeHTTP(w, req)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{DisableKeepAlives: true}}
	for _, c := range []struct {
		method, host, path string
		status             int
		location           string
	}{
		{"GET", "bench.example", "/runs?a=b", 308, "https://bench.example:8443/runs?a=b"},
		{"GET", "[::1]:80", "/", 308, "https://[::1]:8443/"},
		{"POST", "bench.example", "/api/runs", 400, ""},
		{"GET", "evil.example", "/", 421, ""},
		{"GET", "evil.example", "/.well-known/acme-challenge/x", 200, ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+r.Addr+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != c.status || res.Header.Get("Location") != c.location {
			t.Errorf("%s %s%s: %d %s", c.method, c.host, c.path, res.StatusCode, res.Header.Get("Location"))
		}
	}
}

// TestSilentCallersHoldNothing: who connects and never begins TLS does not hold up those who do.
func TestSilentCallersHoldNothing(t *testing.T) {
	c, _, _, err := httpx.SelfSigned(t.TempDir(), []string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	inner, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := httpx.Listener(
		inner,
		httpx.TLSConfig(func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c, nil }, nil),
		httpx.Hosts{},
	)
	defer func() { _ = l.Close() }()
	accepted := make(chan net.Conn, 2)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	for range 2 {
		conn, err := (&net.Dialer{}).DialContext(context.WithoutCancel(t.Context()), "tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		select {
		case got := <-accepted:
			_ = got.Close()
		case <-time.After(10 * time.Second):
			t.Fatal("a silent caller holds up the next one")
		}
	}
}

// TestProxies: of the addresses on the way, the rightmost one that is not a trusted proxy's is the client.
func TestProxies(t *testing.T) {
	proxies, err := httpx.ParseProxies([]string{"127.0.0.1", "10.0.0.0/8", "2001:db8::/32"})
	if err != nil {
		t.Fatal(err)
	}
	see := func(peer, forwarded, proto string) httpx.ClientInfo {
		var ctx fasthttp.RequestCtx
		var req fasthttp.Request
		req.SetRequestURI("http://bench.example/")
		for _, line := range strings.Split(forwarded, "|") {
			req.Header.Add("X-Forwarded-For", line)
		}
		req.Header.Add("X-Forwarded-Proto", proto)
		ctx.Init(&req, &net.TCPAddr{IP: net.ParseIP(peer), Port: 1}, nil)
		return proxies.Resolve(&ctx)
	}
	for _, c := range []struct{ peer, forwarded, client string }{
		{"127.0.0.1", "", "127.0.0.1"},
		{"127.0.0.1", "203.0.113.9", "203.0.113.9"},
		{"10.4.4.4", "6.6.6.6, 203.0.113.10", "203.0.113.10"},
		{"2001:db8::9", "6.6.6.6, 203.0.113.11, 10.1.2.3", "203.0.113.11"},
		{"127.0.0.1", "6.6.6.6|203.0.113.11|10.1.2.3", "203.0.113.11"},
		{"127.0.0.1", "6.6.6.6, 203.0.113.12:4711 , 10.1.2.3,2001:db8::7", "203.0.113.12"},
		{"127.0.0.1", "[2001:db9::1]:99", "2001:db9::1"},
		{"127.0.0.1", "203.0.113.13, rubbish, 10.1.2.4", "10.1.2.4"},
		{"127.0.0.1", "::ffff:203.0.113.14", "203.0.113.14"},
		{"127.0.0.1", "10.0.0.1, 10.0.0.2", "10.0.0.1"},
		{"203.0.113.20", "6.6.6.6", "203.0.113.20"},
		{"::ffff:10.0.0.9", "6.6.6.6", "6.6.6.6"},
	} {
		if got := see(c.peer, c.forwarded, "https"); got.IP != c.client || got.Secure != (c.peer != "203.0.113.20") {
			t.Errorf("%s says %q: %+v, want %s", c.peer, c.forwarded, got, c.client)
		}
	}
	if see("127.0.0.1", "", "https, http").Secure {
		t.Error("who came first is believed")
	}
}

func TestProxiesThatAreRefused(t *testing.T) {
	for _, text := range []string{"0.0.0.0/0", "::/0", "proxy.example", "10.0.0.0/33", "", "fe80::1%eth0",
		"::ffff:0:0/96"} {
		if p, err := httpx.ParseProxies([]string{text}); err == nil {
			t.Errorf("%q: %v", text, p)
		}
	}
	p, err := httpx.ParseProxies([]string{"::ffff:10.0.0.0/104", " 10.9.9.9/8 "})
	if err != nil || !slices.Equal([]string{p[0].String(), p[1].String()}, []string{"10.0.0.0/8", "10.0.0.0/8"}) {
		t.Errorf("%v, %v", p, err)
	}
	for _, text := range []string{"a:80", "http://a", "a/b", "", "*.*"} {
		if _, err := httpx.NewHosts([]string{text}, false); err == nil {
			t.Errorf("host %q", text)
		}
	}
}
