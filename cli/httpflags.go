// This part is how a server meets the network, from the command line: the flags of TLS, proxies and names, and
// the file by which the commands of its operator find it.

package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/crypto/acme/autocert"

	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// HTTPFlags say how the server meets the network.
type HTTPFlags struct {
	SecurityContact  string        `name:"security-contact" placeholder:"URI" env:"LOADSTONE_SECURITY_CONTACT" help:"Security contact for /.well-known/security.txt: mailto:security@example.com, or a web address."`
	SessionIdle      time.Duration `name:"session-idle" default:"12h" env:"LOADSTONE_SESSION_IDLE" help:"End idle browser sessions after this time; 0 keeps them for 14 days."`
	PublicURL        string        `name:"public-url" placeholder:"URL" env:"LOADSTONE_PUBLIC_URL" help:"Address of the server in links."`
	TLSCert          string        `name:"tls-cert" placeholder:"FILE" env:"LOADSTONE_TLS_CERT" help:"TLS certificate with its chain, PEM; reread when the file changes."`
	TLSKey           string        `name:"tls-key" placeholder:"FILE" env:"LOADSTONE_TLS_KEY" help:"Key of --tls-cert, PEM."`
	TLSSelfSigned    bool          `name:"tls-self-signed" env:"LOADSTONE_TLS_SELF_SIGNED" help:"Use a self-signed certificate, kept in the data directory; its fingerprint is printed."`
	TLSDomain        []string      `name:"tls-domain" placeholder:"NAME" env:"LOADSTONE_TLS_DOMAIN" help:"Get certificates for these names from Let's Encrypt or --tls-acme-directory; you accept its terms of service."`
	TLSEmail         string        `name:"tls-email" placeholder:"ADDRESS" env:"LOADSTONE_TLS_EMAIL" help:"Contact address for the certificate authority."`
	TLSACMEDirectory string        `name:"tls-acme-directory" placeholder:"URL" env:"LOADSTONE_TLS_ACME_DIRECTORY" help:"ACME directory of another authority (default: Let's Encrypt)."`
	TLSACMECA        string        `name:"tls-acme-ca" placeholder:"FILE" env:"LOADSTONE_TLS_ACME_CA" help:"PEM file of the directory's certificate authority (default: the system's)."`
	HTTPListen       string        `name:"http-listen" placeholder:"HOST:PORT" env:"LOADSTONE_HTTP_LISTEN" help:"Also listen for plain HTTP, usually :80: redirects to https and answers ACME challenges."`
	InsecureHTTP     bool          `name:"insecure-http" env:"LOADSTONE_INSECURE_HTTP" help:"Allow plain HTTP beyond loopback: behind a TLS proxy, or on a trusted network."`
	TrustedProxies   []string      `name:"trusted-proxies" placeholder:"CIDR" env:"LOADSTONE_TRUSTED_PROXIES" help:"Trusted proxies (addresses or CIDRs); their X-Forwarded-* headers are used."`
	AllowedHosts     []string      `name:"allowed-hosts" placeholder:"NAME" env:"LOADSTONE_ALLOWED_HOSTS" help:"Further host names to accept, without a port; .example.com for all below, * for all (default: loopback, this machine, --public-url, --tls-domain, addresses)."`
}

// minSessionIdle is the shortest time after which an idle session ends: uses are noted once a minute.
const minSessionIdle = time.Minute

// letsEncrypt is the directory that is asked when no other is named.
const letsEncrypt = "https://acme-v02.api.letsencrypt.org/directory"

// HTTPEndpoint is what a server meets the network with.
type HTTPEndpoint struct {
	// TLS is nil where the server speaks plain HTTP.
	TLS     *tls.Config
	Proxies httpx.Proxies
	Hosts   httpx.Hosts
	// PublicURL is the address for links, "" for the listener's own.
	PublicURL string
	// Notes are lines for the operator.
	Notes []string

	flags    HTTPFlags
	manager  *autocert.Manager // nil without --tls-domain
	operator []byte            // certificate of the server's own commands, nil without TLS
	log      zerolog.Logger
}

