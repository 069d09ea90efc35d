package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/storage/embedded/pgtest"
)

// TestPostgresSinkOnAServer: rows of a query arrive in the table of a saved connection; whoever may not use it, and who
// has not confirmed that it is production, is refused for the sink as for the query; what changes meanwhile counts when
// the query begins anew. The password is shown nowhere.
func TestPostgresSinkOnAServer(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	pg := pgtest.StartCrashable(t, nil)
	dsn := pg.DSN("postgres")
	admin, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(t.Context()) }()
	const secret = "canary-of-the-writer"
	role := fmt.Sprintf("writer_%d", admin.PgConn().PID())
	exec := func(sql string) {
		t.Helper()
		if _, err := admin.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec("CREATE ROLE " + role + " LOGIN PASSWORD '" + secret + "'; CREATE TABLE taken (ts int8, x int8)")
	exec("GRANT INSERT ON taken TO " + role +
		"; GRANT CONNECT ON DATABASE postgres TO " + role + "; GRANT USAGE ON SCHEMA public TO " + role)
	one := func(sql string) (n int) {
		t.Helper()
		if err := admin.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	config := admin.Config()
	writer := fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s", config.Host, config.Port, role, secret,
		config.Database)

	p := clitest.NewProgram(t)
	s := streamsServer{p.Serve()}
	connect := func(name string, more map[string]any) {
		t.Helper()
		in := map[string]any{"name": name, "driver": "postgres", "dsn": writer}
		for k, v := range more {
			in[k] = v
		}
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		if status, body := s.Send("POST", "/api/connections", string(text)); status != http.StatusCreated {
			t.Fatalf("%d %s", status, body)
		}
	}
	connect("shop", nil)
	connect("mine", map[string]any{"access": map[string]any{"restricted": true}})
	connect("prod", map[string]any{"production": true})
	p.Write("data/streams/a.csv", "1,5\n2,6\n3,\n")
	s.done(`CREATE LOGICAL SOURCE a(ts INT64, x INT64);
		CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('a.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);
		CREATE SINK s TYPE POSTGRES SET('shop' AS SINK.CONNECTION, 'taken' AS SINK.TABLE);
		CREATE QUERY q AS SELECT ts, x FROM a INTO s`)
	s.until("q", "TERMINATED")
	if n := one("SELECT count(*) FROM taken WHERE (ts, coalesce(x, 0)) IN ((1, 5), (2, 6), (3, 0))"); n != 3 {
		t.Errorf("%d rows arrived", n)
	}

	// What does not fit is refused with the statement.
	for _, c := range []struct{ sql, kind, hint string }{
		{`CREATE SINK z TYPE POSTGRES SET('shopp' AS SINK.CONNECTION, 'taken' AS SINK.TABLE)`, "InvalidConfig: there is no connection",
			"name or an id"},
		{`CREATE SINK z TYPE POSTGRES SET('taken' AS SINK.TABLE)`, "InvalidConfig: ", "SINK.CONNECTION"},
		{`CREATE SINK z(ts INT64, y TEXT) TYPE POSTGRES SET('shop' AS SINK.CONNECTION, 'none' AS SINK.TABLE)`,
			"InvalidConfig: there is no table none", `CREATE TABLE "none" ("ts" bigint, "y" text)`},
		{`CREATE SINK z TYPE POSTGRES SET('shop' AS SINK.CONNECTION, 'public.taken' AS SINK.TABLE)`,
			"InvalidConfig: there is no table public.taken", "'public' AS SINK.SCHEMA"},
		{`CREATE SINK z(ts INT64, x TEXT) TYPE POSTGRES SET('shop' AS SINK.CONNECTION, 'taken' AS SINK.TABLE)`,
			"InvalidConfig: the column x is TEXT", "CAST it"},
		{`CREATE WORKER w1; CREATE SINK z TYPE POSTGRES ON w1 SET('shop' AS SINK.CONNECTION, 'taken' AS SINK.TABLE)`,
			"InvalidConfig: a sink of the type POSTGRES is the server's", "leave ON w1 out"},
		{`SELECT ts, x AS y FROM a INTO s`, "BinderError: public.taken has no column y", "its columns are ts, x"},
	} {
		status, body, refused := s.statements(c.sql)
		if status != 422 || !strings.HasPrefix(refused.Detail, c.kind) || len(refused.Errors) != 1 ||
			!strings.Contains(refused.Errors[0].Hint, c.hint) || refused.Errors[0].Line != 1 {
			t.Errorf("%s: %d %s", c.sql, status, body)
		}
	}

	// Another operator may not use what is restricted, through the owner's sink neither.
	s.done(`CREATE SINK m TYPE POSTGRES SET('mine' AS SINK.CONNECTION, 'taken' AS SINK.TABLE)`)
	code, link := p.Command("user", "invite", "Bob", "--role", "operator", "--data-dir", p.Path("data"))
	at, err := url.Parse(strings.Fields(link + " ")[0])
	if code != 0 || err != nil {
		t.Fatalf("%d %s", code, link)
	}
	var cookie string
	clitest.Caller{T: t, Base: s.Base, Header: [2]string{"Accept", "application/json"}}.Do("POST", "/api/auth/signin",
		map[string]string{"invitation": at.Query().Get("invitation"), "password": "correct horse battery"}, &cookie)
	for _, sql := range []string{`SELECT ts FROM a INTO m`,
		`CREATE SINK z TYPE POSTGRES SET('mine' AS SINK.CONNECTION, 'taken' AS SINK.TABLE)`} {
		text, err := json.Marshal(map[string]string{"sql": sql})
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Base+"/api/v1/streams/statements",
			strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Origin", s.Base)
		req.Header.Set("Cookie", cookie)
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusForbidden {
			t.Errorf("%s as another operator: %d", sql, answer.StatusCode)
		}
	}

	// Production is confirmed by its name, for the sink and for each query.
	send := func(sql string, confirm ...string) (int, string) {
		t.Helper()
		text, err := json.Marshal(map[string]any{"sql": sql, "confirm_production": confirm})
		if err != nil {
			t.Fatal(err)
		}
		return s.Send("POST", "/api/v1/streams/statements", string(text))
	}
	const toProd = `CREATE SINK p TYPE POSTGRES SET('prod' AS SINK.CONNECTION, 'taken' AS SINK.TABLE)`
	if status, body := send(toProd); status != 422 || !strings.Contains(body, "confirm_production") {
		t.Errorf("%d %s", status, body)
	}
	if shown := s.done("SHOW SINKS"); strings.Contains(shown, `"p"`) {
		t.Errorf("what was not confirmed is there: %s", shown)
	}
	if status, body := send(toProd, "prod"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if status, body := send("CREATE QUERY onprod AS SELECT ts FROM a INTO p", "shop"); status != 422 ||
		!strings.Contains(body, "confirm_production") {
		t.Errorf("%d %s", status, body)
	}
	if status, body := send("CREATE QUERY onprod AS SELECT ts FROM a INTO p", "prod"); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	s.until("onprod", "TERMINATED")

	// A query that fails says what the database said.
	exec("REVOKE INSERT ON taken FROM " + role)
	if status, body := send("CREATE QUERY denied AS SELECT ts FROM a INTO s"); status != 422 ||
		!strings.Contains(body, "may not insert into public.taken") || !strings.Contains(body, "GRANT INSERT") {
		t.Errorf("%d %s", status, body)
	}
	// While a sink names it, a connection is not deleted; the answer and its card name the sink.
	var all []struct {
		ID   string `json:"connection_id"`
		Name string `json:"name"`
	}
	list := struct {
		Connections any `json:"connections"`
	}{&all}
	if err := json.Unmarshal([]byte(s.MustGet("/api/connections")), &list); err != nil {
		t.Fatal(err)
	}
	id := ""
	for _, c := range all {
		if c.Name == "mine" {
			id = c.ID
		}
	}
	if status, body := s.Send("DELETE", "/api/connections/"+id, ""); status != http.StatusConflict ||
		!strings.Contains(body, "the sink m writes to it") || !strings.Contains(body, "DROP") {
		t.Errorf("%d %s", status, body)
	}
	if use := s.MustGet("/api/connections/" + id + "/use"); !strings.Contains(use, `"sinks":["m"]`) {
		t.Errorf("it is used by %s", use)
	}
	s.done("DROP SINK m")
	if status, body := s.Send("DELETE", "/api/connections/"+id, ""); status != http.StatusNoContent {
		t.Errorf("%d %s", status, body)
	}
	shown := s.done("SHOW SINKS; SHOW QUERIES") + s.MustGet("/api/v1/streams") + s.Out.String()
	if strings.Contains(shown, secret) || !strings.Contains(shown, `SINK.CONNECTION=\"shop\"`) {
		t.Errorf("shown is %s", shown)
	}
	s.Stop()
}

// TestAPostgresSinkOutlivesItsServer: the server of a sink is killed while a file is written to it, and every row is
// there once. A query that runs on is judged again when it has to connect anew: once the connection is production, and
// nobody has confirmed that, it fails.
func TestAPostgresSinkOutlivesItsServer(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	pg := pgtest.StartCrashable(t, nil)
	admin, err := pgx.Connect(t.Context(), pg.DSN("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := admin.Exec(t.Context(), "CREATE DATABASE shop"); err != nil {
		t.Fatal(err)
	}
	_ = admin.Close(t.Context())
	dsn := pg.DSN("shop")
	one := func(sql string) (n int) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), dsn)
		for begin := time.Now(); err != nil && time.Since(begin) < 20*time.Second; time.Sleep(50 * time.Millisecond) {
			conn, err = pgx.Connect(t.Context(), dsn)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(t.Context()) }()
		if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	// A row takes about a millisecond, so that there is something to interrupt.
	if _, err := conn.Exec(t.Context(), `CREATE TABLE taken (ts int8, x int8); CREATE FUNCTION slow() RETURNS trigger
		LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.00001); RETURN NEW; END';
		CREATE TRIGGER slow BEFORE INSERT ON taken FOR EACH ROW EXECUTE FUNCTION slow()`); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
	p := clitest.NewProgram(t)
	s := streamsServer{p.Serve()}
	in, err := json.Marshal(map[string]any{"name": "shop", "driver": "postgres", "dsn": dsn})
	if err != nil {
		t.Fatal(err)
	}
	status, body := s.Send("POST", "/api/connections", string(in))
	if status != http.StatusCreated {
		t.Fatalf("%d %s", status, body)
	}
	var saved struct {
		ID string `json:"connection_id"`
	}
	if err := json.Unmarshal([]byte(body), &saved); err != nil {
		t.Fatal(err)
	}
	const rows = 8_000
	var text strings.Builder
	for i := range rows {
		fmt.Fprintf(&text, "%d,%d\n", i, i)
	}
	p.Write("data/streams/a.csv", text.String())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	peers := make(chan net.Conn, 1) // room: for the one
	go func() {
		if c, err := listener.Accept(); err == nil {
			peers <- c
		}
	}()
	s.done(`CREATE LOGICAL SOURCE a(ts INT64, x INT64); CREATE LOGICAL SOURCE live(ts INT64, x INT64);
		CREATE PHYSICAL SOURCE FOR a TYPE FILE SET('a.csv' AS SOURCE.FILE_PATH, 'CSV' AS PARSER.TYPE);
		CREATE PHYSICAL SOURCE FOR live TYPE TCP SET('127.0.0.1' AS SOURCE.SOCKET_HOST, ` +
		fmt.Sprint(listener.Addr().(*net.TCPAddr).Port) + ` AS SOURCE.SOCKET_PORT, 'CSV' AS PARSER.TYPE);
		CREATE SINK s TYPE POSTGRES SET('shop' AS SINK.CONNECTION, 'taken' AS SINK.TABLE);
		CREATE QUERY q AS SELECT ts, x FROM a INTO s`)
	for range 3 {
		time.Sleep(1500 * time.Millisecond)
		pg.Crash()
		time.Sleep(300 * time.Millisecond)
	}
	s.until("q", "TERMINATED")
	all, ids := one("SELECT count(*) FROM taken"), one("SELECT count(DISTINCT ts) FROM taken")
	if all != rows || ids != rows {
		t.Errorf("%d rows with %d ids of %d", all, ids, rows)
	}
	s.done("CREATE QUERY on AS SELECT ts + 1000000 AS ts, x FROM live INTO s")
	peer := <-peers
	defer func() { _ = peer.Close() }()
	s.until("on", "RUNNING")
	if _, err := peer.Write([]byte("1,1\n")); err != nil {
		t.Fatal(err)
	}
	clitest.WaitFor(t, clitest.StartTimeout, "the row",
		func() bool { return one("SELECT count(*) FROM taken WHERE ts > 1000000") == 1 })
	change, err := json.Marshal(map[string]any{"name": "shop", "driver": "postgres", "dsn": dsn, "production": true})
	if err != nil {
		t.Fatal(err)
	}
	if status, body := s.Send("PUT", "/api/connections/"+saved.ID, string(change)); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	pg.Crash()
	if _, err := peer.Write([]byte("2,2\n")); err != nil {
		t.Fatal(err)
	}
	s.until("on", "SUSPENDED")
	if q := s.query(
		"on",
	); !strings.Contains(
		q.Failure,
		`the connection "shop" is production now, and nobody has confirmed`,
	) {
		t.Errorf("%+v", q)
	}
	s.Stop()
}
