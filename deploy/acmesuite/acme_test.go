package acmesuite

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/letsencrypt/challtestsrv"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
)

const domain = "bench.loadstone.example"

// authority is a Pebble that looks for domains on loopback, at these ports.
type authority struct {
	directory string
	caFile    string
	roots     *x509.CertPool
}

func freePort(t *testing.T, network string) (port int) {
	t.Helper()
	if network == "udp" {
		c, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		return c.LocalAddr().(*net.UDPAddr).Port
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

func address(port int) string { return (&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}).String() }

func startAuthority(t *testing.T, httpPort, tlsPort int) *authority {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	resolver := address(freePort(t, "udp"))
	names, err := challtestsrv.New(challtestsrv.Config{DNSAddrs: []string{resolver}, Log: log.New(io.Discard, "", 0)})
	if err != nil {
		t.Fatal(err)
	}
	names.SetDefaultDNSIPv4("127.0.0.1")
	names.SetDefaultDNSIPv6("")
	go names.Run()
	t.Cleanup(names.Shutdown)
	logger := log.New(testWriter{t}, "pebble ", 0)
	store := db.NewMemoryStore()
	profiles := map[string]ca.Profile{"default": {ValidityPeriod: 90 * 24 * 3600}}
	issuer := ca.New(logger, store, "", "ecdsa", 0, 1, profiles)
	front := wfe.New(logger, store, va.New(logger, httpPort, tlsPort, false, resolver, store), issuer,
		[]string{"pebble.letsencrypt.org"}, false, false, 1, 1)
	server := httptest.NewUnstartedServer(front.Handler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t)}}
	server.StartTLS()
	t.Cleanup(server.Close)
	a := &authority{directory: server.URL + "/dir", caFile: filepath.Join(t.TempDir(), "ca.pem"),
		roots: x509.NewCertPool()}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.TLS.Certificates[0].Certificate[0]})
	if err := os.WriteFile(a.caFile, text, 0o600); err != nil {
		t.Fatal(err)
	}
	a.roots.AddCert(issuer.GetRootCert(0).Cert)
	return a
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) { return len(p), nil }

func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pebble"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// serve starts the program; end stops it.
func serve(t *testing.T, data string, args ...string) (out *output, end func()) {
	t.Helper()
	program := os.Getenv("LOADSTONE_PROGRAM")
	if program == "" {
		t.Skip("LOADSTONE_PROGRAM names no program: make check-acme does")
	}
	out = &output{}
	cmd := exec.Command(program, append([]string{"serve", "--data-dir", data, "--calibrate", "off", "--log-format",
		"json"}, args...)...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	end = sync.OnceFunc(func() { _ = cmd.Process.Signal(os.Interrupt); <-ended })
	t.Cleanup(end)
	return out, end
}

// shown is the certificate that a client of the domain gets, verified; nil until there is one.
func shown(t *testing.T, a *authority, at string) *x509.Certificate {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	d := tls.Dialer{Config: &tls.Config{ServerName: domain, RootCAs: a.roots, NextProtos: []string{"http/1.1"}}}
	conn, err := d.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0]
}

func await(t *testing.T, a *authority, at string, out *output) *x509.Certificate {
	t.Helper()
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if c := shown(t, a, at); c != nil {
			return c
		}
	}
	t.Fatalf("no certificate of the authority: %s", out)
	return nil
}

// TestChallenges gets a certificate by each of the two ways in which an authority can see that the name leads here, and
// keeps it over a restart without the authority.
func TestChallenges(t *testing.T) {
	for name, byHTTP := range map[string]bool{"TLS-ALPN-01": false, "HTTP-01": true} {
		t.Run(name, func(t *testing.T) {
			data := t.TempDir()
			if err := os.Chmod(data, 0o755); err != nil {
				t.Fatal(err)
			}
			listen, plain, seen := freePort(t, "tcp"), freePort(t, "tcp"), 0
			args := []string{"--listen", address(listen), "--tls-domain", domain}
			if seen = listen; byHTTP {
				seen = freePort(t, "tcp") // nobody is there: the first challenge fails
				args = append(args, "--http-listen", address(plain))
			}
			a := startAuthority(t, plain, seen)
			args = append(args, "--tls-acme-directory", a.directory, "--tls-acme-ca", a.caFile)
			out, end := serve(t, data, args...)
			first := await(t, a, address(listen), out)
			client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{ServerName: domain,
				RootCAs: a.roots}}}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address(listen)+"/healthz", nil)
			req.Host = domain
			res, err := client.Do(req)
			if err != nil || res.StatusCode != http.StatusOK || res.Header.Get("Strict-Transport-Security") == "" {
				t.Fatalf("%v, %v", res, err)
			}
			_ = res.Body.Close()
			if !strings.Contains(out.String(), "https://"+domain) {
				t.Errorf("the link is not of the domain: %s", out)
			}
			// The operator's own commands need no name.
			token := exec.Command(os.Getenv("LOADSTONE_PROGRAM"), "signin", "--data-dir", data)
			if text, err := token.CombinedOutput(); err != nil || !strings.Contains(string(text), "https://"+domain) {
				t.Errorf("signin: %v: %s", err, text)
			}
			// Another name is none of its.
			conn, err := tls.Dial("tcp", address(listen), &tls.Config{ServerName: "other.example", RootCAs: a.roots})
			if err == nil {
				_ = conn.Close()
				t.Error("a certificate for any name")
			}
			end()
			for i, arg := range args {
				if arg == "--tls-acme-directory" {
					args[i+1] = "https://" + address(freePort(t, "tcp")) + "/dir"
				}
			}
			out, _ = serve(t, data, args...)
			if again := await(t, a, address(listen), out); !again.Equal(first) {
				t.Error("another certificate after the restart")
			}
		})
	}
}
