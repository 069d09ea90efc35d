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
	"net/url"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestLoadThroughTLS runs the load path, a timeout with its cancel request
// included, through a TLS terminator in front of the real server.
func TestLoadThroughTLS(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"elsewhere"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	u, err := url.Parse(pgtest.Start(t).DSN("loadstone"))
	if err != nil || u.Query().Get("host") == "" {
		t.Skip("the server's DSN is not a URL with a socket")
	}
	port := u.Query().Get("port")
	if port == "" {
		port = "5432"
	}
	socket := u.Query().Get("host") + "/.s.PGSQL." + port
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
	q := u.Query()
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "require")
	u.Host, u.RawQuery = address, q.Encode()

	db := openDSN(t, u.String(), 100*time.Millisecond)
	c, err := db.Connect(t.Context(), append(lookup(), engine.Statement{ID: "sleep", SQL: "SELECT pg_sleep($1)", Binds: []engine.Bind{{Type: engine.TypeF64}}}))
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
	q.Set("sslmode", "verify-full")
	u.RawQuery = q.Encode()
	_, err = openDSN(t, u.String(), 0).Check(t.Context())
	explain(t, err, "signed by an authority that is not trusted here")
}
