package snowflake

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/snowsim"
	"github.com/loadstone-db/loadstone/snowsim/translate"
)

// checked asks a stand-in all that can be asked without runs, and sees that nothing is left there.
func checked(t *testing.T, dsn string, db target.Database) (found Conformance, outcomes map[string]Assumption) {
	t.Helper()
	c, err := NewChecker(t.Context(), db)
	if err == nil {
		err = c.Probe(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	c.Clean(t.Context())
	other, err := NewDriver().Open(target.Config{DSN: secret.New(dsn)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	rs, err := other.Query(
		t.Context(),
		"SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME LIKE 'LOADSTONE_CHECK%'",
	)
	if err != nil || rs.Rows[0][0] != int64(0) {
		t.Errorf("%v tables of the check are left: %v", rs, err)
	}
	found = c.Result()
	outcomes = map[string]Assumption{}
	for _, a := range found.Assumptions {
		outcomes[a.ID] = a
	}
	return found, outcomes
}

func openStandIn(t *testing.T, change func(*snowsim.Options)) (dsn string, db target.Database) {
	t.Helper()
	dsn = "snowflake://" + standIn(t, change).DSN()
	db, err := NewDriver().Open(target.Config{DSN: secret.New(dsn)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return dsn, db
}

// TestTheCheckOfTheStandIn: what can be asked of the stand-in without runs is as in the file of the documents, which
// TestTheCheckOfAnAccount in cli writes. The check leaves nothing there.
func TestTheCheckOfTheStandIn(t *testing.T) {
	t.Parallel()
	dsn, db := openStandIn(t, nil)
	found, _ := checked(t, dsn, db)
	text, err := os.ReadFile("../../../docs/snowflake-check.json")
	if err != nil {
		t.Fatal(err)
	}
	var want Conformance
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	documented := map[string]Assumption{}
	for _, a := range want.Assumptions {
		documented[a.ID] = a
	}
	for _, a := range found.Assumptions {
		if documented[a.ID] != a {
			t.Errorf("the check finds\n%+v\nand docs/snowflake-check.json has\n%+v\n"+
				"LOADSTONE_UPDATE=1 go test ./cli -run TestTheCheckOfAnAccount", a, documented[a.ID])
		}
		if a.Outcome != Held {
			t.Errorf("the stand-in is not as assumed: %+v", a)
		}
	}
}

// TestWhatARoleMayNotIsNotHeld: what rests on it is not checked, and no name of the account is in the file.
func TestWhatARoleMayNotIsNotHeld(t *testing.T) {
	t.Parallel()
	dsn, db := openStandIn(t, func(o *snowsim.Options) {
		o.Denied = []translate.Denied{{Privilege: "CREATE HYBRID TABLE"}, {Privilege: "CREATE INTERACTIVE TABLE"},
			{Privilege: "IMPORTED PRIVILEGES"}}
		o.Database, o.Schema = "SECRET_DB", "HIDDEN_SCHEMA"
		o.Users = []snowsim.User{{Name: "UNTOLD_USER", Password: "hunter2", DefaultWarehouse: "LOADSTONE_WH"}}
	})
	found, outcomes := checked(t, dsn, db)
	if a := outcomes["hybrid.create"]; a.Outcome != NotHeld || !strings.HasPrefix(a.Found, "003001 ") ||
		outcomes["hybrid.keys"].Outcome != NotChecked || outcomes["interactive.update"].Outcome != NotChecked {
		t.Errorf("%+v, %+v", a, outcomes["hybrid.keys"])
	}
	text := strings.ToLower(string(found.JSON()))
	for _, own := range []string{"secret_db", "hidden_schema", "untold_user", "loadstone_wh", "sysadmin", "127.0.0.1",
		"hunter2"} {
		if strings.Contains(text, own) {
			t.Errorf("the file has %q, which is of one account:\n%s", own, text)
		}
	}
}

// lossy is an account whose statements of one kind are never answered: each fails as a lost connection does.
type lossy struct {
	target.Database
	of string
}

var errLost = errors.New("read tcp 10.1.2.3:443: connection reset by peer")

func (s lossy) Exec(ctx context.Context, sql ...string) error {
	if strings.Contains(strings.Join(sql, ";"), s.of) {
		return errLost
	}
	return s.Database.Exec(ctx, sql...)
}

func (s lossy) Classify(err error) engine.ExecutionError {
	if errors.Is(err, errLost) {
		return engine.ExecutionError{Class: engine.ErrClassConnection, Code: codeConnection, Message: err.Error()}
	}
	return s.Database.Classify(err)
}

// TestALostConnectionIsNoAnswer: of what was asked on it nothing is known, whether it is assumed to be executed or to be
// refused.
func TestALostConnectionIsNoAnswer(t *testing.T) {
	t.Parallel()
	dsn, db := openStandIn(t, nil)
	for of, id := range map[string]string{"UPDATE ": "interactive.update", "SELEC 1": "errors.syntax",
		"SWAP WITH": "standard.swap"} {
		found, outcomes := checked(t, dsn, lossy{db, of})
		if a := outcomes[id]; a.Outcome != NotChecked || !strings.HasPrefix(a.Found, codeConnection) {
			t.Errorf("%s: %+v", of, a)
		}
		if strings.Contains(string(found.JSON()), "10.1.2.3") {
			t.Error("an address is in the file")
		}
	}
}

// TestTwoChecksAtATime do not meet: each makes tables of its own.
func TestTwoChecksAtATime(t *testing.T) {
	t.Parallel()
	dsn, db := openStandIn(t, nil)
	first, err := NewChecker(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	if err := first.exec(t.Context(), "CREATE TABLE LOADSTONE_CHECK_STANDARD (ID NUMBER)"); err != nil {
		t.Fatal(err)
	}
	second, err := NewChecker(t.Context(), db)
	if err == nil {
		err = second.Probe(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	second.Clean(t.Context())
	if !second.Holds("standard.create") || !second.Holds("check.clean") {
		t.Errorf("%s", second.Result().JSON())
	}
	if _, err := first.one(t.Context(), "SELECT COUNT(*) FROM LOADSTONE_CHECK_STANDARD"); err != nil {
		t.Errorf("the second check has dropped a table of the first: %v", err)
	}
	first.Clean(t.Context())
	_ = dsn
}

// TestTheHiderKeepsNoName: sentences of accounts lose what is of them alone, and keep what says what is wrong.
func TestTheHiderKeepsNoName(t *testing.T) {
	t.Parallel()
	h := newHider([]string{"my db", "PUBLIC", "ADA", "ORG-ACME", "<nil>", ""}, "LOADSTONE_CHECK_0A1B2C3D_")
	for text, want := range map[string]string{
		"Can't see 'my_db.public.orders', the user's role doesn't own it.": "Can't see …, the user's role doesn't own it.",
		"Object 'T' does not exist":                                        "Object … does not exist",
		"Schema MY DB.PUBLIC of ada is gone":                               "Schema … of … is gone",
		"Table SALES.CRM.ORDERS is not there":                              "Table … is not there",
		"role ANALYST may not INSERT INTO LOADSTONE_CHECK_0A1B2C3D_STANDARD": "role … may not INSERT INTO " +
			"LOADSTONE_CHECK_STANDARD",
		"dial tcp 10.2.3.4:443: org-acme.snowflakecomputing.com:443": "dial tcp …: …",
		"at 2026-11-30 04:05:06.789 +0100 (incident 12345678)":       "at … (incident …)",
		"write to ada@example.com or https://example.com/x":          "write to … or …",
		"unclosed 'name of something":                                "unclosed …",
		`invalid identifier "Ünique"`:                                "invalid identifier …",
		"Query 01b2c3d4-0000-1111-2222-333344445555 timed out":       "Query … timed out",
	} {
		if got := h.text(text); got != want {
			t.Errorf("%s\nbecomes %s\nand not %s", text, got, want)
		}
	}
	if got := h.value("America/Los_Angeles of my db " + strings.Repeat("x", 400)); strings.Contains(got, "my db") ||
		len(got) > 320 {
		t.Errorf("a value becomes %s", got)
	}
}

// TestAnAccountThatIsGoneDuringACheck: the check ends with what it has, and says so.
func TestACheckThatIsGivenUp(t *testing.T) {
	t.Parallel()
	_, db := openStandIn(t, nil)
	c, err := NewChecker(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if err := c.Probe(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a check that is given up: %v", err)
	}
	c.Clean(ctx) // it has a time of its own
	if !c.Holds("check.clean") {
		t.Errorf("%s", c.Result().JSON())
	}
}
