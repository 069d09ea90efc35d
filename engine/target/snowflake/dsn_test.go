package snowflake

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	sf "github.com/snowflakedb/gosnowflake/v2"
	"github.com/youmark/pkcs8"

	"github.com/loadstone-db/loadstone/engine"
)

var testKey = func() *rsa.PrivateKey {
	k, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return k
}()

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func TestDSN(t *testing.T) {
	for dsn, want := range map[string]accountSettings{
		"u:p@acme-prod/DB/S?warehouse=W&role=R": {User: "u", Password: "p", Account: "acme-prod",
			Host: "acme-prod.snowflakecomputing.com", Port: 443, Database: "DB", Schema: "S", Warehouse: "W", Role: "R"},
		"snowflake://u:p%40%2F%3F%3A@xy12345.eu-central-1": {User: "u", Password: "p@/?:",
			Account: "xy12345.eu-central-1", Host: "xy12345.eu-central-1.snowflakecomputing.com", Port: 443},
		"u:p@my_org-my_acct/DB": {User: "u", Password: "p", Account: "my_org-my_acct",
			Host: "my-org-my-acct.snowflakecomputing.com", Port: 443, Database: "DB"},
		"u:p@xy.cn-north-1": {User: "u", Password: "p", Account: "xy.cn-north-1",
			Host: "xy.cn-north-1.snowflakecomputing.cn", Port: 443},
		"u:p@acme.privatelink.snowflakecomputing.com/DB": {User: "u", Password: "p", Account: "acme",
			Host: "acme.privatelink.snowflakecomputing.com", Port: 443, Database: "DB"},
		"u:p@127.0.0.1:8080/DB/S?account=a&protocol=http": {User: "u", Password: "p", Account: "a",
			Host: "127.0.0.1", Port: 8080, Plain: true, Database: "DB", Schema: "S"},
		"u:p@[::1]:8080?account=a&protocol=http": {User: "u", Password: "p", Account: "a", Host: "::1",
			Port: 8080, Plain: true},
		"u:p@a?host=gw.example.com&port=8443": {User: "u", Password: "p", Account: "a",
			Host: "gw.example.com", Port: 8443},
		"u:p@a/%22lower%22/%22we%22%22ird%3B%20one%22?warehouse=w1": {User: "u", Password: "p", Account: "a",
			Host: "a.snowflakecomputing.com", Port: 443, Database: `"lower"`, Schema: `"we""ird; one"`, Warehouse: "w1"},
		"u@a?token=x&login_timeout=7&requestTimeout=9": {User: "u", Account: "a",
			Host: "a.snowflakecomputing.com", Port: 443, Token: "x", Authenticator: sf.AuthTypePat,
			LoginTimeout: 7 * time.Second, ClientTimeout: 9 * time.Second},
		"a?token=x&authenticator=oauth": {Account: "a", Host: "a.snowflakecomputing.com",
			Port: 443, Token: "x", Authenticator: sf.AuthTypeOAuth},
	} {
		got, err := parseDSN(dsn)
		if err != nil {
			t.Errorf("%s: %v", dsn, err)
		} else if *got != want {
			t.Errorf("%s\n got %+v\nwant %+v", dsn, *got, want)
		}
	}
}

// TestPlainHTTPNamesWhatWasWritten: not the host that an account's name would become.
func TestPlainHTTPNamesWhatWasWritten(t *testing.T) {
	for _, host := range []string{"acme.example.com", "acme"} {
		_, err := parseDSN("snowflake://u:p@" + host + "/DB/S?protocol=http")
		if err == nil || !strings.Contains(err.Error(), "and "+host+" is another") {
			t.Error(err)
		}
	}
}

