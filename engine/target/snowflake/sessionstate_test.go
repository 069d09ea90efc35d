package snowflake

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/snowsim"
	"github.com/loadstone-db/loadstone/snowsim/snowsimtest"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

var hostile = snowsimtest.HostileParameters()

// TestSessionsAreOurs: whatever an account and a user have as defaults, a session has what a run needs.
func TestSessionsAreOurs(t *testing.T) {
	for _, whose := range []string{"account", "user"} {
		t.Run(whose, func(t *testing.T) {
			s := standIn(t, func(o *snowsim.Options) {
				if whose == "account" {
					o.Parameters = hostile
				} else {
					o.Users = []snowsim.User{{Name: "ANN", Password: "secret", Parameters: hostile}}
				}
			})
			db := openDSN(t, "snowflake://"+s.DSN(), target.Config{RunID: "r1"})
			defer func() { _ = db.Close() }()
			wanted := map[string]string{}
			for _, p := range db.sessionParameters() {
				wanted[p.name] = p.value
				if hostile[p.name] == "" {
					t.Errorf("no hostile value of %s is tried", p.name)
				}
			}
			rs, err := db.Query(t.Context(), "SHOW PARAMETERS IN SESSION")
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range rs.Rows {
				if want, ours := wanted[row[0].(string)]; ours && row[1] != want {
					t.Errorf("%s is %v, not %q", row[0], row[1], want)
				}
			}
			if len(rs.Rows) < len(wanted) {
				t.Errorf("%d parameters are told, %d are ours", len(rs.Rows), len(wanted))
			}
			// What the parameters decide, seen in what is stored and read.
			if err := db.Exec(
				t.Context(),
				`CREATE TABLE "kept" ("a" NUMBER, "at" TIMESTAMP)`,
				`INSERT INTO "kept" SELECT N, '2026-01-31 12:00:00'::TIMESTAMP FROM (SELECT ROW_NUMBER() OVER (ORDER BY SEQ8()) AS N `+
					`FROM TABLE(GENERATOR(ROWCOUNT => 5)))`,
			); err != nil {
				t.Fatal(err)
			}
			other := openDSN(t, "snowflake://"+s.DSN(), target.Config{})
			defer func() { _ = other.Close() }()
			rs, err = other.Query(t.Context(), `SELECT "a", "at" FROM "kept"`)
			if err != nil || len(rs.Rows) != 5 {
				t.Fatalf("another session reads %d rows of 5: %v", len(rs.Rows), err)
			}
		})
	}
}

// TestStraySessionIsRefused: a session that does not take what a run needs is set once more, and refused when it still
// has it otherwise; an account that does not list a parameter is taken as it is.
func TestStraySessionIsRefused(t *testing.T) {
	for name, value := range hostile {
		a := newAccount(t)
		a.parameters = map[string]string{name: value}
		db := openDSN(t, a.dsn(), target.Config{})
		_, err := db.Query(t.Context(), "SELECT 1")
		var e *engine.Error
		if !errors.As(err, &e) || !strings.Contains(e.Message, name) || e.Hint == "" {
			t.Errorf("%s = %s: %v", name, value, err)
		}
		set := ""
		a.mu.Lock()
		for _, r := range a.requests {
			set += r.SQLText + "\n"
		}
		a.mu.Unlock()
		if !strings.Contains(set, "ALTER SESSION SET "+name+" = ") || strings.Contains(set, "SELECT 1") {
			t.Errorf("%s: %s", name, set)
		}
		_ = db.Close()
		if n := a.open.Load(); n != 0 {
			t.Errorf("%s: %d sessions are left open", name, n)
		}
	}
}

