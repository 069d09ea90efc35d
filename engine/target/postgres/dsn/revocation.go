package dsn

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loadstone-db/loadstone/engine"
)

// revocations are lists of certificates that their authorities have revoked. As to OpenSSL, every authority of a chain
// needs a list, which is of today.
type revocations struct{ lists []*x509.RevocationList }

const crlHint = "sslcrl holds the revocation lists of every authority between the server's certificate and " +
	"sslrootcert, in PEM form; get the newest from who runs the authority."

// readRevocations reads sslcrl, which may be the text itself, and the files of sslcrldir.
func readRevocations(file, folder string) (*revocations, error) {
	if file == "" && folder == "" {
		return nil, nil
	}
	v := &revocations{}
	if isInlinePEM(file) {
		if err := v.add("sslcrl", []byte(unescapePEM(file))); err != nil {
			return nil, err
		}
		file = ""
	}
	files := map[string]string{}
	if file != "" {
		files[file] = "sslcrl"
	}
	if folder != "" {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, invalid("sslcrldir", "names a folder that cannot be read", "Check the path and its rights.")
		}
		for _, e := range entries {
			if e.Type().IsRegular() || e.Type()&os.ModeSymlink != 0 {
				files[filepath.Join(folder, e.Name())] = "sslcrldir"
			}
		}
	}
	for path, key := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, invalid(key, "names a file that cannot be read", "Check the path and its rights.")
		}
		if key == "sslcrldir" && !bytes.Contains(text, []byte("-----BEGIN X509 CRL-----")) {
			continue // a README, or the certificate of an authority
		}
		if err := v.add(key, text); err != nil {
			return nil, err
		}
	}
	if len(v.lists) == 0 {
		return nil, invalid("sslcrldir", "holds no revocation list", crlHint)
	}
	return v, nil
}

// readHome reads the lists in one's own home folder, which nobody has named, for a connection that verifies something.
func (x *extras) readHome(c *pgx.ConnConfig) error {
	if x.revoked != nil || x.home == "" || !slices.ContainsFunc(attempts(c), func(f *pgconn.FallbackConfig) bool {
		return verifies(f.TLSConfig)
	}) {
		return nil
	}
	lists, err := readRevocations(x.home, "")
	if err != nil {
		return &engine.Error{
			Code:    engine.CodeTarget,
			Cause:   err,
			Message: fmt.Sprintf("The file %s cannot be used: it holds no whole list of revoked certificates.", x.home),
			Hint: "It is read where a certificate of a server is verified. Get a newer from who runs the authority, remove " +
				"it, or name another file as sslcrl.",
		}
	}
	x.revoked = lists
	return nil
}

// verifies reports whether the server's certificate is verified.
func verifies(t *tls.Config) bool {
	return t != nil && (t.VerifyPeerCertificate != nil || !t.InsecureSkipVerify)
}

// homeList is the file of lists in one's own home folder, "" where there is none.
func (r Reader) homeList() string {
	home, err := os.UserHomeDir()
	if err != nil || r.Strict {
		return ""
	}
	file := filepath.Join(home, ".postgresql", "root.crl")
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}

func (v *revocations) add(key string, text []byte) error {
	n := len(v.lists)
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "X509 CRL" {
			continue
		}
		list, err := x509.ParseRevocationList(block.Bytes)
		if err != nil {
			return invalid(key, "holds a revocation list that is damaged", crlHint)
		}
		v.lists = append(v.lists, list)
	}
	if len(v.lists) == n {
		return invalid(key, "holds no revocation list", crlHint)
	}
	return nil
}

// check is an error when no chain from the server's certificate to an authority is free of revoked ones.
func (v *revocations) check(roots *x509.CertPool, s tls.ConnectionState) (err error) {
	options := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	for _, c := range s.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	chains, err := s.PeerCertificates[0].Verify(options)
	if err != nil {
		return fmt.Errorf("verifying the chain: %w", err)
	}
	for _, chain := range chains {
		if err = v.checkChain(chain, time.Now()); err == nil {
			return nil
		}
	}
	return err
}

func (v *revocations) checkChain(chain []*x509.Certificate, now time.Time) error {
	refuse := func(format string, args ...any) error {
		return &engine.Error{Code: engine.CodeTarget, Hint: crlHint,
			Message: "The server's TLS certificate cannot be trusted: " + fmt.Sprintf(format, args...) + "."}
	}
	for i, c := range chain {
		var list *x509.RevocationList
		issuer := chain[min(i+1, len(chain)-1)] // the last has issued itself, and its own list may revoke it
		for _, l := range v.lists {
			if bytes.Equal(l.RawIssuer, issuer.RawSubject) && l.CheckSignatureFrom(issuer) == nil &&
				(list == nil || l.ThisUpdate.After(list.ThisUpdate)) {
				list = l
			}
		}
		switch {
		case list == nil:
			return refuse("sslcrl has no revocation list of the authority %q", issuer.Subject.CommonName)
		case !list.NextUpdate.IsZero() && now.After(list.NextUpdate):
			return refuse("the revocation list of the authority %q has expired, on %s", issuer.Subject.CommonName,
				list.NextUpdate.UTC().Format(time.DateOnly))
		}
		for _, entry := range list.RevokedCertificateEntries {
			if entry.SerialNumber.Cmp(c.SerialNumber) == 0 {
				return refuse("that of %q has been revoked, on %s", c.Subject.CommonName,
					entry.RevocationTime.UTC().Format(time.DateOnly))
			}
		}
	}
	return nil
}
