package snowflake

import (
	"bufio"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	sf "github.com/snowflakedb/gosnowflake/v2"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/targettest"
)

// plainAccountVariable makes the test binary a minimal account in a process of
// its own, so that its CPU time is not the client's.
const plainAccountVariable = "LOADSTONE_TEST_PLAIN_ACCOUNT"

func servePlainAccount() {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println(l.Addr())
	login := `{"success":true,"data":{"token":"t","masterToken":"m","sessionId":1,"parameters":[{"name":"CLIENT_TELEMETRY_ENABLED","value":false}]}}`
	one := `{"success":true,"data":{"parameters":[],"rowtype":[{"name":"ID","type":"fixed","precision":38,"scale":0},{"name":"NAME","type":"text"},{"name":"AMOUNT","type":"fixed","precision":38,"scale":2},{"name":"AT","type":"timestamp_ntz","scale":9}],` +
		`"rowset":[["4711","customer name of some length","12.50","1700000000.123456000"]],"total":1,"returned":1,"queryId":"` + queryID(
		1,
	) + `","statementTypeId":4096,"queryResultFormat":"json"}}`
	_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == loginPath {
			_, _ = io.WriteString(w, login)
			return
		}
		_, _ = io.WriteString(w, one)
	}))
}

func startPlainAccount(b *testing.B) (address string) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := osexec.Command(self)
	cmd.Env = append(os.Environ(), plainAccountVariable+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(line)
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkOverhead compares, in turns, a lookup of four columns through this
// driver with the same through a bare loop over gosnowflake's connection: same session,
// same bind, rows read to the end. CPU time of this process for each query, in µs.
func BenchmarkOverhead(b *testing.B) {
	address := startPlainAccount(b)
	dsn := "snowflake://u:p@" + address + "/DB/S?account=a&protocol=http"
	db := openDSN(b, dsn, target.Config{StatementTimeout: 30 * time.Second})
	c, err := db.Connect(context.Background(),
		[]engine.Statement{{ID: "s", SQL: "SELECT id, name, amount, at FROM t WHERE id = ?",
			Binds: []engine.Bind{{Type: engine.TypeI64}}}})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	config := db.config(0, "")
	config.Transporter, config.DisableOCSPChecks = nil, true
	config.ClientTimeout = db.settings.ClientTimeout //nolint:staticcheck // as every program has it that leaves it alone
	opened, err := sf.SnowflakeDriver{}.OpenWithConfig(context.Background(), config)
	if err != nil {
		b.Fatal(err)
	}
	defer opened.Close()
	bare := opened.(session)
	batch, op := targettest.Batch(0, int64(4711))
	var res target.Result
	ours := func() {
		if err := c.Exec(context.Background(), batch, op, &res); err != nil || res.Rows != 1 {
			b.Fatal(res.Rows, err)
		}
	}
	theirs := func() {
		rows, err := bare.QueryContext(context.Background(), "SELECT id, name, amount, at FROM t WHERE id = ?",
			[]driver.NamedValue{{Ordinal: 1, Value: int64(4711)}})
		if err != nil {
			b.Fatal(err)
		}
		values, n := make([]driver.Value, len(rows.Columns())), 0
		for {
			if err := rows.Next(values); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != 1 || rows.Close() != nil {
			b.Fatal(n)
		}
	}
	const turn = 500
	var used [2]time.Duration
	for _, f := range []func(){ours, theirs} { // warm
		for range turn {
			f()
		}
	}
	queries := 0
	b.ResetTimer()
	for n := 0; n < b.N; n += turn {
		for i := range 2 {
			i = (i + n/turn) % 2 // so that neither always follows the other
			f := []func(){ours, theirs}[i]
			begin := cpu()
			for range turn {
				f()
			}
			used[i] += cpu() - begin
		}
		queries += turn
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(used[0].Microseconds())/float64(queries), "µs-ours/query")
	b.ReportMetric(float64(used[1].Microseconds())/float64(queries), "µs-bare/query")
	b.ReportMetric(100*(float64(used[0])/float64(used[1])-1), "%-overhead")
}
