package dsn

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/target"
)

// fileKeys name files of the machine that connects. The certificates among them
// may hold the PEM text itself in place of a file's name.
var fileKeys = []string{"passfile", "service", "servicefile", "sslcert", "sslkey", "sslrootcert", "sslcrl", "sslcrldir",
	"sslkeylogfile", "krb_server_keyfile"}

// tlsKeys are the file keys that can be pasted.
var tlsKeys = []string{"sslcert", "sslkey", "sslrootcert", "sslcrl"}

// isSecret reports whether a parameter's value is never shown. Names that
// Postgres does not know may be a mistake around a real password.
func isSecret(key string) bool {
	key = strings.ToLower(key)
	if key == "passfile" {
		return false
	}
	for _, part := range []string{"pass", "pwd", "secret", "token", "sslkey", "private", "scram"} {
		if strings.Contains(key, part) {
			return true
		}
	}
	return false
}

// hides reports whether a parameter is not shown: of a key, its file's name is.
func hides(key, value string) bool {
	return isSecret(key) && (key != "sslkey" || isInlinePEM(value) || value == target.Mask)
}

// isInlinePEM reports whether a parameter holds a certificate or key, not a file's name.
func isInlinePEM(value string) bool {
	return strings.Contains(value, "-----BEGIN ") || strings.Contains(value, "-----BEGIN+")
}

// unescapePEM undoes what forms do to the spaces of a PEM text. Here, as to libpq, a plus in a
// URL is a plus; but none belongs to the lines that begin and end such a text.
func unescapePEM(value string) string {
	lines := strings.Split(value, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "-----") {
			lines[i] = strings.ReplaceAll(line, "+", " ")
		}
	}
	return strings.Join(lines, "\n")
}

// Reader reads connection strings.
type Reader struct {
	// Strict is for connection strings that come from others than the person who runs the process: they name no files
	// of this machine, and nothing is added to them from the environment or the home folder.
	Strict bool
	// Egress judges the addresses that are dialled; nil judges none.
	Egress *egress.Policy
	// Own are databases that no connection may land in, as they are when one is opened; nil is none.
	Own func() []engine.OwnDatabase
}

// Redact implements target.SecretRedactor. The text is kept as it was written if
// it still means the same with its secrets masked; else it is written anew.
func (r Reader) Redact(dsn string) (shown string, secrets []string) {
	s, err := readSettings(dsn)
	if err != nil {
		return target.Mask, []string{dsn}
	}
	want := s.effective()
	for key := range want {
		if hides(key, want[key]) {
			want[key] = target.Mask
		}
	}
	if r.ambiguous(s.url, want) {
		return target.Mask, []string{dsn}
	}
	var b strings.Builder
	at := 0
	for _, p := range s.list {
		if !hides(p.key, p.value) {
			if strings.Contains(p.value, target.Mask) {
				secrets = append(secrets, target.Mask) // somebody meant one here
			}
			continue
		}
		secrets = append(secrets, p.value)
		if written := dsn[p.from:p.to]; written != p.value {
			secrets = append(secrets, written)
		}
		b.WriteString(dsn[at:p.from])
		b.WriteString(target.Mask)
		at = p.to
	}
	shown = b.String() + dsn[at:]
	if again, err := readSettings(shown); err != nil || !maps.Equal(again.effective(), want) {
		shown = s.write(want)
	}
	return shown, secrets
}

// ambiguous reports that a connection string, read by the rules, is not what
// somebody meant: part of a password may stand where a host or a port is expected.
func (r Reader) ambiguous(url bool, m map[string]string) bool {
	if !plainHosts(m["host"]) {
		return true
	}
	if url && strings.Contains(m["database"], "@") {
		return true
	}
	// What pgx refuses may be cut elsewhere than it seems.
	plain := maps.Clone(m)
	for _, key := range fileKeys {
		delete(plain, key)
	}
	Reader{Strict: true}.complete(plain) // or the addresses of hostaddr are missing, of which each has a port
	_, err := r.parseAlone(plain)
	return err != nil
}

