package snowflake

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	exec2 "os/exec"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
)

func TestRefusedSignInsAreExplained(t *testing.T) {
	const secret = "se:cret"
	key := "&authenticator=snowflake_jwt&private_key=" + url.QueryEscape(privateKey())
	hour := time.Hour
	for name, c := range map[string]struct {
		query         string
		code          int
		said          string
		ahead         time.Duration
		message, hint string
	}{
		"password": {"", 390100, "Incorrect username or password was specified.", 0,
			"The user tester or the password is wrong", "right one"},
		"mfa": {"", 394508,
			"MFA with TOTP is required. To authenticate, provide both your password and a current TOTP passcode.", 0,
			"demands a second factor", "key pair"},
		"mfa enrollment": {"", 390123, "Failed to authenticate: MFA enrollment is required. ", 0, "demands a second factor",
			"SERVICE"},
		"key": {key, 390144, "JWT token is invalid. [0ce9eb56-821d-4ca9-a774-04ae89a0cf5a]", 0,
			"does not accept the key", "RSA_PUBLIC_KEY_FP"},
		"clock": {key, 390144, "JWT token is invalid. [0ce9eb56-821d-4ca9-a774-04ae89a0cf5a]", hour,
			"behind the account's", "NTP"},
		"clock too": {key, 390144, "JWT token is invalid. [0ce9eb56-821d-4ca9-a774-04ae89a0cf5a]", -hour,
			"ahead of the account's", "NTP"},
		"oauth": {"&authenticator=oauth&token=T", 390318, "OAuth access token expired. [1]", 0, "OAuth access token",
			"new one"},
		"pat": {"&authenticator=programmatic_access_token&token=P", 394400,
			"Programmatic access token is invalid.", 0, "programmatic access token", "expired"},
		"role": {"", 390189, "Role 'R' specified in the connect string does not exist or not authorized.", 0,
			"The role R does not exist, or is not granted", "GRANT ROLE R TO USER tester"},
		"warehouse": {"", 390201, "The requested warehouse does not exist or not authorized.", 0,
			"The warehouse WH does not exist, or the role may not use it", "GRANT USAGE ON WAREHOUSE WH TO ROLE R"},
		"database": {"", 390201, "The requested database does not exist or not authorized.", 0,
			"The database DB does not exist", "GRANT USAGE ON DATABASE DB"},
		"locked": {"", 390101, "Your user account has been temporarily locked due to too many failed attempts.", 0,
			"is locked", "15 minutes"},
		"policy": {"", 390422, "Incoming request with IP/Token 1.2.3.4 is not allowed to access Snowflake.", 0,
			"network policy", "1.2.3.4"},
		"disabled": {"", 390102, "User access disabled. Contact your local system administrator.", 0, "is disabled",
			"DISABLED = FALSE"},
		"unknown": {"", 390999, "Something new.", 0, "Something new", "sign-in"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount(t)
			a.date = time.Now().Add(c.ahead)
			a.login = func(map[string]any) map[string]any { return refusal(c.code, "08001", c.said) }
			db := openDSN(t, a.dsn()+c.query, target.Config{})
			for what, err := range map[string]error{"Check": second(db.Check(t.Context())),
				"Connect": second(db.Connect(t.Context(), nil)), "Query": second(db.Query(t.Context(), "SELECT 1"))} {
				var e *engine.Error
				if !errors.As(err, &e) || e.Code != engine.CodeTarget || !strings.Contains(e.Message, c.message) ||
					!strings.Contains(e.Hint, c.hint) {
					t.Errorf("%s: %v", what, err)
				} else if strings.Contains(err.Error()+fmt.Sprint(e.Cause), secret) {
					t.Errorf("%s: the password is in %v", what, e.Cause)
				}
			}
		})
	}
}

// TestTheDriversOwnFilesAreExplained: a configuration of gosnowflake's that cannot be
// read stops every session, and the message says which and what to do. It runs in a
// process of its own, because gosnowflake looks once.
func TestTheDriversOwnFilesAreExplained(t *testing.T) {
	a := newAccount(t)
	if dsn := os.Getenv("LOADSTONE_TEST_CONFIG"); dsn != "" {
		_, err := openDSN(t, dsn, target.Config{}).Check(t.Context())
		var e *engine.Error
		if !errors.As(err, &e) || !strings.Contains(e.Message, "/nowhere/sf_client_config.json") ||
			!strings.Contains(e.Hint, "SF_CLIENT_CONFIG_FILE") {
			t.Errorf("%v", err)
		}
		return
	}
	again := exec2.CommandContext(t.Context(), os.Args[0],
		"-test.run=^TestTheDriversOwnFilesAreExplained$")
	again.Env = append(os.Environ(), "LOADSTONE_TEST_CONFIG="+a.dsn(),
		"SF_CLIENT_CONFIG_FILE=/nowhere/sf_client_config.json")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func second[T any](_ T, err error) error { return err }

func TestUnreachableAccountsAreExplained(t *testing.T) {
	silentServer := newAccount(t)
	silentServer.login = func(map[string]any) map[string]any { time.Sleep(1500 * time.Millisecond); return nil }
	busy := newAccount(t)
	busy.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	missing := newAccount(t)
	missing.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
	})
	forbidden := newAccount(t)
	forbidden.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
	})
	page := newAccount(t)
	page.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_,
			_ = w.Write([]byte("<html>hello</html>"))
	})
	hangs := newAccount(t)
	hangs.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		c, _, _ := w.(http.Hijacker).Hijack()
		_ = c.Close()
	})
	for name, c := range map[string]struct{ dsn, message string }{
		"refused": {"snowflake://tester:x@127.0.0.1:1?account=a&protocol=http",
			"Nothing accepts connections at 127.0.0.1:1"},
		"dns":      {"snowflake://tester:x@a?host=no-such-account.invalid", "is not known"},
		"not tls":  {strings.Replace(page.dsn(), "&protocol=http", "", 1), "does not speak TLS"},
		"busy":     {busy.dsn(), "HTTP 503"},
		"missing":  {missing.dsn(), "There is no account fake"},
		"refuses":  {forbidden.dsn(), "There is no account fake"},
		"silent":   {silentServer.dsn("login_timeout=1"), "did not answer in time"},
		"hangs up": {hangs.dsn(), "closed the connection while it was being set up"},
		"a page":   {page.dsn(), "is not Snowflake"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := openDSN(t, c.dsn, target.Config{}).Check(t.Context())
			var e *engine.Error
			if !errors.As(err, &e) || !strings.Contains(e.Message, c.message) || e.Hint == "" {
				t.Errorf("%v\n\tdoes not say %q: %v", err, c.message, errors.Unwrap(err))
			}
		})
	}
}

