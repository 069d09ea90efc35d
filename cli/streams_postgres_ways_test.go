package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// saves saves a connection to a Postgres.
func (s streamsServer) saves(name, dsn string) {
	s.t.Helper()
	in, err := json.Marshal(map[string]any{"name": name, "driver": "postgres", "dsn": dsn})
	if err != nil {
		s.t.Fatal(err)
	}
	if status, body := s.send("POST", "/api/connections", string(in)); status != http.StatusCreated {
		s.t.Fatalf("%d %s", status, body)
	}
}

// TestPostgresSinkWithCertificates: rows are written over TLS to a server of an own authority that knows its users by
// their certificates. Of an authority or a certificate that is not accepted the statement says so, and no key is shown.
func TestPostgresSinkWithCertificates(t *testing.T) {
	t.Parallel()
	secure := pgtest.StartSecure(t)
	config, err := pgx.ParseConfig(secure.Admin)
	if err != nil {
		t.Fatal(err)
	}
	config.Database = secure.User
	admin, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }()
	if _, err := admin.Exec(t.Context(), "CREATE TABLE taken (ts int8, x int8); ALTER TABLE taken OWNER TO "+
		secure.User); err != nil {
		t.Fatal(err)
	}
	dsn := func(root string, id pgtest.Identity) string {
		cert, key := secure.Authority.Issue(t, id)
		q := url.Values{"sslmode": {"verify-full"}, "sslrootcert": {root}, "sslcert": {cert}, "sslkey": {key}}
		return "postgres://" + secure.User + "@" + secure.Host + "/" + secure.User + "?" + q.Encode()
	}
	p := newProgram(t)
	s := streamsServer{p.serve()}
	own := pgtest.Identity{Name: secure.User}
	s.saves("secure", dsn(secure.Authority.PEM, own))
	s.saves("stranger", dsn(pgtest.NewAuthority(t).PEM, own))
	s.saves("expired", dsn(secure.Authority.PEM, pgtest.Identity{Name: secure.User, Expired: true}))
	p.write("data/streams/a.csv", "1,5\n2,6\n3,7\n")
	const into = "CREATE SINK %s TYPE POSTGRES SET('%[1]s' AS SINK.CONNECTION, 'taken' AS SINK.TABLE)"
	s.done(`CREATE LOGICAL SOURCE a(ts INT64, x INT64);
		CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('a.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);` +
		fmt.Sprintf(into, "secure") + "; CREATE QUERY q AS SELECT ts, x FROM a INTO secure")
	s.until("q", "TERMINATED")
	n := 0
	if err := admin.QueryRow(t.Context(), "SELECT sum(x) FROM taken").Scan(&n); err != nil || n != 18 {
		t.Errorf("the sum of the rows is %d, %v", n, err)
	}
	for name, want := range map[string]string{"stranger": "unknown authority", "expired": "expired"} {
		status, body, _ := s.statements(fmt.Sprintf(into, name))
		if status/100 != 4 && status/100 != 5 || !strings.Contains(body, want) || strings.Contains(body, "PRIVATE") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if shown := s.done("SHOW SINKS") + s.out.String(); strings.Contains(shown, "PRIVATE") {
		t.Error("a key is shown")
	}
	s.stop()
}