// Open reads the flags of a server that is to listen on an address.
func (f HTTPFlags) Open(listen, dataDir string, log zerolog.Logger) (*HTTPEndpoint, error) {
	if f.SessionIdle < 0 || f.SessionIdle > 0 && f.SessionIdle < minSessionIdle {
		return nil, engine.InvalidField("--session-idle", "is "+f.SessionIdle.String(), "1m or more; 0 for no limit")
	}
	d := &HTTPEndpoint{flags: f, PublicURL: f.PublicURL, log: log}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, engine.InvalidField("--listen", fmt.Sprintf("%q is not host:port", listen), "for example 127.0.0.1:8080")
	}
	public, err := f.public()
	if err != nil {
		return nil, err
	}
	for i, name := range f.TLSDomain {
		if f.TLSDomain[i], err = httpx.CheckDomain(name); err != nil {
			return nil, err
		}
	}
	if d.Proxies, err = httpx.ParseProxies(f.TrustedProxies); err != nil {
		return nil, err
	}
	beyond := !httpx.Loopback(host)
	names := f.names(host, public)
	if d.Hosts, err = httpx.NewHosts(slices.Concat(names, f.AllowedHosts), beyond); err != nil {
		return nil, err
	}
	if err := f.contact(); err != nil {
		return nil, err
	}
	if err := f.check(listen, beyond); err != nil {
		return nil, err
	}
	if err := d.secure(filepath.Join(dataDir, "tls"), names); err != nil {
		return nil, err
	}
	if d.PublicURL == "" && len(f.TLSDomain) > 0 {
		d.PublicURL = "https://" + f.TLSDomain[0]
		if port != "443" && port != "0" {
			d.PublicURL += ":" + port
		}
	}
	return d, nil
}

// public is the host of --public-url, "" without one.
func (f HTTPFlags) public() (string, error) {
	if f.PublicURL == "" {
		return "", nil
	}
	u, err := url.Parse(f.PublicURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return "", engine.InvalidField("--public-url", "is no address of a page", "write https://bench.example.com")
	}
	return u.Hostname(), nil
}

// contact refuses a --security-contact that RFC 9116 does not know.
func (f HTTPFlags) contact() error {
	if f.SecurityContact == "" {
		return nil
	}
	u, err := url.Parse(f.SecurityContact)
	if err == nil && !strings.ContainsAny(f.SecurityContact, "\r\n ") &&
		(u.Scheme == "https" && u.Host != "" && u.User == nil ||
			(u.Scheme == "mailto" || u.Scheme == "tel") && u.Opaque != "") {
		return nil
	}
	return engine.InvalidField("--security-contact", "is nothing that a person can be reached by",
		"write mailto:security@example.com or https://example.com/security")
}