func TestDSNsThatSmuggle(t *testing.T) {
	const secret = "hunter2secret"
	for query, want := range map[string]string{
		"authenticator=externalbrowser":                 "externalbrowser is not allowed",
		"authenticator=ExternalBrowser":                 "externalbrowser is not allowed",
		"authenticator=https%3A%2F%2Fevil.okta.com":     "is not allowed",
		"authenticator=oauth_authorization_code":        "is not allowed",
		"authenticator=username_password_mfa":           "is not allowed",
		"authenticator=workload_identity":               "is not allowed",
		"authenticator=":                                "authenticator is empty",
		"tokenFilePath=%2Fetc%2Fshadow":                 `"tokenFilePath" is not allowed`,
		"TOKENFILEPATH=%2Fetc%2Fshadow":                 `"TOKENFILEPATH" is not allowed`,
		"token%46ilePath=%2Fetc%2Fshadow":               `"tokenFilePath" is not allowed`,
		"tmpDirPath=%2Ftmp":                             `"tmpDirPath" is not allowed`,
		"clientConfigFile=%2Fetc%2Fx":                   `"clientConfigFile" is not allowed`,
		"connectionDiagnosticsEnabled=true":             `"connectionDiagnosticsEnabled" is not allowed`,
		"proxyHost=evil":                                `"proxyHost" is not allowed`,
		"tracing=debug":                                 `"tracing" is not allowed`,
		"disableOCSPChecks=true":                        `"disableOCSPChecks" is not allowed`,
		"QUERY_TAG=x":                                   `"QUERY_TAG" is not allowed`,
		"CLIENT_TELEMETRY_ENABLED=true":                 `"CLIENT_TELEMETRY_ENABLED" is not allowed`,
		"oauthTokenRequestUrl=http%3A%2F%2Fevil":        `"oauthTokenRequestUrl" is not allowed`,
		"protocol=http":                                 "http is allowed to this machine only",
		"protocol=http&host=evil.example.com":           "http is allowed to this machine only",
		"protocol=http&host=127.0.0.1.evil.example.com": "http is allowed to this machine only",
		"protocol=file":                                 `The protocol "file" is not allowed`,
		"host=evil.example.com%2F%3Fa":                  "is not a host",
		"host=http%3A%2F%2Fevil":                        "is not a host",
		"host=user%40evil":                              "is not a host",
		"port=0":                                        "The port",
		"port=443%2F":                                   "The port",
		"warehouse=a&warehouse=b":                       "given twice",
		"privateKey=x&private_key=y":                    "given twice",
		"private_key=%2Fhome%2Fme%2Fkey.p8":             "The private key",
		"private_key=file%3A%2F%2F%2Fkey.p8":            "neither PEM nor base64",
		"warehouse=a%3B%20DROP%20TABLE%20t":             "is not the name of a warehouse",
		"warehouse=%22a%22b%22":                         "quotes in the warehouse do not match",
		"role=%22%22":                                   "quotes in the role do not match",
		"role=a%00b":                                    "NUL",
		"database=" + strings.Repeat("x", 300):          "has 300 characters",
		"schema=%22" + strings.Repeat("x", 300) + "%22": "has 300 characters",
		"login_timeout=-1":                              "login_timeout",
		"%zz=1":                                         "cannot be read",
		"warehouse=%zz":                                 "warehouse cannot be read",
	} {
		_, err := parseDSN("u:" + secret + "@acme/DB?" + query)
		var e *engine.Error
		if !errors.As(err, &e) || e.Code != engine.CodeTarget || !strings.Contains(e.Message, want) || e.Hint == "" {
			t.Errorf("%s: %v", query, err)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the password is in %v", query, err)
		}
	}
	for dsn, want := range map[string]string{
		"": "has no address", "postgres://u:" + secret + "@h/d": "not postgres://", "u:" + secret + "@": "names no account",
		"u:" + secret + "@a b/d":      "is not the name of an account",
		"u:" + secret + "@acme/a/b/c": "parts after the account", "u@acme": "needs a password",
		":" + secret + "@acme": "needs a user", "acme?authenticator=oauth": "needs a token",
		"u@acme?authenticator=snowflake_jwt": "needs a private key", "u:%zz@acme": "password cannot be read",
		"u:" + secret + "@https:%2F%2Facme": "", "u:" + secret + "@acme:x/db": "The port",
		"u:" + secret + "@gw.example.com:443/db": "does not tell the account", "u%00:" + secret + "@acme": "NUL",
		"u:" + secret + "@" + strings.Repeat("a", 300): "is not the name of an account",
	} {
		_, err := parseDSN(dsn)
		var e *engine.Error
		if !errors.As(err, &e) || !strings.Contains(e.Message, want) {
			t.Errorf("%s: %v", dsn, err)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the password is in %v", dsn, err)
		}
	}
}

