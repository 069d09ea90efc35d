package snowflake

import (
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/snowsim"
	"github.com/loadstone-db/loadstone/snowsim/warehouse"
)

// TestAWarehouseChangesUnderTheLoad: what others do with it, and what the account takes away, is an error of the
// executions that meet it, by its right class; the connection survives, and works when the warehouse is there again.
func TestAWarehouseChangesUnderTheLoad(t *testing.T) {
	s := standIn(t, func(o *snowsim.Options) {
		o.Users = []snowsim.User{{Name: "ANN", Password: "secret"}}
		o.Warehouses = []warehouse.Spec{{Name: "W", AutoResume: true}}
	})
	admin := openDSN(t, "snowflake://"+s.DSN(), target.Config{})
	defer func() { _ = admin.Close() }()
	do := func(sql ...string) {
		t.Helper()
		if err := admin.Exec(t.Context(), sql...); err != nil {
			t.Fatal(err)
		}
	}
	do("CREATE TABLE t (id NUMBER, a VARCHAR)", "INSERT INTO t VALUES (1, 'x')", "CREATE ROLE runner",
		"GRANT SELECT, UPDATE ON TABLE t TO ROLE runner", "GRANT USAGE ON WAREHOUSE W TO ROLE runner")
	db := openDSN(t, strings.Replace("snowflake://"+s.DSN(), "role=SYSADMIN", "role=RUNNER", 1), target.Config{})
	defer func() { _ = db.Close() }()
	c := connect(t, db)
	defer func() { _ = c.Close() }()
	works := func(when string) {
		t.Helper()
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			res, err := exec(c, 0, int64(1))
			if err == nil && res.Rows == 1 {
				return
			}
			if time.Now().After(end) || c.Broken() {
				t.Fatalf("%s: %+v, %v, broken %v", when, res, err, c.Broken())
			}
		}
	}
	works("at first")
	for _, b := range []struct {
		name        string
		breaks, put func()
		code        string // empty: it goes on
	}{
		{"resized", func() { do("ALTER WAREHOUSE W SET WAREHOUSE_SIZE = LARGE") }, func() {}, ""},
		{"suspended by another, and resumes by itself", func() { do("ALTER WAREHOUSE W SUSPEND") }, func() {}, ""},
		{"suspended by another, and does not resume",
			func() { do("ALTER WAREHOUSE W SET AUTO_RESUME = FALSE", "ALTER WAREHOUSE W SUSPEND") },
			func() { do("ALTER WAREHOUSE W RESUME", "ALTER WAREHOUSE W SET AUTO_RESUME = TRUE") }, "000606"},
		{"without USAGE", func() { do("REVOKE USAGE ON WAREHOUSE W FROM ROLE runner") },
			func() { do("GRANT USAGE ON WAREHOUSE W TO ROLE runner") }, "000606"},
		{"at its resource monitor's limit", func() { s.ExhaustQuota("W", true) }, func() { s.ExhaustQuota("W", false) }, "090073"},
		{"dropped", func() { do("DROP WAREHOUSE W") },
			func() { do("CREATE WAREHOUSE W", "GRANT USAGE ON WAREHOUSE W TO ROLE runner") }, "000606"},
	} {
		b.breaks()
		if b.code != "" {
			_, err := exec(c, 0, int64(1))
			if e := db.Classify(err); e.Class != engine.ErrClassResource || e.Code != b.code {
				t.Errorf("%s: %+v, %v", b.name, e, err)
			}
			if c.Broken() {
				t.Fatalf("%s: the connection is broken", b.name)
			}
		}
		b.put()
		works(b.name)
	}
}
