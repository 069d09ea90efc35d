// This part reads connection strings of Snowflake and says in words what is wrong with them, never repeating a secret.
// It takes less than gosnowflake does: nothing that names files of this machine, proxies, or other hosts than an
// account's. Private keys are read too, within bounds of what decrypting may cost. Connection strings are shown without
// their secrets, and saved secrets are put back only where they go to the same account, as the same user, by the same
// sign-in.

package snowflake

import (
	"cmp"
	"crypto/rsa"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	sf "github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/engine"
)

// accountSettings are what a DSN says.
type accountSettings struct {
	User, Password   string
	Account, Host    string
	Port             int
	Plain            bool // http, to this machine
	Database, Schema string
	Warehouse, Role  string
	SecondaryRoles   string // ALL, NONE; empty is the user's default
	Authenticator    sf.AuthType
	Token            string
	Key              *rsa.PrivateKey
	// Those of OAuth client credentials, whose tokens are access tokens of AuthTypeOAuth.
	ClientID, ClientSecret, TokenURL, Scope string
	// IdentityProvider is that of workload identity federation, EntraResource Azure's for whom tokens are made.
	IdentityProvider, EntraResource string
	LoginTimeout, ClientTimeout     time.Duration
}

const dsnForm = "Write it as snowflake://USER:PASSWORD@ACCOUNT/DATABASE/SCHEMA?warehouse=WAREHOUSE&role=ROLE."

func refuse(field, hint, format string, args ...any) error {
	return &engine.Error{Code: engine.CodeTarget, Message: fmt.Sprintf(format, args...), Hint: hint,
		Cause: &fieldError{field}}
}

// fieldError names the part of a connection that is wrong, for tests and logs.
type fieldError struct{ field string }

func (e *fieldError) Error() string { return "connection: " + e.field }

// names maps the spellings of parameters, gosnowflake's too, onto ours.
var names = map[string]string{ //nolint:gosec // names of secrets, and no secrets
	"account": "account", "warehouse": "warehouse", "role": "role", "database": "database", "schema": "schema",
	"host": "host", "port": "port", "secondary_roles": "secondary_roles",
	"protocol": "protocol", "authenticator": "authenticator", "token": "token",
	"private_key": "private_key", "privateKey": "private_key", "private_key_passphrase": "private_key_passphrase",
	"login_timeout": "login_timeout", "loginTimeout": "login_timeout", "request_timeout": "request_timeout",
	"requestTimeout":                   "request_timeout",
	"oauth_client_id":                  "oauth_client_id",
	"oauth_client_secret":              "oauth_client_secret",
	"oauth_token_request_url":          "oauth_token_request_url",
	"oauth_scope":                      "oauth_scope",
	"workload_identity_provider":       "workload_identity_provider",
	"workload_identity_entra_resource": "workload_identity_entra_resource",
}

// reasons says why a parameter that gosnowflake knows is not taken.
var reasons = map[string]string{
	"tokenFilePath": "It would read a file of the machine that Loadstone runs on. Give the token " +
		"itself in token=.",
	"tmpDirPath":                         "It names a folder of the machine that Loadstone runs on.",
	"clientConfigFile":                   "It names a file of the machine that Loadstone runs on.",
	"connectionDiagnosticsAllowlistFile": "It names a file of the machine that Loadstone runs on.",
	"connectionDiagnosticsEnabled":       "It would end Loadstone's process.",
	"proxyHost":                          "A connection does not choose a proxy. Who runs Loadstone sets HTTPS_PROXY.",
	"proxyPort":                          "A connection does not choose a proxy. Who runs Loadstone sets HTTPS_PROXY.",
	"proxyUser":                          "A connection does not choose a proxy. Who runs Loadstone sets HTTPS_PROXY.",
	"proxyPassword":                      "A connection does not choose a proxy. Who runs Loadstone sets HTTPS_PROXY.",
	"proxyProtocol":                      "A connection does not choose a proxy. Who runs Loadstone sets HTTPS_PROXY.",
	"noProxy":                            "A connection does not choose a proxy. Who runs Loadstone sets NO_PROXY.",
	"tracing":                            "The driver writes no log.", "logQueryText": "The driver writes no log.",
	"logQueryParameters": "The driver writes no log.",
	"passcode": "A passcode serves one log-in, and a run makes many. Use a key pair or a programmatic access " +
		"token.",
	"passcodeInPassword": "A passcode serves one log-in, and a run makes many. Use a key pair or a programmatic access " +
		"token.",
	"region": "The region is part of the account: ACCOUNT.REGION.",
}