// TestClassesOfErrors: by number, then by SQLSTATE, then by nature; only what
// ended the session breaks the connection.
func TestClassesOfErrors(t *testing.T) {
	a := newAccount(t)
	db := openDSN(t, a.dsn(), target.Config{})
	for _, c := range []struct {
		number int
		state  string
		class  engine.ErrorClass
		broken bool
	}{
		{1003, "42000", engine.ErrClassSyntax, false}, {904, "42000", engine.ErrClassSyntax, false},
		{2003, "02000", engine.ErrClassSyntax, false}, {3001, "42501", engine.ErrClassAuth, false},
		{100038, "22018", engine.ErrClassData, false}, {100072, "22000", engine.ErrClassConstraint, false},
		{200001, "22000", engine.ErrClassConstraint, false},
		{625, "57014", engine.ErrClassLock, false}, {630, "57014", engine.ErrClassTimeout, false},
		{604, "57014", engine.ErrClassCancelled, false}, {628, "57014", engine.ErrClassTimeout, false},
		{606, "57P03", engine.ErrClassResource, false}, {609, "57014", engine.ErrClassResource, false},
		{90073, "22000", engine.ErrClassResource, false},
		{777777, "40001", engine.ErrClassSerialization, false}, {777777, "42501", engine.ErrClassAuth, false},
		{777777, "99999", engine.ErrClassOther, false},
		{390111, "08001", engine.ErrClassConnection, true}, {390114, "08001", engine.ErrClassConnection, true},
		{390104, "08001", engine.ErrClassConnection, true},
	} {
		conn := connect(t, db)
		a.respond(func(http.ResponseWriter, *http.Request, request) map[string]any {
			return refusal(c.number, c.state,
				"Statement '01b6c04c-0108-5374-0008-50d700010052' in transaction 1725239781553000000 failed.")
		})
		for statement, args := range [][]any{{int64(1)}, {int64(1), "x"}} {
			res, err := exec(conn, uint16(statement), args...)
			e := db.Classify(err)
			if e.Class != c.class || e.Code != fmt.Sprintf("%06d", c.number) || conn.Broken() != c.broken {
				t.Errorf("%d %s: %+v, broken %v", c.number, c.state, e, conn.Broken())
			}
			if e.Message != "Statement '…' in transaction … failed." {
				t.Errorf("%q", e.Message)
			}
			if res.QueryID.String() != queryID(7) {
				t.Errorf("%d: the query id of a failed query is %q", c.number, res.QueryID)
			}
			if c.broken {
				break
			}
		}
		a.respond(nil)
		_ = conn.Close()
	}
	for status, class := range map[int]engine.ErrorClass{429: engine.ErrClassThrottled, 503: engine.ErrClassThrottled,
		500: engine.ErrClassResource, 504: engine.ErrClassResource} {
		conn := connect(t, db)
		before := len(a.requests)
		a.respond(func(w http.ResponseWriter, _ *http.Request, _ request) map[string]any {
			w.WriteHeader(status)
			return nil
		})
		_, err := exec(conn, 0, int64(1))
		if e := db.Classify(err); e.Class != class || e.Code != fmt.Sprintf("http_%d", status) || conn.Broken() {
			t.Errorf("%d: %+v, broken %v", status, e, conn.Broken())
		}
		if n := len(a.requests) - before; n != 1 {
			t.Errorf("%d: %d requests for one execution", status, n)
		}
		a.respond(nil)
		if _, err := exec(conn, 0, int64(1)); err != nil {
			t.Errorf("after %d: %v", status, err)
		}
		_ = conn.Close()
	}
	conn := connect(t, db)
	a.respond(func(w http.ResponseWriter, _ *http.Request, _ request) map[string]any {
		c, _, _ := w.(http.Hijacker).Hijack()
		_ = c.Close()
		return nil
	})
	if _, err := exec(conn, 1, int64(1), "x"); db.Classify(err).Class != engine.ErrClassConnection || !conn.Broken() {
		t.Errorf("a lost TCP connection: %+v, broken %v", db.Classify(err), conn.Broken())
	}
	a.respond(nil)
}
