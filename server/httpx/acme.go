package httpx

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/crypto/acme"
	"golang.org/x/crypto/acme/autocert"
	"golang.org/x/net/idna"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
)

// ACME says of whom certificates are asked, and for which names.
type ACME struct {
	Domains []string
	Email   string
	// Directory is the address of the authority's directory.
	Directory string
	// CA are the authorities in PEM that the directory's own certificate may be of; nil means the system's.
	CA []byte
	// Dir keeps the account's key and the certificates.
	Dir string
}

// ACMEProtocol is the protocol in TLS by which an authority sees that a name leads here.
const ACMEProtocol = acme.ALPNProto

// acmeTimeout bounds one request to the authority.
const acmeTimeout = 30 * time.Second

// OpenACME prepares to ask for certificates: when a client names a domain, and there is none that is good yet.
func OpenACME(o ACME) (*autocert.Manager, error) {
	at, err := url.Parse(o.Directory)
	if err != nil || at.Scheme != "https" || at.Host == "" {
		return nil, engine.InvalidField("--tls-acme-directory", fmt.Sprintf("%q is no address of https", o.Directory),
			"write https://…, or leave it out for Let's Encrypt")
	}
	if egress.IsForbiddenHost(at.Hostname()) {
		return nil, egress.InvalidFlag("--tls-acme-directory", at.Hostname())
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: egress.Unrestricted().Dial,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}, IdleConnTimeout: acmeTimeout}
	if o.CA != nil {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(o.CA) {
			return nil, engine.InvalidField("--tls-acme-ca", "has no certificate", "name a file with authorities in PEM")
		}
		transport.TLSClientConfig.RootCAs = pool
	}
	return &autocert.Manager{
		Prompt: autocert.AcceptTOS, Cache: autocert.DirCache(o.Dir), Email: o.Email,
		HostPolicy: autocert.HostWhitelist(o.Domains...),
		Client: &acme.Client{DirectoryURL: o.Directory, UserAgent: "Loadstone",
			HTTPClient: &http.Client{Transport: transport, Timeout: acmeTimeout}},
	}, nil
}

// CheckDomain returns a domain as DNS writes it.
func CheckDomain(name string) (string, error) {
	ascii, err := idna.Lookup.ToASCII(strings.TrimSuffix(strings.TrimSpace(name), "."))
	if err != nil || net.ParseIP(name) != nil || !strings.Contains(ascii, ".") || strings.ContainsAny(ascii, ":/*") {
		return "", engine.InvalidField("--tls-domain", fmt.Sprintf("%q is no domain that can have a certificate", name),
			"write the name that people open, such as bench.example.com: no address, port or wildcard")
	}
	return ascii, nil
}

// PrefetchCertificates asks for the certificates of the domains before anybody opens the page, so that what stands in
// the way is in the log. It ends when all have one, with ctx, or after a failure of each: later ones are asked for by
// handshakes.
func PrefetchCertificates(ctx context.Context, m *autocert.Manager, domains []string, log zerolog.Logger) {
	for _, domain := range domains {
		if ctx.Err() != nil {
			return
		}
		c, err := m.GetCertificate(&tls.ClientHelloInfo{ServerName: domain, SupportedVersions: []uint16{tls.VersionTLS13},
			SignatureSchemes: []tls.SignatureScheme{tls.ECDSAWithP256AndSHA256},
			CipherSuites:     []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256}})
		if err != nil {
			log.Warn().Err(err).Str("domain", domain).Msg("there is no certificate for a domain yet: its name must lead " +
				"here, and the authority must reach port 443, or port 80 of --http-listen; it is asked again when the page " +
				"is opened")
			continue
		}
		log.Info().Str("domain", domain).Str("fingerprint", Fingerprint(c)).Time("not_after", c.Leaf.NotAfter).
			Msg("there is a certificate for a domain")
	}
}
