package snowflake

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine/base/egress"
	"github.com/loadstone-db/loadstone/engine/target"
)

// secretNames are the parameters that are never shown.
var secretNames = []string{"token", "private_key", "private_key_passphrase", "oauth_client_secret"}

// dsnParts are the pieces of a connection string, decoded, before they are judged.
type dsnParts struct {
	user, password string
	path           []string // the account or host, and what follows it
	names          []string // of the parameters, in their order
	values         map[string]string
	// written are the secrets as they stand in the text.
	written []string
}

// split takes a connection string apart by the rules of parseDSN; ok is false for
// one that parseDSN would read otherwise than it seems, or not at all.
func splitDSN(dsn string) (p dsnParts, ok bool) {
	text := strings.TrimSpace(dsn)
	if scheme, rest, found := strings.Cut(text, "://"); found && !strings.ContainsAny(scheme, "@/?:") {
		if !strings.EqualFold(scheme, "snowflake") {
			return p, false
		}
		text = rest
	}
	if checkAmbiguous(text) != nil {
		return p, false
	}
	head, query, _ := strings.Cut(text, "?")
	at := strings.LastIndexByte(head, '@')
	if at >= 0 {
		user, password, _ := strings.Cut(head[:at], ":")
		var err, also error
		p.user, err = url.PathUnescape(user)
		p.password, also = url.PathUnescape(password)
		if err != nil || also != nil {
			return p, false
		}
		p.written = append(p.written, password)
	}
	if new(accountSettings).place(head[at+1:]) != nil {
		return p, false
	}
	for piece := range strings.SplitSeq(head[at+1:], "/") {
		plain, err := url.PathUnescape(piece)
		if err != nil {
			return p, false
		}
		p.path = append(p.path, plain)
	}
	p.values = map[string]string{}
	for pair := range strings.SplitSeq(query, "&") {
		if pair == "" {
			continue
		}
		key, value, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(key)
		name, known := names[key]
		plain, also := url.QueryUnescape(value)
		if _, twice := p.values[name]; err != nil || also != nil || !known || twice {
			return p, false
		}
		p.names = append(p.names, name)
		p.values[name] = plain
		if slices.Contains(secretNames, name) {
			p.written = append(p.written, value)
		}
	}
	return p, true
}

// secrets returns the values that are hidden.
func (p *dsnParts) secrets() (all []string) {
	if p.password != "" {
		all = append(all, p.password)
	}
	for _, name := range secretNames {
		if value := p.values[name]; value != "" {
			all = append(all, value)
		}
	}
	return all
}

// hasStrayMask reports a mask where no secret is.
func (p *dsnParts) hasStrayMask() bool {
	all := append([]string{p.user}, p.path...)
	for _, name := range p.names {
		if !slices.Contains(secretNames, name) {
			all = append(all, p.values[name])
		}
	}
	return slices.ContainsFunc(all, func(text string) bool { return strings.Contains(text, target.Mask) })
}

// String writes the connection string anew.
func (p *dsnParts) String() string {
	escape := func(text string) string {
		if text == target.Mask {
			return text
		}
		return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	}
	var b strings.Builder
	b.WriteString("snowflake://")
	if p.user != "" || p.password != "" {
		b.WriteString(escape(p.user))
		if p.password != "" {
			b.WriteString(":" + escape(p.password))
		}
		b.WriteByte('@')
	}
	for i, piece := range p.path {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(strings.ReplaceAll(escape(piece), "%3A", ":"))
	}
	for i, name := range p.names {
		b.WriteByte("?&"[min(i, 1)])
		b.WriteString(name + "=" + escape(p.values[name]))
	}
	return b.String()
}

// dsnReader shows connection strings, and puts saved secrets back into them.
type dsnReader struct{}

// Redact implements target.SecretRedactor.
func (dsnReader) Redact(dsn string) (shown string, secrets []string) {
	p, ok := splitDSN(dsn)
	if !ok || strings.TrimSpace(dsn) == target.Mask {
		return target.Mask, []string{dsn}
	}
	if secrets = p.secrets(); len(secrets) == 0 && !p.hasStrayMask() {
		return dsn, nil
	}
	if p.hasStrayMask() {
		secrets = append(secrets, target.Mask)
	}
	secrets = append(secrets, p.written...)
	if p.password != "" {
		p.password = target.Mask
	}
	for _, name := range secretNames {
		if p.values[name] != "" {
			p.values[name] = target.Mask
		}
	}
	return p.String(), slices.DeleteFunc(secrets, func(s string) bool { return s == "" })
}

// destination are the parameters that decide where a secret goes; how it is used there, signInOf says.
var destination = []string{"account", "host", "port", "protocol", "oauth_token_request_url", "oauth_client_id"}

// signInOf is the kind of sign-in that values mean, as Settings.signIn reads them: what is left out follows from what
// is there.
func signInOf(values map[string]string) string {
	kind, given := values["authenticator"]
	switch {
	case given:
		return strings.ToLower(kind)
	case values["private_key"] != "":
		return "snowflake_jwt"
	case values["token"] != "":
		return "programmatic_access_token"
	}
	return "snowflake"
}

// RestoreSecrets implements target.SecretRedactor.
func (r dsnReader) RestoreSecrets(shown, stored string) (string, error) {
	if again, _ := r.Redact(stored); again == shown {
		return stored, nil
	}
	p, ok := splitDSN(shown)
	if !ok {
		_, err := parseDSN(shown)
		if err == nil {
			err = target.ErrOtherAddress
		}
		return "", err
	}
	saved, ok := splitDSN(stored)
	if !ok || p.hasStrayMask() || p.user != saved.user || p.path[0] != saved.path[0] {
		return "", target.ErrOtherAddress
	}
	for _, name := range destination {
		if p.values[name] != saved.values[name] {
			return "", target.ErrOtherAddress
		}
	}
	if signInOf(p.values) != signInOf(saved.values) {
		return "", target.ErrOtherAddress
	}
	if p.password == target.Mask {
		if p.password = saved.password; p.password == "" {
			return "", target.ErrOtherAddress
		}
	}
	for _, name := range secretNames {
		if p.values[name] != target.Mask {
			continue
		}
		if p.values[name] = saved.values[name]; p.values[name] == "" {
			return "", target.ErrOtherAddress
		}
	}
	if slices.Contains(p.secrets(), target.Mask) {
		return "", target.ErrOtherAddress
	}
	return p.String(), nil
}

// Validate implements target.SecretRedactor. A host where nobody is spoken with is refused when it is written, too.
func (dsnReader) Validate(dsn string) error {
	if s, err := parseDSN(dsn); err == nil {
		hosts := []string{s.Host}
		if u, err := url.Parse(s.TokenURL); err == nil && s.TokenURL != "" {
			hosts = append(hosts, u.Hostname())
		}
		for _, host := range hosts {
			if egress.IsForbiddenHost(host) {
				return (*egress.Policy)(nil).Check(host, netip.AddrPort{}) //nolint:wrapcheck // it is user-facing
			}
		}
	}
	if _, ok := splitDSN(dsn); ok {
		return nil
	}
	if _, err := parseDSN(dsn); err != nil {
		return err
	}
	return refuse("dsn", dsnForm, "The connection cannot be read.")
}
