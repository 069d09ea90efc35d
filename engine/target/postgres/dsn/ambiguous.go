package dsn

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
)

// ambiguousError is why a connection string is refused that different readers would cut at different places: part of a
// password would be taken for a host, a database or a parameter, and shown. It repeats nothing of the text.
type ambiguousError struct{ why, hint string }

func (e *ambiguousError) Error() string { return e.why }

// secretPair is a password and what names it.
var secretPair = regexp.MustCompile(`(?i)pass(word|wd)?\s*=`)

const (
	urlHint = "Write @ in a user or password as %40, and / as %2F, ? as %3F, # as %23, % as %25: " +
		"postgres://user:p%40ss@host:5432/database."
	pairsHint = `Put the value into quotes, with \' for a quote and \\ for a backslash in it: password='it\'s'.`
)

// checkURL refuses a URL, but for its scheme, in which it cannot be told where user and password end.
func checkURL(rest string) error {
	if strings.IndexByte(rest, '#') >= 0 {
		return &ambiguousError{"it has a #, which some take for the end", urlHint}
	}
	head, query, _ := strings.Cut(rest, "?")
	if strings.IndexByte(query, '@') >= 0 && !plainHead.MatchString(head) {
		head = rest // what looks like parameters may be the end of a password
	} else if err := checkQuery(query, strings.ContainsAny(head, ":@")); err != nil {
		return err
	}
	at := strings.IndexByte(head, '@')
	switch {
	case at >= 0 && strings.IndexByte(head[at+1:], '@') >= 0:
		return &ambiguousError{"it has more than one @, so that it cannot be told where the password ends", urlHint}
	case at >= 0 && strings.IndexByte(head[:at], ':') >= 0 && strings.ContainsAny(head[:at], "/?"):
		return &ambiguousError{"there is a / or ? before the @, so that it cannot be told where the password ends", urlHint}
	}
	return nil
}

// plainHead is all that stands before the parameters of a URL, where nothing is missing in it: a user and a password,
// hosts whose ports are numbers, and a database.
var plainHead = regexp.MustCompile(`^([^@:/]*(:[^@/]*)?@)?` + plainHost + `(,` + plainHost + `)*(/[^@:/]*)?$`)

const plainHost = `([A-Za-z0-9._%-]*|\[[0-9A-Fa-f:.%A-Za-z_-]+\])(:[0-9]{0,5})?`

// addressKeys are parameters in which people write an @.
var addressKeys = []string{"user", "application_name", "fallback_application_name", "options"}

// checkQuery refuses parameters with an @ that may end a password, and be followed by a host. Without anything before
// them that may begin one (user), no colon and no second @, there is none.
func checkQuery(query string, user bool) error {
	last := strings.LastIndexByte(query, '@')
	if last < 0 || !user && strings.IndexByte(query, '@') == last && !strings.ContainsAny(query[:last], ":") {
		return nil
	}
	refused := &ambiguousError{
		"there is an @ in its parameters, so that it cannot be told where the password ends",
		urlHint,
	}
	if strings.ContainsAny(query[:last], ":?") {
		return refused
	}
	for pair := range strings.SplitSeq(query, "&") {
		key, value, _ := strings.Cut(pair, "=")
		_, after, found := strings.Cut(value, "@")
		if strings.IndexByte(key, '@') >= 0 || found && (!slices.Contains(addressKeys, key) ||
			strings.ContainsAny(after, "@/:?")) {
			return refused
		}
	}
	return nil
}

// checkPairs refuses pairs that lead to a host that is none, or hold a connection string of their own, or are one: what
// is written as user:password@host without a beginning falls apart into pairs where a password has an equals sign.
func checkPairs(list []setting) error {
	colon := false
	for _, p := range list {
		switch {
		case p.key == "host" && !plainHosts(p.value):
			return &ambiguousError{"its host holds characters that no host has, as a piece of a password may", pairsHint}
		case (p.key == "database" || p.key == "user") && strings.Contains(p.value, "://"):
			return &ambiguousError{"there is a connection string in its " + p.key,
				"Give it as it is, or host, port, user, password and dbname as pairs."}
		case !isSecret(p.key) && secretPair.MatchString(p.value):
			return &ambiguousError{"a password stands within the value of another parameter, where a quote closes too late",
				pairsHint}
		case isSecret(p.key), p.key == "user", p.key == "host":
			continue
		}
		at := strings.LastIndexByte(p.value, '@')
		if at >= 0 && (colon || strings.IndexByte(p.value[:at], ':') >= 0) {
			return &ambiguousError{"there are a : and an @ in the values of parameters, as where a URL lacks its beginning",
				"Write it as postgres://user:password@host:5432/database."}
		}
		colon = colon || strings.IndexByte(p.value, ':') >= 0
	}
	return nil
}

// plainHosts reports whether a list of hosts is one: names, addresses, and folders of sockets. A folder among others
// may be what follows a comma in a password.
func plainHosts(list string) bool {
	for host := range strings.SplitSeq(list, ",") {
		if host == list && strings.HasPrefix(host, "/") {
			return true
		}
		if strings.ContainsAny(host, "@?#=\\ []") {
			return false
		}
	}
	return true
}

// Check refuses a connection string that pgx would read and nobody can read for certain. It is for those of the person
// who runs the process; field names it, such as --database-url. The error holds nothing of the text.
func Check(field, dsn string) error {
	_, err := readSettings(dsn)
	var ambiguous *ambiguousError
	switch {
	case errors.As(err, &ambiguous):
		return engine.InvalidField(field, "cannot be used: "+ambiguous.why, ambiguous.hint)
	case errors.Is(err, errOddKey):
		return engine.InvalidField(field, "is neither a URL nor a list of key=value pairs", urlHint)
	}
	return nil
}

// explainAmbiguous is the user-facing form.
func explainAmbiguous(e *ambiguousError) error {
	return &engine.Error{Code: engine.CodeTarget, Cause: e, Hint: e.hint,
		Message: fmt.Sprintf("The connection string cannot be used: %s.", e.why)}
}
