package dsn

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

func keepers() map[string]Reader {
	return map[string]Reader{"own": {}, "server": {Strict: true}}
}

func TestShownConnectionStringsHaveNoPassword(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://ada:pw@host/db": "postgres://ada:***@host/db",
		"postgresql://ada:p%40w@host:5433,other/db?sslmode=require": "postgresql://ada:***@host:5433,other/db?" +
			"sslmode=require",
		"postgres://ada:p?w@host/db":                                   "***",
		"postgres://ada@host/db":                                       "postgres://ada@host/db",
		"postgres://host:5432/db":                                      "postgres://host:5432/db",
		"postgres://host/db?application_name=a@b:c":                    "postgres://host/db?application_name=a@b:c",
		"postgres:///db?host=/tmp&password=pw&user=u":                  "postgres:///db?host=/tmp&password=***&user=u",
		"postgres:///db?host=/tmp&%70assword=pw&user=u":                "postgres:///db?host=/tmp&%70assword=***&user=u",
		"postgres://u:a@h/db?password=b&sslpassword=c":                 "postgres://u:***@h/db?password=***&sslpassword=***",
		"host=h password=pw user=u":                                    "host=h password=*** user=u",
		"host=h\vpassword=pw\fuser=u":                                  "host=h\vpassword=***\fuser=u",
		"host=h PASSWORD = pw":                                         "host=h PASSWORD = ***",
		`password='p w\' x' host=h`:                                    `password=*** host=h`,
		`password=p\ w host=h`:                                         `password=*** host=h`,
		"host=h user=u dbname=password":                                "host=h user=u dbname=password",
		"host='/tmp/a b' user=loadstone dbname='x'":                    "host='/tmp/a b' user=loadstone dbname='x'",
		"host=h passwd=pw":                                             "host=h passwd=***",
		"postgres://u:p@/db?hostaddr=10.0.0.7,10.0.0.8&port=5432,5433": "postgres://u:***@/db?hostaddr=10.0.0.7,10.0.0.8&port=5432,5433",
		"hostaddr=10.0.0.7,10.0.0.8 port=5432,5433 password=p":         "hostaddr=10.0.0.7,10.0.0.8 port=5432,5433 password=***",
		"postgres://u:p@a/db?hostaddr=10.0.0.7&port=5432,5433":         "***",
		// What cannot be read for certain is not shown at all.
		"postgres://ada:p@w@host/db":      "***",
		"postgres://ada:p/w@host/db":      "***",
		"postgres://ada:1/w@host/db":      "***",
		`password='never closed host=h`:   "***",
		"user:pw@account/db?warehouse=w":  "***",
		"postgres://u:pw@h/db?sslmode=no": "***",
	} {
		for name, d := range keepers() {
			shown, _ := d.Redact(dsn)
			if shown != want {
				t.Errorf("%s: %q is shown as %q, want %q", name, dsn, shown, want)
			}
			if again, _ := d.Redact(shown); again != shown {
				t.Errorf("%s: %q is shown as %q, and again as %q", name, dsn, shown, again)
			}
		}
	}
}

