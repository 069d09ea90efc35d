package cli

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestPastedCertificatesFromTheAPIToARun: a server's user gives certificates as text, tests the connection and loads a
// Postgres that knows its users by them alone. What is wrong with one is said with its cure, and nothing of a key is
// shown, logged or written down in the open.
func TestPastedCertificatesFromTheAPIToARun(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	secure := pgtest.StartTLS(t)
	cert, key := secure.Authority.Issue(t, pgtest.Identity{Name: secure.User})
	p := clitest.NewProgram(t)
	s := p.Serve()
	dsn := func(root, cert, key string) string {
		q := url.Values{"sslmode": {"verify-full"}}
		for name, value := range map[string]string{"sslrootcert": root, "sslcert": cert, "sslkey": key} {
			if value != "" {
				q.Set(name, value)
			}
		}
		return "postgres://" + secure.User + "@" + secure.Host + "/" + secure.User + "?" + q.Encode()
	}
	send := func(method, path string, in any, out any) (int, string) {
		t.Helper()
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		status, body := s.Send(method, path, string(raw))
		if out != nil && status/100 == 2 {
			if err := json.Unmarshal([]byte(body), out); err != nil {
				t.Fatalf("%s %s: %v: %s", method, path, err, body)
			}
		}
		return status, body
	}
	const open = "anybodymayreadthisofit"
	var saved struct {
		ConnectionID string `json:"connection_id"`
		DSN          string `json:"dsn"`
	}
	root := secure.Authority.PEM
	status, body := send("POST", "/api/connections", map[string]string{"name": "secure", "driver": "postgres",
		"dsn": dsn(root, cert, key), "description": open}, &saved)
	if status != http.StatusCreated || strings.Contains(saved.DSN, "PRIVATE") {
		t.Fatalf("saving: %d %s", status, body)
	}
	// As the page sends it back, the key behind its stars.
	status, body = send("PUT", "/api/connections/"+saved.ConnectionID, map[string]string{"name": "secure",
		"driver": "postgres", "dsn": saved.DSN, "description": open}, nil)
	if status != http.StatusOK {
		t.Fatalf("saving what is shown: %d %s", status, body)
	}
	var test struct {
		OK bool `json:"ok"`
	}
	if status, body = send("POST", "/api/connections/"+saved.ConnectionID+"/test", struct{}{}, &test); !test.OK {
		t.Fatalf("testing: %d %s", status, body)
	}
	test.OK = false
	loaded := func(when string) engine.RunDetail {
		t.Helper()
		run := runTemplate(
			t,
			s,
			"name: with certificates\ntarget: {connection: secure, adapter: postgres, table_name: orders, "+
				"prepare: {rows: 1000, if_exists: use}}\nworkload: {plugin: mix, concurrent_connections: 4, duration_seconds: 2, "+
				"warmup_seconds: 0}\n",
		)
		if run.Status != engine.StatusCompleted || run.Summary.Operations == 0 || run.Summary.Errors.Count != 0 {
			t.Errorf("%s: %s, %+v", when, run.Status, run.Summary)
		}
		return run
	}
	loaded("at first")
	// What is sealed is opened again by the server that comes after.
	first := s.Out.String
	s.Stop()
	s = p.Serve()
	if status, body = send("POST", "/api/connections/"+saved.ConnectionID+"/test", struct{}{}, &test); !test.OK {
		t.Fatalf("testing after a restart: %d %s", status, body)
	}
	run := loaded("after a restart")

	unknown := pgtest.NewAuthority(t)
	theirs, theirKey := unknown.Issue(t, pgtest.Identity{Name: secure.User})
	old, oldKey := secure.Authority.Issue(t, pgtest.Identity{Name: secure.User, Expired: true})
	early, earlyKey := secure.Authority.Issue(t, pgtest.Identity{Name: secure.User, NotYetValid: true})
	grace, graceKey := secure.Authority.Issue(t, pgtest.Identity{Name: "grace"})
	for name, c := range map[string]struct{ dsn, says, cure string }{
		"no authority": {dsn("", cert, key), "an authority that is not trusted here", "as sslrootcert: the PEM text"},
		"another one":  {dsn(unknown.PEM, cert, key), "an authority that is not trusted here", "leave sslrootcert out"},
		"none": {dsn(root, "", ""), "asks for a client certificate, and the connection has none",
			"Give sslcert and sslkey"},
		"expired": {dsn(root, old, oldKey), "client certificate of the connection has expired, on ",
			"Renew it"},
		"not yet": {dsn(root, early, earlyKey), "client certificate of the connection holds only from ",
			"this machine's clock"},
		"of another user": {dsn(root, grace, graceKey), `the client certificate is for "grace"`, `sign in as "grace"`},
		"the key of others": {dsn(root, cert, theirKey), "it does not belong to the certificate of sslcert",
			"Paste the key that the certificate was requested with"},
		"no key": {dsn(root, cert, ""), "sslcert cannot be used: sslkey belongs to it, and is not there",
			"Paste sslkey too"},
		"no certificate": {dsn(root, "", key), "sslkey cannot be used: sslcert belongs to it, and is not there",
			"Paste sslcert too"},
		"encrypted": {dsn(root, cert, encrypted(t, key)), "it is encrypted; paste it without its passphrase",
			"Give the passphrase of the key as sslpassword"},
		"half a key": {dsn(root, cert, key[:len(key)/2]), "there is no whole key in it", "-----END line"},
		"a file": {dsn("/etc/ssl/ca.pem", cert, key), "names a file of the machine that Loadstone runs on",
			"Paste the PEM text"},
		// How the server refuses may be lost with its connection.
		"of a stranger": {dsn(root, theirs, theirKey), "", "sslcert and sslkey"},
	} {
		status, body := send("POST", "/api/connections/test", map[string]string{"driver": "postgres", "dsn": c.dsn}, nil)
		var p terminal.Problem
		if err := json.Unmarshal([]byte(body), &p); err != nil || status/100 != 4 {
			t.Errorf("%s: %d %s", name, status, body)
			continue
		}
		message, cure := p.Detail, p.Hint
		for _, e := range p.Errors {
			message, cure = message+"\n"+e.Message, cure+"\n"+e.Hint
		}
		cure = strings.ReplaceAll(cure, "(sslcert, sslkey)", "sslcert and sslkey")
		if !strings.Contains(message, c.says) || !strings.Contains(cure, c.cure) {
			t.Errorf("%s: %d %q, %q", name, status, message, cure)
		}
		for _, secret := range []string{key, theirKey, oldKey, earlyKey, graceKey} {
			if strings.Contains(body, keyPart(t, secret)) {
				t.Errorf("%s: a key is shown: %s", name, body)
			}
		}
	}

	secret := keyPart(t, key)
	for _, path := range []string{"/api/connections", "/api/connections/" + saved.ConnectionID, "/api/runs/" + run.RunID,
		"/api/audit", "/api/audit/export", "/api/runs/" + run.RunID + "/report"} {
		if strings.Contains(s.MustGet(path), secret) {
			t.Errorf("%s shows the key", path)
		}
	}
	s.Stop()
	if strings.Contains(first()+s.Out.String(), secret) {
		t.Error("the key is in the log")
	}
	if found := filesContaining(t, p.Path("data"), open); len(found) == 0 {
		t.Error("what is not sealed is not found either: the search does not look where connections are")
	}
	if found := filesContaining(t, p.Path("data"), secret); len(found) > 0 {
		t.Errorf("the key is kept in the open in %v", found)
	}
}