// RestoreSecrets implements target.SecretRedactor.
func (r Reader) RestoreSecrets(shown, stored string) (string, error) {
	if again, _ := r.Redact(stored); again == shown {
		return stored, nil
	}
	a, err := readSettings(shown)
	if err != nil {
		return "", explainDSN(err)
	}
	b, err := readSettings(stored)
	if err != nil {
		return "", target.ErrOtherAddress
	}
	joined, saved := a.effective(), b.effective()
	for key, value := range joined {
		if !isSecret(key) && strings.Contains(value, target.Mask) {
			return "", target.ErrOtherAddress
		}
		if !isSecret(key) || value != target.Mask {
			continue
		}
		secret, ok := saved[key]
		if !ok || secret == target.Mask {
			return "", target.ErrOtherAddress
		}
		joined[key] = secret
	}
	text := a.write(joined)
	to, err := r.Read(text)
	if err != nil {
		return "", err
	}
	from, err := r.Read(stored)
	if err != nil || !sameAddress(to.ConnConfig, from.ConnConfig) || to.Password != from.Password {
		return "", target.ErrOtherAddress
	}
	for _, key := range slices.Concat(fileKeys, []string{"hostaddr", "options", "requirepeer"}) {
		if joined[key] != saved[key] {
			return "", target.ErrOtherAddress
		}
	}
	return text, nil
}

// Validate implements target.SecretRedactor.
func (r Reader) Validate(dsn string) error {
	if strings.TrimSpace(dsn) == "" {
		return ErrNoAddress
	}
	c, err := r.Config(dsn)
	if err != nil || r.Egress == nil {
		return err
	}
	return r.checkHosts(dsn, c)
}

// ErrNoAddress is the error of an empty connection string.
//
//nolint:gosec // an example, no password
var ErrNoAddress = &engine.Error{
	Code:    engine.CodeTarget,
	Message: "The connection has no address.",
	Hint:    "Write it as postgres://user:password@host:5432/database.",
}

// Config returns what a connection string means, for one connect.
func (r Reader) Config(dsn string) (*pgx.ConnConfig, error) {
	c, err := r.Read(dsn)
	if err != nil {
		return nil, err
	}
	return c.Next(), nil
}

// Read returns what a connection string means.
func (r Reader) Read(dsn string) (Config, error) {
	s, err := readSettings(dsn)
	if err != nil {
		return Config{}, explainDSN(err)
	}
	m := s.effective()
	if r.Strict {
		if err := checkSettings(m); err != nil {
			return Config{}, err
		}
	}
	if err := checkValues(m); err != nil {
		return Config{}, err
	}
	changed := r.complete(m)
	certificates, err := takeInlinePEM(m)
	if err != nil {
		return Config{}, err
	}
	if certificates == nil || certificates.own == nil {
		own, err := r.takeKeyFile(m)
		if err != nil {
			return Config{}, err
		}
		certificates = certificates.with(own)
	}
	var config *pgx.ConnConfig
	switch {
	case r.Strict:
		config, err = r.parseAlone(m)
	case certificates != nil || changed:
		config, err = pgx.ParseConfig(s.write(m))
	default:
		config, err = pgx.ParseConfig(dsn)
	}
	if err != nil {
		return Config{}, explainDSN(err)
	}
	if err := r.checkTimeout(m, config.ConnectTimeout); err != nil {
		return Config{}, err
	}
	certificates.apply(config)
	more, err := r.takeExtras(config.RuntimeParams)
	if err != nil {
		return Config{}, err
	}
	if err := more.apply(config); err != nil {
		return Config{}, err
	}
	if r.Egress != nil {
		if err := r.checkSockets(config); err != nil {
			return Config{}, err
		}
		r.dialWithPolicy(config)
	}
	if r.Own != nil {
		r.refuseOwn(config)
	}
	if r.Strict {
		if err := r.check(config); err != nil {
			return Config{}, err
		}
	}
	more.dial(config)
	return Config{config, more.balanced}, nil
}

