package dsn

import (
	"crypto/tls"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/schema"
)

// Parameters are what libpq documents, up to version 18, and what pgx and Loadstone know besides.
// docs/reference/postgres.md says how each is honoured.
var Parameters = []string{
	"application_name",
	"authtype",
	"channel_binding",
	"client_encoding",
	"connect_timeout",
	"dbname",
	"fallback_application_name",
	"gssdelegation",
	"gssencmode",
	"gsslib",
	"host",
	"hostaddr",
	"inspect_role",
	"keepalives",
	"keepalives_count",
	"keepalives_idle",
	"keepalives_interval",
	"krbspn",
	"krbsrvname",
	"load_balance_hosts",
	"max_protocol_version",
	"min_protocol_version",
	"oauth_client_id",
	"oauth_client_secret",
	"oauth_issuer",
	"oauth_scope",
	"options",
	"passfile",
	"password",
	"port",
	"replication",
	"require_auth",
	"requirepeer",
	"requiressl",
	"scram_client_key",
	"scram_server_key",
	"service",
	"servicefile",
	"ssl",
	"ssl_max_protocol_version",
	"ssl_min_protocol_version",
	"sslcert",
	"sslcertmode",
	"sslcompression",
	"sslcrl",
	"sslcrldir",
	"sslkey",
	"sslkeylogfile",
	"sslmode",
	"sslnegotiation",
	"sslpassword",
	"sslrootcert",
	"sslsni",
	"target_session_attrs",
	"tcp_user_timeout",
	"timezone",
	"tty",
	"user",
}

