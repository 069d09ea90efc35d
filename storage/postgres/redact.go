package postgres

import (
	"net/url"
	"regexp"
	"strings"
)

// hidden stands where a password was.
const hidden = "***"

var (
	secretParam = regexp.MustCompile(`(?i)([?&;](?:password|passwd|pwd|sslpassword|passcode|token|private_?key(?:_?passphrase)?|secret)=)([^&;#]*)`)
	// Key/value values are quoted, with \' inside, or run to the next space that is not escaped.
	secretPair = regexp.MustCompile(`(?is)(^|\s)((?:password|passwd|pwd|sslpassword|passcode|token|private_?key(?:_?passphrase)?|secret)\s*=\s*)('(?:\\.|[^'\\])*'?[^\s]*|(?:\\.|[^\s\\])+)`)
)

// redact replaces every password of a DSN by three stars: in a URL's user
// part and parameters, and in key/value pairs. When a URL is malformed it
// rather hides too much.
func redact(dsn string) string {
	at := strings.Index(dsn, "://")
	if at < 0 {
		return redactUser(secretParam.ReplaceAllString(secretPair.ReplaceAllString(dsn, "${1}${2}"+hidden), "${1}"+hidden))
	}
	scheme, rest := dsn[:at+3], dsn[at+3:]
	limit := strings.IndexAny(rest, "/?#")
	if _, err := url.Parse(dsn); err != nil || limit < 0 {
		limit = len(rest)
	}
	if end := strings.LastIndexByte(rest[:limit], '@'); end >= 0 {
		if user, _, ok := strings.Cut(rest[:end], ":"); ok {
			rest = user + ":" + hidden + rest[end:]
		}
	}
	return scheme + secretParam.ReplaceAllString(rest, "${1}"+hidden)
}

// redactUser hides the password of "user:password@host", which some drivers take.
func redactUser(dsn string) string {
	end := strings.LastIndexByte(dsn, '@')
	if end < 0 {
		return dsn
	}
	user, secret, ok := strings.Cut(dsn[:end], ":")
	if !ok || secret == "" || strings.ContainsAny(user, " \t\n=") {
		return dsn
	}
	return user + ":" + hidden + dsn[end:]
}

// passwords returns the secrets of a DSN, as they are written in it.
func passwords(dsn string) []string {
	var found []string
	for _, m := range secretParam.FindAllStringSubmatch(dsn, -1) {
		found = append(found, m[2])
	}
	rest := dsn
	if at := strings.Index(dsn, "://"); at >= 0 {
		rest = dsn[at+3:]
	}
	if end := strings.LastIndexByte(rest, '@'); end >= 0 {
		if _, secret, ok := strings.Cut(rest[:end], ":"); ok {
			found = append(found, secret)
			if plain, err := url.PathUnescape(secret); err == nil && plain != secret {
				found = append(found, plain)
			}
		}
	}
	for _, m := range secretPair.FindAllStringSubmatch(dsn, -1) {
		found = append(found, strings.Trim(m[3], "'"))
	}
	return found
}

// isRedacted reports whether a DSN's password is three stars.
func isRedacted(dsn string) bool { return strings.Contains(dsn, hidden) && redact(dsn) == dsn }

// redactSource removes the passwords of a DSN from the document that holds
// it. When one remains, because the document spells it another way, nothing of
// the document is kept: an empty source means "write it from the config".
func redactSource(source, dsn string) string {
	if source == "" || redact(dsn) == dsn {
		return source
	}
	clear := strings.ReplaceAll(source, dsn, redact(dsn))
	found := clear != source
	for _, secret := range passwords(dsn) {
		// Very short ones would match anywhere.
		if len(secret) >= 4 && strings.Contains(clear, secret) {
			clear, found = strings.ReplaceAll(clear, secret, hidden), true
		}
	}
	if !found {
		return ""
	}
	return clear
}
