package postgres

import (
	"crypto/x509"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// ownCertificate is what the connection shows to the server; nil where it shows none.
func (d *database) ownCertificate() *x509.Certificate {
	if d.conn.TLSConfig == nil || len(d.conn.TLSConfig.Certificates) == 0 {
		return nil
	}
	own := d.conn.TLSConfig.Certificates[0]
	if own.Leaf != nil || len(own.Certificate) == 0 {
		return own.Leaf
	}
	leaf, err := x509.ParseCertificate(own.Certificate[0])
	if err != nil {
		return nil
	}
	return leaf
}

// certificateExpired says that the client certificate is none for this moment; "" for one that is. The server's own
// words may be lost with its connection.
func (d *database) certificateExpired(now time.Time) (message, hint string) {
	own := d.ownCertificate()
	const day = "2006-01-02 15:04 MST"
	switch {
	case own == nil:
	case now.After(own.NotAfter):
		return fmt.Sprintf("The client certificate of the connection has expired, on %s.", own.NotAfter.UTC().Format(day)),
			"Renew it, and give the new one with its key (sslcert, sslkey)."
	case now.Before(own.NotBefore):
		return fmt.Sprintf("The client certificate of the connection holds only from %s on.",
			own.NotBefore.UTC().Format(day)), "Check this machine's clock, or give one that holds now (sslcert, sslkey)."
	}
	return "", ""
}

// certificateForOtherUser explains a log-in that was refused although there is a client certificate: it names another
// user. Where the server asks for both, it says "password authentication failed" of a wrong name in the certificate,
// too.
func (d *database) certificateForOtherUser(e *pgconn.PgError, where string) (message, hint string) {
	own := d.ownCertificate()
	if own == nil || own.Subject.CommonName == d.conn.User || !strings.Contains(e.Message, "authentication failed") {
		return "", ""
	}
	name := own.Subject.CommonName
	hint = fmt.Sprintf("Give a certificate that is for %q, sign in as %q, or map the name in the server's pg_ident.conf.",
		d.conn.User, name)
	if strings.Contains(e.Message, "password") {
		return fmt.Sprintf("%s does not let user %q in: the password is wrong, or the server compares users with their "+
			"certificates, and this one is for %q.", where, d.conn.User, name), "Correct the password. Else: " + hint
	}
	return fmt.Sprintf("%s does not let user %q in: the client certificate is for %q.", where, d.conn.User, name), hint
}
