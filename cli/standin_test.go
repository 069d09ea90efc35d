package cli

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fasthttp/websocket"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/engine/target/snowflake"
)

// standIn is `loadstone snowsim` in a process of its own.
type standIn struct {
	*process
	dsn, address string
}

// standIn starts the stand-in on the program's own files.
func (p *program) standIn(args ...string) *standIn {
	p.t.Helper()
	s := &standIn{process: launch(p.t, append([]string{"snowsim", "--json", "--data-dir", p.path("snowsim")}, args...)...)}
	waitFor(p.t, startLimit, "line of JSON of the stand-in", func() bool {
		select {
		case <-s.done:
			p.t.Fatalf("the stand-in ended: %s", s.out.String())
		default:
		}
		for line := range strings.Lines(s.out.String()) {
			var ready struct{ DSN, Address string }
			if json.Unmarshal([]byte(line), &ready) == nil && ready.DSN != "" {
				s.dsn, s.address = ready.DSN, ready.Address
			}
		}
		return s.dsn != ""
	})
	return s
}

func (s *standIn) stop(t *testing.T) {
	t.Helper()
	_ = s.cmd.Process.Signal(os.Interrupt)
	if err := s.wait(t, time.Minute); err != nil {
		t.Errorf("the stand-in ended with %v: %s", err, s.out.String())
	}
}

// keyPair is a key, as the connection takes it, and the file of its public part.
func (p *program) keyPair(name string) (private, publicFile string) {
	p.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		p.t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		p.t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})),
		p.write(name, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})))
}

// TestSnowsimTakesTheCredentialsOfItsFlags, and no others: each way to log in is tried
// with what was registered, with something else, and without its flag.
func TestSnowsimTakesTheCredentialsOfItsFlags(t *testing.T) {
	p := newProgram(t)
	private, public := p.keyPair("rsa.pub")
	stranger, _ := p.keyPair("stranger.pub")
	if code, text := p.command("snowsim", "--public-key", p.path("missing.pub")); code == 0 ||
		!strings.Contains(text, "missing.pub") {
		t.Errorf("a key that is not there: exit %d, %s", code, text)
	}
	signIn := func(s *standIn, parameters map[string]string) error {
		u, err := url.Parse(s.dsn)
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
		db, err := snowflake.NewDriver().Open(target.Config{DSN: u.String(), ConnectTimeout: 20 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		_, err = db.Check(t.Context())
		return err
	}
	ways := []struct {
		name            string
		right, wrong    map[string]string
		alwaysAvailable bool
	}{
		{"password", map[string]string{"password": "hunter2"}, map[string]string{"password": "hunter3"}, true},
		{"key pair", map[string]string{"authenticator": "snowflake_jwt", "private_key": private},
			map[string]string{"authenticator": "snowflake_jwt", "private_key": stranger}, false},
		{"token", map[string]string{"authenticator": "programmatic_access_token", "token": "pat-two"},
			map[string]string{"authenticator": "programmatic_access_token", "token": "oauth-one"}, false},
		{"OAuth", map[string]string{"authenticator": "oauth", "token": "oauth-one"},
			map[string]string{"authenticator": "oauth", "token": "pat-one"}, false},
	}
	secret := p.write("password", "hunter2\n")
	for _, flags := range [][]string{{"--public-key", public, "--token", "pat-one", "--token", "pat-two", "--oauth-token",
		"oauth-one"}, nil} {
		s := p.standIn(append([]string{"--listen", "127.0.0.1:0", "--password-file", secret}, flags...)...)
		for _, way := range ways {
			err := signIn(s, way.right)
			if registered := way.alwaysAvailable || flags != nil; registered && err != nil || !registered &&
				!engine.HasCode(err, engine.CodeTarget) {
				t.Errorf("%s, registered %v: %v", way.name, registered, err)
			}
			if err := signIn(s, way.wrong); !engine.HasCode(err, engine.CodeTarget) {
				t.Errorf("%s that nobody registered: %v", way.name, err)
			}
		}
		s.stop(t)
	}
}

// TestHistoryOutlivesTheStandIn: a run's enrichment finds its rows after the stand-in
// was started again on its files, and a run under way says what it has cost so far.
func TestHistoryOutlivesTheStandIn(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	secret := p.write("password", "hunter2\n")
	s := p.standIn("--listen", "127.0.0.1:0", "--password-file", secret, "--time-scale", "10", "--lag", "60s")
	template := func(name string, seconds int) string {
		return p.write(name, fmt.Sprintf("name: %s\ntarget:\n  connection: {driver: snowflake, dsn: %q}\n  adapter: "+
			"snowflake_standard\n  table_name: orders\n  prepare: {rows: 1000, if_exists: use}\n"+
			"workload: {plugin: mix, concurrent_connections: 2, warmup_seconds: 0, duration_seconds: %d}\n",
			strings.TrimSuffix(name, ".yaml"), s.dsn, seconds))
	}
	code, text, sum := p.run(template("outlived.yaml", 3), "--wait-enrichment", "0s")
	if code != 0 || sum == nil || !sum.Simulated || sum.Emulated || sum.Operations == 0 {
		t.Fatalf("exit %d: %s", code, text)
	}
	s.stop(t)
	if _, err := os.Stat(filepath.Join(p.path("snowsim"), "history.jsonl")); err != nil {
		t.Error(err)
	}
	s = p.standIn("--listen", s.address, "--password-file", secret, "--time-scale", "10", "--lag", "1s")
	defer s.stop(t)

	server := p.serve()
	defer server.stop()
	var d engine.RunDetail
	waitFor(t, 3*time.Minute, "end of the enrichment", func() bool {
		if err := json.Unmarshal([]byte(server.get("/api/runs/"+sum.RunID)), &d); err != nil {
			t.Fatal(err)
		}
		return d.Enrichment.Status.Over()
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
func checkCreditsSoFar(t *testing.T, s *liveServer, template string) {
	t.Helper()
	source, err := os.ReadFile(template)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(map[string]any{"source": string(source), "start": true})
	if err != nil {
		t.Fatal(err)
	}
	status, answer := s.send("POST", "/api/runs", string(body))
	var run engine.Run
	if err := json.Unmarshal([]byte(answer), &run); err != nil || status != http.StatusCreated {
		t.Fatalf("%d %s %v", status, answer, err)
	}
	base, err := url.Parse(s.base)
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Origin": {s.base}}
	for _, cookie := range s.http.Jar.Cookies(base) {
		header.Add("Cookie", cookie.String())
	}
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(s.base, "http")+"/ws/runs/"+run.RunID, header)
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
		_ = conn.SetReadDeadline(time.Now().Add(startLimit))
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