// TestASavedPasswordGoesNowhereElse holds what may change around a masked password.
func TestASavedPasswordGoesNowhereElse(t *testing.T) {
	const stored = "postgres://bench:secret@db.example:5432/d?sslmode=prefer"
	for dsn, ok := range map[string]bool{
		"postgres://bench:***@db.example:5432/d?sslmode=prefer":                     true,
		"postgres://bench:***@db.example/e":                                         true,
		"postgres://bench:***@db.example:5432/d?application_name=x":                 true,
		"host=db.example user=bench password=*** dbname=e":                          true,
		"postgres://bench:***@db.example/d?connect_timeout=3":                       true,
		"postgres://bench:***@attacker,x@db.example:5432/d":                         false,
		"postgres://bench:***@db.example,attacker/d":                                false,
		"postgres://bench:***@attacker,db.example/d":                                false,
		"postgres://bench:***@db.example%2Cattacker/d":                              false,
		"postgres://bench:***@db.example:5433/d":                                    false,
		"postgres://bench:***@db.example/d?host=attacker":                           false,
		"postgres://bench:***@db.example/d?%68ost=attacker":                         false,
		"postgres://bench:***@db.example/d?port=1":                                  false,
		"postgres://bench:***@db.example/d?hostaddr=127.0.0.1":                      false,
		"postgres://bench:***@db.example/d?sslmode=disable":                         false,
		"postgres://bench:***@db.example/d?sslmode=require":                         false,
		"postgres://bench:***@db.example/d?ssl=true":                                false,
		"postgres://bench:***@db.example/d?sslsni=0":                                false,
		"postgres://bench:***@db.example/d?sslnegotiation=direct":                   false,
		"postgres://bench:***@db.example/d?channel_binding=disable":                 false,
		"postgres://bench:***@db.example/d?require_auth=password":                   false,
		"postgres://bench:***@db.example/d?service=x":                               false,
		"postgres://bench:***@db.example/d?passfile=/tmp/x":                         false,
		"postgres://other:***@db.example/d":                                         false,
		"postgres://bench:***@db.example/d?user=other":                              false,
		"postgres://bench:***@attacker/d?application_name=x:***@db.example":         false,
		"postgres://attacker/d?application_name=x:***@y":                            false,
		"host=attacker\vuser=bench password=***":                                    false,
		"host=db.example\vhost=attacker user=bench password=***":                    false,
		"host=db.example user=bench password=*** host=attacker":                     false,
		"host=db.example,attacker user=bench password=***":                          false,
		"host='' user=bench password=***":                                           false,
		"host=db.example user=bench password=*** sslpassword=***":                   false,
		"postgres://bench:***@db.example/d?application_name=***&options=-c%20x%3D1": false,
		"postgresql+evil://bench:***@db.example:5432/d":                             false,
		"snowflake://bench:***@db.example/d":                                        false,
		"***":                                                                       false,
	} {
		for name, d := range keepers() {
			joined, err := d.RestoreSecrets(dsn, stored)
			if (err == nil) != ok {
				t.Errorf("%s: %s became %q, %v", name, dsn, joined, err)
				continue
			}
			if err != nil {
				if strings.Contains(fmt.Sprintf("%+v", err), "secret") {
					t.Errorf("%s: %s: the error holds the password: %v", name, dsn, err)
				}
				continue
			}
			c, err := pgx.ParseConfig(joined)
			if err != nil || c.Password != "secret" || c.Host != "db.example" || c.User != "bench" {
				t.Errorf("%s: %s became %q: %v", name, dsn, joined, err)
			}
		}
	}
}

// cleanEnvironment removes what pgx would read beside a connection string.
func cleanEnvironment(t testing.TB) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "PG") {
			t.Setenv(name, "")
			_ = os.Unsetenv(name)
		}
	}
	t.Setenv("HOME", t.TempDir())
}

// agree holds our reading of a connection string against pgx's.
func agree(t testing.TB, dsn string) {
	t.Helper()
	s, err := readSettings(dsn)
	want, wrong := pgx.ParseConfig(dsn)
	if err != nil {
		if wrong == nil && !errors.Is(err, errOddKey) && !errors.As(err, new(*ambiguousError)) {
			t.Fatalf("%q: pgx reads it, we do not", dsn)
		}
		return
	}
	m := s.effective()
	for _, key := range fileKeys {
		if m[key] != "" {
			return // pgx would look for the file
		}
	}
	for _, text := range []string{writePairs(m), s.write(m)} {
		got, err := pgx.ParseConfig(text)
		if (err == nil) != (wrong == nil) {
			t.Fatalf("%q: pgx says %v, and of what we make of it, %q, %v", dsn, wrong, text, err)
		}
		if err != nil {
			continue
		}
		if !sameAddress(got, want) || got.Password != want.Password || got.Database != want.Database ||
			!maps.Equal(got.RuntimeParams, want.RuntimeParams) {
			t.Fatalf("%q is to pgx %+v\nand ours, %q, is %+v", dsn, want.Config, text, got.Config)
		}
	}
}

var seeds = []string{
	"postgres://bench:***@attacker,x@db:1/d", "postgres://bench:***@db:5432/d?sslmode=disable",
	"host=a\vhost=b password=*** user=u",
	"postgres://u@h/d?application_name=x:***@y", `host='a\'b' password = *** user=u`,
	"postgres://[::1]:5432,h:1/d?ssl=true&sslmode=disable",
	"postgres://u:p%00@h", "postgres://:@h/?dbname=x", "user= host=x", "host=a\\",
	"postgres://u:***@db.example%2Cevil:1/d", "postgres://h?=x", "postgres:///?port=",
}

