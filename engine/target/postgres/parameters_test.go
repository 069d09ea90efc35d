package postgres_test

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/youmark/pkcs8"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/postgres"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// answer is what one query says over a connection, as text.
func answer(t *testing.T, d target.Driver, dsn, sql string) (string, error) {
	t.Helper()
	db, err := d.Open(target.Config{DSN: secret.New(dsn)})
	if err != nil {
		return "", err
	}
	defer func() { _ = db.Close() }()
	if _, err := db.Check(t.Context()); err != nil {
		return "", err
	}
	rs, err := db.Query(t.Context(), sql)
	if err != nil || len(rs.Rows) != 1 {
		t.Errorf("%s: %v, %v", sql, rs, err)
		return "", err
	}
	return fmt.Sprint(rs.Rows[0][0]), nil
}

// TestParametersOfTLS signs in to a real Postgres that takes nothing but TLS.
func TestParametersOfTLS(t *testing.T) {
	t.Parallel()
	secure := pgtest.StartTLS(t)
	cert, key := secure.Authority.Issue(t, pgtest.Identity{Name: secure.User})
	block, _ := pem.Decode([]byte(key))
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	der, err := pkcs8.MarshalPrivateKey(private, []byte("open"), nil)
	if err != nil {
		t.Fatal(err)
	}
	locked := string(pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: der}))
	//nolint:staticcheck // libpq takes such keys
	headed, err := x509.EncryptPEMBlock(strings.NewReader(strings.Repeat("r", 64)), "PRIVATE KEY", block.Bytes,
		[]byte("open"), x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	older := string(pem.EncodeToMemory(headed))
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	none, revoked := secure.Authority.Revoke(t, false), secure.Authority.Revoke(t, false, secure.Certificate)
	folder := filepath.Join(dir, "lists")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	file("lists/a.crl", revoked)
	file("lists/README", "Lists of revoked certificates.\n")
	file("lists/authority.pem", secure.Authority.PEM)
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	file("other/README", "Nothing yet.\n")
	plain := map[string]string{
		"sslmode":     "verify-full",
		"sslrootcert": secure.Authority.PEM,
		"sslcert":     cert,
		"sslkey":      key,
	}
	const encrypted, version = "SELECT ssl::text FROM pg_stat_ssl WHERE pid = pg_backend_pid()",
		"SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()"
	for _, c := range []struct {
		name      string
		more      map[string]string
		file      bool // the files of whoever runs the process
		sql, want string
	}{
		{"nothing more", nil, false, encrypted, "true"},
		{"TLS 1.3 at least", map[string]string{"ssl_min_protocol_version": "TLSv1.3"}, false, version, "TLSv1.3"},
		{"TLS 1.2 at most", map[string]string{"ssl_max_protocol_version": "tlsv1.2"}, false, version, "TLSv1.2"},
		{"one version", map[string]string{"ssl_min_protocol_version": "TLSv1.2", "ssl_max_protocol_version": "TLSv1.2"}, false,
			version, "TLSv1.2"},
		{"versions exchanged", map[string]string{"ssl_min_protocol_version": "TLSv1.3", "ssl_max_protocol_version": "TLSv1.2"},
			false, version, "!is above ssl_max_protocol_version"},
		{"a version that is none", map[string]string{"ssl_min_protocol_version": "SSLv3"}, false, version,
			"!its ssl_min_protocol_version is none of TLSv1"},
		{"too old", map[string]string{"ssl_max_protocol_version": "TLSv1.1"}, false, version,
			"!it has no version of TLS that the connection allows"},
		{"the address", map[string]string{"hostaddr": secure.Host}, false, encrypted, "true"},
		{"an address for a name", map[string]string{"hostaddr": secure.Host, "host": "db.example", "sslmode": "verify-ca"}, false,
			encrypted, "true"},
		{"the name is verified", map[string]string{"hostaddr": secure.Host, "host": "db.example"}, false, encrypted,
			"!is for another host name"},
		{"nothing revoked", map[string]string{"sslcrl": none}, false, encrypted, "true"},
		{"revoked", map[string]string{"sslcrl": revoked}, false, encrypted, `!that of "server" has been revoked`},
		{"revoked, verify-ca", map[string]string{"sslcrl": revoked, "sslmode": "verify-ca"}, false, encrypted, "!has been revoked"},
		{"an old list", map[string]string{"sslcrl": secure.Authority.Revoke(t, true)}, false, encrypted, "!has expired"},
		{"a list of another", map[string]string{"sslcrl": pgtest.NewAuthority(t).Revoke(t, false)}, false, encrypted,
			"!no revocation list of the authority"},
		{"no list", map[string]string{"sslcrl": cert}, false, encrypted, "!sslcrl of the connection holds no revocation list"},
		{"a file of lists", map[string]string{"sslcrl": file("b.crl", revoked)}, true, encrypted, "!has been revoked"},
		{"a folder of lists", map[string]string{"sslcrldir": folder}, true, encrypted, "!has been revoked"},
		{"a folder without a list", map[string]string{"sslcrldir": other}, true, encrypted,
			"!sslcrldir of the connection holds no revocation list"},
		{"a file that is not there", map[string]string{"sslcrl": "/nowhere"}, true, encrypted, "!a file that cannot be read"},
		{"an encrypted key", map[string]string{"sslkey": locked, "sslpassword": "open"}, false, encrypted, "true"},
		{"an encrypted key of the older form", map[string]string{"sslkey": older, "sslpassword": "open"}, false, encrypted, "true"},
		{"another passphrase", map[string]string{"sslkey": locked, "sslpassword": "shut"}, false, encrypted,
			"!sslpassword does not open it"},
		{"no passphrase", map[string]string{"sslkey": locked}, false, encrypted, "!give that as sslpassword"},
		{"files", map[string]string{"sslkey": file("k.key", locked), "sslcert": file("k.crt", cert), "sslpassword": "open"}, true,
			encrypted, "true"},
		{"files, another passphrase", map[string]string{"sslkey": file("k.key", locked), "sslcert": file("k.crt", cert),
			"sslpassword": "shut"}, true, encrypted, "!sslpassword does not open it"},
		{"requiressl", map[string]string{"requiressl": "1", "sslmode": ""}, false, encrypted, "true"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := maps.Clone(plain)
			maps.Copy(m, c.more)
			q := url.Values{}
			for name, value := range m {
				if value != "" && name != "host" {
					q.Set(name, value)
				}
			}
			host := secure.Host
			if m["host"] != "" {
				host = m["host"]
			}
			dsn := "postgres://" + secure.User + "@" + host + "/" + secure.User + "?" + strings.ReplaceAll(
				q.Encode(),
				"+",
				"%20",
			)
			drivers := map[string]target.Driver{"one's own": postgres.NewDriver()}
			if !c.file {
				drivers["a server's"] = postgres.NewStrictDriver(nil, allowed(t))
			}
			for name, d := range drivers {
				got, err := answer(t, d, dsn, c.sql)
				if want, fails := strings.CutPrefix(c.want, "!"); fails && (err == nil || !strings.Contains(err.Error(), want) ||
					!engine.HasCode(err, engine.CodeTarget)) || !fails && (err != nil || got != want) {
					t.Errorf("%s: %q, %v", name, got, err)
				}
			}
		})
	}
}