// TestASpellingOfTheAccountIsTaken: a value that the account tells in other words is taken as it is, another value is not.
func TestASpellingOfTheAccountIsTaken(t *testing.T) {
	a := newAccount(t)
	a.parameters = map[string]string{"TIMEZONE": "Etc/UTC", "AUTOCOMMIT": "TRUE", "DATE_OUTPUT_FORMAT": "yyyy-mm-dd",
		"TIMESTAMP_TYPE_MAPPING": "timestamp_ntz"}
	db := openDSN(t, a.dsn(), target.Config{})
	defer func() { _ = db.Close() }()
	if _, err := db.Query(t.Context(), "SELECT 1"); err != nil {
		t.Error(err)
	}
	if len(a.requests) != 1 || a.requests[0].SQLText != "SELECT 1" {
		t.Errorf("%+v", a.requests)
	}
	for name, value := range map[string]string{"TIMEZONE": "Europe/London", "QUERY_TAG": strings.ToUpper(db.tag()),
		"LOCK_TIMEOUT": "4320", "ROWS_PER_RESULTSET": "00"} {
		for _, p := range db.sessionParameters() {
			if p.name == name && p.has(value) {
				t.Errorf("%s = %s is taken", name, value)
			}
		}
	}
}

// TestSecondaryRolesOfTheConnection: they are set at each log-in, and what is neither all nor none is refused.
func TestSecondaryRolesOfTheConnection(t *testing.T) {
	for _, c := range []struct {
		none      bool // by the user's default
		parameter string
		want      string
	}{{false, "", "ALL"}, {true, "", `""`}, {false, "none", `""`}, {true, "all", "ALL"}} {
		s := standIn(t, func(o *snowsim.Options) {
			o.Users = []snowsim.User{{Name: "ANN", Password: "secret", NoSecondaryRoles: c.none}}
		})
		dsn := "snowflake://" + s.DSN()
		if c.parameter != "" {
			dsn += "&secondary_roles=" + c.parameter
		}
		db := openDSN(t, dsn, target.Config{})
		rs, err := db.Query(t.Context(), "SELECT CURRENT_SECONDARY_ROLES()")
		if err != nil || !strings.Contains(rs.Rows[0][0].(string), c.want) {
			t.Errorf("%+v: %v, %v", c, rs, err)
		}
		_ = db.Close()
	}
	if _, err := parseDSN(
		"u:p@acc?secondary_roles=ANALYST",
	); err == nil ||
		!strings.Contains(err.Error(), "secondary_roles") {
		t.Errorf("a name is taken: %v", err)
	}
}

// TestTheWarehouseOutlivesItsSession: USE WAREHOUSE counts for what is executed after it, whichever cold session that is
// on, and also when the session is lost.
func TestTheWarehouseOutlivesItsSession(t *testing.T) {
	s := standIn(t, func(o *snowsim.Options) {
		o.Warehouses = []warehouse.Spec{{Name: "FIRST", AutoResume: true}, {Name: "SECOND", AutoResume: true}}
	})
	db := openDSN(t, "snowflake://"+s.DSN(), target.Config{})
	defer func() { _ = db.Close() }()
	on := func(want string) {
		t.Helper()
		// Several at a time are on several sessions.
		var wg sync.WaitGroup
		for range maxColdConnections {
			wg.Go(func() {
				rs, err := db.Query(t.Context(), "SELECT CURRENT_WAREHOUSE(), SYSTEM$WAIT(0.05)")
				if err != nil || rs.Rows[0][0] != want {
					t.Errorf("%v on %v, not %s", err, rs, want)
				}
			})
		}
		wg.Wait()
	}
	on("FIRST")
	for range 2 {
		if err := db.Exec(t.Context(), `USE WAREHOUSE "SECOND"`); err != nil {
			t.Fatal(err)
		}
		on("SECOND")
		s.EndSessions()
		on("SECOND")
		if err := db.Exec(t.Context(), `USE WAREHOUSE "FIRST"`); err != nil {
			t.Fatal(err)
		}
		on("FIRST")
	}
	if err := db.Exec(t.Context(), `USE WAREHOUSE "SECOND"`); err != nil {
		t.Fatal(err)
	}
	if err := s.Warehouses().Drop("SECOND"); err != nil {
		t.Fatal(err)
	}
	s.EndSessions()
	if _, err := db.Query(t.Context(), "SELECT 1"); err == nil || !strings.Contains(err.Error(), "SECOND") {
		t.Errorf("a warehouse that is gone: %v", err)
	}
}