// FuzzSavedPassword holds, for every text that somebody sends in the place of a
// shown connection string, that the saved password goes to the hosts that it was
// saved with, and does not come back.
func FuzzSavedPassword(f *testing.F) {
	for _, s := range seeds {
		for i := range 4 {
			f.Add(s, i)
		}
	}
	f.Add("postgres://bench:***@db.example:5432/d", 0)
	const secret = "Zq9-s3cr3t-9qZ"
	stored := []string{
		"postgres://bench:" + secret + "@db.example:5432/d",
		"host=db.example user=bench password='" + secret + "' sslmode=disable",
		"postgres://bench@db.example,other.example:5433/d?password=" + secret + "&sslmode=require",
		"host=/tmp user=bench password=" + secret + " sslpassword=" + secret,
	}
	cleanEnvironment(f)
	f.Fuzz(func(t *testing.T, text string, which int) {
		agree(t, text)
		if strings.Contains(text, secret) {
			return
		}
		saved := stored[(which%len(stored)+len(stored))%len(stored)]
		want, err := pgx.ParseConfig(saved)
		if err != nil {
			t.Fatal(err)
		}
		for name, d := range keepers() {
			joined, err := d.RestoreSecrets(text, saved)
			if err != nil {
				if strings.Contains(fmt.Sprintf("%+v", err), secret) {
					t.Fatalf("%s: the refusal of %q holds the secret: %v", name, text, err)
				}
				continue
			}
			got, err := pgx.ParseConfig(joined)
			if err != nil || !sameAddress(got, want) || got.Password != secret {
				t.Fatalf("%s: with %q the password of %q goes where it was not saved for: %q, %v", name, text, saved, joined, err)
			}
			if shown, secrets := d.Redact(joined); strings.Contains(shown, secret) || !slices.Contains(secrets, secret) {
				t.Fatalf("%s: %q comes back as %q", name, joined, shown)
			}
		}
	})
}

// FuzzRedact holds that a password which pgx would send is not shown, however it is written.
func FuzzRedact(f *testing.F) {
	for _, s := range seeds {
		f.Add(strings.ReplaceAll(s, "***", "Zq9secret9qZ"))
	}
	f.Add("postgres://u:Zq9secret9qZ@h/d?password=x")
	cleanEnvironment(f)
	f.Fuzz(func(t *testing.T, dsn string) {
		agree(t, dsn)
		for name, d := range keepers() {
			shown, secrets := d.Redact(dsn)
			if again, _ := d.Redact(shown); again != shown {
				t.Fatalf("%s: %q is shown as %q, and again as %q", name, dsn, shown, again)
			}
			c, err := pgx.ParseConfig(dsn)
			if err != nil || c.Password == "" || shown == target.Mask {
				continue
			}
			if !slices.Contains(secrets, c.Password) {
				t.Fatalf("%s: %q: the password is not among the secrets %q", name, dsn, secrets)
			}
			again, err := pgx.ParseConfig(shown)
			if err != nil || again.Password != target.Mask || again.Host != c.Host {
				t.Fatalf("%s: %q is shown as %q, whose password is %q: %v", name, dsn, shown, again.Password, err)
			}
		}
	})
}