// names are those by which people may reach the server as far as flags and the machine say.
func (f HTTPFlags) names(host, public string) []string {
	names := slices.Clone(f.TLSDomain)
	if public != "" {
		names = append(names, public)
	}
	if ip := net.ParseIP(host); host != "" && (ip == nil || !ip.IsUnspecified()) {
		names = append(names, host)
	}
	// The name of the machine can be one that DNS does not take; it is left out then.
	if own, err := os.Hostname(); err == nil && !httpx.Loopback(host) {
		if _, err := httpx.NewHosts([]string{own}, false); err == nil && own != "*" {
			names = append(names, strings.ToLower(own))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// check refuses flags that do not go together.
func (f HTTPFlags) check(listen string, beyond bool) error {
	paths := 0
	for _, chosen := range []bool{f.TLSCert != "" || f.TLSKey != "", f.TLSSelfSigned, len(f.TLSDomain) > 0} {
		if chosen {
			paths++
		}
	}
	switch {
	case paths > 1:
		return engine.InvalidField("--tls-cert", "--tls-self-signed and --tls-domain are given together",
			"choose one of them")
	case (f.TLSCert == "") != (f.TLSKey == ""):
		return engine.InvalidField("--tls-cert", "and --tls-key belong together", "give both")
	case len(f.TLSDomain) == 0 && (f.TLSEmail != "" || f.TLSACMEDirectory != "" || f.TLSACMECA != ""):
		return engine.InvalidField("--tls-domain", "is missing: no certificate is asked for without it",
			"name the domain that people open")
	case paths == 0 && f.HTTPListen != "":
		return engine.InvalidField("--http-listen", "sends people to https, and this server speaks no TLS",
			"give --tls-cert and --tls-key, --tls-domain or --tls-self-signed, or listen with --listen")
	case paths > 0 && f.InsecureHTTP:
		return engine.InvalidField("--insecure-http", "is given, and TLS too", "leave one of them out")
	case paths == 0 && beyond && !f.InsecureHTTP:
		return &engine.Error{Code: engine.CodeInvalid,
			Message: fmt.Sprintf("The server would speak plain HTTP on %s: everybody on the way could read passwords, tokens "+
				"and sessions.", listen),
			Hint: "give --tls-cert and --tls-key, --tls-domain NAME or --tls-self-signed; or --listen 127.0.0.1:8080 for this " +
				"machine alone; or --insecure-http (LOADSTONE_INSECURE_HTTP=true) behind a proxy that speaks TLS, or on a " +
				"network that you trust",
			Fields: []engine.FieldError{{Field: "--listen", Message: "is not loopback, and there is no TLS"}}}
	}
	return nil
}

// secure prepares TLS as the flags say.
func (d *HTTPEndpoint) secure(dir string, names []string) error {
	f := d.flags
	var certificate httpx.Certificate
	var further []string
	switch {
	case f.TLSCert != "":
		files, err := httpx.OpenFiles(f.TLSCert, f.TLSKey, d.log)
		if err != nil {
			return err
		}
		certificate = files.Get
	case f.TLSSelfSigned:
		own := slices.Concat([]string{"localhost", "127.0.0.1", "::1"}, names)
		c, file, made, err := httpx.SelfSigned(dir, own)
		if err != nil {
			return err
		}
		certificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c, nil }
		d.Notes = append(d.Notes, "The certificate is signed by this server itself: browsers warn, once its fingerprint is "+
			"compared it can be trusted.", "  SHA-256  "+httpx.Fingerprint(c), "  file     "+file)
		d.log.Info().Str("fingerprint", httpx.Fingerprint(c)).Str("file", file).Bool("new", made).
			Time("not_after", c.Leaf.NotAfter).Msg("TLS with a self-signed certificate")
	case len(f.TLSDomain) > 0:
		o := httpx.ACME{Domains: f.TLSDomain, Email: f.TLSEmail, Directory: f.TLSACMEDirectory,
			Dir: filepath.Join(dir, "acme")}
		if o.Directory == "" {
			o.Directory = letsEncrypt
		}
		if f.TLSACMECA != "" {
			var err error
			if o.CA, err = terminal.ReadBounded("The file of --tls-acme-ca", f.TLSACMECA, 1<<20); err != nil {
				return err
			}
		}
		var err error
		if d.manager, err = httpx.OpenACME(o); err != nil {
			return err
		}
		certificate, further = d.manager.GetCertificate, []string{httpx.ACMEProtocol}
	default:
		return nil
	}
	own, text, err := operatorCertificate()
	if err != nil {
		return err
	}
	d.operator = text
	d.TLS = httpx.TLSConfig(certificate, own, further...)
	return nil
}

// Start opens what listens beside the server, which is reached at address, and asks for certificates. The caller ends
// it.
func (d *HTTPEndpoint) Start(ctx context.Context, address string) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var redirect *httpx.Redirect
	if d.flags.HTTPListen != "" {
		var challenges func(http.Handler) http.Handler
		if d.manager != nil {
			challenges = d.manager.HTTPHandler
		}
		_, port, _ := net.SplitHostPort(address)
		redirect, err = httpx.OpenRedirect(d.flags.HTTPListen, port, d.Hosts, challenges)
		if err != nil {
			cancel()
			return nil, terminal.ListenError("--http-listen", d.flags.HTTPListen, err)
		}
		d.log.Info().Str("address", redirect.Addr).Msg("plain HTTP is sent to https")
	}
	requested := make(chan struct{})
	go func() {
		defer close(requested)
		if d.manager != nil {
			httpx.PrefetchCertificates(ctx, d.manager, d.flags.TLSDomain, d.log)
		}
	}()
	return func() {
		cancel()
		if redirect != nil {
			redirect.Close()
		}
		select { // an authority that is being asked is not waited for
		case <-requested:
		default:
		}
	}, nil
}
