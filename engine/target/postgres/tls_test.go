package postgres_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
)

// TestLoadThroughTLS runs the load path, a timeout with its cancel request
// included, through a TLS terminator in front of the real server.
func TestLoadThroughTLS(t *testing.T) {
	t.Parallel()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"elsewhere"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	socket, through := behind(t)
	address := serve(t, func(c net.Conn) {
		if _, err := io.ReadFull(c, make([]byte, 8)); err != nil {
			return
		}
		_, _ = c.Write([]byte("S"))
		s, err := net.Dial("unix", socket)
		if err != nil {
			t.Error(err)
			return
		}
		secure := tls.Server(c, config)
		go func() { _, _ = io.Copy(s, secure); _ = s.Close() }()
		_, _ = io.Copy(secure, s)
		_ = c.Close()
	})
	db := openDSN(t, through(address, "require"), 100*time.Millisecond)
	c, err := db.Connect(t.Context(),
		append(lookup(), engine.Statement{ID: "sleep", SQL: "SELECT pg_sleep($1)",
			Binds: []engine.Bind{{Type: engine.TypeF64}}}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var res target.Result
	b, op := targettest.Batch(0, int64(1))
	for range 100 {
		if err := c.Exec(t.Context(), b, op, &res); err != nil || res.Rows != 1 {
			t.Fatalf("%d rows, %v", res.Rows, err)
		}
	}
	b, op = targettest.Batch(1, 30.0)
	if err := c.Exec(t.Context(), b, op, &res); db.Classify(err).Class != engine.ErrClassTimeout || c.Broken() {
		t.Errorf("%v, broken %v", err, c.Broken())
	}
	_, err = openDSN(t, through(address, "verify-full"), 0).Check(t.Context())
	explain(t, err, "signed by an authority that is not trusted here")
	_, err = openDSN(t, through(strings.Replace(address, "127.0.0.1", "localhost", 1), "verify-full"), 0).
		Check(t.Context())
	explain(t, err, "is for another host name")
}
