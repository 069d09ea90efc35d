package snowflake

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/snowsim"
	"github.com/loadstone-db/loadstone/snowsim/translate"
)

var update = flag.Bool("update", false, "write docs/snowflake-check.json anew")

// TestTheCheckOfTheStandIn: what loadstone snowflake check says of the stand-in is the file in the documents. What differs
// between it and the file of an account is where the stand-in is not as an account is. The file names nothing of the
// account, and the check leaves nothing there.
func TestTheCheckOfTheStandIn(t *testing.T) {
	t.Parallel()
	ask := func(change func(*snowsim.Options)) Conformance {
		t.Helper()
		s := standIn(t, change)
		db, err := NewDriver().Open(target.Config{DSN: secret.New("snowflake://" + s.DSN())})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = db.Close() }()
		found, err := CheckConformance(t.Context(), db)
		if err != nil {
			t.Fatal(err)
		}
		rs, err := db.Query(
			t.Context(),
			"SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME LIKE 'LOADSTONE_CHECK%'",
		)
		if err != nil || rs.Rows[0][0] != int64(0) {
			t.Errorf("%v tables of the check are left: %v", rs, err)
		}
		return found
	}
	const file = "../../../docs/snowflake-check.json"
	found := ask(nil)
	if *update {
		if err := os.WriteFile(file, found.JSON(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := found.JSON(); !bytes.Equal(got, want) {
		t.Errorf("docs/snowflake-check.json is another; go test ./engine/target/snowflake -run %s -update\n%s", t.Name(), got)
	}
	for _, own := range []string{"LOADSTONE.PUBLIC", "LOADSTONE_WH", "SYSADMIN", "127.0.0.1"} {
		if bytes.Contains(want, []byte(own)) {
			t.Errorf("the file has %s, which is of one account", own)
		}
	}
	outcomes := map[string]string{}
	for _, a := range ask(func(o *snowsim.Options) {
		o.Denied = []translate.Denied{{Privilege: "CREATE HYBRID TABLE"}}
	}).Assumptions {
		outcomes[a.ID] = a.Outcome + " " + a.Found
	}
	if got := outcomes["hybrid.create"]; !strings.HasPrefix(got, NotHeld+" 003001 ") ||
		outcomes["hybrid.keys"] != NotChecked+" " {
		t.Errorf("a role that may make no hybrid table: %q, %q", got, outcomes["hybrid.keys"])
	}
}
