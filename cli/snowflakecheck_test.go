package cli

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/cli/terminal"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
)

// TestTheCheckOfAnAccount: loadstone snowflake check asks by statements, by runs on each type of table, by the history
// and by an export. Of the stand-in all that is asked holds, the file is that of the documents, and nothing is left
// there. A role that may not make what a run needs is exit code 3.
func TestTheCheckOfAnAccount(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	s := p.StandIn("--listen", "127.0.0.1:0", "--password-file", p.Write("password", "hunter2\n"), "--time-scale", "10")
	defer s.Stop(t)
	connection, file := p.Write("connection", s.Dsn+"\n"), p.Path("found.json")
	code, text := p.Command("snowflake", "check", "file:"+connection, "--out", file)
	got, err := os.ReadFile(file)
	if err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s\n%s", code, err, text, got)
	}
	const documented = "../docs/snowflake-check.json"
	if os.Getenv("LOADSTONE_UPDATE") != "" {
		if err := os.WriteFile(documented, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(documented)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("docs/snowflake-check.json is another; LOADSTONE_UPDATE=1 go test ./cli -run %s\n%s", t.Name(), got)
	}
	for _, own := range []string{"hunter2", "LOADSTONE_WH", "SYSADMIN", "127.0.0.1", "_RUN_", "Error"} {
		if bytes.Contains(got, []byte(own)) {
			t.Errorf("the file has %s, which is of one account", own)
		}
	}
	account, err := snowflake.NewDriver().Open(target.Config{DSN: secret.New(s.Dsn), ConnectTimeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer account.Close()
	for _, left := range []string{"SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_NAME LIKE 'LOADSTONE_CHECK%'",
		"SELECT COUNT(*) FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA LIKE 'LOADSTONE_CHECK%'"} {
		if rs, err := account.Query(t.Context(), left); err != nil || rs.Rows[0][0] != int64(0) {
			t.Errorf("%s: %v, %v", left, rs, err)
		}
	}
	if err := account.Exec(t.Context(), "CREATE ROLE POOR", "GRANT ROLE POOR TO USER LOADSTONE",
		"GRANT USAGE ON WAREHOUSE LOADSTONE_WH TO ROLE POOR"); err != nil {
		t.Fatal(err)
	}
	poor := p.Write("poor", strings.Replace(s.Dsn, "role=SYSADMIN", "role=POOR", 1)+"&secondary_roles=none\n")
	code, text = p.Command("snowflake", "check", "file:"+poor)
	if code != terminal.ExitThresholds || !strings.Contains(text, `"not held"`) || !strings.Contains(text, "did not") {
		t.Errorf("a role that may make nothing: exit %d, %s", code, text)
	}
}