// TestAmbiguousConnections are refused, with how they are written, and nothing of them is shown.
func TestAmbiguousConnections(t *testing.T) {
	for dsn, hint := range map[string]string{
		"snowflake://u:Zq9@9qZ@acme/db": "%40", "u:Zq9/9qZ@acme/db": "%2F", "u:Zq9?9qZ@acme": "%3F", "u:Zq9#9qZ@acme": "%23",
		"u:x@acme/db@9qZ": "%40", "acme/db?token=Zq9@9qZ": "%40", "u:x@acme?token=a@9qZ": "%40",
		"u:12?role=9qZ@acme": "%3F", "u:x@acme?token=Zq9&9qZ": "%26", "u:x@acme?token=Zq9&9qZ=1": "%26",
		"u:Zq9": "65535", "me@corp.com:Zq9@9qZ@acme/db": "%40", "me:Zq9@corp.com:9qZ@acme/db": "%40",
		"me@corp.com:Zq9/9qZ@acme/db": "%40", "me@corp.com:Zq9?9qZ@acme/db": "%40", "me@corp:Zq9:9qZ@acme": "%40",
	} {
		_, err := parseDSN(dsn)
		if !engine.HasCode(err, engine.CodeTarget) || !strings.Contains(engine.AsError(err).Hint, hint) ||
			strings.Contains(err.Error(), "9qZ") || strings.Contains(err.Error(), "Zq9") {
			t.Errorf("%s: %v", dsn, err)
		}
		if shown, _ := (dsnReader{}).Redact(dsn); shown != "***" {
			t.Errorf("%s is shown as %s", dsn, shown)
		}
		if (dsnReader{}).Validate(dsn) == nil {
			t.Errorf("%s is taken", dsn)
		}
	}
}

// TestEMailLogins are no passwords: nothing stands before their @ that could be one.
func TestEMailLogins(t *testing.T) {
	for dsn, shown := range map[string]string{
		"snowflake://me@corp.com:pw@acct/db":        "snowflake://me%40corp.com:***@acct/db",
		"me.too@mail.corp-1.com:p:w%40@acct/db/s":   "snowflake://me.too%40mail.corp-1.com:***@acct/db/s",
		"snowflake://me@corp.com@acct/db?token=abc": "snowflake://me%40corp.com@acct/db?token=***",
		"snowflake://me%40corp.com:pw@acct/db":      "snowflake://me%40corp.com:***@acct/db",
	} {
		s, err := parseDSN(dsn)
		if err != nil || !strings.Contains(s.User, "@") || s.Account != "acct" || s.Password+s.Token == "" {
			t.Errorf("%s: %+v, %v", dsn, s, err)
		}
		if got, _ := (dsnReader{}).Redact(dsn); got != shown {
			t.Errorf("%s is shown as %s", dsn, got)
		}
	}
}

func FuzzParseDSN(f *testing.F) {
	f.Add("snowflake://u:p@acme/DB/S?warehouse=W&role=%22r%22")
	f.Add("u:p@127.0.0.1:1?account=a&protocol=http&private_key=MIIE&private_key_passphrase=x")
	f.Add("u:p@acme?authenticator=externalbrowser&tmpDirPath=/")
	f.Fuzz(func(t *testing.T, dsn string) {
		s, err := parseDSN(dsn)
		if err != nil {
			var e *engine.Error
			if !errors.As(err, &e) || e.Message == "" {
				t.Fatalf("%q: %v", dsn, err)
			}
			return
		}
		if s.Plain && !isLoopback(s.Host) || strings.ContainsAny(s.Host, "/@?#") || s.Port < 1 || s.Port > 65535 {
			t.Fatalf("%q became %+v", dsn, s)
		}
	})
}

