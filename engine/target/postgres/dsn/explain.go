package dsn

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
)

// explainDSN never repeats the connection string: it may hold a password.
func explainDSN(err error) error {
	var ambiguous *ambiguousError
	if errors.As(err, &ambiguous) {
		return explainAmbiguous(ambiguous)
	}
	reason := "it is neither a URL nor a list of key=value pairs"
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		if words := tlsFiles(parse.Unwrap()); words != "" {
			return &engine.Error{Code: engine.CodeTarget,
				Message: "The connection string names a TLS file that cannot be used: " + words + ".",
				Hint:    "sslrootcert, sslcert and sslkey are files in PEM form on the machine that connects.",
				Cause:   parse.Unwrap()}
		}
		// What follows the string itself, which the error's text repeats, perhaps with a word that misleads.
		text := parse.Error()
		if end := strings.LastIndex(text, "`: "); end >= 0 {
			text = text[end:]
		}
		var address *url.Error
		if errors.As(err, &address) {
			text = address.Err.Error()
		}
		reason = cmp.Or(reasonOf(text), reason)
	}
	return &engine.Error{Code: engine.CodeTarget, Message: "The connection string cannot be used: " + reason + ".",
		Hint: "Write it as postgres://user:password@host:5432/database?sslmode=prefer; encode special characters of the " +
			"password as %XX."}
}

// reasons are what pgx says of a connection string, and what that means.
var reasons = []struct{ text, words string }{
	{"could not match", "it has another number of ports than of hosts"},
	{"invalid connect_timeout", "its connect_timeout is no number of seconds"},
	{
		"invalid require_auth",
		"its require_auth is no list of password, md5, gss, sspi, scram-sha-256, oauth, none, each or " +
			"none with a ! before it",
	},
	{"min_protocol_version cannot be greater", "its min_protocol_version is above its max_protocol_version"},
	{"port", "its port is not a number between 1 and 65535"},
	{"service", "its service is not in the service file"},
}

// reasonOf says in words why pgx refuses a connection string; "" for what is not known. The parameters that have a few
// values are checked before; here they come from the environment or a service file.
func reasonOf(text string) string {
	for _, key := range slices.Sorted(maps.Keys(choices)) {
		if strings.Contains(text, key) && !strings.Contains(text, "cannot be greater") {
			return "its " + key + " is none of " + strings.Join(choices[key], ", ")
		}
	}
	for _, r := range reasons {
		if strings.Contains(text, r.text) {
			return r.words
		}
	}
	return ""
}

// tlsFiles says in words why a certificate or key cannot be used; "" for other errors.
func tlsFiles(err error) string {
	if err == nil {
		return ""
	}
	var (
		file *fs.PathError
		text = err.Error()
	)
	for begins, what := range map[string]string{
		"unable to read CA file": "the certificate of sslrootcert", "unable to read sslkey": "the key of sslkey",
		"unable to read cert": "the certificate of sslcert",
	} {
		if strings.HasPrefix(text, begins) && errors.As(err, &file) {
			return fmt.Sprintf("%s, %s, cannot be read: %v", what, file.Path, file.Err)
		}
	}
	switch {
	case strings.HasPrefix(text, "unable to add CA"):
		return "the file of sslrootcert holds no certificate in PEM form"
	case strings.HasPrefix(text, "failed to decode sslkey"):
		return "the file of sslkey holds no key in PEM form"
	case strings.HasPrefix(text, "unable to find sslpassword"), strings.HasPrefix(text, "unable to decrypt key"):
		return "the key of sslkey is encrypted, and sslpassword does not open it"
	case strings.HasPrefix(text, "unable to load cert"):
		return "the certificate of sslcert and the key of sslkey do not belong together, or are no PEM"
	case strings.HasPrefix(text, "unable to load system certificate pool"):
		return "this machine has no system certificates"
	case strings.Contains(text, `both "sslcert" and "sslkey"`):
		return "sslcert and sslkey are given both, or neither"
	}
	return ""
}
