package pgtest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/storage/embedded"
)

// TLSServer is a cluster that takes TCP connections with TLS alone, and knows its users
// by certificates of its authority. It needs Linux, where every address of 127/8 is this machine.
type TLSServer struct {
	// Host is an address of this cluster's own, so that the usual port is free there.
	Host string
	// User may make tables in the database of its name, and is whom a certificate has to name.
	User string
	// Admin is how the superuser connects, over the socket. Roles of the databases "results", "control" and "old", when
	// those are made, sign in with passwords, and those of "twofold" with a certificate besides.
	Admin string
	// Certificate is the server's own, in PEM form.
	Certificate string
	// Authority signs the server's certificate and those of its users.
	Authority *Authority
}

// StartTLS starts a cluster that is stopped when the test ends.
func StartTLS(t testing.TB) *TLSServer {
	t.Helper()
	s := &TLSServer{Host: fmt.Sprintf("127.%d.%d.%d", 100+os.Getpid()>>16&0x3f, os.Getpid()>>8&0xff, 1+os.Getpid()&0x7f),
		User: "ada", Authority: NewAuthority(t)}
	dir, err := os.MkdirTemp("", prefix+fmt.Sprint(os.Getpid())+"-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	start := func(settings map[string]string) *embedded.Postgres {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		settings["shared_buffers"] = "16MB"
		pg, err := embedded.Start(ctx,
			embedded.Options{DataDir: dir, Log: zerolog.Nop(), Throwaway: true, Settings: settings})
		if err != nil {
			t.Fatal(err)
		}
		return pg
	}
	stop := func(pg *embedded.Postgres) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := pg.Stop(ctx); err != nil {
			t.Error(err)
		}
	}
	// The first start makes the cluster, the user and the place of the certificates.
	pg := start(map[string]string{})
	conn, err := pgx.Connect(t.Context(), pg.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	var cluster string
	for _, sql := range []string{"CREATE ROLE ada LOGIN", "CREATE DATABASE ada OWNER ada"} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.QueryRow(t.Context(), "SHOW data_directory").Scan(&cluster); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
	stop(pg)
	cert, key := s.Authority.Issue(t, Identity{Name: "server", Address: s.Host})
	s.Certificate = cert
	for name, text := range map[string]string{"tls.crt": cert, "tls.key": key, "tls-ca.crt": s.Authority.PEM,
		"tls-hba.conf": "local all all trust\nhostssl results,control,old,nowhere all 127.0.0.0/8 scram-sha-256\n" +
			"hostssl twofold all 127.0.0.0/8 scram-sha-256 clientcert=verify-full\n" +
			"hostssl all all 127.0.0.0/8 cert\n"} {
		path := filepath.Join(cluster, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := sameOwner(path, cluster); err != nil {
			t.Fatal(err)
		}
	}
	pg = start(map[string]string{"listen_addresses": s.Host, "ssl": "on", "ssl_cert_file": "tls.crt",
		"ssl_key_file": "tls.key",
		"ssl_ca_file":  "tls-ca.crt", "hba_file": filepath.Join(cluster, "tls-hba.conf")})
	t.Cleanup(func() { stop(pg) })
	s.Admin = pg.DSN("postgres")
	return s
}

// Authority signs certificates.
type Authority struct {
	PEM  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority makes an authority that nobody else knows.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{key: newKey(t)}
	a.cert = &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "an authority"},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(
			time.Hour,
		),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	a.PEM = a.sign(t, a.cert, a.key)
	block, _ := pem.Decode([]byte(a.PEM))
	var err error
	if a.cert, err = x509.ParseCertificate(block.Bytes); err != nil { // with the identifiers that it has got
		t.Fatal(err)
	}
	return a
}

// Identity is whom a certificate is for.
type Identity struct {
	Name string
	// Address is a server's; empty for a user.
	Address string
	// Expired makes a certificate of the past, Early one of the future.
	Expired, NotYetValid bool
}

// Issue returns a certificate and its key in PEM form.
func (a *Authority) Issue(t testing.TB, id Identity) (cert, key string) {
	t.Helper()
	private := newKey(t)
	c := &x509.Certificate{SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: id.Name},
		NotBefore: time.Now().Add(-time.Hour),
		NotAfter:  time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if id.Address != "" {
		c.IPAddresses, c.ExtKeyUsage = []net.IP{net.ParseIP(id.Address)}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	if id.Expired {
		c.NotAfter = time.Now().Add(-time.Minute)
	}
	if id.NotYetValid {
		c.NotBefore = time.Now().Add(30 * time.Minute)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return a.sign(t, c, private), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}

// Revoke returns the list of the certificates that the authority has revoked, in PEM form. It is of today, or has expired.
func (a *Authority) Revoke(t testing.TB, expired bool, certificates ...string) string {
	t.Helper()
	now := time.Now()
	list := &x509.RevocationList{Number: big.NewInt(now.UnixNano()), ThisUpdate: now.Add(-time.Hour),
		NextUpdate: now.Add(time.Hour)}
	if expired {
		list.NextUpdate = now.Add(-time.Minute)
	}
	for _, text := range certificates {
		block, _ := pem.Decode([]byte(text))
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		list.RevokedCertificateEntries = append(list.RevokedCertificateEntries,
			x509.RevocationListEntry{SerialNumber: c.SerialNumber, RevocationTime: now.Add(-time.Minute)})
	}
	der, err := x509.CreateRevocationList(rand.Reader, list, a.cert, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
}

func (a *Authority) sign(t testing.TB, c *x509.Certificate, key *ecdsa.PrivateKey) string {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// sameOwner gives a file to whoever owns a folder.
func sameOwner(path, folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		return os.Chown(path, int(owner.Uid), int(owner.Gid))
	}
	return nil
}