// TestAnyPasswordIsHiddenAndComesBack makes connection strings of both forms around a secret.
func TestAnyPasswordIsHiddenAndComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{1,8}`)
		secret := "Zq9" + rapid.String().Filter(func(s string) bool { return !strings.Contains(s, "\x00") }).Draw(t,
			"secret") + "9qZ"
		host, user, db := word.Draw(t, "host"), word.Draw(t, "user"), word.Draw(t, "db")
		escaped := strings.ReplaceAll(url.QueryEscape(secret), "+", "%20")
		quoted := "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(secret) + "'"
		dsn := []string{
			"postgres://" + user + ":" + escaped + "@" + host + ":5432/" + db + "?sslmode=require",
			"host=" + host + " user=" + user + " password=" + quoted + " dbname=" + db,
			"postgres://" + host + "/" + db + "?user=" + user + "&password=" + escaped,
			"password=" + quoted + "\v\thost=" + host,
		}[rapid.IntRange(0, 3).Draw(t, "form")]
		for name, d := range keepers() {
			shown, _ := d.Redact(dsn)
			if strings.Contains(shown, "Zq9") || strings.Contains(shown, "9qZ") || shown == target.Mask {
				t.Fatalf("%s: %q is shown as %q", name, dsn, shown)
			}
			if joined, err := d.RestoreSecrets(shown, dsn); err != nil || joined != dsn {
				t.Fatalf("%s: %q came back as %q, %v", name, dsn, joined, err)
			}
			other, err := d.RestoreSecrets(strings.Replace(shown, host, host+",evil.example", 1), dsn)
			if err == nil {
				t.Fatalf("%s: %q was joined for two hosts: %q", name, dsn, other)
			}
			c, err := d.Config(dsn)
			if err != nil || c.Password != secret {
				t.Fatalf("%s: %q has the password %q, %v", name, dsn, c.Password, err)
			}
		}
	})
}

func TestAServerReadsNoFilesAndNoEnvironment(t *testing.T) {
	dir := t.TempDir()
	service := filepath.Join(dir, "services")
	if err := os.WriteFile(service, []byte("[s]\nhost=evil.example\npassword=fromservice\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pass := filepath.Join(dir, ".pgpass")
	if err := os.WriteFile(pass, []byte("*:*:*:*:frompgpass\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir)
	for name, value := range map[string]string{"PGPASSWORD": "fromenv", "PGHOST": "evil.example", "PGPORT": "1",
		"PGUSER": "evil", "PGDATABASE": "evil", "PGSSLMODE": "disable",
		"PGOPTIONS": "-c x.y=1", "PGAPPNAME": "evil", "PGTZ": "UTC", "PGCHANNELBINDING": "require", "PGREQUIREAUTH": "none",
		"PGTARGETSESSIONATTRS": "standby", "PGSSLROOTCERT": "/nowhere"} {
		t.Setenv(name, value)
	}
	server := Reader{Strict: true}
	for _, dsn := range []string{"postgres://u@h:5432/d", "host=h user=u", "postgres:///d?user=u"} {
		c, err := server.Config(dsn)
		if err != nil {
			t.Fatal(err)
		}
		if c.Password != "" || c.Host == "evil.example" || c.Port != 5432 || c.User != "u" || c.Database == "evil" ||
			c.ChannelBinding != "prefer" || c.RequireAuth != "" ||
			len(c.RuntimeParams) != 0 || c.ValidateConnect != nil ||
			len(c.Fallbacks) != map[bool]int{true: 1, false: 0}[c.Host == "h"] {
			t.Errorf("%s on a server is %+v", dsn, c.Config)
		}
	}
	t.Setenv("PGSERVICE", "s")
	t.Setenv("PGSERVICEFILE", service)
	if c, err := server.Config("postgres://u@h/d"); err != nil || c.Host != "h" || c.Password != "" {
		t.Errorf("a service file counts on a server: %v %+v", err, c)
	}
	for _, name := range []string{"PGPASSWORD", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGCHANNELBINDING",
		"PGREQUIREAUTH", "PGSSLROOTCERT"} {
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	// One's own connection strings are read as psql reads them.
	if c, err := (Reader{}).Config("postgres://u@h/d"); err != nil || c.Password != "frompgpass" {
		t.Errorf("~/.pgpass does not count for oneself: %v", err)
	}
	if c, err := (Reader{}).Config("service=s servicefile=" + service); err != nil || c.Host != "evil.example" ||
		c.Password != "fromservice" {
		t.Errorf("a service does not count for oneself: %v", err)
	}
	t.Setenv("PGSERVICE", "s")
	t.Setenv("PGSERVICEFILE", service)
	if c, err := (Reader{}).Config("user=u"); err != nil || c.Host != "evil.example" {
		t.Errorf("PGSERVICE does not count for oneself: %v", err)
	}
	if shown, _ := (Reader{}).Redact("postgres://u:x@h/d"); shown != "postgres://u:***@h/d" ||
		os.Getenv("PGSERVICE") != "s" {
		t.Errorf("shown as %s, PGSERVICE is %q", shown, os.Getenv("PGSERVICE"))
	}
	for _, key := range fileKeys {
		percent := fmt.Sprintf("%%%02x%%%02X%s", key[0], key[1], key[2:])
		for _, dsn := range []string{"postgres://u:p@h/d?" + key + "=" + pass, "host=h " + key + "='" + pass + "'",
			"postgres://u:p@h/d?" + percent + "=" + encodeURL(pass), "postgres://u:p@h/d?" + strings.ToUpper(key) + "=" + pass,
			"host=h " + strings.ToUpper(key) + " = " + pass,
			"postgresql://u:p@h/d?" + key + "=&" + key + "=" + pass, "host=h " + key + "='' user=u " + key + "=" + pass,
			"host=h " + key + "\v=\v" + pass,
			"postgres://u:p@h:1,i:2/d?" + key + "=" + pass, "host=h,i port=1,2 " + key + "=" + pass,
			"postgres:///?host=h&" + key + "=" + pass} {
			err := server.Validate(dsn)
			if !engine.HasCode(err, engine.CodeTarget) || !strings.Contains(err.Error(), key) ||
				!strings.Contains(err.Error(), "machine") {
				t.Errorf("%s is taken on a server: %v", dsn, err)
			}
			if _, err := server.Config(dsn); err == nil {
				t.Errorf("%s is opened on a server", dsn)
			}
		}
	}
	if c, err := server.Config("host=h hostaddr=127.0.0.1"); err != nil || c.Host != "127.0.0.1" {
		t.Errorf("hostaddr on a server: %v", err)
	}
}

// TestAKeyThatIsNotAskedFor: an encrypted key in the home folder is nothing to a connection that has another, or none.
func TestAKeyThatIsNotAskedFor(t *testing.T) {
	cleanEnvironment(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.Mkdir(filepath.Join(home, ".postgresql"), 0o700); err != nil {
		t.Fatal(err)
	}
	services := filepath.Join(home, "services")
	for path, text := range map[string]string{
		filepath.Join(home, ".postgresql", "postgresql.crt"): "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n",
		filepath.Join(home, ".postgresql", "postgresql.key"): "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED " +
			"PRIVATE KEY-----\n",
		services: "[s]\nhost=db\nsslmode=disable\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const dsn = "user=u dbname=d"
	if _, err := (Reader{}).Config(dsn + " host=db"); err == nil || !strings.Contains(err.Error(), "it is encrypted") {
		t.Errorf("the key is not read: %v", err)
	}
	for name, set := range map[string]map[string]string{
		"PGSSLMODE": {"PGSSLMODE": "disable", "PGHOST": "db"}, "PGSERVICE": {"PGSERVICE": "s", "PGSERVICEFILE": services},
	} {
		for key, value := range set {
			t.Setenv(key, value)
		}
		if c, err := (Reader{}).Config(dsn); err != nil || c.Host != "db" || c.TLSConfig != nil {
			t.Errorf("%s: %v", name, err)
		}
		for key := range set {
			if err := os.Unsetenv(key); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestCertificatesArePasted(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, x, x, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	private := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	dsn := "postgres://u:pw@h/d?sslmode=verify-full&sslrootcert=" + encodeURL(cert) + "&sslcert=" + encodeURL(cert) +
		"&sslkey=" + encodeURL(private)
	for name, d := range keepers() {
		c, err := d.Config(dsn)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c.TLSConfig.RootCAs == nil || len(c.TLSConfig.Certificates) != 1 || c.TLSConfig.ServerName != "h" ||
			len(c.Fallbacks) != 0 {
			t.Errorf("%s: TLS is %+v", name, c.TLSConfig)
		}
		shown, _ := d.Redact(dsn)
		if strings.Contains(shown, "PRIVATE") || strings.Contains(shown, ":pw@") || !strings.Contains(shown, "CERTIFICATE") {
			t.Errorf("%s: shown as %s", name, shown)
		}
		moved, err := d.RestoreSecrets(strings.Replace(shown, "/d?", "/e?", 1), dsn)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if c, err := d.Config(moved); err != nil || len(c.TLSConfig.Certificates) != 1 || c.Password != "pw" ||
			c.Database != "e" {
			t.Errorf("%s: moved to %s: %v", name, moved, err)
		}
		if _, err := d.RestoreSecrets(strings.Replace(shown, "sslrootcert="+encodeURL(cert), "sslrootcert=system", 1),
			dsn); err == nil {
			t.Errorf("%s: the password goes with other authorities than it was saved with", name)
		}
		for _, bad := range []string{"sslrootcert=" + encodeURL("-----BEGIN CERTIFICATE-----\nxx"),
			"sslcert=" + encodeURL(cert), "sslkey=" + encodeURL(private) + "&sslcert=" + encodeURL("-----BEGIN x")} {
			if err := d.Validate("postgres://u@h/d?" + bad); !engine.HasCode(err, engine.CodeTarget) {
				t.Errorf("%s: %s is taken: %v", name, bad[:20], err)
			}
		}
	}
}

// TestEveryParameterIsDocumented: docs/reference/postgres.md says of each how it is honoured.
func TestEveryParameterIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/reference/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Parameters {
		told := false
		for line := range strings.Lines(string(text)) {
			parameter, _, _ := strings.Cut(strings.TrimPrefix(line, "- "), ": ")
			told = told || strings.HasPrefix(line, "- ") && strings.Contains(parameter, "`"+name+"`")
		}
		if !told {
			t.Errorf("docs/reference/postgres.md has no line of %s", name)
		}
	}
}