// TestParametersOfTheSession are honoured over a socket, or named.
func TestParametersOfTheSession(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	server, err := pgconn.ParseConfig(pgtest.Start(t).NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	plain := fmt.Sprintf("host=%s port=%d user=%s dbname=%s ", server.Host, server.Port, server.User, server.Database)
	_, socket := pgconn.NetworkAddress(server.Host, server.Port)
	info, err := os.Stat(socket)
	if err != nil {
		t.Fatal(err)
	}
	owner := strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10)
	if known, err := user.LookupId(owner); err == nil {
		owner = known.Username
	}
	const name = "SELECT current_setting('application_name')"
	for _, c := range []struct{ more, sql, want string }{
		{"", name, "loadstone"}, {"fallback_application_name=fall", name, "fall"},
		{"fallback_application_name=fall application_name=set", name, "set"},
		{"gssencmode=disable", name, "loadstone"}, {"gssencmode=prefer", name, "loadstone"},
		{"gssencmode=require", name, "!The parameter gssencmode of the connection is not supported."},
		{"gssencmode=requires", name, "!its gssencmode is none of disable, prefer, require"},
		{"sslcompression=0", name, "loadstone"}, {"sslcompression=1", name, "loadstone"},
		{"sslcompression=yes", name, "!its sslcompression is none of 0, 1"},
		{"keepalives=1 keepalives_idle=60 keepalives_interval=10 keepalives_count=3 tcp_user_timeout=9000", name, "loadstone"},
		{"keepalives=off", name, "!its keepalives is none of 0, 1"},
		{"keepalives_idle=1m", name, "!keepalives_idle of the connection is no whole number"},
		{"tcp_user_timeout=x", name, "!tcp_user_timeout of the connection is no whole number"},
		{"load_balance_hosts=random", name, "loadstone"}, {"load_balance_hosts=disable", name, "loadstone"},
		{"load_balance_hosts=on", name, "!its load_balance_hosts is none of disable, random"},
		{"requirepeer=" + owner, name, "loadstone"},
		{"requirepeer=nobody-such", name, fmt.Sprintf(`!runs as user %q, and requirepeer asks for "nobody-such"`, owner)},
		{"hostaddr=10.0.0.7", name, "!hostaddr of the connection is an address, and the host is the folder of a socket"},
		{"hostaddr=db.example", name, "!hostaddr of the connection is no IP address"},
		{"hostaddr=10.0.0.7,10.0.0.8", name, "!hostaddr of the connection has 2 addresses, and there are 1 hosts"},
		{"client_encoding=auto", "SHOW client_encoding", "UTF8"}, {"client_encoding=UTF8", "SHOW client_encoding", "UTF8"},
		{"client_encoding=LATIN1", name, "!client_encoding of the connection is not supported"},
		{"options='-c work_mem=123kB'", "SHOW work_mem", "123kB"}, {"gsslib=gssapi gssdelegation=0", name, "loadstone"},
		{"gssdelegation=1", name, "!gssdelegation of the connection is not supported"},
		{"oauth_issuer=x", name, "!oauth_issuer of the connection is not supported"},
		{"oauth_client_secret=x", name, "!oauth_client_secret of the connection is not supported"},
		{"scram_client_key=x", name, "!scram_client_key of the connection is not supported"},
		{"sslkeylogfile=/tmp/x", name, "!sslkeylogfile"}, {"authtype=x", name, "!authtype of the connection is not supported"},
		{"sslnegotiation=indirect", name, "!its sslnegotiation is none of postgres, direct"},
		{"sslsni=2", name, "!its sslsni is none of 0, 1"},
		{"channel_binding=yes", name, "!its channel_binding is none of disable, prefer, require"},
		{"require_auth=x", name, "!its require_auth is no list of password"},
		{"connect_timeout=3600", name, "loadstone"}, {"connect_timeout=3601", name, "!connect_timeout of the connection is above"},
		{"connect_timeout=10000000000", name, "!connect_timeout of the connection is above"},
		{"connect_timeout=40000000000", name, "!connect_timeout of the connection is above"},
		{"connect_timeout=soon", name, "!its connect_timeout is no number of seconds"},
		{"min_protocol_version=2", name, "!its min_protocol_version is none of 3.0, 3.2, latest"},
		{"keepalive=1", name, `!The server knows no parameter "keepalive" of the connection.`},
	} {
		got, err := answer(t, postgres.NewDriver(), plain+c.more, c.sql)
		if want, fails := strings.CutPrefix(c.want, "!"); fails && (err == nil || !strings.Contains(err.Error(), want) ||
			!engine.HasCode(err, engine.CodeTarget) || engine.AsError(err).Hint == "") || !fails && (err != nil || got != want) {
			t.Errorf("%s: %q, %v", c.more, got, err)
		}
	}
	t.Setenv("PGCLIENTENCODING", "LATIN1")
	if got, err := answer(t, postgres.NewDriver(), plain, "SHOW client_encoding"); err != nil || got != "UTF8" {
		t.Errorf("PGCLIENTENCODING: %q, %v", got, err)
	}
	t.Setenv("PGGSSENCMODE", "require")
	if _, err := answer(t, postgres.NewDriver(), plain, name); err == nil || !strings.Contains(err.Error(), "gssencmode") {
		t.Errorf("PGGSSENCMODE: %v", err)
	}
}