const signIns = "snowflake_jwt (key pair), workload_identity, oauth_client_credentials, programmatic_access_token, " +
	"oauth (access token) and snowflake (user and password) are supported."

var accountName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*$`)

// parseDSN reads a DSN; its errors are user-facing and name what is wrong,
// never a secret.
func parseDSN(dsn string) (*accountSettings, error) {
	dsn = strings.TrimSpace(dsn)
	if dsn == "" {
		return nil, refuse("dsn", dsnForm, "The connection has no address.")
	}
	if scheme, rest, ok := strings.Cut(dsn, "://"); ok && !strings.ContainsAny(scheme, "@/?:") {
		if !strings.EqualFold(scheme, "snowflake") {
			return nil, refuse("dsn", dsnForm, "A Snowflake connection begins with snowflake://, not %s://.", scheme)
		}
		dsn = rest
	}
	if err := checkAmbiguous(dsn); err != nil {
		return nil, err
	}
	head, query, _ := strings.Cut(dsn, "?")
	s := &accountSettings{Authenticator: sf.AuthTypeSnowflake}
	at := strings.LastIndexByte(head, '@')
	if at >= 0 {
		user, password, _ := strings.Cut(head[:at], ":")
		var err error
		if s.User, err = url.PathUnescape(user); err != nil {
			return nil, refuse("dsn", "Percent-encode the characters : / ? @ and % in user and password.",
				"The user cannot be read.")
		}
		if s.Password, err = url.PathUnescape(password); err != nil {
			return nil, refuse("dsn", "Percent-encode the characters : / ? @ and % in user and password.",
				"The password cannot be read.")
		}
	}
	if err := s.place(head[at+1:]); err != nil {
		return nil, err
	}
	if err := s.parameters(query); err != nil {
		return nil, err
	}
	return s, s.check()
}

// mailLogin is an e-mail address in place of a user's name, with a password or without, up to the account.
var mailLogin = regexp.MustCompile(`^[^@:/?#]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+(:[^@/?#]*)?@`)

// checkAmbiguous refuses an address, given without its scheme, in which it cannot be told where the password ends: a
// piece of it would be taken for the account or a parameter, and shown.
func checkAmbiguous(rest string) error {
	at := strings.IndexByte(rest, '@')
	if mail := mailLogin.FindString(rest); mail != "" {
		at = len(mail) - 1 // the one before stands where no password has begun
	}
	var why string
	switch {
	case at >= 0 && strings.IndexByte(rest[at+1:], '@') >= 0:
		why = "it has more than one @, so that it cannot be told where the password ends"
	case at >= 0 && strings.ContainsAny(rest[:at], "/?"):
		why = "there is a / or ? before the @, so that it cannot be told where the password ends"
	case strings.IndexByte(rest, '#') >= 0:
		why = "it has a #, which some take for the end"
	default:
		return nil
	}
	return refuse("dsn", "Write @ in a user or password as %40, and / as %2F, ? as %3F, # as %23, % as %25: "+
		"snowflake://USER:p%40ss@ACCOUNT/DATABASE/SCHEMA.", "The connection cannot be used: %s.", why)
}

// place reads ACCOUNT/DATABASE/SCHEMA, where a host with a port may stand for the account.
func (s *accountSettings) place(text string) error {
	parts := strings.Split(text, "/")
	if len(parts) > 3 {
		return refuse("dsn", "Percent-encode the characters : / ? @ and % in user and password.",
			"The address has %d parts after the account, at most a database and a schema can follow.", len(parts)-1)
	}
	for i, p := range parts {
		plain, err := url.PathUnescape(p)
		if err != nil {
			return refuse("dsn", dsnForm, "The address after @ cannot be read.")
		}
		parts[i] = plain
	}
	s.Account = parts[0]
	if host, port, err := net.SplitHostPort(parts[0]); err == nil {
		s.Account, s.Host = "", host
		if s.Port, err = portOf(port); err != nil {
			return err
		}
	} else if isHost(parts[0]) {
		s.Account, s.Host = "", parts[0]
	}
	if len(parts) > 1 {
		s.Database = parts[1]
	}
	if len(parts) > 2 {
		s.Schema = parts[2]
	}
	return nil
}

func portOf(text string) (int, error) {
	port, err := strconv.Atoi(text)
	if err != nil || port < 1 || port > 65535 {
		return 0, refuse("port", "A port is a number from 1 to 65535; Snowflake's is 443.",
			"The port is no number from 1 to 65535.")
	}
	return port, nil
}

// isHost tells a host name of Snowflake's from an account.
func isHost(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasSuffix(lower, ".snowflakecomputing.com") || strings.HasSuffix(lower, ".snowflakecomputing.cn")
}

// shortStatement keeps a piece of the user's text for a message.
func shortStatement(text string) string {
	const most = 60
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) > most {
		text = text[:most] + "…"
	}
	return text
}