// keyPart is a part of a key that stands alike in its PEM text, in a URL and in JSON.
func keyPart(t *testing.T, key string) (longest string) {
	t.Helper()
	for _, part := range regexp.MustCompile(`[A-Za-z0-9]+`).FindAllString(key, -1) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	if len(longest) < 12 {
		t.Fatalf("no part of the key can be looked for: %q", longest)
	}
	return longest
}

// encrypted is a key as openssl writes it with a passphrase.
func encrypted(t *testing.T, key string) string {
	t.Helper()
	block, _ := pem.Decode([]byte(key))
	//nolint:staticcheck // what openssl writes
	locked, err := x509.EncryptPEMBlock(strings.NewReader(strings.Repeat("r", 64)), "EC PRIVATE KEY", block.Bytes,
		[]byte("pass"), x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(locked))
}

// filesContaining are the files of a folder that hold a text.
func filesContaining(t *testing.T, dir, text string) (found []string) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		raw, err := os.ReadFile(path)
		if bytes.Contains(raw, []byte(text)) {
			found = append(found, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

// runTemplate is a run of a template, at its end.
func runTemplate(t *testing.T, s *clitest.LiveServer, source string) (d engine.RunDetail) {
	t.Helper()
	in, err := json.Marshal(map[string]any{"source": source, "start": true})
	if err != nil {
		t.Fatal(err)
	}
	return runToEnd(t, s, string(in))
}

// runToEnd starts a run as the API takes it, and waits for its figures.
func runToEnd(t *testing.T, s *clitest.LiveServer, in string) (d engine.RunDetail) {
	t.Helper()
	status, body := s.Send("POST", "/api/runs", in)
	if err := json.Unmarshal([]byte(body), &d); err != nil || status != http.StatusCreated {
		t.Fatalf("starting a run: %d %s", status, body)
	}
	id := d.RunID
	clitest.WaitFor(t, clitest.StartTimeout, "end of the run", func() bool {
		d = engine.RunDetail{}
		if err := json.Unmarshal([]byte(s.MustGet("/api/runs/"+id)), &d); err != nil {
			t.Fatal(err)
		}
		return d.Status.Terminal() && d.Summary != nil && d.Phase == engine.PhaseNone
	})
	return d
}
