package cli

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/server/httpx"
)

// operatorFile is where a server leaves its address and the secret of its operator,
// readable by the server's own user alone, for as long as it runs.
const operatorFile = "operator.json"

// operatorName is the name in TLS by which the server's own commands ask for it. It has a certificate of its own for
// that, whatever it shows to others: one that ends with the process.
const operatorName = "operator.loadstone.internal"

const operatorCertTTL = 10 * 365 * 24 * time.Hour

// Operator is how the commands of an operator reach the server.
type Operator struct {
	Address string `json:"address"`
	Secret  string `json:"secret"`
	// Certificate is in PEM, empty without TLS.
	Certificate string `json:"certificate,omitempty"`
}

func operatorCertificate() (own map[string]*tls.Certificate, text []byte, err error) {
	text, key, err := httpx.Sign([]string{operatorName}, operatorCertTTL)
	if err != nil {
		return nil, nil, err
	}
	c, err := tls.X509KeyPair(text, key)
	if err != nil {
		return nil, nil, fmt.Errorf("reading the certificate of the operator: %w", err)
	}
	return map[string]*tls.Certificate{operatorName: &c}, text, nil
}

// WriteOperatorFile writes the file for a server that listens on address; the caller
// removes it when the server ends.
func (d *HTTPEndpoint) WriteOperatorFile(dir, address, secret string) (remove func(), err error) {
	o := Operator{Secret: secret, Certificate: string(d.operator)}
	if o.Address, err = loopbackAddress(address, d.TLS != nil); err != nil {
		return nil, fmt.Errorf("reading the address %s: %w", address, err)
	}
	text, err := json.Marshal(o) //nolint:gosec // the field is what the user sends or is shown once
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", operatorFile, err)
	}
	path := filepath.Join(dir, operatorFile)
	// A file of an earlier process may have another mode.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("replacing %s: %w", operatorFile, err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return nil, fmt.Errorf("writing %s: %w", operatorFile, err)
	}
	return func() { _ = os.Remove(path) }, nil
}

// loopbackAddress is the address by which this machine reaches a listener.
func loopbackAddress(address string, secure bool) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("taking an address apart: %w", err)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	if secure {
		return "https://" + net.JoinHostPort(host, port), nil
	}
	return "http://" + net.JoinHostPort(host, port), nil
}

// ReadOperator reads the file of the server that runs on a data directory.
func ReadOperator(dir string) (o Operator, err error) {
	nobody := &engine.Error{Code: engine.CodeUnavailable,
		Message: fmt.Sprintf("No server runs on the data directory %s.", dir),
		Hint:    "start it with loadstone serve, or name its directory with --data-dir"}
	text, err := os.ReadFile(filepath.Join(dir, operatorFile))
	switch {
	case errors.Is(err, os.ErrPermission):
		return o, &engine.Error{Code: engine.CodeForbidden,
			Message: fmt.Sprintf("The server's files in %s are not yours to read.", dir),
			Hint:    "run this as the user who runs the server", Cause: err}
	case err != nil:
		nobody.Cause = err
		return o, nobody
	}
	if err := json.Unmarshal(text, &o); err != nil || o.Address == "" {
		nobody.Cause = err
		return o, nobody
	}
	return o, nil
}

// Transport reaches the server that left the file, and nobody else in its place; nil is the usual one.
func (o Operator) Transport() http.RoundTripper {
	if o.Certificate == "" {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(o.Certificate))
	return &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: pool,
		ServerName: operatorName}}
}

// TransportTrusting reaches servers whose certificates are of the authorities in a PEM text.
func TransportTrusting(text []byte) (http.RoundTripper, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, engine.InvalidField("--server-ca", "has no certificate",
			"name a file in PEM: the authority of the server's certificate, or that certificate where it is self-signed")
	}
	return &http.Transport{Proxy: http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}}, nil
}

// IsUntrusted reports whether a request failed for the certificate of the server.
func IsUntrusted(err error) bool {
	var wrong *tls.CertificateVerificationError
	return errors.As(err, &wrong)
}
