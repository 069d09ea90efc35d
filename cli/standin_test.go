package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/loadstone-db/loadstone/cli/clitest"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
)

// TestSnowsimTakesTheCredentialsOfItsFlags, and no others: each way to log in is tried
// with what was registered, with something else, and without its flag.
func TestSnowsimTakesTheCredentialsOfItsFlags(t *testing.T) {
	t.Parallel()
	p := clitest.NewProgram(t)
	private, public := p.KeyPair("rsa.pub")
	unknown, _ := p.KeyPair("stranger.pub")
	if code, text := p.Command("snowsim", "--public-key", p.Path("missing.pub")); code == 0 ||
		!strings.Contains(text, "missing.pub") {
		t.Errorf("a key that is not there: exit %d, %s", code, text)
	}
	signIn := func(s *clitest.StandIn, parameters map[string]string) error {
		u, err := url.Parse(s.Dsn)
		if err != nil {
			t.Fatal(err)
		}
		if _, password := parameters["password"]; !password {
			u.User = url.User(u.User.Username())
		}
		q := u.Query()
		for name, value := range parameters {
			if name == "password" {
				u.User = url.UserPassword(u.User.Username(), value)
			} else {
				q.Set(name, value)
			}
		}
		u.RawQuery = q.Encode()
		db, err := snowflake.NewDriver().Open(target.Config{DSN: secret.New(u.String()), ConnectTimeout: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		_, err = db.Check(t.Context())
		return err
	}
	paths := []struct {
		name            string
		right, wrong    map[string]string
		alwaysAvailable bool
	}{
		{"password", map[string]string{"password": "hunter2"}, map[string]string{"password": "hunter3"}, true},
		{"key pair", map[string]string{"authenticator": "snowflake_jwt", "private_key": private},
			map[string]string{"authenticator": "snowflake_jwt", "private_key": unknown}, false},
		{"token", map[string]string{"authenticator": "programmatic_access_token", "token": "pat-two"},
			map[string]string{"authenticator": "programmatic_access_token", "token": "oauth-one"}, false},
		{"OAuth", map[string]string{"authenticator": "oauth", "token": "oauth-one"},
			map[string]string{"authenticator": "oauth", "token": "pat-one"}, false},
	}
	secret := p.Write("password", "hunter2\n")
	for _, flags := range [][]string{{"--public-key", public, "--token", "pat-one", "--token", "pat-two", "--oauth-token",
		"oauth-one"}, nil} {
		s := p.StandIn(append([]string{"--listen", "127.0.0.1:0", "--password-file", secret}, flags...)...)
		for _, route := range paths {
			err := signIn(s, route.right)
			if registered := route.alwaysAvailable || flags != nil; registered && err != nil || !registered &&
				!engine.HasCode(err, engine.CodeTarget) {
				t.Errorf("%s, registered %v: %v", route.name, registered, err)
			}
			if err := signIn(s, route.wrong); !engine.HasCode(err, engine.CodeTarget) {
				t.Errorf("%s that nobody registered: %v", route.name, err)
			}
		}
		s.Stop(t)
	}
}

// TestHistoryOutlivesTheStandIn: a run's enrichment finds its rows after the stand-in
// was started again on its files, and a run under way says what it has cost so far.
func TestHistoryOutlivesTheStandIn(t *testing.T) {
	clitest.Long(t, "several processes, or runs of many seconds")
	t.Parallel()
	p := clitest.NewProgram(t)
	secret := p.Write("password", "hunter2\n")
	s := p.StandIn("--listen", "127.0.0.1:0", "--password-file", secret, "--time-scale", "10", "--lag", "60s")
	template := func(name string, seconds int) string {
		return p.Write(name, fmt.Sprintf("name: %s\ntarget:\n  connection: {driver: snowflake, dsn: %q}\n  adapter: "+
			"snowflake_standard\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
			"workload: {plugin: mix, concurrent_connections: 2, warmup_seconds: 0, duration_seconds: %d}\n",
			strings.TrimSuffix(name, ".yaml"), s.Dsn, seconds))
	}
	code, text, sum := p.Run(template("outlived.yaml", 3), "--wait-enrichment", "0s")
	if code != 0 || sum == nil || !sum.Simulated || sum.Emulated || sum.Operations == 0 {
		t.Fatalf("exit %d: %s", code, text)
	}
	s.Stop(t)
	if _, err := os.Stat(filepath.Join(p.Path("snowsim"), "history.jsonl")); err != nil {
		t.Error(err)
	}
	s = p.StandIn("--listen", s.Address, "--password-file", secret, "--time-scale", "10", "--lag", "1s")
	defer s.Stop(t)

	server := p.Serve()
	defer server.Stop()
	var d engine.RunDetail
	clitest.WaitFor(t, 3*time.Minute, "end of the enrichment", func() bool {
		if err := json.Unmarshal([]byte(server.MustGet("/api/runs/"+sum.RunID)), &d); err != nil {
			t.Fatal(err)
		}
		return d.Enrichment.Status.Terminal()
	})
	if e := d.Enrichment; e.Status != engine.EnrichmentCompleted || e.Executions != sum.Accounting.Recorded ||
		e.Matched*100 < e.Executions*95 {
		t.Errorf("after the restart: %s, %d of %d executions found (%d recorded): %s", e.Status, e.Matched, e.Executions,
			sum.Accounting.Recorded, e.Reason)
	}
	checkCreditsSoFar(t, server, template("credits.yaml", 12))
}

// checkCreditsSoFar: the live payload of a run on a priced warehouse has credits that
// grow with the time, at the price of an extra small warehouse of generation 2.
func checkCreditsSoFar(t *testing.T, s *clitest.LiveServer, template string) {
	t.Helper()
	source, err := os.ReadFile(template)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"source": string(source), "start": true})
	if err != nil {
		t.Fatal(err)
	}
	status, answer := s.Send("POST", "/api/runs", string(body))
	var run engine.Run
	if err := json.Unmarshal([]byte(answer), &run); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s %v", status, answer, err)
	}
	base, err := url.Parse(s.Base)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Origin": {s.Base}}
	for _, cookie := range s.HTTP.Jar.Cookies(base) {
		header.Add("Cookie", cookie.String())
	}
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.Base, "http")+"/ws/runs/"+run.RunID, header)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	type reading struct {
		at      time.Time
		credits float64
	}
	var seen []reading
	for len(seen) < 8 {
		_ = conn.SetReadDeadline(time.Now().Add(clitest.StartTimeout))
		var update struct {
			Data struct {
				Status  engine.Status
				Metrics struct {
					Bench struct {
						Warehouse string
						Credits   *float64
					} `json:"sf_bench"`
				} `json:"custom_metrics"`
			}
		}
		if err := conn.ReadJSON(&update); err != nil {
			t.Fatalf("after %v: %v", seen, err)
		}
		if update.Data.Status.Terminal() {
			break
		}
		if b := update.Data.Metrics.Bench; b.Credits != nil && *b.Credits > 0 {
			if b.Warehouse != "LOADSTONE_WH" {
				t.Errorf("the warehouse is %q", b.Warehouse)
			}
			seen = append(seen, reading{time.Now(), *b.Credits})
		}
	}
	if len(seen) < 4 {
		t.Fatalf("too few payloads with credits: %v", seen)
	}
	for i := 1; i < len(seen); i++ {
		if seen[i].credits < seen[i-1].credits {
			t.Errorf("credits shrink: %v", seen)
		}
	}
	first, last := seen[0], seen[len(seen)-1]
	if perHour := (last.credits - first.credits) / last.at.Sub(first.at).Hours(); perHour < 0.7 || perHour > 2.7 {
		t.Errorf("%.2f credits an hour, not 1.35: %v", perHour, seen)
	}
}