// defaults are the parameters that pgx would take from the environment and from
// files of the user that the process runs as, with the values that libpq has
// without both. The user is added, because pgx ignores an empty one.
var defaults = map[string]string{
	"host": "", "port": "", "database": "", "password": "", "passfile": "", "application_name": "", "connect_timeout": "0",
	"sslmode": "prefer", "sslkey": "", "sslcert": "", "sslcertmode": "allow", "sslsni": "1", "sslrootcert": "",
	"sslpassword":    "",
	"sslnegotiation": "", "target_session_attrs": "any", "timezone": "", "options": "", "min_protocol_version": "",
	"max_protocol_version": "", "channel_binding": "", "require_auth": "",
}

// parseAlone makes a configuration of these parameters and nothing else: not of
// the environment, nor of ~/.pgpass, a service file, or ~/.postgresql.
func (r Reader) parseAlone(m map[string]string) (*pgx.ConnConfig, error) {
	all := maps.Clone(defaults)
	maps.Copy(all, m)
	if all["user"] == "" {
		who, err := user.Current()
		if err != nil {
			return nil, fmt.Errorf("finding the default user: %w", err)
		}
		all["user"] = who.Username
	}
	// pgx follows it whatever a connection string says, and has no other way to be kept from it.
	if _, set := os.LookupEnv("PGSERVICE"); set && r.Strict {
		if err := os.Unsetenv("PGSERVICE"); err != nil {
			return nil, fmt.Errorf("leaving PGSERVICE out: %w", err)
		}
	}
	config, err := pgx.ParseConfig(writePairs(all))
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"timezone", "options", "application_name"} {
		if config.RuntimeParams[key] == "" {
			delete(config.RuntimeParams, key)
		}
	}
	return config, nil
}

// certificates are what a connection string holds itself.
type certificates struct {
	roots *x509.CertPool
	own   []tls.Certificate
}

// takeInlinePEM removes pasted certificates from the parameters, and reads them.
func takeInlinePEM(m map[string]string) (*certificates, error) {
	if !slices.ContainsFunc(tlsKeys, func(key string) bool { return key != "sslcrl" && isInlinePEM(m[key]) }) {
		return nil, nil
	}
	refuse := func(key, format string, args ...any) error {
		return &engine.Error{Code: engine.CodeTarget,
			Message: fmt.Sprintf("The parameter %s cannot be used: ", key) + fmt.Sprintf(format, args...) + ".",
			Hint: "Paste the whole PEM text, from -----BEGIN to the end of the -----END line; in a URL it is " +
				"percent-encoded."}
	}
	for _, key := range tlsKeys {
		if isInlinePEM(m[key]) {
			m[key] = unescapePEM(m[key])
		}
	}
	c := &certificates{}
	if text := m["sslrootcert"]; isInlinePEM(text) {
		c.roots = x509.NewCertPool()
		if !c.roots.AppendCertsFromPEM([]byte(text)) {
			return nil, refuse("sslrootcert", "there is no certificate in it")
		}
		delete(m, "sslrootcert")
		if m["sslmode"] == "require" {
			m["sslmode"] = "verify-ca" // as libpq does where there is a root certificate
		}
	}
	if isInlinePEM(m["sslcert"]) || isInlinePEM(m["sslkey"]) {
		if !isInlinePEM(m["sslcert"]) || !isInlinePEM(m["sslkey"]) {
			given, missing := "sslcert", "sslkey"
			if !isInlinePEM(m[given]) {
				given, missing = missing, given
			}
			return nil, &engine.Error{Code: engine.CodeTarget,
				Message: fmt.Sprintf("The parameter %s cannot be used: %s belongs to it, and is not there.", given, missing),
				Hint:    fmt.Sprintf("Paste %s too, as PEM text; sslcert and sslkey come both or neither.", missing)}
		}
		plain, err := decryptKey(m["sslkey"], m["sslpassword"])
		if err != nil {
			return nil, invalid("sslkey", "cannot be used: "+err.Error(),
				"Give the passphrase of the key as sslpassword; both are kept encrypted here, and not shown again.")
		}
		pair, err := tls.X509KeyPair([]byte(m["sslcert"]), []byte(plain))
		if err != nil {
			key, what := pairProblem(m["sslcert"], plain, err)
			if what == otherKey {
				return nil, &engine.Error{Code: engine.CodeTarget,
					Message: fmt.Sprintf("The parameter %s cannot be used: %s.", key, what),
					Hint:    "Paste the key that the certificate was requested with."}
			}
			return nil, refuse(key, "%s", what)
		}
		c.own = []tls.Certificate{pair}
		// They are named to be empty, or pgx looks for the files of the user's home.
		m["sslcert"], m["sslkey"] = "", ""
		delete(m, "sslpassword")
	}
	return c, nil
}