// forwarder lets connections through to the test cluster, and counts them.
func forwarder(t *testing.T, socket string) (port string, count *atomic.Int64) {
	t.Helper()
	count = &atomic.Int64{}
	address := serve(t, func(c net.Conn) {
		count.Add(1)
		s, err := net.Dial("unix", socket)
		if err != nil {
			t.Error(err)
			return
		}
		go func() { _, _ = io.Copy(s, c); _ = s.Close() }()
		_, _ = io.Copy(c, s)
		_ = c.Close()
	})
	_, port, _ = net.SplitHostPort(address)
	return port, count
}

// TestLoadIsBalanced: connections of one database go to each of its hosts, in another order each time.
func TestLoadIsBalanced(t *testing.T) {
	t.Parallel()
	socket, through := behind(t)
	first, firsts := forwarder(t, socket)
	second, seconds := forwarder(t, socket)
	for mode, both := range map[string]bool{"": false, "&load_balance_hosts=disable": false, "&load_balance_hosts=random": true} {
		firsts.Store(0)
		seconds.Store(0)
		db := openDSN(t, through("127.0.0.1:"+first+",127.0.0.1:"+second, "disable")+mode, 0)
		for range 40 {
			c, err := db.Connect(t.Context(), statements("SELECT 1"))
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Close()
		}
		if a, b := firsts.Load(), seconds.Load(); a == 0 || (b > 0) != both || both && (a < 5 || b < 5) {
			t.Errorf("%q: %d and %d connections", mode, a, b)
		}
	}
}