func (s *accountSettings) parameters(query string) error {
	seen := map[string]string{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(key)
		if err != nil {
			return refuse("dsn", dsnForm, "A parameter's name cannot be read.")
		}
		name, known := names[key]
		if !known {
			hint := "The parameters of a connection are " + allowed() + "."
			if slices.ContainsFunc(secretNames, func(name string) bool { _, given := seen[name]; return given }) &&
				!isReason(key) {
				// It may be the rest of the secret, which is not repeated.
				return refuse("dsn", hint+" Write & in a value as %26.", "A parameter after a secret is not allowed in a "+
					"connection.")
			}
			for other, reason := range reasons {
				if strings.EqualFold(other, key) {
					hint = reason
				}
			}
			return refuse("dsn", hint, "The parameter %q is not allowed in a connection.", shortStatement(key))
		}
		if _, twice := seen[name]; twice {
			return refuse(name, "Give it once.", "The parameter %s is given twice.", name)
		}
		if value, err = url.QueryUnescape(value); err != nil {
			return refuse(name, "Percent-encode the characters % & + and = in values.", "The value of %s cannot be read.", name)
		}
		seen[name] = value
	}
	return s.take(seen)
}

// isReason reports a parameter that the official driver knows.
func isReason(key string) bool {
	for other := range reasons {
		if strings.EqualFold(other, key) {
			return true
		}
	}
	return false
}

