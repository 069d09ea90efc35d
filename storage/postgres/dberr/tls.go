package dberr

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"strings"
)

// Oldest is the oldest version of Postgres that Loadstone's schemas can be applied to.
const Oldest = 14

// TLS says what about the encryption of a way to a database is not as it should be, after "the server", and what to do;
// "" when it is something else.
func TLS(err error) (what, hint string) {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case err == nil:
		return "", ""
	case errors.As(err, &unknown), errors.As(err, &host), errors.As(err, &invalid):
		return "shows a certificate that is not accepted: " + Innermost(err),
			"sslmode=verify-full checks the host's name, with the authority in sslrootcert=FILE"
	case errors.As(err, &record), strings.Contains(err.Error(), "server refused TLS connection"):
		return "does not speak TLS, which the URL asks for", "set up TLS there, or say sslmode=disable"
	}
	return "", ""
}

// Innermost is the text of the innermost cause, the first of several, which holds neither user nor password.
func Innermost(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			if joined, ok := err.(interface{ Unwrap() []error }); ok && len(joined.Unwrap()) > 0 {
				err = joined.Unwrap()[0]
				continue
			}
			return err.Error()
		}
		err = next
	}
}