// otherKey is the problem of two texts that are each whole and do not belong together.
const otherKey = "it does not belong to the certificate of sslcert"

// pairProblem says which of a pasted certificate and its key is wrong, and how; it
// repeats nothing of the key.
func pairProblem(cert, key string, err error) (parameter, what string) {
	text := err.Error()
	switch {
	case strings.Contains(text, "may have been switched"):
		return "sslcert", "it holds a key; the two are exchanged"
	case strings.Contains(text, "certificate rather than a key"):
		return "sslkey", "it holds a certificate in place of a key"
	case strings.Contains(text, "does not match"):
		return "sslkey", otherKey
	case strings.Contains(text, "in key input"):
		return "sslkey", "there is no whole key in it"
	case strings.Contains(text, "in certificate input"):
		return "sslcert", "there is no whole certificate in it"
	}
	if block, _ := pem.Decode([]byte(cert)); block != nil {
		if _, wrong := x509.ParseCertificate(block.Bytes); wrong != nil {
			return "sslcert", "it is damaged"
		}
	}
	return "sslkey", "it is damaged, or of a kind that is not known"
}

// with adds a certificate of one's own to what a connection string holds.
func (c *certificates) with(more *certificates) *certificates {
	if c == nil || more == nil {
		return cmp.Or(c, more)
	}
	c.own = more.own
	return c
}

// apply puts pasted certificates into every TLS configuration. pgx verifies
// through the pointer that it made, so they are changed in place.
func (c *certificates) apply(config *pgx.ConnConfig) {
	if c == nil {
		return
	}
	all := []*tls.Config{config.TLSConfig}
	for _, f := range config.Fallbacks {
		all = append(all, f.TLSConfig)
	}
	for _, t := range all {
		if t == nil {
			continue
		}
		if c.roots != nil {
			t.RootCAs = c.roots
		}
		if c.own != nil {
			t.Certificates = c.own
		}
	}
}

// sameAddress reports that both lead to the same servers in the same order, as the
// same user, under the same protection.
func sameAddress(a, b *pgx.ConnConfig) bool {
	hosts := func(c *pgx.ConnConfig) []*pgconn.FallbackConfig {
		return append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	}
	return a.User == b.User && a.SSLNegotiation == b.SSLNegotiation && a.SSLCertMode == b.SSLCertMode &&
		a.ChannelBinding == b.ChannelBinding &&
		a.RequireAuth == b.RequireAuth && a.KerberosSrvName == b.KerberosSrvName && a.KerberosSpn == b.KerberosSpn &&
		slices.EqualFunc(hosts(a), hosts(b), func(x, y *pgconn.FallbackConfig) bool {
			return x.Host == y.Host && x.Port == y.Port && sameTLS(x.TLSConfig, y.TLSConfig)
		})
}

func sameTLS(a, b *tls.Config) bool {
	if a == nil || b == nil {
		return a == b
	}
	roots := a.RootCAs == nil && b.RootCAs == nil || a.RootCAs != nil && b.RootCAs != nil && a.RootCAs.Equal(b.RootCAs)
	return roots && a.InsecureSkipVerify == b.InsecureSkipVerify && a.ServerName == b.ServerName &&
		slices.Equal(a.NextProtos, b.NextProtos) &&
		(a.VerifyPeerCertificate == nil) == (b.VerifyPeerCertificate == nil) &&
		a.MinVersion == b.MinVersion && a.MaxVersion == b.MaxVersion &&
		slices.EqualFunc(a.Certificates, b.Certificates, func(x, y tls.Certificate) bool {
			return slices.EqualFunc(x.Certificate, y.Certificate, slices.Equal)
		})
}

var errNoFiles = errors.New("names a file of the server")
