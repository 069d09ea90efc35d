package server_test

import (
	"bytes"
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loadstone-db/loadstone/engine/base/secret"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/engine/target"
	"github.com/loadstone-db/loadstone/server"
)

// TestASavedPasswordIsNotSentElsewhere asks every route that takes a masked
// connection string to send its password to a listener of the attacker's.
func TestASavedPasswordIsNotSentElsewhere(t *testing.T) {
	t.Parallel()
	canary, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int64
	go func() {
		for {
			c, err := canary.Accept()
			if err != nil {
				return
			}
			calls.Add(1)
			_ = c.Close()
		}
	}()
	defer canary.Close()
	const secret = "s3cr3t-pass"
	there := canary.Addr().String()
	b := start(t, func(o *server.Options) { o.Runs = dialing{o.Runs.(*orchestra)} })
	for driver, dsn := range map[string]string{"postgres": "postgres://bench:" + secret + "@127.0.0.1:1/d?sslmode=disable",
		"snowflake": "snowflake://bench:" + secret + "@acme/d"} {
		made := decode[store.Connection](t,
			b.do("POST", "/api/connections", map[string]any{"name": driver, "driver": driver, "dsn": dsn}).want(t, 201))
		for _, other := range []string{"postgres", "snowflake"} {
			for _, dsn := range []string{
				"postgres://bench:***@" + there + "," + "127.0.0.1:1/d?sslmode=disable",
				"postgres://bench:***@127.0.0.1:1," + there + "/d?sslmode=disable",
				"postgres://" + there + "/d?sslmode=disable&application_name=x:***@127.0.0.1:1",
				"host=" + strings.Replace(there, ":", "\vport=", 1) + "\vuser=bench\vpassword=***\vsslmode=disable",
				"snowflake://bench:***@" + there + "/d?account=acme&protocol=http", "bench:***@acme/d?host=127.0.0.1",
				strings.Replace(made.DSN, "acme", there, 1), strings.Replace(made.DSN, "127.0.0.1:1", there, 1),
			} {
				if dsn == made.DSN {
					continue
				}
				a := b.do("POST", "/api/connections/test",
					map[string]any{"driver": other, "dsn": dsn, "connection_id": made.ConnectionID}).want(t, 422)
				c := b.do("PUT", "/api/connections/"+made.ConnectionID,
					map[string]any{"name": driver, "driver": other, "dsn": dsn}).want(t, 422)
				if bytes.Contains(a.body, []byte(secret)) || bytes.Contains(c.body, []byte(secret)) {
					t.Errorf("%s: the password came back: %s %s", dsn, a.body, c.body)
				}
			}
			// Another driver reads the same text otherwise.
			if other != driver {
				b.do("PUT", "/api/connections/"+made.ConnectionID,
					map[string]any{"name": driver, "driver": other, "dsn": made.DSN}).want(t, 422)
			}
		}
		if got := b.store.secret(t, made.ConnectionID); got != dsn {
			t.Errorf("the saved connection changed to %q", got)
		}
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("the canary was called %d times", n)
	}
	b.do("POST", "/api/connections/test",
		map[string]any{"driver": "postgres", "dsn": "postgres://u:typed@" + there + "/d?sslmode=disable"}).want(t, 422)
	for begin := time.Now(); calls.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Since(begin) > 5*time.Second {
			t.Fatal("the canary does not notice calls")
		}
	}
}

// dialing tests connections for real.
type dialing struct{ *orchestra }

func (dialing) CheckConnection(ctx context.Context, driver string, dsn secret.Secret) (target.ServerInfo, error) {
	db, err := drivers()[driver].Open(target.Config{DSN: dsn, ConnectTimeout: time.Second})
	if err != nil {
		return target.ServerInfo{}, err
	}
	defer db.Close()
	return db.Check(ctx)
}