// choices are parameters that have a few values, in the order of libpq's documents.
var choices = map[string][]string{
	"channel_binding": {"disable", "prefer", "require"}, "gssencmode": {"disable", "prefer", "require"},
	"gssdelegation": {"0", "1"}, "keepalives": {"0", "1"}, "load_balance_hosts": {"disable", "random"},
	"max_protocol_version": {"3.0", "3.2", "latest"}, "min_protocol_version": {"3.0", "3.2", "latest"},
	"requiressl": {"0", "1"}, "sslcertmode": {"disable", "allow", "require"}, "sslcompression": {"0", "1"},
	"sslmode":        {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"},
	"sslnegotiation": {"postgres", "direct"}, "sslsni": {"0", "1"},
	"ssl_max_protocol_version": tlsNames, "ssl_min_protocol_version": tlsNames,
	"target_session_attrs": {"any", "read-write", "read-only", "primary", "standby", "prefer-standby"},
}

var (
	tlsNames    = []string{"TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"}
	tlsVersions = map[string]uint16{"tlsv1": tls.VersionTLS10, "tlsv1.1": tls.VersionTLS11, "tlsv1.2": tls.VersionTLS12,
		"tlsv1.3": tls.VersionTLS13}
)

// missing are parameters that are not supported, with the values that ask for nothing, and what to do.
var missing = map[string]struct {
	harmless []string
	hint     string
}{
	"authtype": {nil, "Leave it out: no Postgres has known it since version 7."},
	"tty":      {nil, "Leave it out: no Postgres has known it since version 7."},
	"gssencmode": {[]string{"disable", "prefer"},
		"Use TLS (sslmode=require): encryption by GSSAPI is not built in. prefer and disable are taken, and mean the same."},
	"gssdelegation":       {[]string{"0"}, "Leave it out: signing in by GSSAPI is not built in."},
	"gsslib":              {[]string{"gssapi"}, "Leave it out: signing in by GSSAPI is not built in."},
	"oauth_issuer":        {nil, oauthHint},
	"oauth_client_id":     {nil, oauthHint},
	"oauth_client_secret": {nil, oauthHint},
	"oauth_scope":         {nil, oauthHint},
	"scram_client_key":    {nil, "Give the password instead: keys of SCRAM are not taken in its place."},
	"scram_server_key":    {nil, "Give the password instead: keys of SCRAM are not taken in its place."},
	"sslkeylogfile":       {nil, "Leave it out: keys of TLS sessions are written nowhere."},
}

const oauthHint = "Use a password or a certificate: signing in by OAuth is not built in."

// environment are variables that psql takes, and pgx does not. PGCLIENTENCODING is none of them: it is for what is
// shown to a person, and values travel as UTF-8.
var environment = map[string]string{"hostaddr": "PGHOSTADDR", "requirepeer": "PGREQUIREPEER",
	"sslcrl": "PGSSLCRL", "sslcrldir": "PGSSLCRLDIR", "sslcompression": "PGSSLCOMPRESSION", "gssencmode": "PGGSSENCMODE",
	"ssl_min_protocol_version": "PGSSLMINPROTOCOLVERSION", "ssl_max_protocol_version": "PGSSLMAXPROTOCOLVERSION",
	"load_balance_hosts": "PGLOADBALANCEHOSTS", "gssdelegation": "PGGSSDELEGATION",
	"gsslib": "PGGSSLIB"}

// own are the parameters that pgx would send to the server as settings of the session, and that are none.
var own = []string{
	"authtype",
	"fallback_application_name",
	"gssdelegation",
	"gssencmode",
	"gsslib",
	"hostaddr",
	"keepalives",
	"keepalives_count",
	"keepalives_idle",
	"keepalives_interval",
	"load_balance_hosts",
	"oauth_client_id",
	"oauth_client_secret",
	"oauth_issuer",
	"oauth_scope",
	"requirepeer",
	"requiressl",
	"scram_client_key",
	"scram_server_key",
	"ssl_max_protocol_version",
	"ssl_min_protocol_version",
	"sslcompression",
	"sslcrl",
	"sslcrldir",
	"sslkeylogfile",
	"tcp_user_timeout",
	"tty",
}

// invalid is the error of a parameter. It does not repeat the value, which may be a piece of something else.
func invalid(key, why, hint string) error {
	return &engine.Error{Code: engine.CodeTarget, Message: fmt.Sprintf("The parameter %s of the connection %s.", key, why),
		Hint: hint}
}

// checkValues refuses values that a parameter does not have, and parameters that are not supported.
func checkValues(m map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(m)) {
		value := m[key]
		if no, ok := missing[key]; ok && value != "" && !slices.Contains(no.harmless, value) &&
			(choices[key] == nil || slices.Contains(choices[key], value)) {
			return invalid(key, "is not supported", no.hint)
		}
		list := choices[key]
		if value == "" || list == nil || slices.ContainsFunc(list, func(v string) bool {
			return v == value || strings.HasPrefix(key, "ssl_m") && strings.EqualFold(v, value)
		}) {
			continue
		}
		return &engine.Error{Code: engine.CodeTarget, Hint: wordsFor(key, value, list),
			Message: fmt.Sprintf("The connection string cannot be used: its %s is none of %s.", key, strings.Join(list, ", "))}
	}
	return nil
}

// maxConnectTimeout is in seconds. pgx multiplies what is given without a bound: 292 years are less than none.
const maxConnectTimeout = 3600

