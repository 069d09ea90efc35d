package cli

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// TestServeOverTLS: the program with a certificate of its own, its operator's commands, a command of somebody else who
// has the certificate, and a plain probe; and the same fingerprint after a restart.
func TestServeOverTLS(t *testing.T) {
	t.Parallel()
	p := clitest.NewProgram(t)
	fingerprint := regexp.MustCompile(`SHA-256 +((?:[0-9A-F]{2}:){31}[0-9A-F]{2})`)
	var seen []string
	for range 2 {
		s := clitest.Launch(t, "serve", "--data-dir", p.Path("data"), "--listen", "127.0.0.1:0", "--tls-self-signed")
		clitest.WaitFor(t, clitest.StartTimeout, "the fingerprint",
			func() bool { return fingerprint.MatchString(s.Out.String()) })
		seen = append(seen, fingerprint.FindStringSubmatch(s.Out.String())[1])
		code, link := p.Command("signin", "--data-dir", p.Path("data"))
		if code != 0 || !strings.HasPrefix(link, "https://127.0.0.1:") {
			t.Fatalf("signin: %d %s", code, link)
		}
		link, _, _ = strings.Cut(link, "\n")
		at, err := url.Parse(link)
		if err != nil {
			t.Fatal(err)
		}
		base := "https://" + at.Host
		ca := filepath.Join(p.Path("data"), "tls", "self-signed.pem")
		code, token := p.Command("token", "x", "--data-dir", p.Path("data"), "--scope", "admin")
		token = regexp.MustCompile(`lst_\S+`).FindString(token)
		if code != 0 || token == "" {
			t.Fatalf("token: %d %s", code, token)
		}
		list := []string{"node", "list", "--server", base, "--token", token}
		if code, text := p.Command(append(list, "--server-ca", ca)...); code != 0 {
			t.Errorf("with the certificate: %d %s", code, text)
		}
		if code, text := p.Command(list...); code == 0 || !strings.Contains(text, "--server-ca") {
			t.Errorf("without the certificate: %d %s", code, text)
		}
		if code, text := p.Command("health", "--listen", at.Host); code != 0 {
			t.Errorf("health: %d %s", code, text)
		}
		if code, text := p.Command("node", "list", "--server", base, "--token", "lst_of_another", "--server-ca", ca); code !=
			terminal.ExitUsage || !strings.Contains(text, base+" does not know this token") ||
			!strings.Contains(text, "LOADSTONE_TOKEN") || strings.Contains(text, "browser") {
			t.Errorf("a token of another server: %d %s", code, text)
		}
		pem, err := os.ReadFile(ca)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		jar, _ := cookiejar.New(nil)
		client := &clitest.LiveServer{Process: s, T: t, Base: base, HTTP: &http.Client{Jar: jar, Timeout: time.Minute,
			Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}}
		if status, body := client.Send("POST", "/api/auth/signin", `{"token":"`+at.Query().Get("token")+`"}`); status != 200 {
			t.Fatalf("signing in: %d %s", status, body)
		}
		client.MustGet("/api/runs")
		client.Stop()
	}
	if seen[0] != seen[1] {
		t.Errorf("another certificate after the restart: %v", seen)
	}
}

// TestServeRefusesToBeSeenThrough: what cannot work together, and plain HTTP where others can listen in.
func TestServeRefusesToBeSeenThrough(t *testing.T) {
	t.Parallel()
	p := clitest.NewProgram(t)
	cert, key, err := httpx.Sign([]string{"a.example"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := p.Write("c.pem", string(cert)), p.Write("k.pem", string(key))
	for _, c := range []struct {
		args string
		says string
	}{
		{"--listen 0.0.0.0:0", "--insecure-http"},
		{"--listen :0", "--tls-self-signed"},
		{"--listen [::]:0", "--tls-domain"},
		{"--listen 192.0.2.1:8080", "--tls-cert"},
		{"--listen nowhere", "host:port"},
		{"--tls-cert " + certFile, "belong together"},
		{"--tls-key " + keyFile, "belong together"},
		{"--tls-cert " + certFile + " --tls-key " + certFile, "cannot be used together"},
		{"--tls-cert /none --tls-key " + keyFile, "cannot be read"},
		{"--tls-self-signed --tls-domain a.example", "choose one"},
		{"--tls-self-signed --insecure-http", "leave one"},
		{"--tls-domain 127.0.0.1", "no domain"},
		{"--tls-domain *.example.com", "no domain"},
		{"--tls-domain bench", "no domain"},
		{"--tls-email a@b.example", "--tls-domain"},
		{"--tls-domain a.example --tls-acme-directory http://x/dir", "https"},
		{"--tls-domain a.example --tls-acme-ca " + keyFile, "--tls-acme-ca"},
		{"--http-listen 127.0.0.1:0", "no TLS"},
		{"--trusted-proxies 0.0.0.0/0", "trusts everybody"},
		{"--trusted-proxies proxy.example", "no address"},
		{"--allowed-hosts http://a", "no name"},
		{"--public-url ftp://a", "no address"},
		{"--security-contact security@example.com", "person"},
		{"--security-contact https://", "person"},
		{"--security-contact javascript:alert(1)", "person"},
	} {
		code, text := p.Command(append([]string{"serve", "--data-dir", p.Path("data")}, strings.Fields(c.args)...)...)
		if code == 0 || !strings.Contains(text, c.says) {
			t.Errorf("%s: %d %s, want %q", c.args, code, text, c.says)
		}
	}
}