// TestAnAddressIsJudgedLikeAHost: hostaddr leads nowhere where a host may not lead, whatever the host is called.
func TestAnAddressIsJudgedLikeAHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		list    []string
		address string
		reached bool
	}{
		{nil, "127.0.0.1", true}, {[]string{"127.0.0.0/8"}, "127.0.0.1", true}, {[]string{"10.0.0.0/8"}, "127.0.0.1", false},
		{[]string{"db.example"}, "127.0.0.1", false}, {[]string{".example", "db.example"}, "127.0.0.1", false},
		{nil, "169.254.169.254", false}, {[]string{"0.0.0.0/0", "::/0"}, "::ffff:169.254.169.254", false},
		{[]string{"::/0"}, "fd00:ec2::254", false},
	} {
		l := listen(t)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		for _, host := range []string{"db.example", ""} {
			db, err := postgres.NewStrictDriver(nil, allowed(t, c.list...)).Open(target.Config{ConnectTimeout: 3 * time.Second,
				DSN: secret.New("host='" + host + "' hostaddr=" + c.address + " port=" + port +
					" user=u sslmode=disable load_balance_hosts=random")})
			if err != nil {
				t.Fatal(err)
			}
			_, err = db.Check(t.Context())
			_ = db.Close()
			refused := errors.Is(err, egress.ErrRefused)
			if n := l.callers(t); refused == c.reached || (n > 0) != c.reached {
				t.Errorf("%v %q %s: %v, %d callers", c.list, host, c.address, err, n)
			}
		}
	}
}

// TestConnectingBriefly: connect_timeout ends with the log-in, and what follows has its own time.
func TestConnectingBriefly(t *testing.T) {
	t.Parallel()
	through := proxy(t, func(n int, p []byte) []byte {
		if n > 2 {
			time.Sleep(110 * time.Millisecond)
		}
		return p
	})
	db, err := postgres.NewDriver().Open(target.Config{DSN: secret.New(through + "&connect_timeout=1")})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	c, err := db.Connect(t.Context(), statements(slices.Repeat([]string{"SELECT 1"}, 12)...))
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
}

// TestAConnectIsGivenUpWhenItsTimeIsOver: each host has its own.
func TestAConnectIsGivenUpWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	silent := serve(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
	socket, through := behind(t)
	port, _ := forwarder(t, socket)
	_, err := answer(t, postgres.NewDriver(), through(silent, "disable")+"&connect_timeout=1", "SELECT 1")
	explain(t, err, "did not answer within 1s")
	if _, err := answer(t, postgres.NewDriver(), through(silent+",127.0.0.1:"+port, "disable")+"&connect_timeout=1",
		"SELECT 1"); err != nil {
		t.Errorf("the second host was not tried: %v", err)
	}
}