// checkTimeout refuses a connect_timeout that is too long, as it is written and as pgx has read it.
func (r Reader) checkTimeout(m map[string]string, read time.Duration) error {
	text := m["connect_timeout"]
	if text == "" && !r.Strict {
		text = os.Getenv("PGCONNECT_TIMEOUT")
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	if n <= maxConnectTimeout && read >= 0 && read <= maxConnectTimeout*time.Second {
		return nil
	}
	return invalid(
		"connect_timeout",
		fmt.Sprintf("is above %d seconds", maxConnectTimeout),
		"Write seconds for each host, "+
			"such as 10; 0 is the default.",
	)
}

// complete adds to the parameters what they imply, and reports whether it has.
func (r Reader) complete(m map[string]string) (changed bool) {
	if _, service := m["service"]; m["hostaddr"] == "" && !r.Strict && !service {
		if list := os.Getenv(environment["hostaddr"]); list != "" {
			m["hostaddr"], changed = list, true
		}
	}
	if m["hostaddr"] != "" && m["host"] == "" && m["service"] == "" && (r.Strict || os.Getenv("PGSERVICE") == "") {
		m["host"], changed = m["hostaddr"], true
		if host := os.Getenv("PGHOST"); host != "" && !r.Strict {
			m["host"] = host
		}
	}
	if m["requiressl"] == "1" && m["sslmode"] == "" {
		m["sslmode"], changed = "require", true
	}
	return changed
}

// extras are the parameters that pgx does not honour.
type extras struct {
	addresses      []netip.Addr // hostaddr; one that is not valid leaves its host to be looked up
	name           string       // fallback_application_name
	socket         socketOptions
	peer           string // requirepeer
	oldest, newest uint16 // versions of TLS, 0 for any
	revoked        *revocations
	home           string // a file of lists that nobody has named
	balanced       bool
}

// takeExtras removes from the settings of a session what belongs to the connection, and reads it.
func (r Reader) takeExtras(params map[string]string) (*extras, error) {
	m := map[string]string{}
	for _, key := range own {
		if value, ok := params[key]; ok {
			m[key] = value
			delete(params, key)
		}
	}
	if !r.Strict {
		for key, variable := range environment {
			if value := os.Getenv(variable); value != "" && m[key] == "" && key != "hostaddr" {
				m[key] = value
			}
		}
	}
	if err := checkValues(m); err != nil {
		return nil, err
	}
	if params["client_encoding"] == "auto" { // psql's word for that of the terminal
		delete(params, "client_encoding")
	}
	x := &extras{
		name:     m["fallback_application_name"],
		peer:     m["requirepeer"],
		balanced: m["load_balance_hosts"] == "random",
		oldest:   tlsVersions[strings.ToLower(m["ssl_min_protocol_version"])],
		newest:   tlsVersions[strings.ToLower(m["ssl_max_protocol_version"])],
	}
	if x.newest != 0 && x.oldest > x.newest {
		return nil, invalid(
			"ssl_min_protocol_version",
			"is above ssl_max_protocol_version",
			"Exchange the two, or leave one out.",
		)
	}
	if x.newest != 0 && x.newest < tls.VersionTLS12 && x.oldest == 0 {
		x.oldest = x.newest // else there would be none: TLSv1.2 is the oldest that is taken unasked
	}
	var err error
	if x.addresses, err = readAddresses(m["hostaddr"]); err != nil {
		return nil, err
	}
	if x.socket, err = readSocketOptions(m); err != nil {
		return nil, err
	}
	if x.revoked, err = readRevocations(m["sslcrl"], m["sslcrldir"]); err != nil {
		return nil, err
	}
	if x.revoked == nil {
		x.home = r.homeList()
	}
	return x, nil
}

func readAddresses(list string) (all []netip.Addr, err error) {
	if list == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(list, ",") {
		var address netip.Addr
		if text != "" {
			if address, err = netip.ParseAddr(text); err != nil {
				return nil, invalid(
					"hostaddr",
					"is no IP address",
					"Write it as 10.0.0.7 or fd00::7, one for each host; a name is "+
						"written as host.",
				)
			}
		}
		all = append(all, address)
	}
	return all, nil
}

// readSocketOptions reads keepalives and tcp_user_timeout.
func readSocketOptions(m map[string]string) (o socketOptions, err error) {
	number := func(key string) int {
		text := strings.Trim(m[key], spaces)
		if text == "" {
			return 0
		}
		n, wrong := strconv.Atoi(text)
		if (wrong != nil || n > math.MaxInt32) && err == nil {
			err = invalid(key, "is no whole number", "Write seconds for keepalives_idle and keepalives_interval, a count for "+
				"keepalives_count, and milliseconds for tcp_user_timeout.")
		}
		return max(n, 0) // libpq takes less than none for the system's
	}
	o.keepAlive.Enable = m["keepalives"] != "0"
	o.given = m["keepalives"] != ""
	// What is not given is the system's own, as it is to libpq.
	o.keepAlive.Idle, o.keepAlive.Interval, o.keepAlive.Count = -1, -1, -1
	if n := number("keepalives_idle"); n > 0 {
		o.keepAlive.Idle, o.given = time.Duration(n)*time.Second, true
	}
	if n := number("keepalives_interval"); n > 0 {
		o.keepAlive.Interval, o.given = time.Duration(n)*time.Second, true
	}
	if n := number("keepalives_count"); n > 0 {
		o.keepAlive.Count, o.given = n, true
	}
	o.userTimeout = number("tcp_user_timeout")
	return o, err
}

// apply puts into a configuration what belongs there. What concerns sockets follows with dial.
func (x *extras) apply(c *pgx.ConnConfig) error {
	if c.RuntimeParams["application_name"] == "" && x.name != "" {
		c.RuntimeParams["application_name"] = x.name
	}
	if err := x.setAddresses(c); err != nil {
		return err
	}
	if err := x.readHome(c); err != nil {
		return err
	}
	for _, f := range attempts(c) {
		t := f.TLSConfig
		if t == nil {
			continue
		}
		if x.oldest != 0 {
			t.MinVersion = x.oldest
		}
		t.MaxVersion = x.newest
		if verifies(t) && x.revoked != nil {
			t.VerifyConnection = func(s tls.ConnectionState) error { return x.revoked.check(t.RootCAs, s) }
		}
	}
	return nil
}

// attempts are all that a configuration tries, in order.
func attempts(c *pgx.ConnConfig) []*pgconn.FallbackConfig {
	return append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
}

// setAttempts is what attempts returns, put back.
func setAttempts(c *pgx.ConnConfig, all []*pgconn.FallbackConfig) {
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = all[0].Host, all[0].Port, all[0].TLSConfig, all[1:]
}

// hosts are the attempts of a configuration by the host that each is at: sslmode allow and prefer make two of each.
func hosts(c *pgx.ConnConfig) (groups [][]*pgconn.FallbackConfig) {
	var before *pgconn.FallbackConfig
	for _, f := range attempts(c) {
		if n := len(groups); n > 0 && len(groups[n-1]) == 1 && before.Host == f.Host && before.Port == f.Port &&
			(before.TLSConfig == nil) != (f.TLSConfig == nil) {
			groups[n-1] = append(groups[n-1], f)
		} else {
			groups = append(groups, []*pgconn.FallbackConfig{f})
		}
		before = f
	}
	return groups
}

// setAddresses has the addresses of hostaddr dialled in place of their hosts, whose names TLS goes on to verify. To all
// that follows, and to who judges where connections lead, the address is the host: what a user calls it says nothing.
func (x *extras) setAddresses(c *pgx.ConnConfig) error {
	if x.addresses == nil {
		return nil
	}
	groups := hosts(c)
	if len(groups) != len(x.addresses) {
		return invalid("hostaddr", fmt.Sprintf("has %d addresses, and there are %d hosts", len(x.addresses), len(groups)),
			"Give an address for each host, or none: hostaddr=10.0.0.7,10.0.0.8 for host=a,b.")
	}
	for i, group := range groups {
		for _, f := range group {
			if !x.addresses[i].IsValid() {
				continue
			}
			if network, _ := pgconn.NetworkAddress(f.Host, f.Port); network == "unix" {
				return invalid("hostaddr", "is an address, and the host is the folder of a socket",
					"Leave one of the two out, or write the server's name as host.")
			}
			f.Host = x.addresses[i].String()
		}
	}
	setAttempts(c, slices.Concat(groups...))
	return nil
}

// wordsFor is the hint for a value that a parameter does not have. It names a value that was likely meant.
func wordsFor(key, value string, list []string) string {
	if near := schema.Nearest(strings.ToLower(value), list); near != "" {
		return fmt.Sprintf("Write %s=%s, or leave it out.", key, near)
	}
	return "Write one of them, or leave it out."
}