func TestKeys(t *testing.T) {
	plain, err := x509.MarshalPKCS8PrivateKey(testKey)
	if err != nil {
		t.Fatal(err)
	}
	encrypted := map[string][]byte{}
	for name, opts := range map[string]*pkcs8.Opts{
		"aes-256, pbkdf2": pkcs8.DefaultOpts,
		"aes-128, scrypt": {Cipher: pkcs8.AES128CBC,
			KDFOpts: pkcs8.ScryptOpts{SaltSize: 8, CostParameter: 1 << 10, BlockSize: 8, ParallelizationParameter: 1}},
		"3des": {Cipher: pkcs8.TripleDESCBC,
			KDFOpts: pkcs8.PBKDF2Opts{SaltSize: 8, IterationCount: 1000, HMACHash: crypto.SHA1}},
	} {
		if encrypted[name], err = pkcs8.MarshalPrivateKey(testKey, []byte("pass phrase"), opts); err != nil {
			t.Fatal(name, err)
		}
	}
	good := map[string][2]string{
		"pkcs8": {pemOf("PRIVATE KEY", plain)}, "pkcs1": {pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(testKey))},
		"base64":                      {base64.StdEncoding.EncodeToString(plain)},
		"base64 for URLs":             {base64.RawURLEncoding.EncodeToString(plain)},
		"with an unneeded passphrase": {pemOf("PRIVATE KEY", plain), "x"},
	}
	for name, der := range encrypted {
		good[name] = [2]string{pemOf("ENCRYPTED PRIVATE KEY", der), "pass phrase"}
		good[name+", base64"] = [2]string{base64.StdEncoding.EncodeToString(der), "pass phrase"}
	}
	for name, k := range good {
		got, err := parseKey(k[0], k[1])
		if err != nil || !got.Equal(testKey) {
			t.Errorf("%s: %v", name, err)
		}
		s, err := parseDSN("u@acme?private_key=" + url.QueryEscape(k[0]) + "&private_key_passphrase=" + url.QueryEscape(k[1]))
		if err != nil || s.Authenticator != sf.AuthTypeJwt || !s.Key.Equal(testKey) {
			t.Errorf("%s in a DSN: %v", name, err)
		}
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ecDER, _ := x509.MarshalPKCS8PrivateKey(ec)
	costly, err := pkcs8.MarshalPrivateKey(testKey, []byte("x"),
		&pkcs8.Opts{Cipher: pkcs8.AES256CBC,
			KDFOpts: pkcs8.PBKDF2Opts{SaltSize: 8, IterationCount: 1000, HMACHash: crypto.SHA256}})
	if err != nil {
		t.Fatal(err)
	}
	// An iteration count of a thousand becomes one of two billion, which would take minutes.
	at := bytes.Index(costly, []byte{2, 2, 3, 0xe8})
	costly = append(append(append([]byte{}, costly[:at]...), 2, 4, 0x7f, 0xff, 0xff, 0xff), costly[at+4:]...)
	for at := range costly[:64] { // the lengths around it
		if costly[at] == 0x30 && at < 64 && at+1 < len(costly) {
			switch {
			case costly[at+1] == 0x82:
				n := int(costly[at+2])<<8 + int(costly[at+3]) + 2
				costly[at+2], costly[at+3] = byte(n>>8), byte(n)
			case at+2+int(costly[at+1]) > bytes.Index(costly, []byte{2, 4, 0x7f}) && costly[at+1] < 0x7e &&
				at < bytes.Index(costly, []byte{2, 4, 0x7f}):
				costly[at+1] += 2
			}
		}
	}
	locked := pemOf("ENCRYPTED PRIVATE KEY", encrypted["aes-256, pbkdf2"])
	for name, k := range map[string][3]string{
		"no passphrase":    {locked, "", "is encrypted"},
		"wrong passphrase": {locked, "guess", "cannot be decrypted"},
		"an EC key":        {pemOf("PRIVATE KEY", ecDER), "", "not an RSA key"},
		"a public key":     {pemOf("PUBLIC KEY", mustPublic()), "", "cannot be read"},
		"a costly one":     {pemOf("ENCRYPTED PRIVATE KEY", costly), "x", "costs too much"},
		"a path":           {"/home/me/rsa_key.p8", "", "The private key"},
		"old PEM": {"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: " +
			"DES-EDE3-CBC,0011223344556677\n\nAAAA\n-----END RSA PRIVATE KEY-----\n", "x", "old format"},
		"cut off": {base64.StdEncoding.EncodeToString(plain[:100]), "", "cannot be read"},
		"garbage": {base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0x30}, 500)), "x", "cannot be read"},
	} {
		_, err := parseKey(k[0], k[1])
		var e *engine.Error
		if !errors.As(err, &e) || !strings.Contains(e.Message, k[2]) || e.Hint == "" ||
			strings.Contains(fmt.Sprint(err), k[0]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func mustPublic() []byte {
	b, err := x509.MarshalPKIXPublicKey(testKey.Public())
	if err != nil {
		panic(err)
	}
	return b
}

func FuzzParseKey(f *testing.F) {
	plain, _ := x509.MarshalPKCS8PrivateKey(testKey)
	f.Add(pemOf("PRIVATE KEY", plain), "")
	f.Add(base64.StdEncoding.EncodeToString(plain), "x")
	f.Fuzz(func(t *testing.T, text, passphrase string) {
		if k, err := parseKey(text, passphrase); (k == nil) == (err == nil) {
			t.Fatal(k, err)
		}
	})
}
