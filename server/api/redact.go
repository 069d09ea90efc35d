package api

import (
	"bytes"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/template"
)

// Mask stands in the place of a password.
const Mask = "***"

var (
	// secretPair finds password settings in key=value strings; a value may be quoted.
	secretPair = regexp.MustCompile(`(?i)\b((?:ssl)?password|passwd|pwd|token|secret|private_?key(?:_?passphrase)?)\s*=\s*('(?:[^'\\]|\\.)*'?|[^\s&;]*)`)
	// userInfo finds user:password@ in a URL, up to the last @ before the path.
	userInfo = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*://[^:/?#@]*):(.*)@`)
)

// RedactDSN returns the DSN with its secrets replaced by ***. It errs on the
// side of hiding: a URL that can be read in two ways loses all but its scheme.
func RedactDSN(dsn string) string {
	if strings.Contains(dsn, "://") {
		head, query, hasQuery := strings.Cut(dsn, "?")
		scheme, authority, _ := strings.Cut(head, "://")
		if strings.Contains(query, "@") && !strings.Contains(authority, "/") {
			// A password with an unescaped question mark, perhaps: where it ends is a guess.
			return scheme + "://" + Mask
		}
		head = userInfo.ReplaceAllString(head, "$1:"+Mask+"@")
		if hasQuery {
			return head + "?" + redactQuery(query)
		}
		return head
	}
	if head, _, _ := strings.Cut(dsn, "?"); strings.Contains(head, "@") && !strings.ContainsAny(head[:strings.LastIndex(head, "@")], " =") {
		// user:password@account/database, as Snowflake's clients write it.
		const scheme = "snowflake://"
		return strings.TrimPrefix(RedactDSN(scheme+dsn), scheme)
	}
	return secretPair.ReplaceAllString(dsn, "${1}="+Mask)
}

func redactQuery(query string) string {
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		key, _, hasValue := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(key)
		if err != nil {
			name = key
		}
		if hasValue && secretPair.MatchString(name+"=x") {
			pairs[i] = key + "=" + Mask
		}
	}
	return strings.Join(pairs, "&")
}

// redacted reports whether the DSN carries a mask where a secret belongs.
func redacted(dsn string) bool {
	return strings.Contains(dsn, ":"+Mask+"@") || strings.HasSuffix(dsn, "://"+Mask) || secretMask.MatchString(dsn)
}

var secretMask = regexp.MustCompile(`=\s*'?\*\*\*'?(?:$|[\s&;])`)

// hideScenario removes what must not leave the server from a scenario.
func hideScenario(s *engine.Scenario) {
	*s = s.Clone()
	for _, c := range s.Connections() {
		c.Ref.DSNSealed = ""
		if c.Ref.DSN != "" {
			c.Ref.DSN = RedactDSN(c.Ref.DSN)
		}
	}
}

func hideRun(r engine.Run) engine.Run {
	hideScenario(&r.Scenario)
	return r
}

// hideTemplate does the same for a template, in its source too.
func hideTemplate(t store.Template) store.Template {
	t.Source = string(hideSource([]byte(t.Source), t.Config))
	hideScenario(&t.Config)
	return t
}

// hideSource returns a template's text with the secret of its inline connection
// masked. Where that cannot be done for certain it returns the scenario as YAML.
func hideSource(source []byte, parsed engine.Scenario) []byte {
	if len(source) == 0 {
		return source
	}
	hidden, inline := source, false
	for _, c := range parsed.Connections() {
		if !c.Ref.Inline() || c.Ref.DSN == "" {
			continue
		}
		inline = true
		if clear := RedactDSN(c.Ref.DSN); clear != c.Ref.DSN {
			hidden = bytes.ReplaceAll(hidden, []byte(c.Ref.DSN), []byte(clear))
		}
	}
	if !inline {
		return source
	}
	again, err := template.Parse(hidden)
	if err == nil && !slices.ContainsFunc(again.Connections(), func(c engine.Connection) bool { return c.Ref.DSN != RedactDSN(c.Ref.DSN) }) {
		return hidden
	}
	hideScenario(&parsed)
	plain, err := template.YAML(parsed)
	if err != nil {
		return nil
	}
	return plain
}

var destination = regexp.MustCompile(`(?i)(?:^|[\s?&])(account|protocol|authenticator|host|hostaddr|port|user|service|servicefile|passfile|sslmode|options)\s*=\s*('(?:[^'\\]|\\.)*'|[^\s&]*)`)

// endpoint is what decides where a DSN's password goes: two DSNs with the same
// endpoint differ in the database and in harmless options only.
func endpoint(dsn string) string {
	var parts []string
	rest := dsn
	if scheme, after, ok := strings.Cut(dsn, "://"); ok {
		authority, tail := after, ""
		if i := strings.LastIndex(beforeQuery(after), "@"); i >= 0 {
			user, _, _ := strings.Cut(after[:i], ":")
			parts = append(parts, user)
			authority = after[i+1:]
		}
		if i := strings.IndexAny(authority, "/?"); i >= 0 {
			authority, tail = authority[:i], authority[i:]
		}
		parts = append(parts, scheme, authority)
		_, rest, _ = strings.Cut(tail, "?")
		rest, _ = url.QueryUnescape(rest)
	}
	for _, m := range destination.FindAllStringSubmatch(rest, -1) {
		parts = append(parts, strings.ToLower(m[1])+"="+m[2])
	}
	return strings.Join(parts, "\x00")
}