func allowed() string {
	list := make([]string, 0, len(names))
	for _, ours := range names {
		if !slices.Contains(list, ours) {
			list = append(list, ours)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func (s *accountSettings) take(p map[string]string) (err error) {
	for name, to := range map[string]*string{"account": &s.Account, "warehouse": &s.Warehouse, "role": &s.Role,
		"database": &s.Database, "schema": &s.Schema, "host": &s.Host, "token": &s.Token,
		"oauth_client_id": &s.ClientID, "oauth_client_secret": &s.ClientSecret, "oauth_token_request_url": &s.TokenURL,
		"oauth_scope": &s.Scope, "workload_identity_entra_resource": &s.EntraResource} {
		if value, given := p[name]; given {
			*to = value
		}
	}
	switch s.SecondaryRoles = strings.ToUpper(p["secondary_roles"]); s.SecondaryRoles {
	case "", "ALL", "NONE":
	default:
		return refuse("secondary_roles", "It is all or none; left out, the user's DEFAULT_SECONDARY_ROLES counts.",
			"secondary_roles is %q.", shortStatement(p["secondary_roles"]))
	}
	if text, given := p["port"]; given {
		if s.Port, err = portOf(text); err != nil {
			return err
		}
	}
	for name, to := range map[string]*time.Duration{"login_timeout": &s.LoginTimeout,
		"request_timeout": &s.ClientTimeout} {
		text, given := p[name]
		if !given {
			continue
		}
		seconds, err := strconv.Atoi(text)
		if err != nil || seconds < 1 || seconds > 3600 {
			return refuse(name, "Write it in seconds, from 1 to 3600.", "%s is %q.", name, shortStatement(text))
		}
		*to = time.Duration(seconds) * time.Second
	}
	switch protocol := p["protocol"]; strings.ToLower(protocol) {
	case "", "https":
	case "http":
		s.Plain = true
	default:
		return refuse("protocol", "https is the only one to an account.", "The protocol %q is not allowed.",
			shortStatement(protocol))
	}
	if err := s.signIn(p); err != nil {
		return err
	}
	return nil
}

func (s *accountSettings) signIn(p map[string]string) (err error) {
	kind, given := p["authenticator"]
	switch strings.ToLower(kind) {
	case "snowflake":
	case "snowflake_jwt":
		s.Authenticator = sf.AuthTypeJwt
	case "oauth":
		s.Authenticator = sf.AuthTypeOAuth
	case "oauth_client_credentials":
		s.Authenticator = sf.AuthTypeOAuth
	case "workload_identity":
		s.Authenticator = sf.AuthTypeWorkloadIdentityFederation
	case "programmatic_access_token":
		s.Authenticator = sf.AuthTypePat
	case "":
		if given {
			return refuse("authenticator", signIns, "The authenticator is empty.")
		}
		// What is there says which it is.
		switch {
		case p["private_key"] != "":
			s.Authenticator = sf.AuthTypeJwt
		case s.Token != "":
			s.Authenticator = sf.AuthTypePat
		}
	case "externalbrowser":
		return refuse("authenticator", signIns,
			"The authenticator externalbrowser is not allowed: it would open a browser on the machine that Loadstone runs on.")
	default:
		return refuse("authenticator", signIns, "The authenticator %q is not allowed.", shortStatement(kind))
	}
	if err := s.federated(strings.ToLower(kind), p); err != nil {
		return err
	}
	if text := p["private_key"]; text != "" {
		if s.Authenticator != sf.AuthTypeJwt {
			return refuse("private_key", "Leave it out, or set authenticator=snowflake_jwt.",
				"A private key is given, and the sign-in is by %s.", strings.ToLower(kind))
		}
		if s.Key, err = parseKey(text, p["private_key_passphrase"]); err != nil {
			return err
		}
	}
	return nil
}

// federated reads the sign-ins whose tokens are fetched for each log-in.
func (s *accountSettings) federated(kind string, p map[string]string) error {
	if kind != "oauth_client_credentials" {
		for _, name := range []string{"oauth_client_id", "oauth_client_secret", "oauth_token_request_url", "oauth_scope"} {
			if p[name] != "" {
				return refuse(name, "Leave it out, or set authenticator=oauth_client_credentials.",
					"%s is given, and the sign-in is by %s.", name, cmp.Or(kind, strings.ToLower(s.Authenticator.String())))
			}
		}
	} else if err := s.checkTokenURL(); err != nil {
		return err
	}
	provider := strings.ToUpper(p["workload_identity_provider"])
	switch {
	case kind != "workload_identity":
		if provider != "" || s.EntraResource != "" {
			return refuse("workload_identity_provider", "Leave it out, or set authenticator=workload_identity.",
				"A provider of identities is given, and the sign-in is by %s.",
				cmp.Or(kind, strings.ToLower(s.Authenticator.String())))
		}
		return nil
	case !slices.Contains([]string{providerOIDC, providerAWS, providerAzure, providerGCP}, provider):
		return refuse(
			"workload_identity_provider",
			"It is one of oidc, aws, azure and gcp.",
			"The workload identity provider %q is not allowed.",
			shortStatement(provider),
		)
	case s.EntraResource != "" && !entraResource.MatchString(s.EntraResource):
		return refuse("workload_identity_entra_resource", "It is the application ID URI of an application: api://ID.",
			"Loadstone asks for no Entra token for %q.", shortStatement(s.EntraResource))
	case s.Token != "":
		return refuse("token", identityHint, "An identity token in the connection would have ended before the run has.")
	}
	s.IdentityProvider = provider
	return nil
}

// checkTokenURL judges where the client's secret is sent.
func (s *accountSettings) checkTokenURL() error {
	u, err := url.Parse(s.TokenURL)
	switch {
	case s.ClientID == "" || s.ClientSecret == "" || s.TokenURL == "":
		return refuse("oauth_client_id", signIns,
			"The sign-in needs oauth_client_id, oauth_client_secret and oauth_token_request_url.")
	case err != nil || u.Host == "" || u.User != nil || u.Fragment != "":
		return refuse("oauth_token_request_url", "It is the address of the authorization server's token endpoint.",
			"oauth_token_request_url is no address.")
	case u.Scheme != "https" && (u.Scheme != "http" || !isLoopback(u.Hostname())):
		return refuse("oauth_token_request_url", "Write the address with https.", "The client's secret goes over https only.")
	}
	return nil
}

// check completes the settings and says what is missing.
func (s *accountSettings) check() error {
	if given := cmp.Or(s.Host, s.Account); s.Plain && given != "" && !isLoopback(given) {
		return refuse("protocol", "Leave protocol out: Snowflake speaks https.",
			"http is allowed to this machine only, and %s is another.", shortStatement(given))
	}
	if s.Host == "" {
		if s.Account == "" {
			return refuse("account", "It is the first part of the address of your Snowflake page: "+
				"https://ACCOUNT.snowflakecomputing.com.", "The connection names no account.")
		}
		if len(s.Account) > 128 || !accountName.MatchString(s.Account) {
			return refuse("account", "It is ORGANIZATION-NAME, the first part of the address of your Snowflake page: "+
				"https://ORGANIZATION-NAME.snowflakecomputing.com.",
				"%q is not the name of an account.", shortStatement(s.Account))
		}
		domain := ".snowflakecomputing.com"
		if _, region, ok := strings.Cut(s.Account, "."); ok && strings.HasPrefix(strings.ToLower(region), "cn-") {
			domain = ".snowflakecomputing.cn"
		}
		// A host name has no underscores; Snowflake takes hyphens for them.
		s.Host = strings.ReplaceAll(s.Account, "_", "-") + domain
	}
	if strings.ContainsAny(s.Host, "/:@?#\\ \x00") && net.ParseIP(s.Host) == nil || len(s.Host) > 253 ||
		!utf8.ValidString(s.Host) {
		return refuse("host", "Write the name of the host alone, without https:// and port.", "%q is not a host.",
			shortStatement(s.Host))
	}
	if s.Account == "" {
		s.Account, _, _ = strings.Cut(s.Host, ".")
		if !isHost(s.Host) {
			return refuse("account", "Add account=ACCOUNT to the connection.", "The host %s does not tell the account.",
				shortStatement(s.Host))
		}
	}
	if s.Port == 0 {
		s.Port = 443
	}
	for _, id := range []struct{ field, name string }{{"database", s.Database}, {"schema", s.Schema},
		{"warehouse", s.Warehouse}, {"role", s.Role}} {
		if err := checkIdentifier(id.field, id.name); err != nil {
			return err
		}
	}
	missing := func(field, what string) error {
		return refuse(field, signIns, "The sign-in needs %s.", what)
	}
	switch {
	case strings.ContainsRune(s.User, 0):
		return refuse("user", "", "The user contains a NUL character.")
	case s.User == "" && (s.Authenticator == sf.AuthTypeSnowflake || s.Authenticator == sf.AuthTypeJwt):
		return missing("user", "a user")
	case s.Password == "" && s.Authenticator == sf.AuthTypeSnowflake:
		return missing("password", "a password, a private key or a token")
	case s.Key == nil && s.Authenticator == sf.AuthTypeJwt:
		return missing("private_key", "a private key")
	case s.IdentityProvider != "" && !isHost(s.Host) && !s.Plain:
		return refuse("host", "An identity of this machine is shown to Snowflake's hosts alone.",
			"A sign-in by workload identity goes to %s, which is none of Snowflake's.", shortStatement(s.Host))
	case s.Token == "" && s.ClientID == "" && (s.Authenticator == sf.AuthTypeOAuth || s.Authenticator == sf.AuthTypePat):
		return missing("token", "a token")
	}
	return nil
}

// isLoopback reports whether a host is this machine by its name.
func isLoopback(host string) bool {
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}

// maxIdentifier is how long a name may be, in characters.
const maxIdentifier = 255

var plainIdentifier = regexp.MustCompile(`^[\pL_][\pL\pN_$]*$`)

// checkIdentifier checks a name as it is written in a connection: a plain one,
// which Snowflake reads in upper case, or one in double quotes. Empty is none.
func checkIdentifier(field, name string) error {
	inner, quoted := name, len(name) >= 2 && name[0] == '"' && name[len(name)-1] == '"'
	if quoted {
		inner = name[1 : len(name)-1]
	}
	const hint = `A name with other characters than letters, digits, _ and $, or in lower case, is written in double quotes, a quote inside it twice: "my ""own"" name".`
	switch {
	case name == "":
		return nil
	case !utf8.ValidString(name) || strings.ContainsRune(name, 0):
		return refuse(field, hint, "The %s contains a NUL character, or is not UTF-8.", field)
	case quoted && (inner == "" || strings.Contains(strings.ReplaceAll(inner, `""`, ""), `"`)):
		return refuse(field, hint, "The quotes in the %s do not match.", field)
	case !quoted && !plainIdentifier.MatchString(name):
		return refuse(field, hint, "%q is not the name of a %s.", shortStatement(name), field)
	}
	if n := utf8.RuneCountInString(strings.ReplaceAll(inner, `""`, `"`)); n > maxIdentifier {
		return refuse(field, hint, "The name of the %s has %d characters, and at most %d are possible.", field, n,
			maxIdentifier)
	}
	return nil
}
